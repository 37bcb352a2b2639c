"""The reference kernels mean what PyTorch computes, on every sample, dtype and corner."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from flambeau._types.dtype import ALL
from flambeau._types.dtype import dtype as DType
from flambeau.testing.reference import KERNELS, RefArray, rounded
from flambeau.testing.samples import DTYPES, SAMPLES, SPECIAL, Sample, realise

torch = pytest.importorskip("torch")
# PyTorch says so once per process, in whichever test comes first.
pytestmark = pytest.mark.filterwarnings("ignore:Casting complex values to real")

TORCH_DTYPE = {d: getattr(torch, d.name) for d in ALL}
OURS = {theirs: ours for ours, theirs in TORCH_DTYPE.items()}


def make_reference(values: list[Any], shape: tuple[int, ...], dtype: DType) -> RefArray:
    return RefArray(shape, dtype, rounded(values, dtype))


def make_torch(values: list[Any], shape: tuple[int, ...], dtype: DType) -> Any:
    # The exact values of the reference array, so that both sides start from the same numbers.
    exact = rounded(values, dtype)
    return torch.tensor(exact, dtype=TORCH_DTYPE[dtype]).reshape(shape)


def _dims(function: Callable[..., Any]) -> Callable[..., Any]:
    """A PyTorch reduction, for which an empty tuple of dims would mean all of them."""
    return lambda a, dims, keepdim: function(a, dims, keepdim) if dims else a.clone()


def _one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(a: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
        for dim in reversed(dims):
            a = function(a, dim, keepdim)
        return a.clone()

    return reduce


def _arange(start: float, step: float, length: int, dtype: DType) -> Any:
    # Half a step short of the end leaves no doubt about the length where the step is a fraction.
    stop = start + step * length
    stop = stop if isinstance(stop, int) else stop - step / 2
    return torch.arange(start, stop, step, dtype=TORCH_DTYPE[dtype])


TORCH: dict[str, Callable[..., Any]] = {
    "full": lambda shape, value, dtype: torch.full(shape, value, dtype=TORCH_DTYPE[dtype]),
    "arange": _arange,
    "cast": lambda a, dtype: a.to(TORCH_DTYPE[dtype]),
    "imag": lambda a: a.imag if a.is_complex() else torch.zeros_like(a),
    "sum": _dims(lambda a, dims, keepdim: torch.sum(a, dims, keepdim, dtype=a.dtype)),
    "prod": _one_by_one(lambda a, dim, keepdim: torch.prod(a, dim, keepdim, dtype=a.dtype)),
    "amax": _dims(torch.amax),
    "amin": _dims(torch.amin),
    "all": _dims(torch.all),
    "any": _dims(torch.any),
    "cumsum": lambda a, dim: torch.cumsum(a, dim, dtype=a.dtype),
    "cumprod": lambda a, dim: torch.cumprod(a, dim, dtype=a.dtype),
    "slice": lambda a, items: a[items],
    "view": lambda a, shape: a.view(shape),
    "expand": lambda a, shape: a.expand(shape),
    "index": lambda a, indices: torch.ops.aten.index(a, list(indices)),
    "index_put": lambda a, indices, values, accumulate: torch.ops.aten.index_put(
        a, list(indices), values, accumulate
    ),
    "sort": lambda a, dim, descending, stable: torch.sort(
        a,
        dim=dim,
        descending=descending,
        stable=True,  # whatever is asked, says the meaning of the primitive
    ),
}

# The result has rounding errors of its own on either side; all others agree to a few units.
ACCUMULATES = {"pow", "sum", "prod", "cumsum", "cumprod", "matmul", "index_put", "scatter_add"}


def reference(name: str) -> Callable[..., Any]:
    return TORCH.get(name) or getattr(torch, name)


def close(ours: Any, theirs: Any, dtype: DType, units: int) -> bool:
    """Equal for integers; for floats within some units in the last place, zeros with their sign."""
    if dtype.category < 2:
        return ours == theirs and type(ours) is type(theirs)
    if dtype.is_complex:
        if _finite(ours) and _finite(theirs):
            return abs(ours - theirs) <= units * (_eps(dtype) * abs(theirs) + _tiny(dtype))
        return repr(ours) == repr(theirs)
    if not _finite(ours) or not _finite(theirs) or ours == theirs == 0:
        return repr(ours) == repr(theirs)
    # PyTorch's vector functions may flush results below the normal range to zero.
    return abs(ours - theirs) <= units * _eps(dtype) * abs(theirs) + 2 * _tiny(dtype)


def _finite(value: complex) -> bool:
    return math.isfinite(value.real) and math.isfinite(value.imag)


def _tiny(dtype: DType) -> float:
    return torch.finfo(TORCH_DTYPE[dtype]).smallest_normal


def _eps(dtype: DType) -> float:
    return torch.finfo(TORCH_DTYPE[dtype]).eps


def assert_same(name: str, sample: Sample, dtype: DType) -> None:
    ours = KERNELS[name](*realise(sample.args, make_reference, dtype))
    theirs = reference(name)(*realise(sample.args, make_torch, dtype))
    operands = _operands(sample, dtype)
    for mine, other in zip(_results(ours), _results(theirs), strict=True):
        assert mine.shape == tuple(other.shape)
        assert mine.dtype is OURS[other.dtype]
        units = 40 if name in ACCUMULATES else 4
        for i, (x, y) in enumerate(zip(mine.data, other.flatten().tolist(), strict=True)):
            if name == "matmul" and x == y == 0:
                continue  # a product of -0.0 is added to 0.0, or a sum begins with it
            if not close(x, y, mine.dtype, units) and not _excused(name, dtype, operands, i, x):
                place = f"{sample.name}: element {i}"
                raise AssertionError(f"{place} is {x!r}, in PyTorch {y!r}")


def _operands(sample: Sample, dtype: DType) -> list[list[Any]]:
    """Elements of the arrays of an elementwise sample, broadcast together; empty for others."""
    arrays = [v for v in realise(sample.args, make_torch, dtype) if isinstance(v, torch.Tensor)]
    try:
        return [a.flatten().tolist() for a in torch.broadcast_tensors(*arrays)]
    except RuntimeError:
        return []


def _excused(name: str, dtype: DType, operands: list[list[Any]], i: int, ours: Any) -> bool:
    """Whether PyTorch's answer is one that flambeau does not follow."""
    if name in ("remainder", "fmod"):  # vectorised: NaN where the quotient leaves the range
        x, y = operands[0][i], operands[1][i]
        largest = torch.finfo(TORCH_DTYPE[dtype]).max
        return dtype.is_floating_point and math.isfinite(x) and abs(x) > abs(y) * largest
    if name in ("maximum", "minimum"):  # either zero, by dtype and by position in the vector
        return operands[0][i] == operands[1][i] == 0
    if name == "erf":  # of bfloat16 computed as 1 minus what is left: few digits near zero
        x = operands[0][i]
        near_zero = dtype.name == "bfloat16" and abs(x) < 1e-4
        return near_zero and abs(ours - math.erf(x)) <= _eps(dtype) * abs(x)
    return False


