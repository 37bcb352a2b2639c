"""Calls of a module with other parameters and buffers in the place of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flambeau import Tensor
from flambeau.nn.module import Module
from flambeau.overrides import takes_as_annotated

__all__ = ["functional_call"]


@takes_as_annotated
def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Tensor],
    args: object = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """``module(*args, **kwargs)`` with the given tensors in the places of their names.

    Tensors that the module has under several names are replaced under all of them if `tie_weights`.
    `args` that is no tuple is the single argument.

    Raises:
        RuntimeError: under `strict` names are missing or unexpected.
        ValueError: tied names are given different tensors.

    >>> import flambeau as fb
    >>> layer = fb.nn.Linear(2, 1, bias=False)
    >>> fb.nn.utils.stateless.functional_call(
    ...     layer, {"weight": fb.ones(1, 2)}, fb.tensor([1.0, 2.0])
    ... )
    tensor([3.])
    """
    call = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*call, **(kwargs or {}))


@contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: Mapping[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
) -> Iterator[None]:
    """A block in which a module has the given tensors; libraries of Bayesian models enter it."""
    given = dict(parameters_and_buffers)
    own: dict[str, Any] = dict(module.named_parameters(remove_duplicate=False))
    own |= dict(module.named_buffers(remove_duplicate=False))
    names = _tied(own, given) if tie_weights else given
    if strict:
        _check_names(module, own, given, names)
    before: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for name, value in names.items():
            path, _, last = name.rpartition(".")
            holder = module.get_submodule(path)
            for table in (holder._parameters, holder._buffers):
                if last in table:
                    before.append((table, last, table[last]))
                    table[last] = value  # pyright: ignore[reportArgumentType]
        yield
    finally:
        for table, last, value in reversed(before):
            table[last] = value


def _tied(own: dict[str, Any], given: dict[str, Tensor]) -> dict[str, Tensor]:
    """The given tensors under all names of what they replace."""
    names = dict(given)
    for name, value in given.items():
        if name not in own:
            continue
        for other, tensor in own.items():
            if tensor is own[name]:
                if other in given and given[other] is not value:
                    raise ValueError(
                        f"functional_call got multiple values for keys {sorted([name, other])}, "
                        "which are tied. Consider using tie_weights=False"
                    )
                names[other] = value
    return names


def _check_names(
    module: Module, own: dict[str, Any], given: dict[str, Tensor], names: dict[str, Tensor]
) -> None:
    problems = []
    for problem, keys in (
        ("Unexpected", set(given) - set(own)),
        ("Missing", set(own) - set(names)),
    ):
        if keys:
            problems.append(f"{problem} key(s): " + ", ".join(map(repr, sorted(keys))) + ".")
    if problems:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(problems)
        )
