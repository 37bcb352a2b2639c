"""Arguments of pooling: their forms, and what is refused."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.ops.spatial.image_windows import Sizes

_LARGEST = 2**31 - 1
_NUMBERS = {1: "one int", 2: "two ints", 3: "three ints"}


def window_count(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool
) -> int:
    """The number of windows along a dimension."""
    # The last window must start inside the image or its left padding.
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    n = (-(-room // stride) if ceil else room // stride) + 1
    return n - 1 if ceil and (n - 1) * stride >= size + padding else n


def taps_inside(
    size: int, count: int, kernel: int, stride: int, padding: int, dilation: int
) -> tuple[int, int]:
    """The first tap of a window that one of `count` windows has inside of a dimension, and how many
    there are from there; all, unless windows are larger than the dimension.
    """
    if kernel <= size + 1:
        return 0, kernel
    end = max(min(kernel, (size - 1 + padding) // dilation + 1), 1)
    first = min(max(0, -(((count - 1) * stride - padding) // dilation)), end - 1)
    return first, end - first


def window(
    where: str,
    rank: int,
    x: Tensor,
    kernel_size: object,
    stride: object,
    padding: object,
    dilation: object,
    ceil_mode: bool,
) -> tuple[Tensor, tuple[Sizes, Sizes, Sizes, Sizes]]:
    """The input as a batch; kernel size, stride, padding and dilation, checked, per dimension.

    Raises:
        RuntimeError: the input has another rank or is empty, or a setting does not fit.
    """
    shape = x._a.shape
    if type(shape) is not tuple:
        shape = tuple(shape)
    if type(kernel_size) is not int:
        kernel_size = _integers(where, kernel_size, "kernel_size")
    if stride is not None and type(stride) is not int:
        stride = _integers(where, stride, "stride") or None
    if type(padding) is not int:
        padding = _integers(where, padding, "padding")
    if type(dilation) is not int:
        dilation = _integers(where, dilation, "dilation")
    how = window_sizes(where, rank, shape, kernel_size, stride, padding, dilation, ceil_mode)
    return x.unsqueeze(0) if len(shape) == rank + 1 else x, how


@lru_cache(maxsize=256)  # a network pools the same few shapes over and over
def window_sizes(
    where: str,
    rank: int,
    shape: Sizes,
    kernel_size: object,
    stride: object,
    padding: object,
    dilation: object,
    ceil_mode: bool,
) -> tuple[Sizes, Sizes, Sizes, Sizes]:
    """Kernel size, stride, padding and dilation per dimension, checked, of inputs of a shape.

    They are given as plain ints, alone or in tuples, by which the answer is kept: 2.0 equals 2, and
    lists change.

    Raises:
        RuntimeError: the input has another rank or is empty, or a setting does not fit.
    """
    kernel = per_dimension(where, rank, kernel_size, "kernel_size")
    step = kernel
    if stride is not None:
        step = per_dimension(where, rank, stride, "stride")
    edge = per_dimension(where, rank, padding, "padding")
    spread = per_dimension(where, rank, dilation, "dilation")
    if len(shape) not in (rank + 1, rank + 2) or 0 in shape[-rank - 1 :]:
        raise RuntimeError(
            f"{where}: Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with optional 0 dim "
            f"batch size for input, but got: {list(shape)}"
        )
    if min(kernel) <= 0:
        raise RuntimeError(f"{where}: kernel size should be greater than zero, but got {kernel}")
    if min(step) <= 0:
        raise RuntimeError(f"{where}: stride should be greater than zero, but got {step}")
    if min(spread) <= 0:
        raise RuntimeError(f"{where}: dilation should be greater than zero, but got {spread}")
    if min(edge) < 0:
        raise RuntimeError(f"{where}: pad must be non-negative, but got pad: {min(edge)}")
    if max(*kernel, *step, *edge, *spread) > _LARGEST:
        raise RuntimeError(
            f"{where}: integer out of range: kernel_size={kernel}, stride={step}, padding={edge} "
            f"and dilation={spread} must be at most {_LARGEST}"
        )
    for k, p, d in zip(kernel, edge, spread, strict=True):
        if p > k // 2:
            size = "effective kernel size" if p > (d * (k - 1) + 1) // 2 else "kernel size"
            raise RuntimeError(
                f"{where}: pad should be at most half of {size}, but got pad={p}, "
                f"kernel_size={k} and dilation={d}"
            )
    output = [
        window_count(*sizes, ceil_mode)
        for sizes in zip(shape[-rank:], kernel, step, edge, spread, strict=True)
    ]
    if min(output) < 1:
        before, after = ("x".join(map(str, sizes)) for sizes in (shape[-rank:], output))
        raise RuntimeError(
            f"Given input size: ({shape[-rank - 1]}x{before}). Calculated output size: "
            f"({shape[-rank - 1]}x{after}). Output size is too small"
        )
    return kernel, step, edge, spread


def per_dimension(where: str, rank: int, value: Any, name: str) -> Sizes:
    """One int per dimension from an int, a sequence of one, or a sequence of all.

    Raises:
        TypeError: a value is no integer.
        RuntimeError: a sequence of another length.
    """
    values = _integers(where, value, name)
    values = values * rank if len(values) == 1 else values
    if len(values) != rank:
        raise RuntimeError(
            f"{where}: {name} must either be a single int, or a tuple of {_NUMBERS[rank]}, "
            f"got {list(values)}"
        )
    return values


def _integers(where: str, value: Any, name: str) -> Sizes:
    """Plain ints from an integer or a sequence of integers.

    Raises:
        TypeError: a value is no integer.
    """
    try:
        if isinstance(value, (tuple, list)):
            return tuple([operator.index(v) for v in value])
        if not isinstance(value, bool):
            return (operator.index(value),)
    except TypeError:
        pass
    raise TypeError(
        f"{where}(): argument {name!r} must be int or a tuple of ints, got {value!r:.50}"
    )
