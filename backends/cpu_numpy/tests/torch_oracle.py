"""PyTorch beside the NumPy kernels: the same data as arrays and tensors, and comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

Array = np.ndarray[Any, Any]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES: dict[str, np.dtype] = {
    **{
        name: np.dtype(name)
        for name in (
            *("bool", "uint8", "int8", "int16", "int32", "int64"),
            *("float16", "float32", "float64", "complex64", "complex128"),
        )
    },
    "bfloat16": BFLOAT16,
}
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 4e-6, "complex64": 4e-6}


def tensor(a: Any) -> Any:
    """The tensor with the values, dtype and strides of an array."""
    if not isinstance(a, np.ndarray):
        return a
    if a.dtype == BFLOAT16:
        return torch.from_numpy(a.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(a)


def array(t: Any) -> Array:
    """The array with the values and dtype of a tensor."""
    if t.dtype == torch.bfloat16:
        return t.contiguous().view(torch.int16).numpy().view(BFLOAT16)
    return t.numpy()


def draw(shape: tuple[int, ...], name: str, seed: int = 0, scale: float = 2.0) -> Array:
    """Random numbers of a dtype: normal ones, small integers or booleans."""
    rng, dtype = np.random.default_rng(seed), DTYPES[name]
    if name == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if name in INTEGERS:
        return np.asarray(rng.integers(0 if name == "uint8" else -6, 7, shape)).astype(dtype)
    numbers = np.asarray(rng.standard_normal(shape) * scale)
    if name in COMPLEX:
        return np.asarray(numbers + 1j * rng.standard_normal(shape)).astype(dtype)
    return numbers.astype(dtype)


def dtype_of(name: str) -> Any:
    """PyTorch's dtype of a name."""
    return getattr(torch, name)


SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 1e-3, 65504.0, np.inf, -np.inf, np.nan)


def special(name: str) -> Array:
    """The corners of a float dtype, and the limits of an integer dtype."""
    if name == "bool":
        return np.array([True, False])
    if name in INTEGERS:
        limits = np.iinfo(DTYPES[name])
        return np.array([0, 1, 2, 3, 5, limits.min, limits.max], DTYPES[name])
    return np.array(SPECIAL).astype(DTYPES[name])


def layouts(a: Array) -> Iterator[tuple[str, Array]]:
    """`a` (a matrix) in the memory layouts that tensors have."""
    yield "contiguous", a
    yield "transposed", np.ascontiguousarray(a.T).T
    wide = np.zeros((a.shape[0] * 2, a.shape[1] + 3), a.dtype)
    wide[::2, 1:-2] = a
    yield "sliced", wide[::2, 1:-2]
    yield "expanded", np.lib.stride_tricks.as_strided(a[:1], a.shape, (0, a.strides[1]))
    yield "empty", a[:0]
    yield "scalar", np.array(a[0, 0])


def agree(found: Any, expected: Any, *, scale: float = 1.0) -> None:
    """Assert equal shape and dtype, and values equal up to rounding (exactly for other dtypes)."""
    wanted = array(expected)
    got = np.asarray(found)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    name = "bfloat16" if got.dtype == BFLOAT16 else got.dtype.name
    if name not in FLOATS + COMPLEX:
        np.testing.assert_array_equal(got, wanted)
        return
    wide = np.complex128 if name in COMPLEX else np.float64
    tolerance = TOLERANCE.get(name, 1e-12) * scale
    np.testing.assert_allclose(
        got.astype(wide), wanted.astype(wide), rtol=tolerance, atol=tolerance, equal_nan=True
    )


Kernel = Callable[..., Any]
