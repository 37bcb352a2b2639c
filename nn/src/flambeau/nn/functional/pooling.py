"""Pooling: the maximum or the mean of every window of an image or a signal.

`avg_pool2d` and `adaptive_avg_pool2d` are the core's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

import flambeau as fb
from flambeau import Tensor
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
    both = fb.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return both if return_indices else both[0]


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
    return fb.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


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
    kernel, step, edge, spread = _as_rows(kernel_size, stride, padding, dilation, "max_pool1d")
    rows = input.unsqueeze(-2)
    values, indices = fb.max_pool2d_with_indices(rows, kernel, step, edge, spread, ceil_mode)
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
    return fb.avg_pool2d(rows, kernel, step, edge, ceil_mode, count_include_pad).squeeze(-2)


def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of `output_size` windows that cover a signal, (N, C, L) or (C, L).

    Window i goes from ⌊i·L/O⌋ to ⌈(i+1)·L/O⌉.

    Raises:
        RuntimeError: `input` or `output_size` has another length.

    >>> import flambeau as fb
    >>> fb.nn.functional.adaptive_avg_pool1d(fb.tensor([[1.0, 2.0, 3.0]]), 2)
    tensor([[1.5000, 2.5000]])
    """
    _check_signal(input, "adaptive_avg_pool1d")
    size = output_size if isinstance(output_size, int) or output_size is None else output_size[0]
    return fb.adaptive_avg_pool2d(input.unsqueeze(-2), (1, size)).squeeze(-2)


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
