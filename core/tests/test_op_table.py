"""Every declared op has samples for its tests, a gradient or a reason, and a dtype list."""

from __future__ import annotations

import inspect
import math

import pytest

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.bound import bind
from flambeau._dispatch.warning import warn
from flambeau._types.spec import Spec
from flambeau.ops import OPS
from flambeau.ops.declaration.formulas import Formulas
from flambeau.ops.declaration.namespace import TENSORS
from flambeau.ops.declaration.table import Op
from flambeau.testing.backend._support import descriptions
from flambeau.testing.samples import DTYPES, SAMPLES, SPECIAL, Sample


def test_samples_and_ops_are_the_same_names() -> None:
    assert set(SAMPLES) == set(OPS)
    assert set(DTYPES) == set(OPS)


@pytest.mark.parametrize("name", OPS)
def test_the_gradient_of_every_op_is_declared(name: str) -> None:
    state = OPS[name].gradient_state
    assert state in ("given", "not differentiable") or state.startswith("missing: ")


# How a number that was drawn follows its parameters is no derivative of what the same bits give.
@pytest.mark.parametrize(
    "name",
    [n for n, op in OPS.items() if op.gradient_state == "given" and "generator" not in op.params],
)
def test_every_gradient_has_a_sample_that_checks_it(name: str) -> None:
    assert fb.float64 in DTYPES[name]
    checked = [s for s in SAMPLES[name] if s.grad]
    assert checked
    assert all(any(a.dtype is None and not a.fixed for a in descriptions(s.args)) for s in checked)


@pytest.mark.parametrize("name", [n for n, op in OPS.items() if op.tier == "primitive"])
def test_every_primitive_has_an_empty_and_a_0d_sample_if_it_takes_arrays(name: str) -> None:
    shapes = [a.shape for s in SAMPLES[name] for a in descriptions(s.args)]
    if not shapes or name in ("cat", "diagonal", "matmul", "index", "index_put"):
        return  # no arrays, or none without dimensions
    assert () in shapes
    if name != "expand":
        assert any(math.prod(shape) == 0 for shape in shapes)


def test_every_primitive_that_is_no_view_has_corners() -> None:
    primitives = {name for name, op in OPS.items() if op.tier == "primitive"}
    assert primitives - SPECIAL.keys() == {"slice", "permute", "view", "expand", "diagonal"}


@pytest.mark.parametrize("group", [SAMPLES, SPECIAL], ids=["ordinary", "corners"])
def test_arguments_of_samples_are_those_of_the_op(group: dict[str, list[Sample]]) -> None:
    for name, samples in group.items():
        op: Op = OPS[name]
        for sample in samples:
            assert len(sample.args) == len(op.params), (name, sample.name)


def test_a_gradient_declared_after_a_first_recorded_call_counts() -> None:
    def _twice_for_this_test(self: Tensor) -> Tensor:
        return self + self

    op = Op(_twice_for_this_test, "composite")
    try:
        x = fb.tensor([1.0], requires_grad=True)
        setattr(x._be, op.name, op.decomposed(x._be))
        op(x).backward()
        assert x.grad is None and op.gradient_state == "undeclared"
        op.gradient(lambda F, g: F.add(g, g))
        op(x).backward()
        assert x.grad.tolist() == [2.0] and op.gradient_state == "given"
    finally:
        del OPS[op.name], x._be.__dict__[op.name]


HEADS = {
    "max_pool2d": (fb.arange(16.0).reshape(1, 1, 4, 4), (2, 2), (2, 2), (0, 0), (1, 1), False),
    "layer_norm": (fb.arange(6.0).reshape(2, 3), None, None, (3,), 1e-5),
    "group_norm": (fb.arange(12.0).reshape(1, 4, 3), fb.ones(4), None, 2, 1e-5),
    "batch_norm_train": (fb.arange(12.0).reshape(2, 3, 2), fb.ones(3), None, 1e-5),
    "cross_entropy": (fb.arange(6.0).reshape(2, 3), fb.tensor([0, 2]), -100),
    "sort": (fb.tensor([2.0, 1.0]), 0, False, True),
    "frexp": (fb.tensor([2.0, 3.0]),),
}


@pytest.mark.parametrize("device", ["cpu", "ref"])
@pytest.mark.parametrize("name", HEADS)
def test_the_head_of_an_op_is_the_first_of_its_results(name: str, device: str) -> None:
    op = OPS[name]
    args = [a.to(device).clone() if isinstance(a, Tensor) else a for a in HEADS[name]]
    first = op(*args)[0]
    for found in (op.head(*args), op.head(*args)):
        assert type(found) is Tensor and found.dtype is first.dtype
        assert found.tolist() == first.tolist() and not found.requires_grad
    if not op.differentiable:
        return
    args[0] = args[0].requires_grad_()
    grads = []
    for result in (op(*args)[0], op.head(*args)):
        assert type(result.grad_fn) is type(op(*args)[0].grad_fn)
        grads.append(fb.autograd.grad((result * result).sum(), args[0])[0].tolist())
    assert grads[0] == grads[1]
    with fb.no_grad():
        assert not op.head(*args).requires_grad


