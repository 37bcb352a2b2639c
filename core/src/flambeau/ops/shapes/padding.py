"""Padding with a constant; the modes that repeat the tensor itself are in `nn.functional`."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.promotion import fitting, python_number
from flambeau._tensor.tensor import Tensor
from flambeau._types.hints import Number
from flambeau.ops.creation.creation import full
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.shapes.movement import cat


@composite(ordered_by=["self"])
def _constant_pad_nd(self: Tensor, pad: tuple[tuple[int, int], ...], value: complex) -> Tensor:
    """`value` before and after each dimension, as often as `pad` says; negative numbers crop."""
    result = self
    for dim, (before, after) in enumerate(pad):
        if before < 0 or after < 0:
            start, end = max(-before, 0), result.shape[dim] - max(-after, 0)
            result = result.narrow(dim, start, end - start)
        parts = [
            full(
                (*result.shape[:dim], length, *result.shape[dim + 1 :]),
                value,
                dtype=self.dtype,
                device=self.device,
            )
            for length in (before, after)
            if length > 0
        ]
        parts.insert(int(before > 0), result)
        result = cat(parts, dim) if len(parts) > 1 else result
    return result.clone() if result is self else result.contiguous()


@_constant_pad_nd.gradient
def _(F, g, pad):
    return F.constant_pad_nd(g, tuple((-before, -after) for before, after in pad), 0)


@public(method=False)
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: Number = 0) -> Tensor:
    """`input` with ``pad[0]`` entries before and ``pad[1]`` after the last dimension, and so on.

    The pairs of `pad` go from the last dimension backwards; negative numbers crop.  The new
    entries are `value`.

    Raises:
        RuntimeError: `pad` is odd or too long, or crops more than there is.

    >>> import flambeau as fb
    >>> fb.constant_pad_nd(fb.tensor([1, 2, 3]), (-1, 2), 7)
    tensor([2, 3, 7, 7])
    """
    x = need_tensor(input, "constant_pad_nd", "input")
    counts = [operator.index(n) for n in pad]
    if len(counts) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(counts)}")
    if len(counts) // 2 > x.dim():
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad "
            f"length is {len(counts)} while the input has {x.dim()} dimensions."
        )
    pairs = [(0, 0)] * (x.dim() - len(counts) // 2)
    pairs += [(counts[i], counts[i + 1]) for i in range(len(counts) - 2, -1, -2)]
    for size, (before, after) in zip(x.shape, pairs, strict=True):
        cropped = size + min(before, 0) + min(after, 0)
        if size + before + after < 0 or cropped < 0:
            raise RuntimeError(
                f"The input size {size}, plus negative padding {before} and {after} resulted in a "
                f"negative output size: cannot crop shape {list(x.shape)} by {counts}"
            )
    value = python_number(value)
    if type(value) is int and x.dtype.category != 1 and abs(value) < 1 << 1023:
        value = float(value)  # which larger ones are refused as
    return _constant_pad_nd.run(x, tuple(pairs), fitting(value, x.dtype))
