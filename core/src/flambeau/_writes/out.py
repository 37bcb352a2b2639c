"""Results written into tensors that the caller provides with ``out=``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

from flambeau._autograd.modes import recording
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.warning import warn
from flambeau._memory.record import is_tensor
from flambeau._writes import inplace as _inplace

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor

Results = TypeVar("Results", bound=tuple[Any, ...])


def deliver(
    result: Tensor,
    out: Tensor | None,
    *inputs: object,
    exact: bool = False,
    share: Literal["itself", "nothing", "anything"] = "itself",
) -> Tensor:
    """`result` itself, or `out` after it has been resized and written.

    A fresh result is not copied where nobody else sees the memory of `out`: that takes it over.

    Args:
        result: what the function returns without ``out=``.
        out: where it goes, or None.
        inputs: all operands of the function; those that are no tensors do not matter.  Without
            them, `result` is copied, since it may be one of them.
        exact: whether `out` must have the dtype of the result; else one that it can be cast to.
        share: what memory `out` may share with an input: that of the whole input, element by
            element, as elementwise functions allow; nothing; or anything, where the result is
            complete before it is written and PyTorch does not refuse.

    Raises:
        TypeError: `out` is no tensor.
        RuntimeError: `out` cannot hold the result's dtype, lives elsewhere, shares memory with
            itself or an input, cannot be resized, or a gradient is asked for.
    """
    if out is None:
        return result
    if not is_tensor(out):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    if (result._rg or out._rg) and recording() and (result.requires_grad or out.requires_grad):
        raise RuntimeError(
            "out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad. Call the function without out=, or inside torch.no_grad()."
        )
    if out._be is not result._be:
        raise RuntimeError(
            f"Expected out tensor to have device {result.device}, but got {out.device} instead"
        )
    operands = [x for x in inputs if is_tensor(x)]
    _inplace.check_out(out, operands, share)
    if exact and result.dtype is not out.dtype:
        raise RuntimeError(
            f"Expected out tensor to have dtype {result.dtype}, but got {out.dtype} instead"
        )
    if result.dtype.category > out.dtype.category:
        raise RuntimeError(
            f"result type {result.dtype} can't be cast to the desired output type {out.dtype}"
        )
    restride = False
    if out._a.shape != result._a.shape:
        # The older matrix functions, which cast, resize to row-major memory if there is any.
        restride = exact or share != "anything" or out.numel() == 0
        if out.numel() != 0:
            warn(
                "An output with one or more elements was resized since it had shape "
                f"{list(out.shape)}, which does not match the required output shape "
                f"{list(result.shape)}. This behavior is deprecated; resize the tensor to zero "
                "elements before reusing it with out=."
            )
    fresh = result._st is None and inputs and not any(result is x for x in operands)
    if restride and not fresh:
        result, fresh = _dispatch.op("clone")(result.detach()), True
    if out._a.shape != result._a.shape and not restride:
        out.resize_(result.shape)
    if not (fresh and _inplace.take_over(out, result, restride=restride)):
        if restride:
            from flambeau._storages.resize import resize_like

            resize_like(out, result)
        out.copy_(result)
    return out


def deliver_all(
    results: Results,
    out: Any,
    *inputs: object,
    exact: bool = False,
    share: Literal["itself", "nothing", "anything"] = "itself",
) -> Results:
    """A tuple of results, or the tuple of tensors in `out` after they have been written."""
    if out is None:
        return results
    if len(out) != len(results):
        raise TypeError(f"argument 'out' must hold {len(results)} tensors, got {len(out)}")
    written = [
        deliver(r, o, *inputs, exact=exact, share=share) for r, o in zip(results, out, strict=True)
    ]
    kind = type(results)
    return kind(*written) if hasattr(results, "_fields") else kind(written)
