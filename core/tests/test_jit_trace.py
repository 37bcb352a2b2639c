"""Traced programs: what is noted, and that it holds for other inputs."""

import copy
import io
import math
import subprocess
import sys
import threading
import warnings

import pytest

import flambeau as fb
from flambeau import nn
from flambeau._tensor.overrides import Overridable, offering_calls
from flambeau.jit._tracing.state import current
from flambeau.utils._named_ops import CustomOp


def kinds(graph):
    """The ops of a graph in order."""
    return [node.kind for node in graph.block.all_nodes() if node.kind.startswith("aten::")]


def reshaped(x):
    y = x.view(x.size(0), -1) * 2 + 1
    y[0] = 3
    z = fb.cat([y, y.relu()], 1).transpose(0, 1)
    steps = fb.arange(x.size(0)).float().unsqueeze(1)
    return z, y.chunk(2, 1)[0], x.max(1).values, x.new_zeros(x.shape[0], 2) + steps


def test_a_trace_holds_at_another_size():
    traced = fb.jit.trace(reshaped, fb.randn(2, 4))
    x = fb.randn(3, 6)
    for found, expected in zip(traced(x), reshaped(x), strict=True):
        assert fb.equal(found, expected)


def test_ops_are_noted_before_they_are_taken_apart():
    net = nn.Sequential(nn.Linear(4, 3), nn.GELU(), nn.LayerNorm(3), nn.Dropout()).eval()
    graph = fb.jit.trace(net, fb.randn(2, 4)).graph
    assert kinds(graph) == ["aten::linear", "aten::gelu", "aten::layer_norm", "aten::dropout"]


def test_writes_are_noted():
    def f(x):
        y = x.clone()
        y[:, 0] += 1
        y.mul_(2)
        y[y > 3] = 0
        return y

    traced = fb.jit.trace(f, fb.ones(2, 2))
    x = fb.arange(6.0).view(3, 2)
    assert fb.equal(traced(x), f(x))


def test_public_names_are_what_they_were_after_a_trace_also_of_what_raises():
    def refuse(x):
        raise ValueError("no")

    before = {name: vars(fb.Tensor).get(name) for name in ("shape", "size", "add", "__bool__")}
    relu, call = fb.relu, nn.Module.__call__
    fb.jit.trace(lambda x: x + 1, fb.ones(1))
    with pytest.raises(ValueError, match="no"):
        fb.jit.trace(refuse, fb.ones(1))
    assert {name: vars(fb.Tensor).get(name) for name in before} == before
    assert fb.relu is relu and nn.Module.__call__ is call
    assert not fb.jit.is_tracing()


def test_other_threads_are_not_traced():
    seen = []

    def f(x):
        def other():
            seen.append((fb.jit.is_tracing(), type(fb.ones(2).shape[0])))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return x + 1

    traced = fb.jit.trace(f, fb.ones(2), check_trace=False)
    assert seen == [(False, int)]
    assert kinds(traced.graph) == ["aten::add"]


def test_parameters_are_shared_and_get_gradients():
    net = nn.Linear(3, 2)
    traced = fb.jit.trace(net, fb.ones(1, 3))
    assert traced.weight is net.weight
    traced(fb.ones(4, 3)).sum().backward()
    assert net.weight.grad is not None and net.weight.grad.tolist() == [[4.0] * 3] * 2


def test_numbers_taken_out_of_tensors_warn_at_the_line_that_does_it():
    def f(x):
        return x * 2 if x.sum() > 0 else x

    with pytest.warns(fb.jit.TracerWarning, match="Python boolean") as found:
        fb.jit.trace(f, fb.ones(2))
    assert {each.filename for each in found} == {__file__}


def test_sizes_that_decide_warn():
    def f(x):
        return x * 2 if x.size(0) > 1 else x

    with pytest.warns(fb.jit.TracerWarning, match="Python boolean"):
        fb.jit.trace(f, fb.ones(2))


def test_what_changes_between_two_traces_is_an_error():
    runs = []

    def f(x):
        runs.append(1)
        return x + len(runs)

    with pytest.raises(fb.jit.TracingCheckError, match="Graphs differed"):
        fb.jit.trace(f, fb.ones(2))


