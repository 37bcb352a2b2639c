"""Graphs on the stand-in, which notes launches of kernels in CUDA C and runs them again."""

from __future__ import annotations

from collections import namedtuple

import pytest
import standin

import flambeau as fb
from flambeau._random.generator import default_generators
from flambeau.accelerator import _graphs as graphs
from flambeau.accelerator._namespace import namespace
from flambeau.plugin.host import host

pytestmark = pytest.mark.skipif(
    standin.launcher is None, reason="needs g++ or clang++ on Linux: nothing would be launched"
)


@pytest.fixture(autouse=True)
def device(monkeypatch):
    host.register(standin, name="standin", device_types=[standin.DEVICE])
    monkeypatch.setattr(graphs, "_runtime", namespace(standin.DEVICE)._runtime)
    monkeypatch.setattr(default_generators, "_others", {})  # not those of a former stand-in
    yield standin.DEVICE
    host.unregister("standin")


def test_a_replay_reads_what_its_inputs_hold_by_then(device):
    x = fb.randn(3, 5, device=device)
    recorded = fb.cuda.CUDAGraph()
    with fb.cuda.graph(recorded):
        assert fb.cuda.is_current_stream_capturing()
        y = x.softmax(1)
        z = y.log_softmax(0)
    assert not fb.cuda.is_current_stream_capturing()
    place = z.data_ptr()
    for _ in range(2):
        x.copy_(fb.randn(3, 5, device=device))
        recorded.replay()
        fb.testing.assert_close(z, x.softmax(1).log_softmax(0))
    assert z.data_ptr() == place


def test_random_numbers_of_a_replay_go_on_from_where_the_generator_is(device):
    fb.manual_seed(3)
    generator = fb.Generator(device=device).manual_seed(3)
    recorded = fb.cuda.CUDAGraph()
    with fb.cuda.graph(recorded):
        first = fb.rand(7, device=device, generator=generator)
        second = fb.randn(5, device=device, generator=generator)
    assert generator.get_offset() == 0  # a recording draws nothing
    eager = fb.Generator(device=device).manual_seed(3)
    seen = []
    for _ in range(3):
        recorded.replay()
        assert fb.equal(first, fb.rand(7, device=device, generator=eager))
        assert fb.equal(second, fb.randn(5, device=device, generator=eager))
        assert generator.get_offset() == eager.get_offset()
        seen.append(first.tolist())
        between = fb.rand(3, device=device, generator=generator)
        assert fb.equal(between, fb.rand(3, device=device, generator=eager))
    assert seen[0] != seen[1] != seen[2]
    generator.manual_seed(3)
    recorded.replay()
    assert first.tolist() == seen[0]


def test_a_generator_that_is_first_used_in_a_recording_is_recorded(device):
    recorded = fb.cuda.CUDAGraph()
    with fb.cuda.graph(recorded):
        generator = fb.Generator(device=device).manual_seed(8)
        x = fb.rand(4, device=device, generator=generator)
    recorded.replay()
    wanted = fb.rand(4, device=device, generator=fb.Generator(device=device).manual_seed(8))
    assert fb.equal(x, wanted)


def test_a_step_of_an_optimiser_is_replayed(device):
    p = fb.ones(4, device=device, requires_grad=True)
    q = fb.ones(4, device=device, requires_grad=True)
    recorded_steps = fb.optim.AdamW([p], lr=0.1, capturable=True)
    steps = fb.optim.AdamW([q], lr=0.1, capturable=True)
    for parameter, optimizer in ((p, recorded_steps), (q, steps)):
        parameter.grad = fb.ones_like(parameter)
        optimizer.step()
    recorded = fb.cuda.CUDAGraph()
    before = p.detach().clone()
    with fb.cuda.graph(recorded):
        recorded_steps.step()
    assert fb.equal(before, p)  # the launch is noted, and not made
    for _ in range(3):
        recorded.replay()
        steps.step()
    fb.testing.assert_close(p, q)


