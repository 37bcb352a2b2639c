"""Functions without visible writes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import flambeau as fb
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._transforms.levels import Level, level_of
from flambeau.func._arguments import mapped

__all__ = ["debug_unwrap", "functionalize"]


class FunctionalLevel(Level):
    """Tensors whose memory nobody writes to: a write to one gives it another value."""

    name = "FunctionalTensor"
    captured = (
        "functionalize: the function writes in place to a captured Tensor, from outside of it; "
        "pass the tensor as an argument of the function"
    )


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function that computes what `func` does, in which no op writes to memory or makes a view.

    In-place ops on tensors and on views of them become ops that give new values; what `func`
    writes into its arguments is written into them at the end, as one copy each.  Programs see the
    same results: the difference is in the ops that levels outside and profilers see.

    Args:
        func: any function of tensors, or of nested containers of them.
        remove: ``"mutations"`` or ``"mutations_and_views"``; here nothing shares memory in either.

    Raises:
        RuntimeError: `remove` is neither.

    >>> import flambeau as fb
    >>> def f(x):
    ...     y = x.clone()
    ...     y[0] = 7
    ...     return y
    >>> fb.func.functionalize(f)(fb.zeros(2))
    tensor([7., 0.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for remove=. Valid "
            f"options are:\n     remove='mutations'\n     remove='mutations_and_views'\nReceived "
            f"argument: {remove}"
        )

    @wraps(func)
    def functional(*args: object, **kwargs: object) -> object:
        with FunctionalLevel() as level:
            result = func(*mapped(level.argument, args), **mapped(level.argument, kwargs))
            return mapped(level.lower, result)

    return functional


@takes_as_annotated
def debug_unwrap(tensor: fb.Tensor, *, recurse: bool = True) -> fb.Tensor:
    """The tensor below the levels of transforms, or below one of them: to look at, not to use."""
    while (level := level_of(tensor)) is not None:
        tensor = level.lower(tensor)
        if not recurse:
            break
    return tensor
