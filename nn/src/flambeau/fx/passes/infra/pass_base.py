"""A pass: a graph module in, the same or another one out."""

from __future__ import annotations

import abc
from typing import NamedTuple

from flambeau.fx.graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The module after a pass, and whether the pass has changed it."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A pass with checks before and after it; a subclass writes ``call``.

    >>> from flambeau import fx
    >>> from flambeau.fx.passes.infra.pass_base import PassBase, PassResult
    >>> class Clean(PassBase):
    ...     def call(self, graph_module):
    ...         return PassResult(graph_module, graph_module.graph.eliminate_dead_code())
    >>> Clean()(fx.symbolic_trace(lambda x: x + 1)).modified
    False
    """

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Do what the pass does."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027 - nothing, by default
        """Check what has to hold before."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Check what has to hold after."""
