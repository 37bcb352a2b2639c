"""``with``: scripted classes that can be entered, and those that switch gradients."""

from __future__ import annotations

import ast

from flambeau.jit._frontend.expressions import value
from flambeau.jit._frontend.state import Compilation
from flambeau.jit._graph import Value
from flambeau.jit._types import NONE, ClassType, Type


def entered(c: Compilation, node: ast.expr) -> tuple[Value, Value]:
    """Add the step that enters; answers the context and what it binds."""
    context = value(c, node)
    kind = context.type()
    if not isinstance(kind, ClassType):
        c.fail(node, f"{kind.annotation} cannot be used in a with statement: it is no object")
    for name, count in (("__enter__", 1), ("__exit__", 4)):
        method = kind.method(name)
        if method is None:
            c.fail(node, f"{kind.name} cannot be entered: it has no {name}")
        method.compile_for(c, node)
        if len(method.schema.arguments) != count:
            c.fail(node, f"{name} must have {count} arguments, with self")
    enter = kind.method("__enter__")
    back: Type = enter.returned if enter is not None else NONE
    return context, c.emit("prim::Enter", [context], back, at=node)
