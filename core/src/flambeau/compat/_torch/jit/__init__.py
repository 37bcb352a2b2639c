"""What programs for PyTorch find in ``torch.jit`` beside what `flambeau.jit` has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.compat._torch.jit import annotations
from flambeau.jit import TopLevelTracedModule as TracedModule
from flambeau.jit._trace import graph_of_call

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = [
    "TracedModule",
    "_disable_emit_hooks",
    "annotations",
    "enable_onednn_fusion",
    "fuser",
    "get_trace_graph",
    "onednn_fusion_enabled",
    "optimized_execution",
    "set_fusion_strategy",
    "strict_fusion",
]

_enabled = False
_disable_emit_hooks = nullcontext


class _Trace:
    """The graph of a trace, as PyTorch 1.2 gave it."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    def graph(self) -> Any:
        """The graph."""
        return self._graph

    def set_graph(self, graph: Any) -> None:
        """Keep another graph."""
        self._graph = graph

    def __str__(self) -> str:
        return str(self._graph)


def get_trace_graph(
    f: Callable[..., Any],
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    _force_outplace: bool = False,
    return_inputs: bool = False,
) -> tuple[Any, ...]:
    """The trace of a call and what it returned, as programs for PyTorch 1.2 ask for it.

    >>> import flambeau as fb
    >>> trace, out = get_trace_graph(fb.neg, fb.ones(2))
    >>> [node.kind() for node in trace.graph().nodes()]
    ['aten::neg']
    """
    graph, result, given = graph_of_call(f, args, kwargs)
    return (_Trace(graph), result, given) if return_inputs else (_Trace(graph), result)


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block with or without a compiler's optimisations."""
    yield


fuser = optimized_execution


@contextmanager
def strict_fusion() -> Iterator[None]:
    """A block that should be one kernel."""
    yield


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """The strategy before: none."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Ask for fusion of what is scripted."""
    global _enabled
    _enabled = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """Whether `enable_onednn_fusion` asked for it."""
    return _enabled
