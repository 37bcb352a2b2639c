"""Functions of today's PyTorch beyond the documented ones agree in values and both derivatives."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from flambeau._api import inplace_functions  # noqa: E402
from oracle import DEVICES, assert_same, check, check_error, ours_of  # noqa: E402

NAN, INF = math.nan, math.inf


def f64(*values: float, grad: bool = True) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


def least_and_greatest(dtype: Any, name: str) -> Any:
    # Of the least int32 or int64 and 5, PyTorch's lcm ends the process: their divisor is -1 there.
    facts = torch.iinfo(dtype)
    few = (0, 1, 2, 5, 6, 12, facts.max, facts.max - 1)
    below = (-1, -2, -12, facts.min + 1, facts.min // 2) if facts.min else ()
    lowest = (facts.min,) if name == "gcd" or facts.bits < 32 else ()
    return torch.tensor([*few, *below, *lowest], dtype=dtype)


REAL = f64(-3.7, -1.25, -0.3, 0.2, 0.51, 1.0, 1.9, 2.5, 7.25)
OTHER = f64(2.0, -1.25, 0.5, 0.1, -3.0, 1.5, 1.9, -2.5, 40.0)
INSIDE = f64(-0.99, -0.5, -1e-3, 0.2, 0.7, 0.999)
ABOVE = f64(1.001, 1.5, 3.0, 1e3, 1e9)
EDGES = f64(-INF, -1.0, -0.0, 0.0, 1.0, INF, NAN, grad=False)

DIFFERENTIABLE: list[tuple[str, Any, tuple[Any, ...]]] = [
    ("asinh", lambda t, x: t.asinh(x), (REAL,)),
    ("asinh large", lambda t, x: x.arcsinh(), (f64(-1e200, 1e9, 1e-9),)),
    ("acosh", lambda t, x: t.acosh(x), (ABOVE,)),
    ("atanh", lambda t, x: t.atanh(x), (INSIDE,)),
    ("sinc", lambda t, x: t.sinc(x), (REAL,)),
    ("deg2rad", lambda t, x: t.deg2rad(x), (REAL,)),
    ("rad2deg", lambda t, x: t.rad2deg(x), (REAL,)),
    ("logaddexp", lambda t, x, y: t.logaddexp(x, y), (REAL, OTHER)),
    ("logaddexp2", lambda t, x, y: t.logaddexp2(x, y), (REAL, OTHER)),
    ("fmax", lambda t, x, y: t.fmax(x, y), (REAL, OTHER)),
    ("fmin", lambda t, x, y: t.fmin(x, y), (REAL, OTHER)),
    ("copysign", lambda t, x, y: t.copysign(x, y), (REAL, OTHER.detach())),
    ("copysign number", lambda t, x: t.copysign(x, -0.0), (REAL,)),
    # Of negative integers as exponents PyTorch's gradient is 0.
    ("ldexp", lambda t, x, y: t.ldexp(x, y), (REAL, torch.arange(9.0).double() - 4)),
    ("float_power", lambda t, x, y: t.float_power(x.abs(), y), (REAL, OTHER)),
    ("frexp", lambda t, x: t.frexp(x)[0], (REAL,)),
    ("cummax", lambda t, x: t.cummax(x, 1)[0], ((3, 5),)),
    ("cummin", lambda t, x: t.cummin(x, 0)[0], ((4, 2),)),
    ("logcumsumexp", lambda t, x: t.logcumsumexp(x, -1), ((2, 7),)),
    ("inner", lambda t, x, y: t.inner(x, y), ((2, 3), (4, 3))),
    ("inner number", lambda t, x, y: t.inner(x, y), ((2, 3), ())),
    ("kron", lambda t, x, y: t.kron(x, y), ((2, 3), (2,))),
    ("trapezoid", lambda t, y: t.trapezoid(y, dx=0.5), ((2, 4),)),
    ("trapezoid points", lambda t, y, x: t.trapezoid(y, x, dim=0), ((4, 2), (4,))),
    ("cumulative_trapezoid", lambda t, y, x: t.cumulative_trapezoid(y, x), ((2, 4), (4,))),
    ("cov", lambda t, x: t.cov(x), ((3, 5),)),
    ("cov vector", lambda t, x: t.cov(x, correction=0), ((5,),)),
    (
        "cov weights",
        lambda t, x: (
            t.cov(
                x,
                fweights=t.tensor([1, 2, 1, 3]),
                aweights=t.tensor([0.5, 1.0, 2.0, 0.25]).double(),
            )
            if t is torch
            else t.cov(
                x,
                fweights=t.tensor([1, 2, 1, 3], device=x.device),
                aweights=t.tensor([0.5, 1.0, 2.0, 0.25], dtype=t.float64, device=x.device),
            )
        ),
        ((3, 4),),
    ),
    ("corrcoef", lambda t, x: t.corrcoef(x), ((3, 5),)),
    ("tensor_split", lambda t, x: t.tensor_split(x, 3, 1), ((2, 5),)),
    ("tensor_split indices", lambda t, x: t.tensor_split(x, (1, 4, 9, -1), 1), ((2, 5),)),
    ("hsplit", lambda t, x: t.hsplit(x, 2), ((3, 4),)),
    ("vsplit", lambda t, x: t.vsplit(x, (1, 2)), ((3, 4),)),
    ("dsplit", lambda t, x: t.dsplit(x, 2), ((1, 2, 4),)),
    ("select_scatter", lambda t, x, s: t.select_scatter(x, s, 1, -1), ((2, 3), (2,))),
    ("slice_scatter", lambda t, x, s: t.slice_scatter(x, s, 1, 0, 4, 2), ((2, 5), (2, 2))),
    ("diagonal_scatter", lambda t, x, s: t.diagonal_scatter(x, s, 1), ((3, 4), (3,))),
    ("block_diag", lambda t, x, y, z: t.block_diag(x, y, z), ((2, 1), (3,), ())),
    ("msort", lambda t, x: t.msort(x), ((4, 2),)),
    ("hardshrink", lambda t, x: t.hardshrink(x, 0.4), (REAL,)),
    ("sum_to_size", lambda t, x: x.sum_to_size(3, 1), ((2, 3, 4),)),
    ("narrow_copy", lambda t, x: x.narrow_copy(1, 1, 2).detach() + x[:, :2], ((2, 4),)),
    ("split_with_sizes", lambda t, x: x.split_with_sizes([1, 3], 1), ((2, 4),)),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("call", "operands"), [pytest.param(*c[1:], id=c[0]) for c in DIFFERENTIABLE]
)
def test_values_and_both_derivatives_agree(call: Any, operands: Any, device: str) -> None:
    check(call, operands, device)


INTEGERS = torch.tensor([0, 0, 12, -18, 7, 1])
DIVISORS = torch.tensor([0, 5, -18, 12, 7, 0])
PLAIN: list[tuple[str, Any, tuple[Any, ...]]] = [
    *[
        (f"{name} edges", lambda t, x, name=name: getattr(t, name)(x), (EDGES,))
        for name in (
            "asinh",
            "acosh",
            "atanh",
            "sinc",
            "deg2rad",
            "rad2deg",
            "isposinf",
            "isneginf",
        )
    ],
    *[
        (
            f"{name} edges",
            lambda t, x, y, name=name: getattr(t, name)(x, y),
            (EDGES[:, None], EDGES),
        )
        for name in ("logaddexp", "logaddexp2", "fmax", "fmin", "copysign", "nextafter")
    ],
    *[
        (f"{name} int", lambda t, x, name=name: getattr(t, name)(x), (INTEGERS,))
        for name in ("asinh", "sinc", "deg2rad", "msort", "argwhere")
    ],
    ("heaviside", lambda t, x, y: t.heaviside(x, y), (EDGES, f64(0.5, grad=False))),
    ("gcd", lambda t, x, y: t.gcd(x, y), (INTEGERS, DIVISORS)),
    ("gcd broadcast", lambda t, x, y: t.gcd(x[:, None], y), (INTEGERS, DIVISORS)),
    ("lcm", lambda t, x, y: t.lcm(x, y), (INTEGERS, DIVISORS)),
    *[
        (
            f"{name} of the least and greatest {dtype}".replace("torch.", ""),
            lambda t, x, name=name: getattr(t, name)(x[:, None], x),
            (least_and_greatest(dtype, name),),
        )
        for name in ("gcd", "lcm")
        for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
    ],
    ("frexp", lambda t, x: t.frexp(x), (f64(0, -0.75, 8, 1e300, 5e-324, INF, NAN, grad=False),)),
    ("frexp", lambda t, x: x.frexp(), (f64(0, -0.75, 8, 1e300, 5e-324, INF, NAN, grad=False),)),
    ("nextafter f32", lambda t, x, y: t.nextafter(x, y), (EDGES.float(), -EDGES.float())),
    ("float_power", lambda t, x: t.float_power(x, 2), (INTEGERS,)),
    ("cummax nan", lambda t, x: t.cummax(x, 0), (f64(1, 3, 3, 2, NAN, 9, NAN, grad=False),)),
    ("cummin ties", lambda t, x: t.cummin(x, 0), (torch.tensor([4, 4, 1, 7, 1, 0]),)),
    ("cummax 0-d", lambda t, x: t.cummax(x, 0), (torch.tensor(3),)),
    ("cummax empty", lambda t, x: t.cummax(x, 1), (torch.zeros(2, 0),)),
    (
        "logcumsumexp edges",
        lambda t, x: t.logcumsumexp(x, 0),
        (f64(-INF, -INF, 1, INF, grad=False),),
    ),
    (
        "unravel_index",
        lambda t, x: t.unravel_index(x, (2, 3, 4)),
        (torch.tensor([[0, 23], [5, 7]]),),
    ),
    ("kron int", lambda t, x, y: t.kron(x, y), (INTEGERS[:2, None], DIVISORS)),
    # Not differentiated: PyTorch writes over what it has saved.
    ("vander", lambda t, x: t.vander(x, 4), (REAL.detach(),)),
    ("vander up", lambda t, x: t.vander(x, increasing=True), (REAL.detach(),)),
    ("vander int", lambda t, x: t.vander(x), (INTEGERS,)),
    ("vander none", lambda t, x: t.vander(x, 0), (INTEGERS,)),
    ("cov int", lambda t, x: t.cov(x), (torch.stack([INTEGERS, DIVISORS]),)),
    ("block_diag mixed", lambda t, x, y: t.block_diag(x, y), (INTEGERS, torch.ones(1, 2))),
    ("inner int", lambda t, x, y: t.inner(x, y), (INTEGERS, DIVISORS)),
    ("sum_to_size same", lambda t, x: x.sum_to_size(6), (INTEGERS,)),
    ("where of numbers", lambda t, x: t.where(x > 0, 1, -1), (INTEGERS,)),
    ("where of two kinds of numbers", lambda t, x: t.where(x > 0, 1, -1.5), (INTEGERS,)),
    ("is_same_size", lambda t, x, y: t.is_same_size(x, y), (INTEGERS, DIVISORS)),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("call", "operands"), [pytest.param(*c[1:], id=c[0]) for c in PLAIN])
def test_values_and_dtypes_agree(call: Any, operands: Any, device: str) -> None:
    ours = call(fb, *[ours_of(x, device) for x in operands])
    assert_same(ours, call(torch, *operands))


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.gcd(t.ones(2), t.ones(2)),
        lambda t: t.lcm(t.ones(2) > 0, t.ones(2) > 0),
        lambda t: t.logaddexp(t.arange(2), t.arange(2)),
        lambda t: t.logaddexp2(t.ones(2) > 0, t.ones(2) > 0),
        lambda t: t.logcumsumexp(t.arange(2), 0),
        lambda t: t.heaviside(t.ones(2), t.ones(2, dtype=t.float64)),
        lambda t: t.nextafter(t.arange(2), t.arange(2)),
        lambda t: t.frexp(t.arange(2)),
        lambda t: t.inner(t.ones(2, 3), t.ones(2)),
        lambda t: t.tensor_split(t.ones(3), 0),
        lambda t: t.tensor_split(t.tensor(1.0), 2),
        lambda t: t.hsplit(t.ones(3), 2),
        lambda t: t.vsplit(t.ones(3), 3),
        lambda t: t.dsplit(t.ones(3, 3), 3),
        lambda t: t.select_scatter(t.ones(2, 3), t.ones(3), 1, 0),
        lambda t: t.diagonal_scatter(t.ones(3, 3), t.ones(2)),
        lambda t: t.block_diag(t.ones(1, 1, 1)),
        lambda t: t.broadcast_shapes((2,), (3,)),
        lambda t: t.vander(t.ones(2, 2)),
        lambda t: t.cov(t.ones(2, 2, 2)),
        lambda t: t.cov(t.ones(2, 2), fweights=t.tensor([1, -1])),
        lambda t: t.unravel_index(t.ones(2), (2,)),
        lambda t: t.trapezoid(t.ones(2, 3), t.ones(2)),
        lambda t: t.hardshrink(t.arange(2)),
        lambda t: t.ones(2, 3).sum_to_size(2, 2),
        lambda t: t.ones(2, 3).split_with_sizes([1, 2]),
        lambda t: t.empty_strided((2,), (1, 1)),
        lambda t: t.empty_strided((2,), (-1,)),
        lambda t: t.alpha_dropout(t.ones(2), 1.5, True),
        lambda t: t.feature_dropout(t.ones(2), 0.5, True),
    ],
)
def test_wrong_arguments_raise_the_same_class(call: Any) -> None:
    check_error(call, ())


def test_vander_has_both_derivatives() -> None:
    x = fb.tensor([0.5, -1.5, 2.0], dtype=fb.float64, requires_grad=True)
    assert fb.autograd.gradcheck(lambda v: fb.vander(v, 4), (x,))
    assert fb.autograd.gradgradcheck(lambda v: fb.vander(v, 4), (x,))


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "feature_dropout"])
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_dropout_draws_the_same_masks(name: str, p: float) -> None:
    for function in (name, f"{name}_"):
        results = []
        for t in (torch, fb):
            t.manual_seed(5)
            results.append(getattr(t, function)(t.ones(4, 6, dtype=t.float64), p, True).tolist())
        for ours, theirs in zip(results[1], results[0], strict=True):
            assert ours == pytest.approx(theirs, rel=1e-12)


def test_an_empty_strided_tensor_has_its_strides() -> None:
    for t in (torch, fb):
        x = t.empty_strided((2, 3), (1, 4), dtype=t.float64)
        assert (tuple(x.shape), x.stride(), x.dtype) == ((2, 3), (1, 4), t.float64)


def test_as_strided_in_place_changes_the_geometry() -> None:
    for t in (torch, fb):
        x = t.arange(6)
        assert x.as_strided_((2, 2), (3, 1), 1) is x
        assert x.tolist() == [[1, 2], [4, 5]]


@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name in inplace_functions.__all__
        if "dropout" not in name and name not in ("index_put_", "addmv_", "gcd_", "lcm_", "ldexp_")
    ),
)
def test_functions_that_write_agree_with_pytorch(name: str) -> None:
    arguments = {"threshold_": (0.3, 9.0), "clamp_": (0.3, 0.6), "clip_": (0.3, 0.6)}
    plain = arguments.get(name, (0.5,) if name.startswith(("clamp_m", "xlogy")) else ())
    theirs = torch.tensor([0.125, 0.5, 0.75], dtype=torch.float64)
    ours = ours_of(theirs)
    home = torch if hasattr(torch, name) else torch._C._nn
    if name == "xlogy_":
        other = torch.full((3,), 2.0, dtype=torch.float64)
        getattr(torch, name)(theirs, other), fb.xlogy_(ours, ours_of(other))
    else:
        getattr(home, name)(theirs, *plain)
        assert getattr(fb, name)(ours, *plain) is ours
    assert_same(ours, theirs)


NUMBERS = [300, 256, 255, -1, -128, -255, -256, 1.5, -1.5, True, 1j, 1 + 0j, math.nan, 1e30]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "bool", "float32", "complex64"])
@pytest.mark.parametrize("number", NUMBERS, ids=str)
def test_a_number_is_converted_or_refused_as_by_pytorch(number, dtype):
    calls = (
        lambda t, x: t.add(x, x, alpha=number),
        lambda t, x: t.addcmul(x, x, x, value=number),
        lambda t, x: t.full_like(x, number),
        lambda t, x: t.full((2,), number, dtype=x.dtype),
        lambda t, x: x.masked_fill(x == x, number),
    )
    for call in calls:
        try:
            theirs = call(torch, torch.ones(2, dtype=getattr(torch, dtype)))
        except NotImplementedError:
            continue  # no kernel for the dtype
        except RuntimeError:
            with pytest.raises(RuntimeError):
                call(fb, fb.ones(2, dtype=getattr(fb, dtype)))
            continue
        ours = call(fb, fb.ones(2, dtype=getattr(fb, dtype)))
        assert str(ours.dtype) == str(theirs.dtype)
        torch.testing.assert_close(
            torch.tensor(ours.tolist(), dtype=theirs.dtype), theirs, equal_nan=True
        )


@pytest.mark.parametrize("weight", [0, 0.25, 0.5, 0.75, 1.0, 2.0, -1.0])
def test_lerp_agrees_at_infinities_and_nan(weight):
    inf, nan = math.inf, math.nan
    starts, ends = [inf, 1.0, inf, -inf, nan, 1.0], [1.0, inf, inf, inf, 1.0, 2.0]
    for t in (weight, None):
        theirs, ours = (
            library.lerp(
                library.tensor(starts),
                library.tensor(ends),
                weight if t is not None else library.full((6,), float(weight)),
            )
            for library in (torch, fb)
        )
        torch.testing.assert_close(torch.tensor(ours.tolist()), theirs, equal_nan=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.logaddexp(x, x.flip(0)),
        lambda t, x: t.logaddexp2(x, x.flip(0)),
        lambda t, x: t.logcumsumexp(x, 0),
        lambda t, x: t.logcumsumexp(x, 1),
    ],
    ids=["logaddexp", "logaddexp2", "logcumsumexp of columns", "of rows"],
)
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_forward_derivatives_and_hessians_agree(call: Any) -> None:
    def derivatives(library: Any, given: Any) -> Any:
        return (
            library.func.jvp(lambda a: call(library, a), (given,), (given,)),
            library.func.hessian(lambda a: (call(library, a) ** 3).sum())(given),
        )

    x = torch.arange(12.0, dtype=torch.float64).reshape(3, 4) / 5 - 1.1
    assert_same(derivatives(fb, ours_of(x, "cpu")), derivatives(torch, x))