def test_steps_with_classes_and_indices_are_recorded_without_a_wait(device):
    """Indices, targets and divisors are looked at by the device, in each replay."""
    table = fb.randn(7, 5, device=device, requires_grad=True)
    tokens, target = (fb.tensor(v, device=device) for v in ([1, 6, 1, 0], [4, 0, -100, 2]))
    divisor = fb.tensor([2, 3, 5, 7], device=device)

    def step():
        rows = fb.nn.functional.embedding(tokens, table)
        loss = fb.nn.functional.cross_entropy(rows, target)
        fb.autograd.grad(loss, table)  # of which the stand-in runs some at once
        return loss, rows.gather(1, tokens[:, None] % 5), table[-tokens], tokens // divisor

    step()
    recorded = fb.cuda.CUDAGraph()
    with fb.cuda.graph(recorded):
        found = step()
    for new in ([1, 6, 1, 0], [2, 3, 4, 5]):
        tokens.copy_(fb.tensor(new, device=device))
        recorded.replay()
        for a, b in zip(found, step(), strict=True):
            fb.testing.assert_close(a, b)
    for what, wrong, text in (
        (tokens, [1, 7, 1, 0], "embedding has 7 rows"),
        (target, [5, 0, 0, 0], "Target 5 is out of bounds"),
        (divisor, [1, 1, 0, 1], "ZeroDivisionError"),
    ):
        refuses(recorded, what, wrong, text)


def refuses(recorded, what, wrong, text):
    """A replay with something wrong raises where the host waits, and the next one does not."""
    before = what.clone()
    what.copy_(fb.tensor(wrong, device=what.device))
    recorded.replay()
    with pytest.raises((IndexError, RuntimeError), match=text):
        namespace(what.device.type).synchronize()
    what.copy_(before)
    recorded.replay()
    namespace(what.device.type).synchronize()


def recorded_step(step):
    step()
    recorded = fb.cuda.CUDAGraph()
    with fb.cuda.graph(recorded):
        found = step()
    return recorded, found


def test_draws_from_tensors_are_recorded_without_a_wait(device):
    """Probabilities, rates, weights and deviations are looked at by the device, in each replay."""
    generator = fb.Generator(device=device).manual_seed(4)
    p, rates, deviations = (
        fb.tensor(v, device=device) for v in ([0.2, 0.9, 1.0], [0.5, 30.0, 0.0], [0.0, 1.0, 2.0])
    )
    weights = fb.tensor([[0.0, 1.0, 3.0], [2.0, 0.0, 0.5]], device=device)
    means = fb.tensor([1.0, 2.0, 3.0], device=device)

    def step(generator=generator):
        return (
            fb.bernoulli(p, generator=generator),
            fb.zeros(2, 3, device=device).bernoulli_(p, generator=generator),
            fb.poisson(rates, generator=generator),
            fb.multinomial(weights, 5, True, generator=generator),
            fb.normal(means, deviations, generator=generator),
        )

    recorded, found = recorded_step(step)
    others = fb.Generator(device=device).manual_seed(4)
    step(others)
    for change in (0.5, 0.1):
        p.mul_(change)
        rates.add_(change)
        weights.add_(change)
        deviations.mul_(change)
        recorded.replay()
        drawn = [found[i].tolist() for i in (0, 2, 3, 4)]  # the write in place is NumPy's here
        wanted = step(others)
        assert drawn == [wanted[i].tolist() for i in (0, 2, 3, 4)]
        assert generator.get_offset() == others.get_offset()
    for what, wrong, text in (
        (p, 1.5, "p_in >= 0 && p_in <= 1"),
        (rates, float("nan"), "invalid Poisson rate"),
        (weights, fb.inf, "either `inf`, `nan` or element < 0"),
        (deviations, -1.0, "all elements of std >= 0"),
    ):
        before = what.clone()
        what.fill_(wrong)
        recorded.replay()
        with pytest.raises(RuntimeError, match=text):
            namespace(device).synchronize()
        what.copy_(before)
        recorded.replay()
        namespace(device).synchronize()


