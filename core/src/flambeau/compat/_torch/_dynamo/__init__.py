"""The compiler's front end, as programs set it up and ask it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flambeau.compat._torch._dynamo import config
from flambeau.compat._torch.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)
from flambeau.plans import Compiled, Plan, compile

__all__ = [
    "ExplainOutput",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "explain",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "optimize_assert",
    "reset",
    "run",
]

disallow_in_graph = forbid_in_graph = run = allow_in_graph


def mark_dynamic(*args: object, **kwargs: object) -> None:
    """Say something of a tensor to the compiler."""


mark_static = mark_static_address = maybe_mark_dynamic = graph_break = mark_dynamic


@dataclass
class ExplainOutput:
    """What became of a function: `explain`.

    Attributes:
        graphs: its plan, or none.
        graph_count: how many there are: 1 or 0, since a function has a plan as a whole.
        graph_break_count: how many reasons there are why it has none.
        break_reasons: these.
        op_count: the kernel calls of the plan.
        ops_per_graph: their names.
        out_guards, compile_times: empty: what a plan depends on is one test.
    """

    graphs: list[Plan] = field(default_factory=list)
    graph_count: int = 0
    graph_break_count: int = 0
    break_reasons: list[str] = field(default_factory=list)
    op_count: int = 0
    ops_per_graph: list[list[str]] = field(default_factory=list)
    out_guards: list[object] = field(default_factory=list)
    compile_times: str = ""

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]
        for i, why in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {i}:", f"    Reason: {why}"]
        lines.append("Ops per Graph:")
        for i, ops in enumerate(self.ops_per_graph, 1):
            lines += [f"  Ops {i}:", *(f"    {op}" for op in ops)]
        return "\n".join(lines)


def explain(f: Callable[..., Any], *extra_args: object, **extra_kwargs: object) -> Any:
    """A function of the arguments of `f` that says whether calls with such have a plan.

    It calls `f` twice.  With `extra_args` or `extra_kwargs`, what it says of these.
    """

    def inner(*args: object, **kwargs: object) -> ExplainOutput:
        compiled = Compiled(f, 1, False)
        for _ in range(2):
            compiled(*args, **kwargs)
        plans = [entry.plan for entries in compiled._entries.values() for entry in entries]
        first = "the first call with such arguments"
        reasons = [why for why in compiled.explain().reasons if why != first]
        ops = [[step.op for step in plan.steps] for plan in plans]
        calls = sum(map(len, ops))
        return ExplainOutput(plans, len(plans), len(reasons), reasons, calls, ops)

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner


def optimize(
    backend: object = "plan", *, nopython: bool = False, **settings: object
) -> Callable[[Callable[..., Any]], Any]:
    """The older name of `compile`, as a decorator; with `nopython`, of whole functions or none."""

    def decorated(function: Callable[..., Any]) -> Any:
        return compile(function, fullgraph=nopython)

    return decorated


def optimize_assert(backend: object = "plan", **settings: object) -> Callable[..., Any]:
    """`optimize` that raises where there is no plan."""
    return optimize(backend, nopython=True)
