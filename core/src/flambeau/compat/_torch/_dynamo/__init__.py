"""The compiler's front end, as programs set it up: there is nothing to set up."""

from __future__ import annotations

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

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "reset",
    "run",
]

disallow_in_graph = forbid_in_graph = run = allow_in_graph


def mark_dynamic(*args: object, **kwargs: object) -> None:
    """Say something of a tensor to the compiler."""


mark_static = mark_static_address = maybe_mark_dynamic = graph_break = mark_dynamic