def test_labels_of_ctc_are_recorded_without_a_wait(device):
    scores = fb.randn(6, 2, 4, device=device, requires_grad=True)
    padded = fb.tensor([[1, 2, 3], [2, 2, 0]], device=device)
    joined = fb.tensor([1, 2, 3, 2, 2], device=device)
    loss = fb.nn.functional.ctc_loss

    def step():
        y = scores.log_softmax(2)
        losses = [loss(y, t, (6, 5), (3, 2), reduction="none") for t in (padded, joined)]
        grads = [fb.autograd.grad(n, y, fb.ones_like(n), retain_graph=True)[0] for n in losses]
        return *losses, *grads

    recorded, found = recorded_step(step)
    for new in ([1, 2, 3, 2, 2], [3, 3, 1, 1, 2]):
        joined.copy_(fb.tensor(new, device=device))
        padded.copy_(fb.tensor([new[:3], [*new[3:], 0]], device=device))
        recorded.replay()
        for a, b in zip(found, step(), strict=True):
            fb.testing.assert_close(a, b)
        fb.testing.assert_close(found[0], found[1])
    for what in (padded, joined):
        before = what.clone()
        what.fill_(4)
        recorded.replay()
        with pytest.raises(RuntimeError, match=r"ctc_loss: a target is not in \[0, 4\)"):
            namespace(device).synchronize()
        what.copy_(before)
        recorded.replay()
        namespace(device).synchronize()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("include_last", [False, True])
def test_bags_are_recorded_without_a_wait(mode, include_last, device, monkeypatch):
    """Of their steps the stand-in runs many at once, and their launches too, here."""
    table = fb.randn(7, 5, device=device, requires_grad=True)
    tokens, offsets = (fb.tensor(v, device=device) for v in ([1, 6, 1, 0], [0, 1, 3]))
    how = {"mode": mode, "include_last_offset": include_last}

    def step():
        found = fb.nn.functional.embedding_bag(tokens, table, offsets, **how)
        return found, fb.autograd.grad(found, table, fb.ones_like(found))[0]

    monkeypatch.setattr(standin.launcher, "at_once", True)
    recorded, found = recorded_step(step)
    for a, b in zip(found, step(), strict=True):
        fb.testing.assert_close(a, b)
    recorded.replay()
    namespace(device).synchronize()
    for wrong, text in (([1, 1, 3], "offsets.0. has to be 0"), ([0, 1, 5], "input's length 4 but")):
        offsets.copy_(fb.tensor(wrong, device=device))
        recorded.replay()
        with pytest.raises(RuntimeError, match=text):
            namespace(device).synchronize()


@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_extrema_by_index_are_recorded_without_a_wait(include_self, reduce, device, monkeypatch):
    x, s = (fb.randn(4, n, device=device, requires_grad=True) for n in (3, 5))
    index = fb.tensor([[0, 2, 2, 1, 0]] * 4, device=device)
    rows = fb.tensor([3, 0, 3, 1], device=device)
    how = {"reduce": reduce, "include_self": include_self}

    def step():
        found = x.scatter_reduce(1, index, s, **how), x.index_reduce(0, rows, s[:, :3], **how)
        grads = fb.autograd.grad(found, (x, s), [fb.ones_like(y) for y in found])
        return *(y.detach() for y in found), *grads

    monkeypatch.setattr(standin.launcher, "at_once", True)
    recorded, found = recorded_step(step)
    for a, b in zip(found, step(), strict=True):
        fb.testing.assert_close(a, b)
    for what, wrong, text in (
        (index, 3, r"scatter_reduce\(\): index 3 is out of bounds for dimension with size 3"),
        (rows, -1, "index -1 is out of bounds for dimension 0 with size 4"),
    ):
        refuses(recorded, what, wrong, text)


def test_samples_without_replacement_are_looked_at_without_a_wait(device, monkeypatch):
    monkeypatch.setattr(standin.launcher, "at_once", True)  # places are copied by NumPy
    weights = fb.tensor([0.0, 1.0, 3.0, 0.5], device=device)
    recorded, found = recorded_step(lambda: fb.multinomial(weights, 3))
    assert sorted(found.tolist()) == [1, 2, 3]
    weights.fill_(-1)
    recorded.replay()
    with pytest.raises(RuntimeError, match="either `inf`, `nan` or element < 0"):
        namespace(device).synchronize()


