"""Functions of functions: calls of a module as a function of its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flambeau.nn.utils import stateless

__all__ = ["functional_call"]


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """``module(*args, **kwargs)`` with the given tensors in the places of their names.

    Several dictionaries count as one and must not share a name.  `args` that is no tuple is the
    single argument.  Tensors that the module has under several names are replaced under all of them
    if `tie_weights`.

    Raises:
        ValueError: a name is in several dictionaries, tied names are given different tensors, or
            the dictionaries are neither a dictionary nor a sequence of them.
        RuntimeError: under `strict` names are missing or unexpected.

    >>> import flambeau as fb
    >>> layer = fb.nn.Linear(2, 1, bias=False)
    >>> fb.func.functional_call(layer, {"weight": fb.ones(1, 2)}, fb.tensor([1.0, 2.0]))
    tensor([3.])
    """
    given = parameter_and_buffer_dicts
    if isinstance(given, Mapping):
        tensors = dict(given)
    elif isinstance(given, Sequence) and all(isinstance(part, Mapping) for part in given):
        names = [name for part in given for name in part]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior is ambiguous")
        tensors = {name: value for part in given for name, value in part.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(given)}"
        )
    return stateless.functional_call(
        module, tensors, args, kwargs, tie_weights=tie_weights, strict=strict
    )
