"""A pass for chosen tensors computes the gradients on the way to them, and no others."""

import random
import threading

import pytest

import flambeau as fb
from flambeau.autograd import grad, graph
from flambeau.ops import OPS
from flambeau.ops.declaration.parameters import PLAIN, TENSOR
from flambeau.testing.samples import DTYPES, SAMPLES, realise
from flambeau.utils.checkpoint import checkpoint


@pytest.fixture
def counted(monkeypatch):
    """Counts from now on what a tensor's backend is asked for under some names."""

    def count(t, *names):
        asked = dict.fromkeys(names, 0)

        def counting(name):
            kernel = getattr(t._be, name)

            def counted(*args):
                asked[name] += 1
                return kernel(*args)

            return counted

        for name in names:
            monkeypatch.setattr(t._be, name, counting(name))
        return asked

    return count


@pytest.fixture
def image(device):
    return fb.arange(32.0, device=device).reshape(1, 2, 4, 4).requires_grad_()


@pytest.fixture
def filters(device):
    return fb.ones(2, 2, 2, 2, device=device, requires_grad=True)


KERNELS = ("conv2d_input_grad", "conv2d_weight_grad")


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("chosen", [0, 1])
def test_of_a_convolution_only_the_gradient_asked_for_is_computed(
    chosen, create_graph, image, filters, counted
):
    y = fb.conv2d(image, filters).sum()
    asked = counted(image, *KERNELS)
    grad(y, (image, filters)[chosen], create_graph=create_graph, retain_graph=True)
    assert asked == {name: int(i == chosen) for i, name in enumerate(KERNELS)}
    y.backward(inputs=[(image, filters)[chosen]])
    assert asked == {name: 2 * (i == chosen) for i, name in enumerate(KERNELS)}


def test_a_pass_for_all_inputs_or_for_all_leaves_computes_all(image, filters, counted):
    y = fb.conv2d(image, filters).sum()
    asked = counted(image, *KERNELS)
    grad(y, (image, filters), retain_graph=True)
    assert asked == dict.fromkeys(KERNELS, 1)
    y.backward()
    assert asked == dict.fromkeys(KERNELS, 2)


@pytest.mark.parametrize("chosen", [0, 1])
@pytest.mark.parametrize(
    ("call", "kernel"),
    [(lambda a, b: a * b, "mul"), (lambda a, b: a @ b, "matmul"), (fb.atan2, "div")],
)
def test_of_two_operands_one_costs_less_than_both(call, kernel, chosen, leaf, counted):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    w = leaf([[5.0, 6.0], [7.0, 8.0]])
    y = call(x, w).sum()
    asked = counted(x, kernel)
    grad(y, [x, w], retain_graph=True)
    both = asked[kernel]
    grad(y, (x, w)[chosen])
    assert asked[kernel] - both < both


def test_saliency_through_layers_computes_no_gradient_of_their_weights(leaf, counted):
    x = leaf([[1.0, 2.0]])
    weights = [leaf([[1.0, -1.0], [0.5, 2.0]]) for _ in range(3)]
    h = x
    for w in weights:
        h = (h @ w).tanh()
    asked = counted(x, "matmul")
    grad(h.sum(), x)
    assert asked["matmul"] == 3


@pytest.mark.parametrize("part", range(4))
def test_gradients_of_every_op_are_the_same_one_at_a_time(part):
    compared = set()
    for name in NAMES[part::4]:
        dtype = fb.float64 if fb.float64 in DTYPES[name] else DTYPES[name][0]
        for sample in SAMPLES[name][:2]:
            try:
                args = realise(sample.args, make, dtype, generator=None)
                many, leaves, ask = history(OPS[name], args)
                together = gradients(many, leaves, ask)
            except (NotImplementedError, RuntimeError, ValueError):
                continue  # what the device does not know
            for i, t in enumerate(leaves):
                (alone,) = gradients(many, [t], ask)
                assert same(alone, together[i]), (name, sample, i)
                compared.add(name)
                if alone is not None and alone.requires_grad and len(leaves) > 1:
                    again, whole = second(alone, leaves), second(together[i], leaves)
                    assert len(again) == len(whole)
                    assert all(map(same, again, whole)), (name, sample, i)
    assert len(compared) > 0.9 * len(NAMES[part::4])


def test_a_written_operand_is_found_whichever_gradient_is_asked_for(leaf):
    image = leaf([[[[1.0, 2.0], [3.0, 4.0]]]])
    w = leaf([[[[1.0]]]])
    x = image * 1
    y = fb.conv2d(x, w)
    x.detach().copy_(x.detach() * 2)
    if x._be.strided:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            grad(y.sum(), image)


