"""Pooled maxima back where they came from; a scatter, so that there is no op of this name."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.nn.functional._arguments import Size, sizes
from flambeau.overrides import checked, takes_as_annotated


@takes_as_annotated
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """A signal of zeros with each element of `input` at its index in L.

    `indices` are those of `max_pool1d` with the same settings.  Several inputs may have been pooled
    to one size; `output_size` tells which one to restore, else it is (n - 1)·s - 2p + k.

    Shapes: input and indices (N, C, L) or without N.

    Raises:
        RuntimeError: shapes or dtypes do not fit, or an index lies outside of the result.
        ValueError: no input of `output_size` has the size of `input` when pooled.

    >>> import flambeau as fb
    >>> fb.nn.functional.max_unpool1d(fb.tensor([[5.0, 6.0]]), fb.tensor([[1, 2]]), 2)
    tensor([[0., 5., 6., 0.]])
    """
    return _unpooled(1, input, indices, kernel_size, stride, padding, output_size)


@takes_as_annotated
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """An image of zeros with each element of `input` at its index in H·W.

    `indices` are those of `max_pool2d` with the same settings.  Several inputs may have been pooled
    to one size; `output_size` tells which one to restore, else it is (n - 1)·s - 2p + k.

    Shapes: input and indices (N, C, H, W) or without N.

    Raises:
        RuntimeError: shapes or dtypes do not fit, or an index lies outside of the result.
        ValueError: no input of `output_size` has the size of `input` when pooled.

    >>> import flambeau as fb
    >>> fb.nn.functional.max_unpool2d(fb.tensor([[[5.0]]]), fb.tensor([[[2]]]), 2)
    tensor([[[0., 0.],
             [5., 0.]]])
    """
    return _unpooled(2, input, indices, kernel_size, stride, padding, output_size)


@takes_as_annotated
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """A volume of zeros with each element of `input` at its index in D·H·W.

    `indices` are those of `max_pool3d` with the same settings.  Several inputs may have been pooled
    to one size; `output_size` tells which one to restore, else it is (n - 1)·s - 2p + k.

    Shapes: input and indices (N, C, D, H, W) or without N.

    Raises:
        RuntimeError: shapes or dtypes do not fit, or an index lies outside of the result.
        ValueError: no input of `output_size` has the size of `input` when pooled.

    >>> import flambeau as fb
    >>> fb.nn.functional.max_unpool3d(fb.tensor([[[[5.0]]]]), fb.tensor([[[[3]]]]), (1, 2, 2))
    tensor([[[[0., 0.],
              [0., 5.]]]])
    """
    return _unpooled(3, input, indices, kernel_size, stride, padding, output_size)


def _unpooled(
    rank: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None,
    padding: Size,
    output_size: Sequence[int] | None,
) -> Tensor:
    where = f"max_unpool{rank}d"
    require_tensors(where, input=input, indices=indices)
    kernel = sizes(kernel_size, rank, "kernel_size", where)
    step = kernel
    if stride is not None and not (isinstance(stride, tuple) and not stride):
        step = sizes(stride, rank, "stride", where)
    edge = sizes(padding, rank, "padding", where)
    if indices.dtype is not fb.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype}")
    if input.dim() not in (rank + 1, rank + 2) or 0 in input.shape[-rank - 1 :]:
        raise RuntimeError(
            f"Input to {where} should be a non-empty {rank + 1}d or {rank + 2}d Tensor, but got "
            f"size {list(input.shape)}"
        )
    if input.shape != indices.shape:
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({list(input.shape)}) but got indices tensor with shape: {list(indices.shape)}"
        )
    if min(step) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(step)}")
    if not (input.dtype.is_floating_point or (rank < 3 and input.dtype is fb.int64)):
        raise NotImplementedError(f"{where}(): not implemented for {input.dtype}")
    size = unpooled_size(input, kernel, step, edge, output_size)
    count = prod(size)
    text = "Found an invalid max index: {index} (output volumes are of size {})"
    indices = checked(indices, count, RuntimeError, text, ("x".join(map(str, size)),))
    shape = tuple(input.shape)
    lead = shape[:-rank]
    flat = (*lead, prod(shape[-rank:]))
    empty = input.new_zeros((*lead, count))
    placed = empty.scatter(-1, indices.reshape(flat), input.reshape(flat))
    return placed.reshape((*lead, *size))


def unpooled_size(
    input: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_size: Sequence[int] | None,
) -> tuple[int, ...]:
    """The sizes that were pooled: those given, or the least of their kind; ValueError if unfit."""
    rank = len(kernel)
    dims = zip(input.shape[-rank:], kernel, stride, padding, strict=True)
    default = tuple((n - 1) * s + k - 2 * p for n, k, s, p in dims)
    if output_size is None:
        return default
    wanted = tuple(output_size)
    if len(wanted) == rank + 2:
        wanted = wanted[2:]
    if len(wanted) != rank:
        raise ValueError(
            f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it "
            f"has a length of '{len(output_size)}'"
        )
    for d, (n, usual, s) in enumerate(zip(wanted, default, stride, strict=True)):
        if not usual - s < n < usual + s:
            raise ValueError(
                f'invalid output_size "{wanted}" (dim {d} must be between {usual - s} and '
                f"{usual + s})"
            )
    return wanted
