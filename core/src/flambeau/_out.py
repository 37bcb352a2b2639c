"""Results written into tensors that the caller provides with ``out=``."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from flambeau._modes import recording

if TYPE_CHECKING:
    from flambeau._tensor import Tensor


def deliver(result: Tensor, out: Tensor | None) -> Tensor:
    """`result` itself, or `out` after it has been resized and written.

    Raises:
        RuntimeError: `out` cannot hold the result's dtype, lives elsewhere, or a gradient is asked
        for.
    """
    if out is None:
        return result
    from flambeau._tensor import Tensor

    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    if recording() and (result.requires_grad or out.requires_grad):
        raise RuntimeError(
            "out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad. Call the function without out=, or inside torch.no_grad()."
        )
    if out._be is not result._be:
        raise RuntimeError(
            f"Expected out tensor to have device {result.device}, but got {out.device} instead"
        )
    if result.dtype.category > out.dtype.category:
        raise RuntimeError(
            f"result type {result.dtype} can't be cast to the desired output type {out.dtype}"
        )
    if out.shape != result.shape:
        if out.numel() != 0:
            warnings.warn(
                "An output with one or more elements was resized since it had shape "
                f"{list(out.shape)}, which does not match the required output shape "
                f"{list(result.shape)}. This behavior is deprecated; resize the tensor to zero "
                "elements before reusing it with out=.",
                UserWarning,
                stacklevel=3,
            )
        out.resize_(*result.shape)
    out.copy_(result)
    return out


def deliver_all(results: tuple[Any, ...], out: Any) -> tuple[Any, ...]:
    """A tuple of results, or the tuple of tensors in `out` after they have been written."""
    if out is None:
        return results
    if len(out) != len(results):
        raise TypeError(f"argument 'out' must hold {len(results)} tensors, got {len(out)}")
    written = [deliver(r, o) for r, o in zip(results, out, strict=True)]
    return type(results)(*written) if hasattr(results, "_fields") else tuple(written)