def test_the_hook_of_a_node_sees_none_for_what_is_not_asked_for(leaf):
    for call in (lambda a, b: a * b, lambda a, b: a + b, lambda a, b: a @ b, fb.atan2):
        x, w = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[5.0, 6.0], [7.0, 8.0]])
        y = call(x, w)
        seen = []
        y.grad_fn.register_hook(lambda ins, outs, s=seen: s.append([g is None for g in ins]))
        grad(y.sum(), x, retain_graph=True)
        y.sum().backward(inputs=[w], retain_graph=True)
        y.sum().backward()
        assert seen == [[False, True], [True, False], [False, False]]


def test_the_hook_of_a_node_cannot_make_up_a_gradient(leaf):
    x, w = leaf([1.0]), leaf([2.0])
    y = x * w
    y.grad_fn.register_hook(lambda ins, outs: (outs[0], outs[0]))
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="can't replace a None gradient"):
        grad(y, x)


def test_hooks_of_tensors_that_are_not_reached_do_not_run(leaf):
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    v = w * 2
    seen = []
    v.register_hook(lambda g: seen.append("v"))
    w.register_hook(lambda g: seen.append("w"))
    w.register_post_accumulate_grad_hook(lambda t: seen.append("accumulated"))
    v.retain_grad()
    y = (x * v).sum()
    grad(y, x, retain_graph=True)
    y.backward(inputs=[x], retain_graph=True)
    assert seen == []
    assert v.grad is None
    assert w.grad is None
    y.backward()
    assert seen == ["v", "w", "accumulated"]


@pytest.mark.parametrize("inputs", [1, 2])
def test_a_leafs_hook_runs_once_per_pass(inputs, leaf):
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
    y = (x * w).sum()
    y.backward(inputs=[x] * inputs, retain_graph=True)
    assert x.grad.tolist() == [30.0, 40.0]
    assert [g.tolist() for g in grad(y, [x] * inputs)] == [[30.0, 40.0]] * inputs
    assert seen == [[3.0, 4.0]] * 2


def test_a_result_that_gradients_are_accumulated_into_keeps_them_from_then_on(leaf):
    x = leaf([1.0, 2.0])
    y = x * 2
    z = (y * y).sum()
    z.backward(inputs=[y], retain_graph=True)
    assert y.retains_grad
    assert y.grad.tolist() == [4.0, 8.0]
    z.backward()
    assert y.grad.tolist() == [8.0, 16.0]
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        (x * 2).sum().backward(inputs=[x.detach()])


def test_a_copy_has_gradients_and_hooks_of_its_own(leaf):
    x = leaf([1.0, 2.0])
    y = x * 2
    z = fb.zeros_like(y).copy_(y)
    seen = []
    z.register_hook(lambda g: seen.append(g.tolist()))
    out = (y * 3 + z * 5).sum()
    assert grad(out, z, retain_graph=True)[0].tolist() == [5.0, 5.0]
    assert grad(out, y, retain_graph=True)[0].tolist() == [8.0, 8.0]
    out.backward()
    assert x.grad.tolist() == [16.0, 16.0]
    assert seen == [[5.0, 5.0]] * 3


told: list[tuple[bool, ...]] = []


