"""Shapes and dtypes of what the nodes of a graph compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import flambeau as fb
from flambeau.fx.interpreter import Interpreter
from flambeau.fx.node import Node, map_aggregate
from flambeau.overrides import all_take_as_annotated

if TYPE_CHECKING:
    from flambeau import Tensor


__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: fb.Size
    dtype: fb.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: fb.memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


class ShapeProp(Interpreter):
    """Runs a graph, and notes each node's shapes as ``meta["tensor_meta"]``.

    >>> import flambeau as fb
    >>> from flambeau.fx.passes.shape_prop import ShapeProp
    >>> traced = fb.fx.symbolic_trace(fb.nn.Sequential(fb.nn.Linear(3, 4)))
    >>> _ = ShapeProp(traced).propagate(fb.ones(2, 3))
    >>> [tuple(n.meta["tensor_meta"].shape) for n in traced.graph.nodes]
    [(2, 3), (2, 4), (2, 4)]
    """

    def run_node(self, n: Node) -> Any:
        """The value of a node, whose facts are noted."""
        result = super().run_node(n)
        found = False

        def facts(a: Tensor | float) -> object:
            nonlocal found
            if isinstance(a, fb.Tensor):
                found = True
                return _extract_tensor_metadata(a)
            return a

        meta = map_aggregate(result, facts)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: object) -> Any:
        """Run the graph; its result."""
        return self.run(*args)


def _extract_tensor_metadata(t: fb.Tensor) -> TensorMetadata:
    order = None
    for candidate in (fb.contiguous_format, fb.channels_last, fb.channels_last_3d):
        if t.dim() == _DIMS.get(candidate, t.dim()) and t.is_contiguous(memory_format=candidate):
            order = candidate
            break
    return TensorMetadata(t.shape, t.dtype, t.requires_grad, t.stride(), order, False, {})


_DIMS = {fb.channels_last: 4, fb.channels_last_3d: 5}


all_take_as_annotated(globals())
