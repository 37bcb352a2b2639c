"""Padding of the last dimensions with a constant, or with values of the tensor itself."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors


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
    if not isinstance(pad, (tuple, list)) and (
        not isinstance(pad, Sequence) or isinstance(pad, str)
    ):
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
    return fb.boundary_pad_nd(input, pad, mode)


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