class Product(fb.autograd.Function):
    """Notes in `told` what it is told of its inputs."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        told.append(ctx.needs_input_grad)
        return g * b, g * a


def test_a_functions_needs_are_those_of_its_call(leaf):
    x, w = leaf([1.0]), leaf([2.0])
    y = Product.apply(x, w)
    told.clear()
    assert grad(y, x, retain_graph=True)[0].tolist() == [2.0]
    y.backward(inputs=[w])
    assert told == [(True, True)] * 2
    assert (x.grad, w.grad.tolist()) == (None, [1.0])


@pytest.mark.filterwarnings("ignore:Anomaly Detection:UserWarning")
@pytest.mark.filterwarnings("ignore:Error detected:UserWarning")
def test_anomaly_mode_looks_at_what_is_asked_for_only(leaf):
    x, w = leaf([1.0]), leaf([float("nan")])
    with fb.autograd.detect_anomaly():
        y = x * w
        assert grad(y, w, retain_graph=True)[0].tolist() == [1.0]
        with pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
            grad(y, x)


def test_profilers_see_one_call_per_node(leaf):
    x, w = leaf([1.0]), leaf([2.0])
    y = (x * w).tanh()
    with fb.profiler.profile() as told:
        grad(y, x)
    names = [event.name for event in told.events()]
    assert sum("MulBackward0" in name for name in names) == 1


def test_saved_tensors_are_unpacked_for_the_gradients_asked_for(leaf):
    with graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t * 1):
        x, w = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[5.0, 6.0], [7.0, 8.0]])
        y = ((x @ w) * w).atan2(x)
    both = grad(y.sum(), [x, w], retain_graph=True)
    for t, g in zip((x, w), both, strict=True):
        (alone,) = grad(y.sum(), t, retain_graph=True)
        assert alone.tolist() == g.tolist()


def test_a_checkpoint_gives_the_gradient_asked_for(leaf):
    def run(a, b):
        return (a * b).tanh() * b

    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    both = grad(run(x, w).sum(), [x, w])
    for t, g in zip((x, w), both, strict=True):
        y = checkpoint(run, x, w, use_reentrant=False)
        assert grad(y.sum(), t)[0].tolist() == g.tolist()


def test_a_compiled_function_gives_the_gradient_asked_for(leaf):
    run = fb.compile(lambda a, b: (a * b).tanh() * b)
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = (x * w).tanh() * w
    both = grad(y.sum(), [x, w])
    for _ in range(4):
        for t, g in zip((x, w), both, strict=True):
            (alone,) = grad(run(x, w).sum(), t)
            assert alone.allclose(g)


def test_passes_for_different_inputs_may_walk_one_graph_at_once(device):
    leaves = [fb.full((2,), i + 1.0, device=device, requires_grad=True) for i in range(4)]
    y = leaves[0]
    for t in leaves[1:]:
        y = (y * t).atan2(t + y)
    expected = [g.tolist() for g in grad(y.sum(), leaves, retain_graph=True)]
    wrong = []

    def walk(i):
        for _ in range(30):
            (found,) = grad(y.sum(), leaves[i], retain_graph=True)
            if found.tolist() != expected[i]:
                wrong.append((i, found.tolist()))

    threads = [threading.Thread(target=walk, args=(i % 4,), daemon=True) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads), "a thread hangs"
    assert wrong == []


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_have_the_same_gradients_for_any_choice(seed, device):
    chance = random.Random(seed)
    made = random_graph(chance, device)
    out = made[-1].sum()
    wanted = [t for t in made if t.requires_grad]
    expected = grad(out, wanted, retain_graph=True, allow_unused=True)
    for _ in range(6):
        places = [chance.randrange(len(wanted)) for _ in range(chance.randint(1, 3))]
        found = grad(out, [wanted[i] for i in places], retain_graph=True, allow_unused=True)
        for i, g in zip(places, found, strict=True):
            assert same(g, expected[i])


def random_graph(chance, device):
    """Leaves and what comes of them, each of four numbers; the last leads to many of them."""
    made = [
        fb.tensor([chance.uniform(0.5, 1.5) for _ in range(4)], device=device)
        .double()
        .requires_grad_(chance.random() < 0.8 or not i)
        for i in range(4)
    ]
    for _ in range(12):
        a, b = chance.choice(made), chance.choice(made)
        made.append(chance.choice(STEPS)(a, b))
    return [*made, made[0] * sum(made[4:])]


STEPS = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a - b / 3,
    lambda a, b: fb.atan2(a, b),
    lambda a, b: a.tanh(),
    lambda a, b: a.reshape(2, 2).matmul(b.reshape(2, 2)).reshape(4),
    lambda a, b: fb.cat([a[:2], b[2:]]),
    lambda a, b: a.sort()[0] * b.cumsum(0),
    lambda a, b: (a * 1).mul_(b),
    lambda a, b: fb.where(a > b, a, b),
    lambda a, b: fb.nn.functional.layer_norm(a, (4,), b, a),
    lambda a, b: fb.lerp(a, b, a),
]


def same(a, b):
    """Whether two gradients, or their absence, are the same numbers."""
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and bool(fb.isclose(a, b, rtol=1e-12, equal_nan=True).all())


def make(values, shape, dtype):
    whole = fb.tensor(values, dtype=dtype, device="ref")
    return whole.reshape(shape) if values else fb.zeros(shape, dtype=dtype, device="ref")


def history(op, args):
    """The results of an op that have a history, its leaves, and weights of the results."""
    leaves = []

    def leaf(t):
        if t is None:
            return None
        t = t.detach().clone()
        if t.dtype.fp:
            leaves.append(t.requires_grad_())
        return t

    given = [
        a if kind is PLAIN else leaf(a) if kind is TENSOR else tuple(map(leaf, a))
        for a, kind in zip(args, op.kinds, strict=True)
    ]
    result = op(*given)
    many = [r for r in (result if type(result) is tuple else (result,)) if r.requires_grad]
    return many, leaves, [fb.ones_like(r) for r in many]


def second(first, leaves):
    try:
        return gradients([first], leaves, [fb.ones_like(first)])
    except NotImplementedError:  # not every op can be differentiated twice
        return ()


def gradients(many, leaves, ask):
    if not many:
        raise ValueError("nothing has a history")
    return grad(many, leaves, ask, create_graph=True, allow_unused=True)


NAMES = [
    name
    for name, op in OPS.items()
    if op.inputs_at
    and op.gradient_state == "given"
    and not name.endswith("_")
    and SAMPLES.get(name)
    and "generator" not in op.params
    and "dropout" not in name
    and name not in ("igamma", "igammac")  # ten seconds each on this device
]
