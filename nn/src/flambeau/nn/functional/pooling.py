"""Pooling: the maximum or the mean of every window of an image or a signal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import flambeau as fb
from flambeau import Tensor, ops
from flambeau.nn.functional._arguments import Size, sizes


@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = ...,
    padding: Size = ...,
    dilation: Size = ...,
    ceil_mode: bool = ...,
    return_indices: Literal[False] = ...,
) -> Tensor: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = ...,
    padding: Size = ...,
    dilation: Size = ...,
    ceil_mode: bool = ...,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = ...,
    padding: Size = ...,
    dilation: Size = ...,
    ceil_mode: bool = ...,
    return_indices: bool = ...,
) -> Tensor | tuple[Tensor, Tensor]: ...
def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each window; with `return_indices` also where it stands in H·W.

    The border counts as -∞.  `stride` is the kernel size by default; `ceil_mode` keeps windows that
    reach past the end.

    Shapes: input (N, C, H, W) or (C, H, W); result the same with
    H' = ⌊(H + 2p - d·(K - 1) - 1) / s⌋ + 1.

    Raises:
        RuntimeError: the shapes or the settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.nn.functional.max_pool2d(fb.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    batch, *window = _window(input, kernel_size, stride, padding, dilation, ceil_mode, "max_pool2d")
    values, indices = ops.max_pool2d(batch, *window, bool(ceil_mode))
    if batch is not input:
        values, indices = values.squeeze(0), indices.squeeze(0)
    return (values, indices) if return_indices else values


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> tuple[Tensor, Tensor]:
    """`max_pool2d` with the indices, whatever `return_indices` says.

    >>> import flambeau as fb
    >>> fb.nn.functional.max_pool2d_with_indices(fb.ones(1, 2, 2), 2)[1]
    tensor([[[0]]])
    """
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices=True)


def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """`max_pool2d` of signals, (N, C, L) or (C, L).

    Raises:
        RuntimeError: the shapes or the settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.nn.functional.max_pool1d(fb.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    _check_signal(input, "max_pool1d")
    args = _as_rows(kernel_size, stride, padding, dilation, "max_pool1d")
    values, indices = max_pool2d(
        input.unsqueeze(-2), args[0], args[1], args[2], args[3], ceil_mode, return_indices=True
    )
    values, indices = values.squeeze(-2), indices.squeeze(-2)
    return (values, indices) if return_indices else values


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> tuple[Tensor, Tensor]:
    """`max_pool1d` with the indices, whatever `return_indices` says.

    >>> import flambeau as fb
    >>> fb.nn.functional.max_pool1d_with_indices(fb.ones(1, 2), 2)[1]
    tensor([[0]])
    """
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)  # pyright: ignore[reportReturnType]


