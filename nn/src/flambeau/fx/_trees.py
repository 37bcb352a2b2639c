"""Functions of containers as graphs of their tensors: containers are taken apart on the way in."""

from __future__ import annotations

import operator
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau.fx._codegen import CodeGen
from flambeau.fx.proxy import Proxy

__all__ = ["TreeCodeGen", "flattened", "over_leaves"]

_trees = fb.utils._pytree
TreeSpec = _trees.TreeSpec


def flattened(args: object, spec: TreeSpec) -> list[object]:
    """The leaves of arguments, whose containers have to be those of a structure.

    A proxy in the place of a container is asked for its items.

    Raises:
        ValueError: they are others.
    """
    found: list[object] = []
    _append_leaves(args, spec, found)
    return found


def _append_leaves(value: object, spec: TreeSpec, found: list[object]) -> None:
    if spec.is_leaf():
        found.append(value)
        return
    if isinstance(value, Proxy) and spec.type in (dict, list, tuple, namedtuple):
        items = spec.context if spec.type is dict else range(spec.num_children)
        parts = [operator.getitem(value, at) for at in items]  # type: ignore[call-overload]
    elif spec.type is dict and isinstance(value, dict) and value.keys() == set(spec.context):
        parts = [value[at] for at in spec.context]
    elif spec.type is namedtuple and type(value) is spec.context:
        parts = list(value)  # type: ignore[call-overload] - a tuple
    elif spec.type is not dict and type(value) is spec.type:
        parts = list(_trees.SUPPORTED_NODES[spec.type].flatten_fn(value)[0])
    else:
        raise ValueError(f"{value!r:.80} is none of {spec.type.__name__} as it was traced: {spec}")
    if len(parts) != spec.num_children:
        raise ValueError(f"{value!r:.80} has not as many items as what was traced: {spec}")
    for part, inner in zip(parts, spec.children_specs, strict=True):
        _append_leaves(part, inner, found)


class TreeCodeGen(CodeGen):
    """Code of a function whose arguments are containers; the graph's inputs are their leaves.

    Attributes:
        names: the parameters.
        in_spec: the structure of the list of their values.
        out_spec: that of the result, once it is known.
    """

    def __init__(self, names: list[str], in_spec: TreeSpec) -> None:
        super().__init__()
        self.names, self.in_spec = names, in_spec
        self.out_spec: TreeSpec | None = None

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line that begins the function, and the one that takes its arguments apart."""
        head = super().gen_fn_def(list(self.names), maybe_return_annotation)
        leaves = [each.partition(":")[0].partition("=")[0].strip() for each in free_vars]
        targets = "".join(f"{leaf}, " for leaf in leaves if leaf != "self")
        given = ", ".join(self.names)
        return f"{head}\n    {targets}= torch.fx._trees.flattened([{given}], self._in_spec)"

    def generate_output(self, output_args: object) -> str:
        """The line that ends the function: the result in its containers."""
        return f"return torch.utils._pytree.tree_unflatten({output_args}, self._out_spec)"

    def process_inputs(self, *args: object) -> tuple[Any, ...]:
        """The leaves of the arguments."""
        return tuple(flattened(list(args), self.in_spec))

    def process_outputs(self, outputs: Any) -> object:
        """The result in its containers."""
        if self.out_spec is None:
            return outputs
        return _trees.tree_unflatten(outputs, self.out_spec)


def over_leaves(
    function: Callable[..., object], given: int, codegen: TreeCodeGen
) -> Callable[..., list[object]]:
    """A function of leaves, after as many arguments as it is `given` anyway, that gives leaves."""

    def of_leaves(*args: object) -> list[object]:
        values = _trees.tree_unflatten(list(args[given:]), codegen.in_spec)
        leaves, codegen.out_spec = _trees.tree_flatten(function(*args[:given], *values))
        return leaves

    return of_leaves
