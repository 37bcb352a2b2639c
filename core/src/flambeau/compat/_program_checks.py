"""Checks of graphs, which PyTorch's own tests ask for."""

from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau.jit import Graph, ScriptFunction
from flambeau.jit import _types as T
from flambeau.jit._execute import cast

__all__ = ["_create_function_from_graph", "_jit_assert_is_instance", "_jit_check_alias_annotation"]


def _create_function_from_graph(qualname: str, graph: Graph) -> ScriptFunction:
    """A function that runs a graph, also for tensors of other shapes than those that it saw."""
    made = graph.copy()
    values = [each for node in made.block.all_nodes() for each in node.outputs()]
    for value in [*made.inputs(), *values]:
        if value.isCompleteTensor():
            value.setType(T.TENSOR)
    return ScriptFunction(qualname.rpartition(".")[2], f"__torch__.{qualname}", graph=made)


def _jit_assert_is_instance(obj: object, type: T.Type) -> None:
    """Raise if an object is none of a type of programs.

    Raises:
        TypeError: it is none.
    """
    cast(obj, type)


def _jit_check_alias_annotation(graph: Graph, args: tuple[Any, ...], unqualified: str) -> None:
    """Run a graph and see that its op writes and shares no more than its signature says.

    Raises:
        RuntimeError: it writes to an input, or returns memory of one, without a mark.
    """
    nodes = graph.findAllNodes(f"aten::{unqualified}")
    if not nodes or nodes[0].schema is None:
        raise RuntimeError(f"the graph has no aten::{unqualified} with a signature")
    schema = nodes[0].schema
    given = [each for each in args if isinstance(each, Tensor)]
    before = [each._version for each in given]
    result = _create_function_from_graph(unqualified, graph)(*args)
    written = [at for at, each in enumerate(given) if each._version != before[at]]
    if written and not schema.writes:
        raise RuntimeError(f"{schema} has no mark of writing, and wrote to inputs {written}")
    marked = any("(" in each.text for each in schema.returns)
    if not marked and (shared := _shared(result, given)):
        raise RuntimeError(f"{schema} has no mark of sharing, and shares memory of {shared}")


def _shared(result: object, given: list[Tensor]) -> list[int]:
    """Which of the tensors have memory of a result."""
    if isinstance(result, (list, tuple)):
        return [at for part in result for at in _shared(part, given)]
    if not isinstance(result, Tensor) or not result.numel():
        return []
    own = result.untyped_storage()._cdata
    return [at for at, each in enumerate(given) if each.untyped_storage()._cdata == own]