def test_classes_of_a_known_number_are_spread_without_a_wait(device, monkeypatch):
    monkeypatch.setattr(standin.launcher, "at_once", True)
    classes = fb.tensor([[2, 0], [1, 2]], device=device)
    recorded, found = recorded_step(lambda: fb.nn.functional.one_hot(classes, 3))
    assert fb.equal(found.cpu(), fb.nn.functional.one_hot(classes.cpu(), 3))
    classes.fill_(3)
    recorded.replay()
    with pytest.raises(RuntimeError, match="index 3 is out of bounds for dimension with size 3"):
        namespace(device).synchronize()


def test_a_recording_does_not_wait(device):
    x = fb.ones(3, device=device)
    with (
        pytest.raises(RuntimeError, match="StreamCaptureUnsupported"),
        fb.cuda.graph(fb.cuda.CUDAGraph()),
    ):
        x.sum().item()


@pytest.mark.parametrize(
    "sized",
    [
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: x.scatter_reduce(0, fb.arange(2, device=x.device), x[:2], "prod"),
    ],
)
def test_a_recording_does_not_wait_for_a_size(sized, device):
    x = fb.ones(3, device=device)
    sized(x)
    with (
        pytest.raises(RuntimeError, match="StreamCaptureUnsupported"),
        fb.cuda.graph(fb.cuda.CUDAGraph()),
    ):
        sized(x)


def test_what_a_graph_refuses(device):
    recorded = fb.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        recorded.replay()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        recorded.pool()
    with pytest.raises(RuntimeError, match="non-default stream"):
        recorded.capture_begin()
    with pytest.raises(RuntimeError, match="not being captured"):
        recorded.capture_end()
    with pytest.raises(ValueError, match="Unknown capture error mode"):
        recorded.capture_begin(capture_error_mode="loose")
    with fb.cuda.graph(recorded):
        pass
    with (
        pytest.raises(RuntimeError, match="already owns a captured graph"),
        fb.cuda.graph(recorded),
    ):
        pass
    assert fb.cuda.CUDAGraph().capture_begin.__doc__
    recorded.reset()
    with pytest.raises(RuntimeError, match="without a preceding"):
        recorded.replay()


def test_graphs_may_share_a_pool(device):
    first, second = fb.cuda.CUDAGraph(), fb.cuda.CUDAGraph()
    with fb.cuda.graph(first):
        pass
    with fb.cuda.graph(second, pool=first.pool()):
        pass
    assert second.pool() is first.pool()


def test_an_error_in_the_block_ends_the_recording(device):
    recorded = fb.cuda.CUDAGraph()
    with pytest.raises(KeyError, match="mine"), fb.cuda.graph(recorded):
        raise KeyError("mine")
    assert not fb.cuda.is_current_stream_capturing()
    assert fb.rand(2, device=device).shape == (2,)


def test_a_draw_on_the_host_cannot_be_recorded(device):
    generator = fb.Generator(device=device).manual_seed(1)
    assert generator.engine is not None
    with (
        pytest.raises(RuntimeError, match="cannot be part of a graph"),
        fb.cuda.graph(fb.cuda.CUDAGraph()),
    ):
        generator.engine.random_bits(3)


def network(x):
    return fb.relu(x).softmax(1)


def test_a_function_of_replays_has_the_values_and_gradients_of_the_function(device):
    sample = fb.randn(3, 4, device=device, requires_grad=True)
    graphed = fb.cuda.make_graphed_callables(network, (sample,))
    for _ in range(3):
        x = fb.randn(3, 4, device=device, requires_grad=True)
        weight = fb.randn(3, 4, device=device)
        y, wanted = graphed(x), network(x)
        fb.testing.assert_close(y, wanted)
        (grad,) = fb.autograd.grad(y, x, weight)
        fb.testing.assert_close(grad, fb.autograd.grad(wanted, x, weight)[0])