def avg_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window.

    The border counts as zeros; `count_include_pad` says whether it counts in the divisor, which
    `divisor_override` replaces.

    Shapes: input (N, C, H, W) or (C, H, W); result the same with H' = ⌊(H + 2p - K) / s⌋ + 1.

    Raises:
        RuntimeError: the shapes or the settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.nn.functional.avg_pool2d(fb.arange(4.0).reshape(1, 2, 2), 2)
    tensor([[[1.5000]]])
    """
    if divisor_override == 0:
        raise RuntimeError("avg_pool2d: divisor must be not zero")
    batch, kernel, step, edge, _ = _window(
        input, kernel_size, stride, padding, 1, ceil_mode, "avg_pool2d"
    )
    result = ops.avg_pool2d(
        batch, kernel, step, edge, bool(ceil_mode), bool(count_include_pad), divisor_override
    )
    return result if batch is input else result.squeeze(0)


def avg_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """`avg_pool2d` of signals, (N, C, L) or (C, L).

    Raises:
        RuntimeError: the shapes or the settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.nn.functional.avg_pool1d(fb.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    _check_signal(input, "avg_pool1d")
    kernel, step, edge, _ = _as_rows(kernel_size, stride, padding, 1, "avg_pool1d")
    rows = input.unsqueeze(-2)
    return avg_pool2d(rows, kernel, step, edge, ceil_mode, count_include_pad).squeeze(-2)


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of `output_size` windows that cover the image: from ⌊i·H/O⌋ to ⌈(i+1)·H/O⌉.

    A None in `output_size` keeps the input's size.

    Shapes: input (N, C, H, W) or (C, H, W); result the same with the output size.

    Raises:
        RuntimeError: `input` or `output_size` has another length.

    >>> import flambeau as fb
    >>> fb.nn.functional.adaptive_avg_pool2d(fb.arange(4.0).reshape(1, 2, 2), 1)
    tensor([[[1.5000]]])
    """
    if input.dim() not in (3, 4):
        raise RuntimeError(
            f"adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got {list(input.shape)}"
        )
    return _adaptive(input, output_size, 2, _windowed_mean, "adaptive_avg_pool2d")


def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """`adaptive_avg_pool2d` of signals, (N, C, L) or (C, L).

    Raises:
        RuntimeError: `input` or `output_size` has another length.

    >>> import flambeau as fb
    >>> fb.nn.functional.adaptive_avg_pool1d(fb.tensor([[1.0, 2.0, 3.0]]), 2)
    tensor([[1.5000, 2.5000]])
    """
    _check_signal(input, "adaptive_avg_pool1d")
    return _adaptive(input, output_size, 1, _windowed_mean, "adaptive_avg_pool1d")


def _adaptive(
    input: Tensor,
    output_size: Any,
    count: int,
    windowed: Callable[[Tensor, int, int], Tensor],
    where: str,
) -> Tensor:
    if output_size is None or isinstance(output_size, int):
        output_size = (output_size,) * count
    if len(output_size) != count:
        raise RuntimeError(f"{where}: output_size must be {count}, got {len(output_size)} sizes")
    for i, size in enumerate(output_size):
        dim = input.dim() - count + i
        input = windowed(input, dim, input.shape[dim] if size is None else size)
    return input


def _windowed_mean(input: Tensor, dim: int, windows: int) -> Tensor:
    """The means of `windows` windows along one dimension; means of means, as windows are boxes."""
    size = input.shape[dim]
    if windows == 1:
        return input.mean(dim, keepdim=True)
    if windows and size % windows == 0:
        shape = (*input.shape[:dim], windows, size // windows, *input.shape[dim + 1 :])
        return input.reshape(shape).mean(dim + 1)
    means = []
    for i in range(windows):
        start, end = i * size // windows, -(-(i + 1) * size // windows)
        means.append(input.narrow(dim, start, end - start).mean(dim, keepdim=True))
    return fb.cat(means, dim) if means else input.narrow(dim, 0, 0)


def _window(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None,
    padding: Size,
    dilation: Size,
    ceil_mode: bool,
    where: str,
) -> tuple[Tensor, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The input as a batch, and kernel, stride, padding and dilation as checked pairs."""
    kernel = sizes(kernel_size, 2, "kernel_size", where)
    given = stride if stride is None or isinstance(stride, int) else tuple(stride)
    step = kernel if given is None or given == () else sizes(given, 2, "stride", where)
    edge = sizes(padding, 2, "padding", where)
    spread = sizes(dilation, 2, "dilation", where)
    shape = input.shape
    if len(shape) not in (3, 4) or 0 in shape[-3:]:
        raise RuntimeError(
            f"{where}: Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for "
            f"input, but got: {list(shape)}"
        )
    if min(kernel) <= 0:
        raise RuntimeError(f"{where}: kernel size should be greater than zero, but got {kernel}")
    if min(step) <= 0:
        raise RuntimeError(f"{where}: stride should be greater than zero, but got {step}")
    if min(spread) <= 0:
        raise RuntimeError(f"{where}: dilation should be greater than zero, but got {spread}")
    if min(edge) < 0:
        raise RuntimeError(f"{where}: pad must be non-negative, but got pad: {min(edge)}")
    output = []
    for size, k, s, p, d in zip(shape[-2:], kernel, step, edge, spread, strict=True):
        reach = d * (k - 1) + 1
        if p > reach // 2:
            raise RuntimeError(
                f"{where}: pad should be at most half of effective kernel size, "
                f"but got pad={p}, kernel_size={k} and dilation={d}"
            )
        room = size + 2 * p - reach
        output.append((-(-room // s) if ceil_mode else room // s) + 1)
    if min(output) < 1:
        planes = shape[-3]
        raise RuntimeError(
            f"Given input size: ({planes}x{shape[-2]}x{shape[-1]}). Calculated output size: "
            f"({planes}x{output[0]}x{output[1]}). Output size is too small"
        )
    return input.unsqueeze(0) if len(shape) == 3 else input, kernel, step, edge, spread


def _check_signal(input: Tensor, where: str) -> None:
    if input.dim() not in (2, 3):
        raise RuntimeError(f"{where}: Expected 2D or 3D input, but got {list(input.shape)}")


def _as_rows(
    kernel_size: Size, stride: Size | None, padding: Size, dilation: Size, where: str
) -> tuple[tuple[int, int], tuple[int, int] | None, tuple[int, int], tuple[int, int]]:
    """The arguments of one dimension for an image of height 1."""
    (kernel,) = sizes(kernel_size, 1, "kernel_size", where)
    (edge,) = sizes(padding, 1, "padding", where)
    (spread,) = sizes(dilation, 1, "dilation", where)
    given = stride if stride is None or isinstance(stride, int) else tuple(stride)
    step = None if given is None or given == () else (1, sizes(given, 1, "stride", where)[0])
    return (1, kernel), step, (0, edge), (1, spread)
