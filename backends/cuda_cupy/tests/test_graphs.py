"""Graphs on the stand-in, which notes launches of kernels in CUDA C and runs them again."""

from __future__ import annotations

import pytest
import standin

import flambeau as fb
from flambeau._generator import default_generators
from flambeau.accelerator._namespace import namespace
from flambeau.cuda import graphs
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
        before = what.clone()
        what.copy_(fb.tensor(wrong, device=device))
        recorded.replay()
        with pytest.raises((IndexError, RuntimeError), match=text):
            namespace(device).synchronize()
        what.copy_(before)
        recorded.replay()
        namespace(device).synchronize()


def test_a_recording_does_not_wait(device):
    x = fb.ones(3, device=device)
    with (
        pytest.raises(RuntimeError, match="StreamCaptureUnsupported"),
        fb.cuda.graph(fb.cuda.CUDAGraph()),
    ):
        x.sum().item()


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


def test_what_cannot_be_graphed_is_refused(device):
    with pytest.raises(TypeError, match="must be a Tensor"):
        fb.cuda.make_graphed_callables(network, (3,))
    module = Scaled().to(device)
    module.register_forward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="must not have hooks"):
        fb.cuda.make_graphed_callables(module, (fb.randn(3, 4, device=device),))


# Whole steps.


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
