"""Padding of the last dimensions with a constant, or with values of the tensor itself."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors

_CHANNELS_LAST = {4: fb.channels_last, 5: fb.channels_last_3d}


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """`input` with ``pad[0]`` entries before and ``pad[1]`` after the last dimension, and so on.

    The pairs of `pad` go from the last dimension backwards; negative numbers crop.  `mode` is
    ``"constant"`` (filled with `value`, 0 by default), ``"reflect"`` (mirrored without the edge),
    ``"replicate"`` (the edge repeated) or ``"circular"`` (from the opposite side).  The last three
    pad the last 1, 2 or 3 dimensions after one or two others.

    Raises:
        RuntimeError: `pad` is odd or too long, too wide for the mode, or crops more than there is.
        NotImplementedError: an unknown mode, or one that does not fit the number of dimensions.

    >>> import flambeau as fb
    >>> fb.nn.functional.pad(fb.tensor([1.0, 2.0]), (1, 2))
    tensor([0., 1., 2., 0., 0.])
    >>> fb.nn.functional.pad(fb.tensor([[1.0, 2.0, 3.0]]), (2, 0), mode="reflect")
    tensor([[3., 2., 1., 2., 3.]])
    """
    require_tensors("pad", input=input)
    if not isinstance(pad, Sequence) or isinstance(pad, str):
        raise TypeError(f"pad(): argument 'pad' must be tuple of ints, not {type(pad).__name__}")
    if len(pad) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, got {len(pad)}")
    count = len(pad) // 2
    if count > input.dim():
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pad)} and input of dimension {input.dim()}"
        )
    if mode == "constant":
        return fb.constant_pad_nd(input, pad, 0 if value is None else value)
    _check_mode(mode, value, count, input.dim(), len(pad))
    result = input
    for i in range(count):
        dim = input.dim() - 1 - i
        result = _pad_dim(result, dim, pad[2 * i], pad[2 * i + 1], mode)
    if result is input:
        return result.clone()
    order = _CHANNELS_LAST.get(input.dim())
    if order is not None and input.is_contiguous(memory_format=order):
        return result.contiguous(memory_format=order)
    return result


def _check_mode(mode: str, value: float | None, count: int, ndim: int, length: int) -> None:
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if not (1 <= count <= 3 and ndim in (count + 1, count + 2)):
        raise NotImplementedError(
            f"Padding size {length} is not supported for {ndim}D input tensor: mode {mode!r} pads "
            "the last 1, 2 or 3 dimensions of a tensor with one or two more"
        )


def _pad_dim(input: Tensor, dim: int, before: int, after: int, mode: str) -> Tensor:
    size = input.shape[dim]
    try:
        crops = size + min(before, 0) + min(after, 0) < 0 or size + before + after < 0
    except TypeError:
        text = f"pad(): argument 'pad' must be numbers, not {before!r:.80} and {after!r:.80}"
        raise TypeError(text) from None
    if crops:
        raise RuntimeError(
            f"pad: cannot crop ({before}, {after}) from dimension {dim} "
            f"of shape {list(input.shape)}"
        )
    # A circle closes over what is left; the other modes extend the whole and are cropped then.
    if mode == "circular":
        input = _cropped(input, dim, before, after)
    if before > 0 or after > 0:
        input = _MODES[mode](input, dim, max(before, 0), max(after, 0))
    return input if mode == "circular" else _cropped(input, dim, before, after)


def _cropped(input: Tensor, dim: int, before: int, after: int) -> Tensor:
    if before >= 0 and after >= 0:
        return input
    start = max(-before, 0)
    return input.narrow(dim, start, input.shape[dim] - start - max(-after, 0))


def _joined(before: Tensor, input: Tensor, after: Tensor, dim: int) -> Tensor:
    parts = [before] if before.shape[dim] else []
    parts.append(input)
    if after.shape[dim]:
        parts.append(after)
    return fb.cat(parts, dim)


def _reflect(input: Tensor, dim: int, left: int, right: int) -> Tensor:
    size = input.shape[dim]
    if max(left, right) >= size:
        raise RuntimeError(
            "Padding size should be less than the corresponding input dimension, but got: "
            f"padding ({left}, {right}) at dimension {dim} of input {list(input.shape)}"
        )
    head = input.narrow(dim, 1, left).flip(dim)
    tail = input.narrow(dim, size - 1 - right, right).flip(dim)
    return _joined(head, input, tail, dim)


def _replicate(input: Tensor, dim: int, left: int, right: int) -> Tensor:
    size = input.shape[dim]
    if size == 0:
        raise RuntimeError(
            f"pad: mode 'replicate' needs a non-empty dimension {dim}, got {list(input.shape)}"
        )

    def repeated(index: int, length: int) -> Tensor:
        shape = (*input.shape[:dim], length, *input.shape[dim + 1 :])
        return input.narrow(dim, index, 1).expand(shape)

    return _joined(repeated(0, left), input, repeated(size - 1, right), dim)


def _circular(input: Tensor, dim: int, left: int, right: int) -> Tensor:
    size = input.shape[dim]
    if max(left, right) > size:
        raise RuntimeError(
            "Padding value causes wrapping around more than once: "
            f"padding ({left}, {right}) at dimension {dim} of input {list(input.shape)}"
        )
    head = input.narrow(dim, size - left, left)
    tail = input.narrow(dim, 0, right)
    return _joined(head, input, tail, dim)


_MODES = {
    "reflect": _reflect,
    "replicate": _replicate,
    "circular": _circular,
}