def test_the_head_of_an_op_is_transformed_and_refuses_what_the_op_refuses() -> None:
    op, x = OPS["layer_norm"], fb.arange(12.0).reshape(2, 2, 3)
    found = fb.func.vmap(lambda a: op.head(a, None, None, (3,), 1e-5))(x)
    assert fb.allclose(found, op(x, None, None, (3,), 1e-5)[0])
    slope = fb.func.grad(lambda a: op.head(a, None, None, (3,), 1e-5)[0, 1])(x[0])
    assert slope.shape == (2, 3)
    for call in (op, op.head):
        with pytest.raises(RuntimeError, match="device"):
            call(x, fb.ones(3, device="ref"), None, (3,), 1e-5)
        with pytest.raises(TypeError, match="expected a Tensor"):
            call(None, None, None, (3,), 1e-5)


def test_functions_that_are_written_out_per_op_are_shown_in_tracebacks(monkeypatch) -> None:
    def fail(*arrays: object) -> object:
        raise KeyError("no such kernel")

    x = fb.ones(2, device="ref")
    chosen = x > 0
    fb.where(chosen, x, x)  # the first call writes the function out
    monkeypatch.setattr(x._be, "where", fail)
    with pytest.raises(KeyError) as raised:
        fb.where(chosen, x, x)
    entry = raised.traceback[-2]
    assert "(where)" in str(entry.path)
    assert str(entry.statement).strip() == "r = kernel(x._a, n1, n2)"


def test_a_warning_below_a_function_written_out_per_op_points_at_the_program(monkeypatch) -> None:
    x = fb.ones(2, device="ref")
    chosen = x > 0
    fb.where(chosen, x, x)
    names = {"__name__": "flambeau.kernels", "warn": warn}
    monkeypatch.setattr(x._be, "where", eval("lambda c, a, b: warn('of a kernel') or a", names))
    with pytest.warns(UserWarning, match="of a kernel") as seen:
        fb.where(chosen, x, x)
    assert seen[0].filename == __file__


def test_the_protocol_of_formulas_says_what_both_of_their_namespaces_offer() -> None:
    members = {name: value for name, value in vars(Formulas).items() if callable(value)}
    said = {name for name in members if not name.startswith("_")}
    helpers = {"scalar", "zeros", "mT", "cast_like", "is_complex", "sum_to", "reshape", "flat"}
    assert said == set(OPS) | helpers
    for name in said:
        assert callable(getattr(bind("ref"), name)) and callable(getattr(TENSORS, name))
    for name, op in OPS.items():
        if name not in helpers:
            _, *taken = inspect.signature(members[name]).parameters.values()
            assert [p.name.rstrip("_") for p in taken] == [p.rstrip("_") for p in op.params]
            assert all(p.kind is p.POSITIONAL_ONLY for p in taken)


def refusals() -> list[tuple[str, fb.dtype]]:
    """Primitives of tensors alone, with the dtypes that their rules refuse."""
    found = []
    for name, op in OPS.items():
        if op.tier != "primitive" or op.inputs != op.params or not hasattr(Tensor, name):
            continue
        for dtype in fb.bool, fb.int64, fb.float32, fb.complex64:
            operands = [Spec((2,), dtype) for _ in op.params]
            try:
                op.body(*operands)
            except (RuntimeError, TypeError) as error:
                if dtype in DTYPES[name] or "data" in str(error):
                    continue
                found.append((name, dtype))
    return found


REFUSED = refusals()


@pytest.mark.parametrize(("name", "dtype"), REFUSED, ids=str)
def test_refused_dtypes_are_refused_by_the_core_whatever_kernels_compute(
    monkeypatch, name: str, dtype: fb.dtype
) -> None:
    x = fb.ones(2, dtype=dtype, device="ref")
    others = [x] * (len(OPS[name].params) - 1)
    asked = []

    def lenient(a: object, *rest: object) -> object:
        asked.append(a)
        return a

    monkeypatch.setattr(bind("ref"), name, lenient)
    for function in getattr(fb, name), getattr(Tensor, name):
        with pytest.raises(RuntimeError):
            function(x, *others)
    assert not asked


def test_dtypes_that_kernels_might_compute_with_are_among_those_refused() -> None:
    assert {("sub", fb.bool), ("neg", fb.bool), ("bitwise_and", fb.float32)} <= set(REFUSED)