def test_lists_as_results_are_refused_unless_asked_for():
    def f(x):
        return [x, x + 1]

    with pytest.raises(RuntimeError, match="strict=False"):
        fb.jit.trace(f, fb.ones(2))
    assert len(fb.jit.trace(f, fb.ones(2), strict=False)(fb.ones(3))) == 2


def test_scripted_functions_are_calls_in_traces_and_the_other_way_round():
    @fb.jit.script
    def clipped(x, n: int):
        if bool(x.sum() > 4):
            return x - n
        return x

    traced = fb.jit.trace(lambda x: clipped(x * 2, 3), fb.ones(1))
    assert traced(fb.ones(4)).tolist() == [-1.0] * 4
    assert traced(fb.ones(1)).tolist() == [2.0]

    @fb.jit.script
    def again(x):
        return traced(x) + 1

    assert again(fb.ones(4)).tolist() == [0.0] * 4


def test_containers_as_inputs_are_taken_apart():
    def f(pair, named):
        return pair[0] + pair[1] * named["b"]

    given = (fb.ones(2), fb.ones(2)), {"a": fb.ones(2), "b": fb.ones(2)}
    traced = fb.jit.trace(f, given)
    found = traced((fb.ones(3), fb.ones(3) * 2), {"a": fb.ones(3), "b": fb.ones(3) * 3})
    assert found.tolist() == [7.0] * 3


def test_modules_that_are_not_given_cannot_be_in_a_trace():
    net = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="requires grad as a constant"):
        fb.jit.trace(lambda x: net(x), fb.ones(1, 2))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.reshape((*x.shape[:-1], 2, 1)),
        lambda x: x.reshape(x.size()[:1] + fb.Size((2, 1))),
        lambda x: x.new_zeros(fb.Size([x.shape[0], 2])),
        lambda x: x.unsqueeze(0).expand(x.shape[1:] * 1 + x.shape),
    ],
)
def test_parts_and_sums_of_shapes_are_noted(program):
    traced = fb.jit.trace(program, (fb.randn(3, 2),), check_trace=False)
    x = fb.randn(5, 2)
    assert traced(x).shape == program(x).shape


def test_a_new_tensor_of_numbers_is_a_constant_of_which_a_warning_tells():
    def program(x):
        return x * x.new_tensor([1.0, 2.0])

    with pytest.warns(fb.jit.TracerWarning, match="torch.new_tensor results are registered"):
        traced = fb.jit.trace(program, (fb.ones(2),), check_trace=False)
    assert traced(fb.ones(3, 2)).tolist() == [[1.0, 2.0]] * 3


