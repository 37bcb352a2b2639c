"""Rewriting of graphs: each pass takes a graph, changes it, and answers whether it did.

>>> import flambeau as fb
>>> @fb.jit.script
... def f(x):
...     a = x + 1
...     b = x + 1
...     return a * b
>>> graph = f.graph.copy()
>>> fb.jit.passes.eliminate_common_subexpressions(graph)
True
>>> len(graph.findAllNodes("aten::add"))
1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau.jit.passes._common import eliminate_common_subexpressions
from flambeau.jit.passes._constants import pool_constants, propagate_constants
from flambeau.jit.passes._dead import eliminate_dead_code
from flambeau.jit.passes._groups import group_differentiable, group_loops
from flambeau.jit.passes._inline import inline
from flambeau.jit.passes._peephole import peephole
from flambeau.jit.passes._shapes import propagate_shapes

if TYPE_CHECKING:
    from flambeau.jit._graph import Graph


def clean(graph: Graph) -> None:
    """What each compiled graph goes through: nothing unused, constants once and first."""
    eliminate_dead_code(graph)
    pool_constants(graph)


def optimize(graph: Graph) -> None:
    """All passes that keep the meaning, until none finds anything."""
    inline(graph)
    for _ in range(8):
        changed = propagate_constants(graph)
        changed |= peephole(graph)
        changed |= eliminate_common_subexpressions(graph)
        changed |= eliminate_dead_code(graph)
        if not changed:
            break
    pool_constants(graph)


__all__ = [
    "clean",
    "eliminate_common_subexpressions",
    "eliminate_dead_code",
    "group_differentiable",
    "group_loops",
    "inline",
    "optimize",
    "peephole",
    "pool_constants",
    "propagate_constants",
    "propagate_shapes",
]
