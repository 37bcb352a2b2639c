"""Which arguments a transform is about, and what it asks of arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau._types.trees import tree_flatten, tree_map

Argnums = int | tuple[int, ...]


def places(argnums: Argnums, count: int) -> tuple[int, ...]:
    """The places that `argnums` names among `count` positional arguments.

    Raises:
        RuntimeError: it names none, one twice, one that is not there, or is no number.
    """
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    given = argnums if isinstance(argnums, tuple) else (argnums,)
    if not given:
        raise RuntimeError("argnums must be non-empty")
    found = []
    for n in given:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
        found.append(n % count)
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return tuple(found)


def chosen(argnums: Argnums, args: Sequence[Any]) -> Any:
    """The arguments that `argnums` names: one, or a tuple of them."""
    found = tuple(args[i] for i in places(argnums, len(args)))
    return found if isinstance(argnums, tuple) else found[0]


def replaced(args: Sequence[Any], argnums: Argnums, new: Any) -> tuple[Any, ...]:
    """All arguments, with `new` in the places that `argnums` names."""
    found = list(args)
    given = new if isinstance(argnums, tuple) else (new,)
    for i, value in zip(places(argnums, len(args)), given, strict=True):
        found[i] = value
    return tuple(found)


def tensors(tree: object, function: str) -> tuple[list[Tensor], Any]:
    """The leaves of a tree, and its structure.

    Raises:
        ValueError: a leaf is no tensor.
    """
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{function}: Thing passed to transform API must be Tensor, got {type(leaf)}"
            )
    return leaves, spec


def flat_tensors(values: object, function: str, name: str) -> tuple[Tensor, ...]:
    """`values` if they are a tuple of at least one tensor.

    Raises:
        RuntimeError: they are not.
    """
    if not isinstance(values, tuple):
        raise RuntimeError(
            f"{function}: Expected {name} to be a tuple of Tensors, got {type(values)}"
        )
    return nonempty(values, function, name)


def nonempty(values: Iterable[Any], function: str, name: str) -> tuple[Tensor, ...]:
    """`values` if they are at least one tensor, and nothing else.

    Raises:
        RuntimeError: they are not.
    """
    found = tuple(values)
    if not found:
        raise RuntimeError(f"{function}: Expected {name} to contain at least one Tensor.")
    for value in found:
        if not isinstance(value, Tensor):
            raise RuntimeError(
                f"{function}: Expected {name} to only contain Tensors, got {type(value)}"
            )
    return found


def outputs(tree: object, function: str) -> tuple[list[Tensor], Any]:
    """The tensors that a function has returned, at least one, and their structure.

    Raises:
        RuntimeError: there is none, or something else among them.
    """
    leaves, spec = tree_flatten(tree)
    if not leaves or tree is None:
        raise RuntimeError(
            f"{function}: Expected f to be a function that has non-empty output (got output = "
            f"{tree})"
        )
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{function}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(leaf)}"
            )
    return leaves, spec


def with_aux(function: str, result: object, has_aux: bool) -> tuple[Any, Any]:
    """What a function returned, and what it returned beside that.

    Raises:
        RuntimeError: `has_aux` promises a pair, and it is none.
    """
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"{function}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    for leaf in tree_flatten(result[1])[0]:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{function}: Expected tensors, got unsupported type {type(leaf)}")
    return result


def mapped(function: Callable[[Tensor], Any], tree: object) -> Any:
    """A tree with `function` of the tensors in it; other leaves stay as they are."""
    return tree_map(lambda leaf: function(leaf) if isinstance(leaf, Tensor) else leaf, tree)