Pair = namedtuple("Pair", "first rest")


class Scaled(fb.nn.Module):
    """A module with a parameter, of kernels in CUDA C only."""

    def __init__(self):
        super().__init__()
        self.weight = fb.nn.Parameter(fb.randn(4))

    def forward(self, x):
        return fb.nn.functional.layer_norm(x, (4,), self.weight)


def test_a_module_of_replays_trains_its_parameters_and_evaluates_plainly(device):
    module = Scaled().to(device)
    plain = Scaled().to(device)
    plain.load_state_dict(module.state_dict())
    sample = fb.randn(3, 4, device=device)
    assert fb.cuda.make_graphed_callables(module, (sample,)) is module
    x = fb.randn(3, 4, device=device)
    for m in (module, plain):
        m(x).backward(fb.ones(3, 4, device=device))
    fb.testing.assert_close(module.weight.grad, plain.weight.grad)
    module.eval()
    standin.launcher.launched.clear()
    fb.testing.assert_close(module(x[:2]), plain(x[:2]))  # no replay: another shape


def test_several_callables_share_a_pool_and_run_in_order(device):
    sample = fb.randn(2, 3, device=device, requires_grad=True)
    both = fb.cuda.make_graphed_callables((network, fb.relu), ((sample,), (sample,)))
    x = fb.randn(2, 3, device=device, requires_grad=True)
    fb.testing.assert_close(both[1](both[0](x)), fb.relu(network(x)))


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("zeroed", [True, False])
def test_gradients_of_replays_add_up(zeroed, set_to_none, device):
    """A gradient stands in ``grad``, where the next replay would write."""
    module, plain = Scaled().to(device), Scaled().to(device)
    plain.load_state_dict(module.state_dict())
    fb.cuda.make_graphed_callables(module, (fb.randn(3, 4, device=device),))
    for i in range(1, 4):
        x = fb.randn(3, 4, device=device)
        for m in (module, plain):
            if zeroed:
                m.zero_grad(set_to_none=set_to_none)
            m(x).backward(fb.full((3, 4), float(i), device=device))
        fb.testing.assert_close(module.weight.grad, plain.weight.grad)


def test_arguments_and_results_may_be_nested(device):
    def both(x, more):
        a, b = more["pair"]
        return {"sum": Pair(x.exp(), [a.softmax(1), b.relu()]), "x": (x.tanh(),)}

    def given():
        tensors = [fb.randn(2, 3, device=device, requires_grad=True) for _ in range(3)]
        return tensors, (tensors[0], {"pair": tensors[1:]})

    graphed = fb.cuda.make_graphed_callables(both, given()[1])
    for _ in range(2):
        tensors, args = given()
        found, wanted = graphed(*args), both(*args)
        assert found["sum"]._fields == ("first", "rest") and type(found["x"]) is tuple
        totals = []
        for results in (found, wanted):
            first, (second, third) = results["sum"]
            totals.append(first.mul(2) + second.square() + third + results["x"][0])
        fb.testing.assert_close(*totals)
        weight = fb.randn(2, 3, device=device)
        grads = [fb.autograd.grad(total, tensors, weight) for total in totals]
        for a, b in zip(*grads, strict=True):
            fb.testing.assert_close(a, b)


def test_a_graphed_callable_refuses_other_arguments(device):
    graphed = fb.cuda.make_graphed_callables(network, (fb.randn(3, 4, device=device),))
    for wrong in (fb.randn(1, 4, device=device), fb.randn(3, 4, device=device).double()):
        with pytest.raises(RuntimeError, match="argument 0 of the recorded callable was"):
            graphed(wrong)
    x = fb.randn(3, 4, device=device)
    for args in ((), (x, x), ([x],)):
        with pytest.raises(TypeError, match=r"callable were \(\.\), and now are"):
            graphed(*args)


