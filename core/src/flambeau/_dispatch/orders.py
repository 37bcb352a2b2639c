"""Channels last in, channels last out: the order in memory of what ops on images return.

Numbers do not depend on it, but random masks do: they are drawn in the order of memory, so that a
dropout after such an op would hide other elements than PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any

from flambeau._types.memory_format import has_channels_last

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor
    from flambeau.ops.declaration.table import Op

_LAST = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
_BACK = {4: (0, 3, 1, 2), 5: (0, 4, 1, 2, 3)}


def keeping_order(be: BoundBackend, kernel: Callable[..., Any], op: Op) -> Callable[..., Any]:
    """`kernel`, whose results have channels last where an operand that orders them has."""
    is_contiguous, strides = be.backend.is_contiguous, be.backend.strides
    permute, contiguous = be.permute, be.contiguous  # not those that a capture puts there
    places = op.ordered_by

    def ordered(result: Any) -> Any:
        rank = len(result.shape)
        if rank not in _LAST:
            return result
        moved = permute(result, _LAST[rank])
        return result if is_contiguous(moved) else permute(contiguous(moved), _BACK[rank])

    def is_ordered(result: Any) -> bool:
        order = _LAST.get(len(result.shape))
        return order is None or is_contiguous(permute(result, order))

    def kept(*args: Any) -> Any:
        results = kernel(*args)
        if all(map(is_ordered, results)) if isinstance(results, tuple) else is_ordered(results):
            return results  # whatever the operands say
        if not any(has_channels_last(args[i].shape, strides(args[i])) for i in places):
            return results
        return tuple(map(ordered, results)) if isinstance(results, tuple) else ordered(results)

    return update_wrapper(op.by_order(kernel, kept, is_contiguous), kernel)


def ordered_like(x: Tensor, result: Tensor) -> Tensor:
    """`result`, a function's of `x`, with channels last if those of `x` are."""
    if x.is_contiguous() or not has_channels_last(x.shape, x.stride()):
        return result
    steps = result.stride()
    if has_channels_last(result.shape, steps) and steps[1] == 1:
        if steps[0] * result.shape[0] == result.numel():  # without gaps
            return result
    last, back = _LAST[x.dim()], _BACK[x.dim()]
    return result.permute(last).contiguous().permute(back)
