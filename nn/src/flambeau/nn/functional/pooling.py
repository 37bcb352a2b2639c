"""Pooling: the maximum, the norm or the mean of every window of a signal, an image or a volume.

`avg_pool1d` … `avg_pool3d` and `adaptive_avg_pool1d` … `adaptive_avg_pool3d` are the core's.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Literal, overload

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.functional._arguments import Size, sizes
from flambeau.overrides import takes_as_annotated

if TYPE_CHECKING:
    from collections.abc import Sequence


@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = ...,
    padding: Size = ...,
    dilation: Size = ...,
    ceil_mode: bool = ...,
    return_indices: Literal[False] = ...,
) -> Tensor: ...
@overload
def max_pool1d(
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
def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = ...,
    padding: Size = ...,
    dilation: Size = ...,
    ceil_mode: bool = ...,
    return_indices: bool = ...,
) -> Tensor | tuple[Tensor, Tensor]: ...
def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """`max_pool2d` of signals, (N, C, L) or (C, L); positions are in L.

    Raises:
        RuntimeError: the shapes or the settings do not fit; says which.
        NotImplementedError: the dtype is bool or complex.

    >>> import flambeau as fb
    >>> fb.nn.functional.max_pool1d(fb.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    if not return_indices:
        return fb.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)
    return fb.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


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
    return fb.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


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
    if not return_indices:
        return fb.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)
    return fb.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


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


@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = ...,
    padding: Size = ...,
    dilation: Size = ...,
    ceil_mode: bool = ...,
    return_indices: Literal[False] = ...,
) -> Tensor: ...
@overload
def max_pool3d(
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
def max_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = ...,
    padding: Size = ...,
    dilation: Size = ...,
    ceil_mode: bool = ...,
    return_indices: bool = ...,
) -> Tensor | tuple[Tensor, Tensor]: ...
def max_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """`max_pool2d` of volumes, (N, C, D, H, W) or (C, D, H, W); positions are in D·H·W.

    Raises:
        RuntimeError: the shapes or the settings do not fit; says which.
        NotImplementedError: the dtype is bool or complex.

    >>> import flambeau as fb
    >>> fb.nn.functional.max_pool3d(fb.arange(16.0).reshape(1, 2, 2, 4), 2)
    tensor([[[[13., 15.]]]])
    """
    if not return_indices:
        return fb.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)
    return fb.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> tuple[Tensor, Tensor]:
    """`max_pool3d` with the indices, whatever `return_indices` says.

    >>> import flambeau as fb
    >>> fb.nn.functional.max_pool3d_with_indices(fb.ones(1, 2, 2, 2), 2)[1]
    tensor([[[[0]]]])
    """
    return fb.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The maxima of `output_size` windows that cover a signal; with `return_indices` also where.

    Window i along a dimension of n elements goes from ⌊i·n/O⌋ to ⌈(i+1)·n/O⌉.

    Raises:
        RuntimeError: the shapes or the sizes do not fit; says which.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.nn.functional.adaptive_max_pool1d(fb.tensor([[1.0, 2.0, 3.0]]), 2)
    tensor([[2., 3.]])
    """
    both = fb.adaptive_max_pool1d(input, output_size)
    return both if return_indices else both[0]


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = True
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool1d` with the indices, whatever `return_indices` says.

    >>> import flambeau as fb
    >>> fb.nn.functional.adaptive_max_pool1d_with_indices(fb.ones(1, 1), 1)[1].item()
    0
    """
    return fb.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The maxima of `output_size` windows that cover an image; with `return_indices` also where.

    Window i along a dimension of n elements goes from ⌊i·n/O⌋ to ⌈(i+1)·n/O⌉.

    Raises:
        RuntimeError: the shapes or the sizes do not fit; says which.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.nn.functional.adaptive_max_pool2d(fb.arange(4.0).reshape(1, 2, 2), (None, 1))
    tensor([[[1.],
             [3.]]])
    """
    both = fb.adaptive_max_pool2d(input, output_size)
    return both if return_indices else both[0]


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = True
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool2d` with the indices, whatever `return_indices` says.

    >>> import flambeau as fb
    >>> fb.nn.functional.adaptive_max_pool2d_with_indices(fb.ones(1, 1, 1), 1)[1].item()
    0
    """
    return fb.adaptive_max_pool2d(input, output_size)


def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The maxima of `output_size` windows that cover a volume; with `return_indices` also where.

    Window i along a dimension of n elements goes from ⌊i·n/O⌋ to ⌈(i+1)·n/O⌉.

    Raises:
        RuntimeError: the shapes or the sizes do not fit; says which.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.nn.functional.adaptive_max_pool3d(fb.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[7.]]]])
    """
    both = fb.adaptive_max_pool3d(input, output_size)
    return both if return_indices else both[0]


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = True
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool3d` with the indices, whatever `return_indices` says.

    >>> import flambeau as fb
    >>> fb.nn.functional.adaptive_max_pool3d_with_indices(fb.ones(1, 1, 1, 1), 1)[1].item()
    0
    """
    return fb.adaptive_max_pool3d(input, output_size)


@takes_as_annotated
def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The `norm_type`-norm of each window of a signal: (Σ xᵖ)^(1/p), 0 where the sum is negative.

    Raises:
        RuntimeError: the shapes or the settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.nn.functional.lp_pool1d(fb.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]])
    """
    means = fb.avg_pool1d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return _norms(means, sizes(kernel_size, 1, "kernel_size", "lp_pool1d"), norm_type)


@takes_as_annotated
def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The `norm_type`-norm of each window of an image: (Σ xᵖ)^(1/p), 0 where the sum is negative.

    Raises:
        RuntimeError: the shapes or the settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.nn.functional.lp_pool2d(fb.ones(1, 2, 2), 2, 2)
    tensor([[[2.]]])
    """
    means = fb.avg_pool2d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return _norms(means, sizes(kernel_size, 2, "kernel_size", "lp_pool2d"), norm_type)


@takes_as_annotated
def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The `norm_type`-norm of each window of a volume: (Σ xᵖ)^(1/p), 0 where the sum is negative.

    Raises:
        RuntimeError: the shapes or the settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.nn.functional.lp_pool3d(fb.ones(1, 4, 2, 2), 2, (4, 2, 2))
    tensor([[[[4.]]]])
    """
    means = fb.avg_pool3d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return _norms(means, sizes(kernel_size, 3, "kernel_size", "lp_pool3d"), norm_type)


def _norms(means: Tensor, kernel: tuple[int, ...], norm_type: float) -> Tensor:
    """Roots of sums, from the means of powers."""
    if not norm_type:
        raise ValueError("norm_type must not be zero")
    return (means.sign() * means.abs().relu() * prod(kernel)).pow(1.0 / norm_type)