def test_one_graph_at_a_time_is_recorded_on_a_device(device):
    outer = fb.cuda.CUDAGraph()
    x = fb.ones(2, 3, device=device)
    with fb.cuda.graph(outer):
        y = x.softmax(1)
        with (
            pytest.raises(RuntimeError, match="being recorded already"),
            fb.cuda.graph(fb.cuda.CUDAGraph()),
        ):
            pass
        devices = namespace(device)
        with (
            devices.stream(devices.Stream()),
            pytest.raises(RuntimeError, match="records one at a time"),
        ):
            fb.cuda.CUDAGraph().capture_begin()
    outer.replay()
    fb.testing.assert_close(y, x.softmax(1))


def test_what_cannot_be_graphed_is_refused(device):
    with pytest.raises(TypeError, match="each argument must be a Tensor"):
        fb.cuda.make_graphed_callables(network, (3,))
    with pytest.raises(TypeError, match=r"each result must be a Tensor.* got str"):
        fb.cuda.make_graphed_callables(lambda x: "x", (fb.ones(2, device=device),))
    module = Scaled().to(device)
    module.register_forward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="must not have hooks"):
        fb.cuda.make_graphed_callables(module, (fb.randn(3, 4, device=device),))


def trainer(device, name, capturable=True):
    """A model of kernels in CUDA C with a training step, and its parameter."""
    generator = fb.Generator().manual_seed(1)
    weight = fb.randn(4, generator=generator).to(device).requires_grad_()
    options = {"capturable": True} if capturable else {"momentum": 0.9}
    optimizer = getattr(fb.optim, name)([weight], lr=0.1, **options)
    seed = fb.ones(3, 4, device=device)

    def step(x, target):
        optimizer.zero_grad()
        y = (fb.nn.functional.layer_norm(x, (4,), weight).tanh() - target).square()
        y.backward(seed)
        optimizer.step()
        return y.detach()

    return step, weight


@pytest.mark.parametrize(
    ("name", "capturable"), [("SGD", False), ("AdamW", True), ("NAdam", True), ("Rprop", True)]
)
def test_a_whole_step_is_replayed_on_new_batches(name, capturable, device):
    batches = [(fb.randn(3, 4), fb.randn(3, 4)) for _ in range(4)]
    placed = [tuple(t.to(device) for t in batch) for batch in batches]
    step, weight = trainer(device, name, capturable)
    train = fb.cuda.make_graphed_step(step, placed[0], num_warmup_iters=2)
    plain, wanted = trainer(device, name, capturable)
    for _ in range(2):
        plain(*placed[0])
    fb.testing.assert_close(weight, wanted)  # a recording makes no step
    results = None
    for batch, there in zip(batches, placed, strict=True):
        found = train(*batch)  # also from host memory
        fb.testing.assert_close(found, plain(*there))
        fb.testing.assert_close(weight, wanted)
        assert results is None or results is found
        results = found
    assert isinstance(train.graph, fb.cuda.CUDAGraph)


def test_dropout_in_a_recorded_step_draws_on(device):
    x = fb.ones(64, device=device)
    fb.accelerator.namespace(device).manual_seed(5)
    train = fb.cuda.make_graphed_step(lambda x: fb.dropout(x, 0.5, True), (x,), 0)
    seen = [train(x).tolist() for _ in range(3)]
    fb.accelerator.namespace(device).manual_seed(5)
    assert seen == [fb.dropout(x, 0.5, True).tolist() for _ in range(3)]
    assert seen[0] != seen[1] != seen[2]


def test_a_recorded_step_refuses_other_batches(device):
    x = fb.ones(2, device=device)
    train = fb.cuda.make_graphed_step(lambda x: x.exp(), (x,))
    with pytest.raises(RuntimeError, match="make another recording"):
        train(fb.ones(3, device=device))
    with pytest.raises(RuntimeError, match="make another recording"):
        train(x.double())
    with pytest.raises(TypeError, match="takes 1 tensors, got 0"):
        train()
    with pytest.raises(TypeError, match="must be a Tensor"):
        fb.cuda.make_graphed_step(lambda x: x, (1,))