def test_arithmetic_of_sizes_is_noted():
    def f(x):
        n = x.size(0) * 2 - 1
        return x.new_ones(n // 2 + n % 3, max(n, 1)) * (x.size(1) ** -0.5) / (x.numel() / 2)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fb.jit.TracerWarning)
        traced = fb.jit.trace(f, fb.ones(2, 3))
    x = fb.ones(5, 7)
    assert fb.equal(traced(x), f(x))


def test_methods_that_change_what_a_tensor_is_are_noted():
    def f(x):
        y = (x * 2).detach_()
        return y + x.type(fb.float64).type_as(y) + x.long().float()

    traced = fb.jit.trace(f, fb.ones(2))
    x = fb.full((3,), 1.5, requires_grad=True)
    assert traced(x).tolist() == f(x).tolist()
    traced(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1.0] * 3


def test_kinds_of_nodes_are_texts_that_can_be_called():
    node = next(fb.jit.trace(lambda x: x.neg(), fb.ones(1)).graph.nodes())
    assert node.kind == node.kind() == "aten::neg"


@pytest.mark.parametrize("name", ["silu", "mish", "hardswish", "hardsigmoid", "relu6"])
def test_activations_in_place_are_noted_as_writes(name):
    def f(x):
        y = x + 1
        getattr(nn.functional, name)(y, inplace=True)
        return y

    traced = fb.jit.trace(f, fb.ones(2))
    x = fb.tensor([-2.0, 0.5, 9.0])
    assert fb.equal(traced(x), f(x))
    assert f"aten::{name}_" in kinds(traced.graph)


def test_programs_for_pytorch_find_the_trace_that_they_are_in():
    states = []
    with fb.compat.torch_alias() as torch:

        def f(x):
            states.append(torch._C._get_tracing_state() is not None)
            return x + 1

        f(fb.ones(1))
        traced = torch.jit.trace(f, fb.ones(1), check_trace=False)
        graph = traced.graph.copy()
        torch._C._jit_pass_constant_pooling(graph)
        assert isinstance(graph, torch._C.Graph)
        assert torch._C._jit_set_num_profiled_runs(3) is False
        assert torch._C._jit_set_num_profiled_runs(False) == 3
    assert states == [False, True]


def assigned(x):
    y = x + 1
    y.data = x * 5
    return y * 2


@pytest.mark.parametrize(
    "program",
    [assigned, lambda x: fb.as_tensor(x, dtype=fb.float64) * 2],
    ids=["data", "as_tensor"],
)
def test_data_that_is_assigned_and_tensors_that_are_converted_are_not_constants(program):
    traced = fb.jit.trace(program, fb.ones(2))
    assert fb.equal(traced(fb.full((2,), 3.0)), program(fb.full((2,), 3.0)))


@pytest.mark.parametrize("number", [int, math.floor, math.ceil, round])
def test_a_number_that_is_taken_out_of_sizes_is_told(number):
    with pytest.warns(fb.jit.TracerWarning, match="Converting a tensor to a Python"):
        fb.jit.trace(lambda x: x + number(x.shape[0] * 0.5), fb.ones(4), check_trace=False)


def test_modules_that_a_trace_is_the_first_to_use_are_seen():
    program = (
        "import flambeau as fb; "
        "t = fb.jit.trace(lambda x: fb.linalg.norm(x), fb.ones(3, 3), check_trace=False); "
        "print(t(fb.ones(2, 2)).item())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "2.0\n", done.stderr


def test_threads_that_offer_the_calls_of_one_module_do_not_end_each_other():
    plain, space = fb.cat, {"cat": fb.cat}
    with offering_calls(space):
        with offering_calls(space):
            pass
        assert isinstance(space["cat"], Overridable)
    assert space["cat"] is plain


def both(program, first, second):
    """What a trace gives for other inputs, and what the program gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fb.jit.TracerWarning)
        traced = fb.jit.trace(program, first, check_trace=False)
    return traced(second), program(second)


def assert_holds(program, first=(1.0, 2.0, 2.0), second=(3.0, 1.0, 3.0, 4.0)):
    found, expected = both(program, fb.tensor(first), fb.tensor(second))
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for a, b in pairs:
        assert a.dtype is b.dtype and fb.equal(a, b)


@pytest.mark.parametrize(
    "program",
    [
        fb.unique,
        lambda x: fb.unique(x, return_inverse=True, return_counts=True),
        lambda x: x.unique(dim=0),
        fb.unique_consecutive,
        lambda x: fb.unique_consecutive(x, return_counts=True),
        lambda x: x.nonzero(as_tuple=True),
        lambda x: fb.norm(x, p="fro"),
        lambda x: x.norm(dim=0, keepdim=True),
        lambda x: x.norm(3, dtype=fb.float64),
        lambda x: fb.tensordot(x, x, 1),
        lambda x: fb.tensordot(x, x, dims=([0], [0])),
    ],
    ids="unique several dim consecutive counts nonzero fro keepdim dtype count lists".split(),
)
def test_functions_that_choose_an_op_are_noted_as_the_op(program):
    assert_holds(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: 2 // x,
        lambda x: 2.5 // x,
        lambda x: x // 2,
        lambda x: 2 << x.long(),
        lambda x: 3 ^ x.long(),
        lambda x: True & (x > 1),
        lambda x: x.int() + True,
        lambda x: x.clone().fill_(True),
        lambda x: (x[0] * 1, 2.5 // x[0].long(), 2 // x[0].int(), x[0].half() + True),
    ],
    ids="floor float floored shift xor and plus fill none".split(),
)
def test_numbers_beside_tensors_promote_as_they_do_in_the_program(program):
    assert_holds(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: copy.deepcopy(x) * 2,
        lambda x: copy.copy(x) * 2,
        lambda x: fb.empty(0).set_(x * 2) + 1,
        lambda x: x.where(x > 2, x * 5),
        lambda x: x[True] + x[None, False].sum(),
        lambda x: nn.functional.selu_(x * 2) + nn.functional.elu_(x - 3),
        lambda x: x.view(fb.int32) + 1,
    ],
    ids="deepcopy copy set where flags writers retyped".split(),
)
def test_copies_and_what_takes_memory_over_come_from_the_inputs(program):
    assert_holds(program)


class Reads:
    """Takes numbers of a tensor to the host and back, in the library."""

    def __call__(self, x):
        return x.to_sparse().to_dense() * 2


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (Reads(), "does not see"),
        (lambda x: fb.func.vmap(lambda row: row * 2)(x), "does not see"),
        (lambda x: fb.empty(0).set_(x.storage()), "storage cannot be traced"),
        (lambda x: x.clone().apply_(lambda v: v + 1), "calls Python for each element"),
    ],
    ids="sparse vmap storage apply".split(),
)
def test_what_is_computed_from_inputs_unseen_is_refused_and_no_constant(program, says):
    with pytest.raises(RuntimeError, match=says):
        fb.jit.trace(program, fb.ones(3), check_trace=False)


def test_the_refusal_of_an_unseen_result_names_the_line():
    with pytest.raises(RuntimeError, match=r"test_jit_trace\.py:\d+"):
        fb.jit.trace(Reads(), fb.ones(3), check_trace=False)


def test_kernels_are_what_they_were_after_a_trace():
    backend = fb.ones(1)._be
    before = dict(vars(backend))
    fb.jit.trace(lambda x: x + 1, fb.ones(1))
    assert {name: vars(backend)[name] for name in before} == before


def test_constants_are_as_they_were_when_they_were_captured():
    held = fb.ones(3)
    traced = fb.jit.trace(lambda x: x + held, fb.ones(3))
    held.add_(5)
    assert traced(fb.ones(3)).tolist() == [2.0] * 3


def test_a_tensor_made_in_the_program_and_written_to_is_new_in_each_run():
    def program(x):
        made = fb.tensor([0.0, 0.0])
        before = made + 1
        made += x
        return made * before

    with pytest.warns(fb.jit.TracerWarning):
        traced = fb.jit.trace(program, fb.ones(2))
    for _ in range(2):
        assert traced(fb.full((2,), 3.0)).tolist() == [3.0, 3.0]


def test_writes_to_a_tensor_from_outside_stay_writes_to_it():
    held = fb.zeros(2)
    traced = fb.jit.trace(lambda x: held.add_(x) * 1, fb.ones(2), check_trace=False)
    assert traced(fb.ones(2)).tolist() == [2.0, 2.0] == held.tolist()


@pytest.mark.parametrize("recorded", [False, True])
def test_a_compiled_function_that_has_a_plan_is_traced_through(recorded):
    compiled = fb.compile(lambda y: y * 2 + 1)
    with fb.set_grad_enabled(recorded):
        for _ in range(10):
            compiled(fb.ones(2))
        traced = fb.jit.trace(lambda x: compiled(x) + 1, (fb.ones(2),), check_trace=False)
        assert traced(fb.tensor([3.0, 4.0])).tolist() == [8.0, 10.0]


def test_tensordot_over_fewer_than_no_dims_is_refused_in_scripts():
    with pytest.raises(RuntimeError, match="tensordot expects dims >= 0, but got dims=-1"):
        fb.jit.CompilationUnit("def f(x, y):\n    return torch.tensordot(x, y, -1)\n").f(
            fb.ones(2), fb.ones(2)
        )


FILLED = [
    lambda x: x.new(x.shape).uniform_(0, 1),
    lambda x: x.new(x.shape).normal_(0, 1),
    lambda x: x.new(x.shape).exponential_(2),
    lambda x: x.new(x.shape).cauchy_(0, sigma=2),
    lambda x: fb._standard_gamma(x),
    lambda x: fb._sample_dirichlet(x),
    lambda x: fb.distributions.Laplace(x, x).sample(),
    lambda x: fb.distributions.Geometric(x).sample(),
    lambda x: fb.distributions.StudentT(x).sample(),
    lambda x: fb.distributions.Beta(x, x).sample(),
]


@pytest.mark.filterwarnings("ignore:torch.tensor results")
@pytest.mark.parametrize("draw", FILLED)
def test_random_numbers_of_a_trace_are_drawn_in_each_run(draw):
    x = fb.tensor([0.25, 0.5, 0.75])
    traced = fb.jit.trace(draw, (x,), check_trace=False)
    assert any(node.isNondeterministic() for node in traced.graph.nodes())
    fb.manual_seed(1)
    expected = draw(x)
    fb.manual_seed(1)
    assert fb.allclose(traced(x), expected)
    assert not fb.allclose(traced(x), expected)


@pytest.mark.filterwarnings("ignore:torch.tensor results")
@pytest.mark.parametrize("family", ["Beta", "Dirichlet", "Gamma"])
def test_gradients_of_random_numbers_in_a_trace_are_those_outside(family):
    weights = fb.tensor([1.0, -2.0, 0.5])

    def draw(a):
        made = getattr(fb.distributions, family)
        return (weights * (made(a) if family == "Dirichlet" else made(a, a + 1)).rsample()).sum()

    a = fb.tensor([0.5, 2.0, 30.0]).requires_grad_()
    traced = fb.jit.trace(draw, (a,), check_trace=False)
    found = []
    for function in (draw, traced):
        fb.manual_seed(3)
        found.append(fb.autograd.grad(function(a), a)[0])
    assert found[0].abs().min() > 0
    assert fb.allclose(*found)


def test_two_draws_of_gamma_numbers_in_a_trace_are_two():
    x = fb.full((8,), 2.0)
    traced = fb.jit.trace(
        lambda x: fb._standard_gamma(x) - fb._standard_gamma(x), (x,), check_trace=False
    )
    for _ in range(3):
        assert (traced(x) != 0).all()


def test_whole_numbers_stand_for_others_in_a_trace_where_an_op_wants_them():
    x = fb.arange(4.0)
    traced = fb.jit.trace(lambda x: x.quantile(1, keepdim=True), (x,))
    assert kinds(traced.graph) == ["aten::quantile"]
    assert traced(x + 1).tolist() == [4.0]


def test_nodes_that_draw_nothing_are_deterministic():
    graph = fb.jit.trace(
        lambda x: fb.empty(2) * 0 + x.exp(), (fb.ones(2),), check_trace=False
    ).graph
    assert not any(node.isNondeterministic() for node in graph.nodes())


def test_a_detached_alias_of_a_parameter_is_the_parameter_in_each_run():
    from flambeau import nn

    class Aliased(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(fb.ones(2))
            self.alias = self.w.detach()

        def forward(self, x):
            return x * self.alias

    module = Aliased()
    traced = fb.jit.trace(module, fb.ones(2))
    with fb.no_grad():
        module.w.add_(1)
    assert traced(fb.ones(2)).tolist() == module(fb.ones(2)).tolist() == [2.0, 2.0]
    assert not traced(fb.ones(2)).requires_grad


class _Straight(fb.autograd.Function):
    """The sign, with the gradient of ``scale * x``."""

    @staticmethod
    def forward(ctx, x, scale, name):
        assert name == "kept"
        ctx.scale = scale
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None, None


class _Halves(fb.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, None, x * 4

    @staticmethod
    def backward(ctx, *grads):
        return grads[0] * 10 + grads[2] * 100


class _Doubled(fb.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 7


_straightened = _Straight.apply  # as many programs keep it


def _straight(x):
    return _straightened(x * 2, x.shape[0], "kept") + 1


def _halves(x):
    first, nothing, second = _Halves.apply(x + 1)
    assert nothing is None
    return first + second.sin()


def _doubled(x):
    y = x + 1
    _Doubled.apply(y)
    return y * y


_tripled = CustomOp("mine::tripled", lambda x: x.sign())
_tripled.register_autograd(lambda ctx, grad: grad * 3)


def _op_of_the_program(x):
    return _tripled(x * 2) + 1


def _exact_sample(x):
    with fb.distributions.exact_sampling():
        sample = fb.distributions.Dirichlet(x.square() + 0.5).rsample()
    return sample * fb.arange(x.shape[0])


@pytest.mark.parametrize(
    "function", [_straight, _halves, _doubled, _op_of_the_program, _exact_sample]
)
def test_a_trace_keeps_the_gradients_that_classes_of_autograd_define(function):
    traced = fb.jit.trace(function, fb.randn(3), check_trace=False)
    for size in (3, 5):
        x = fb.randn(size).requires_grad_()
        found = []
        for each in (function, traced):
            fb.manual_seed(7)
            y = each(x)
            found += [y, *fb.autograd.grad(y.sum(), x)]
        assert fb.equal(found[0], found[2])
        assert fb.equal(found[1], found[3])


def test_a_trace_with_a_class_of_the_program_is_no_archive():
    traced = fb.jit.trace(_straight, fb.randn(3))
    with pytest.raises(RuntimeError, match="Could not export Python function call '_Straight'"):
        fb.jit.save(traced, io.BytesIO())


KEPT = {
    "zeros_like": lambda f, x: f(x),
    "ones_like": lambda f, x: f(x),
    "full_like": lambda f, x: f(x, 3.0),
    "empty_like": lambda f, x: f(x).zero_(),
    "rand_like": lambda f, x: f(x) * 0,
    "randint_like": lambda f, x: f(x, 1, 2),
    "arange": lambda f, x: f(x.size(0)),
    "zeros": lambda f, x: f(x.shape),
    "ones": lambda f, x: f(x.size(0)),
    "full": lambda f, x: f((x.size(0),), 2.0),
    "eye": lambda f, x: f(x.size(0)),
    "randn": lambda f, x: f(x.size(0)) * 0,
    "randperm": lambda f, x: f(x.size(0)) * 0,
    "linspace": lambda f, x: f(0, 1, x.size(0)),
    "hann_window": lambda f, x: f(x.size(0)),
    "tril_indices": lambda f, x: f(x.size(0), x.size(0)).sum(),
    "numel": lambda f, x: fb.ones(f(x)),
    "new_zeros": lambda f, x: f(x, x.shape),
    "new_ones": lambda f, x: f(x, x.size(0)),
    "cat": lambda f, x: f([x, x]),
    "logspace": lambda f, x: f(0, 1, x.size(0)),
    "vander": lambda f, x: f(x).sum(),
    "bernoulli": lambda f, x: f(x * 0),
    "fft.fftfreq": lambda f, x: f(x.size(0)),
    "fft.fft": lambda f, x: f(x).real,
    "nn.functional.one_hot": lambda f, x: f(x.long(), 9),
    "nn.functional.pad": lambda f, x: f(x, (1, 0)),
}
FUNCTIONS = {name: getattr(fb.Tensor, name, None) for name in ("new_zeros", "new_ones")}
for _name in KEPT.keys() - FUNCTIONS.keys():
    _space, _, _last = _name.rpartition(".")
    _owner = fb
    for _step in filter(None, _space.split(".")):
        _owner = getattr(_owner, _step)
    FUNCTIONS[_name] = getattr(_owner, _last)


@pytest.mark.parametrize("name", KEPT)
def test_functions_that_a_program_keeps_in_a_dict_are_noted(name):
    def program(x):
        return KEPT[name](FUNCTIONS[name], x) + 0

    code = FUNCTIONS[name].__code__
    traced = fb.jit.trace(program, fb.ones(1))
    assert FUNCTIONS[name].__code__ is code
    x = fb.arange(5.0)
    assert fb.equal(traced(x), program(x))


def test_functions_kept_in_a_dict_are_noted_after_a_class_has_seen_calls():
    program = (
        "import flambeau as fb\n"
        "kept = {'make': fb.zeros_like, 'join': fb.cat}\n"
        "class Seen(fb.overrides.TorchFunctionMode):\n"
        "    def __torch_function__(self, func, types, args=(), kwargs=None):\n"
        "        return func(*args, **(kwargs or {}))\n"
        "with Seen(): fb.ones(1)\n"
        "f = lambda x: kept['join']([kept['make'](x), x])\n"
        "traced = fb.jit.trace(f, fb.ones(1))\n"
        "assert fb.equal(traced(fb.ones(3)), f(fb.ones(3)))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_is_written_may_have_dimensions_of_one_element_in_front():
    def rows(x, row, at):
        x = x.clone()
        x[2] = row
        x[at] = row[None]
        x[0, 0] = row[:, :1]
        return x

    x, row, at = fb.zeros(3, 4), fb.ones(1, 4), fb.tensor([1])
    traced = fb.jit.trace(rows, (x, row, at))
    assert fb.equal(traced(x + 1, row * 2, at), rows(x + 1, row * 2, at))


def test_nodes_have_the_names_that_a_program_pushed_when_they_were_traced():
    def named(x):
        state = current()
        state.push_scope("a")
        y = x + 1
        state.push_scope("b")
        y = y * 2
        state.pop_scope()
        y = y - 1
        state.pop_scope()
        with pytest.raises(RuntimeError, match="no name is left"):
            state.pop_scope()
        return y.relu()

    graph, _ = fb.jit._get_trace_graph(named, fb.ones(2))
    ops = [node for node in graph.nodes() if node.kind.startswith("aten::")]
    assert [node.scopeName() for node in ops] == ["a", "a/b", "a", ""]
    (shown,) = [line for line in str(graph).splitlines() if "aten::mul" in line]
    assert ", scope: a/b # " in shown
    assert [node.scopeName() for node in graph.copy().nodes()] == [
        node.scopeName() for node in graph.nodes()
    ]


def test_a_graph_that_is_read_has_the_shapes_that_tensors_had():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 3))
    graph, _ = fb.jit._get_trace_graph(net, fb.ones(5, 1, 4, 4))
    seen = [value for node in graph.nodes() for value in node.outputs() if value.isCompleteTensor()]
    assert [value.type().sizes() for value in seen] == [[5, 2, 2, 2], [5, 8], [5, 3]]
    kind = seen[-1].type()
    assert (kind.kind(), kind.scalarType(), kind.dtype()) == ("TensorType", "Float", fb.float32)
    assert (kind.dim(), kind.strides(), kind.requires_grad()) == (2, [3, 1], True)
    assert kind.isSubtypeOf(fb.jit._types.TENSOR)
    assert [value.type().sizes() for value in graph.inputs()][1:3] == [[2, 1, 3, 3], [2]]
    assert "Float(5, 3, strides=[3, 1], requires_grad=1, device=cpu)" in str(graph)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True], ids=["plain", "transposed"])
def test_convolutions_are_one_op_in_a_graph_that_is_read(rank, transposed):
    name = f"Conv{'Transpose' * transposed}{rank}d"
    net = getattr(nn, name)(2, 4, 3, stride=2, padding=1, groups=2)
    graph, _ = fb.jit._get_trace_graph(net, fb.ones(1, 2, *[5] * rank))
    (found,) = graph.findAllNodes("aten::_convolution")
    lists = {at: [v.toIValue() for v in found.inputsAt(at).node.inputs()] for at in (3, 4, 5, 7)}
    assert lists == {3: [2] * rank, 4: [1] * rank, 5: [1] * rank, 7: [0] * rank}
    assert found.inputsAt(6).toIValue() is transposed
    assert found.inputsAt(8).toIValue() == 2
    assert [found.inputsAt(at).toIValue() for at in range(9, 13)] == [False, False, True, True]


def test_tensors_of_sizes_beside_floats_are_of_the_sizes_of_other_inputs():
    def corners(x):
        h, w = x.shape
        of_floats = fb.tensor([[[0.0, 0], [w - 1, 0.5]], [[h, w], [1, True]]])
        return of_floats, fb.tensor([h, True, w]), fb.tensor([0, w / 2])

    traced = fb.jit.trace(corners, fb.ones(2, 3))
    for shape in ((2, 3), (5, 4)):
        found, expected = traced(fb.ones(shape)), corners(fb.ones(shape))
        for a, b in zip(found, expected, strict=True):
            assert a.dtype is b.dtype
            assert fb.equal(a, b)
