"""Every NumPy kernel computes what the reference kernel of its name does.

Kernels are called directly, without tensors: on the samples of each op in every dtype, with three
draws of random numbers and in every memory layout, and on the corners of each dtype.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from flambeau._types.dtype import ALL, bfloat16
from flambeau._types.dtype import dtype as DType
from flambeau.testing.reference import KERNELS as REFERENCE
from flambeau.testing.reference import RefArray, rounded
from flambeau.testing.samples import (
    ANY_SHAPE,
    DTYPES,
    LAYOUTS,
    SAMPLES,
    SPECIAL,
    Arr,
    Sample,
    arrange,
    realise,
)
from flambeau_numpy import kernels
from flambeau_numpy.dtypes import TO_NUMPY

FROM_NUMPY = {TO_NUMPY[d]: d for d in ALL}


def _offered() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for module in pkgutil.iter_modules(kernels.__path__):
        if not module.name.startswith("_"):
            family = importlib.import_module(f"{kernels.__name__}.{module.name}")
            found |= getattr(family, "KERNELS", {})
    return found


NUMPY = _offered()


class Movable(np.ndarray[Any, Any]):
    """An array with the two tensor methods that build layouts."""

    def permute(self, *dims: int) -> Movable:
        return self.transpose(dims)

    def expand(self, shape: tuple[int, ...]) -> Movable:
        return np.broadcast_to(self, shape, subok=True)


def make_reference(values: list[Any], shape: tuple[int, ...], dtype: DType) -> RefArray:
    return RefArray(shape, dtype, rounded(values, dtype))


def make_numpy(values: list[Any], shape: tuple[int, ...], dtype: DType) -> Movable:
    exact = rounded(values, dtype)
    wide = np.float64 if dtype is bfloat16 else TO_NUMPY[dtype]
    return np.array(exact, wide).astype(TO_NUMPY[dtype]).reshape(shape).view(Movable)


def native(value: Any) -> Any:
    """Arguments as the kernel gets them in real life: plain arrays."""
    if isinstance(value, Movable):
        return value.view(np.ndarray)
    if isinstance(value, (tuple, list)):
        return type(value)([native(item) for item in value])
    return value


# Rounding errors add up; the others are correct to a few units in the last place.
ACCUMULATES = {"pow", "sum", "prod", "cumsum", "cumprod", "matmul", "index_put", "scatter_add"}

# Which zero these return is left open.
ANY_ZERO = {
    *("maximum", "minimum", "amax", "amin", "sort"),
    *("remainder", "fmod", "floor_divide", "sign", "cumsum"),
    "matmul",  # BLAS adds a product of -0.0 to 0.0, or begins with it, by dtype and by shape
}


def close(name: str, found: Any, expected: Any, dtype: DType) -> bool:
    if dtype.category < 2:
        return found == expected
    if not _finite(found) or not _finite(expected):
        return repr(found) == repr(expected)
    limits = np.finfo(np.float32) if dtype is bfloat16 else np.finfo(TO_NUMPY[dtype])
    eps = 2.0**-7 if dtype is bfloat16 else float(limits.eps)
    if found == expected == 0:
        return name in ANY_ZERO or repr(found) == repr(expected)
    units = 40 if name in ACCUMULATES else 4
    return abs(found - expected) <= units * eps * abs(expected) + 2 * float(limits.tiny)


def _finite(value: complex) -> bool:
    return math.isfinite(value.real) and math.isfinite(value.imag)


def results(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def check(name: str, args: tuple[Any, ...], dtype: DType, layout: str = "contiguous") -> None:
    arguments = native(realise(args, make_numpy, dtype, layout=layout))
    before = [a.tobytes() for a in arrays(arguments)]
    found = NUMPY[name](*arguments)
    expected = REFERENCE[name](*realise(arrange(args, layout), make_reference, dtype))
    assert [a.tobytes() for a in arrays(arguments)] == before, "an input was changed"
    for array, reference in zip(results(found), results(expected), strict=True):
        array = np.asarray(array)
        assert array.shape == reference.shape
        assert FROM_NUMPY[array.dtype] is reference.dtype
        wide = array.astype(np.float64) if reference.dtype is bfloat16 else array
        for i, (x, y) in enumerate(zip(wide.ravel().tolist(), reference.data, strict=True)):
            assert close(name, x, y, reference.dtype), f"element {i} is {x!r}, expected {y!r}"


def arrays(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from arrays(item)


def redrawn(value: Any, draw: int) -> Any:
    """The same description with other random numbers."""
    if isinstance(value, Arr):
        return replace(value, seed=value.seed + 1000 * draw)
    if isinstance(value, (tuple, list)):
        return type(value)([redrawn(item, draw) for item in value])
    return value


def cases(samples: dict[str, list[Sample]]) -> list[Any]:
    return [
        pytest.param(name, sample, dtype, id=f"{name}-{sample.name}-{dtype.name}")
        for name in REFERENCE
        if name in NUMPY
        for sample in samples.get(name, ())
        for dtype in DTYPES[name]
    ]


def test_numpy_has_every_primitive() -> None:
    assert set(REFERENCE) <= set(NUMPY)


@pytest.mark.parametrize(("name", "sample", "dtype"), cases(SAMPLES))
def test_kernels_agree_on_samples(name: str, sample: Sample, dtype: DType) -> None:
    for draw in range(3):
        check(name, redrawn(sample.args, draw), dtype)


@pytest.mark.parametrize("name", [name for name in REFERENCE if name in NUMPY and name in SPECIAL])
def test_kernels_agree_at_the_corners(name: str) -> None:
    for sample, dtype in product(SPECIAL[name], DTYPES[name]):
        check(name, sample.args, dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [name for name in REFERENCE if name in NUMPY])
def test_kernels_agree_in_every_layout(name: str, layout: str) -> None:
    if layout in ("empty", "scalar") and name not in ANY_SHAPE:
        pytest.skip("the other arguments of this op fix the shape")
    if layout in ("transposed", "sliced", "expanded") and name == "view":
        pytest.skip("a view is asked only for what strides allow")
    for sample in SAMPLES[name]:
        check(name, sample.args, DTYPES[name][-1], layout)