def _results(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, (RefArray, torch.Tensor)) else tuple(value)


# PyTorch accumulates bools in integers even if asked for a bool result.
REFUSED = {("sum", "bool"), ("prod", "bool"), ("cumsum", "bool"), ("cumprod", "bool")}


def cases(samples: dict[str, list[Sample]]) -> list[Any]:
    return [
        pytest.param(name, sample, dtype, id=f"{name}-{sample.name}-{dtype.name}")
        for name in KERNELS
        for sample in samples.get(name, ())
        for dtype in DTYPES[name]
        if (name, dtype.name) not in REFUSED
    ]


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize(("name", "sample", "dtype"), cases(SAMPLES))
def test_samples_agree_with_pytorch(name: str, sample: Sample, dtype: DType) -> None:
    assert_same(name, sample, dtype)


def corners() -> list[Any]:
    return [
        pytest.param(name, dtype, id=f"{name}-{dtype.name}")
        for name in KERNELS
        if name in SPECIAL
        for dtype in DTYPES[name]
        if (name, dtype.name) not in REFUSED
    ]


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize(("name", "dtype"), corners())
def test_corners_agree_with_pytorch(name: str, dtype: DType) -> None:
    for sample in SPECIAL[name]:
        assert_same(name, sample, dtype)


def test_every_kernel_has_samples_and_corners_where_it_computes_with_floats() -> None:
    assert set(KERNELS) <= set(SAMPLES)
    moved = "slice permute view expand diagonal"
    assert set(KERNELS) - set(SPECIAL) == set(moved.split())


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8"])
def test_floats_without_an_integer_value_cast_as_on_x86(name: str) -> None:
    dtype = next(d for d in ALL if d.name == name)
    values = [NAN, INF, -INF, 3e9, -3e9, 1e20, -1.75, 300.5]
    float64 = OURS[torch.float64]
    ours = KERNELS["cast"](make_reference(values, (8,), float64), dtype)
    theirs = torch.tensor(values, dtype=torch.float64).to(TORCH_DTYPE[dtype])
    assert list(ours.data) == theirs.tolist()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_long_integers_round_once(name: str) -> None:
    dtype = next(d for d in ALL if d.name == name)
    values = [
        (1 << 60) + (1 << 36) + 1,
        (1 << 60) + (1 << 36),
        (1 << 53) + 1,
        -(1 << 62) - 1,
        65519,
    ]
    ours = KERNELS["cast"](make_reference(values, (5,), OURS[torch.int64]), dtype)
    assert list(ours.data) == torch.tensor(values).to(TORCH_DTYPE[dtype]).tolist()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_narrowing_rounds_as_pytorch_does(name: str) -> None:
    dtype = next(d for d in ALL if d.name == name)
    halves = [1 + 2.0**-k + 2.0**-j for k in (8, 9, 11, 12, 24, 25) for j in (9, 12, 25, 40, 52)]
    limits = [65504.0, 65519.99, 65520.0, 3.3895e38, 3.3961e38, 3.4028235677973366e38, 1e39]
    small = [2.0**-24, 2.0**-25, 1.5 * 2.0**-25, 2.0**-133, 2.0**-134, 2.0**-149, 2.0**-150]
    values = [s * v for v in (*halves, *limits, *small, NAN, INF, 0.0) for s in (1, -1)]
    theirs = torch.tensor(values, dtype=torch.float64).to(TORCH_DTYPE[dtype]).tolist()
    assert list(map(repr, rounded(values, dtype))) == list(map(repr, theirs))


@pytest.mark.parametrize("operation", ["remainder", "fmod", "floor_divide"])
def test_integer_division_by_zero_raises_on_both_sides(operation: str) -> None:
    one, zero = (
        make_reference([1], (1,), OURS[torch.int64]),
        make_reference([0], (1,), OURS[torch.int64]),
    )
    with pytest.raises(ZeroDivisionError):
        KERNELS[operation](one, zero)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(torch, operation)(torch.tensor([1]), torch.tensor([0]))
