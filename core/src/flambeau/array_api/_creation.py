"""Functions that make tensors."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.annotated import all_take_as_annotated

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType
    from flambeau._types.hints import DeviceLike, Number


__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def asarray(
    obj: object,
    /,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    copy: builtins.bool | None = None,
) -> Tensor:
    """A tensor of numbers, sequences, buffers and tensors.

    >>> import flambeau as fb
    >>> fb.array_api.asarray([[1, 2]], dtype=fb.float64)
    tensor([[1., 2.]], dtype=torch.float64)
    """
    return fb.asarray(obj, dtype=dtype, device=device, copy=copy)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Numbers from `start` up to `stop`, which is not among them."""
    if stop is None:
        start, stop = 0, start
    if (step > 0 and stop < start) or (step < 0 and stop > start):
        whole = all(isinstance(v, int) for v in (start, stop, step))
        dtype = dtype or (fb.int64 if whole else fb.get_default_dtype())
        return fb.empty(0, dtype=dtype, device=device)
    return fb.arange(start, stop, step, dtype=dtype, device=device)


def empty(shape: object, *, dtype: DType | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of any values."""
    return fb.empty(_sizes(shape), dtype=dtype, device=device)


def empty_like(
    x: Tensor, /, *, dtype: DType | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor of any values, like another one."""
    return fb.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Ones on the k-th diagonal and zeros elsewhere."""
    out = fb.zeros(n_rows, n_rows if n_cols is None else n_cols, dtype=dtype, device=device)
    rows, columns = out.shape
    if -rows < k < columns:
        out.diagonal(k).fill_(1)
    return out


def from_dlpack(
    x: object, /, *, device: object = None, copy: builtins.bool | None = None
) -> Tensor:
    """A tensor that shares the memory of an array of another library."""
    made = fb.from_dlpack(x)
    return made if device is None and not copy else made.to(device=device, copy=bool(copy))


def full(
    shape: Any, fill_value: Number, *, dtype: DType | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor of one value."""
    return fb.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def full_like(
    x: Tensor,
    /,
    fill_value: Number,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """A tensor of one value, like another one."""
    return fb.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    endpoint: builtins.bool = True,
) -> Tensor:
    """Numbers at equal distances; the last is `stop`, or with `endpoint` false one before it."""
    if endpoint:
        return fb.linspace(start, stop, num, dtype=dtype, device=device)
    return fb.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of a grid."""
    return list(fb.meshgrid(*arrays, indexing=indexing)) if arrays else []


def ones(shape: object, *, dtype: DType | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of ones."""
    return fb.ones(_sizes(shape), dtype=dtype, device=device)


def ones_like(
    x: Tensor, /, *, dtype: DType | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor of ones, like another one."""
    return fb.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The k-th diagonal and what is below it, zeros elsewhere."""
    return fb.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The k-th diagonal and what is above it, zeros elsewhere."""
    return fb.triu(x, k)


def zeros(shape: object, *, dtype: DType | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of zeros."""
    return fb.zeros(_sizes(shape), dtype=dtype, device=device)


def zeros_like(
    x: Tensor, /, *, dtype: DType | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor of zeros, like another one."""
    return fb.zeros_like(x, dtype=dtype, device=device)


all_take_as_annotated(globals())
