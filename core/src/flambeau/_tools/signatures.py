"""Signatures and docstrings of functions as source text for methods that forward to them."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def first_line(function: object) -> str:
    """The first sentence of a function's docstring."""
    doc = inspect.getdoc(function) or ""
    text = doc.split("\n\n")[0].replace("\n", " ").strip()
    first = re.split(r"(?<=[.;]) ", text)[0].rstrip(";")
    return first.replace('"', "'") if first else "See the function of the same name."


def parameters(
    function: Any,
    skip: tuple[str, ...] = ("out",),
    names: Mapping[str, str] | None = None,
    hints: Hints | None = None,
) -> tuple[str, str]:
    """(parameters after self, arguments to forward) of a function as source text.

    Where there are some, each follows a comma.
    """
    taken, passed = [], []
    star = optional = behind = False  # behind: after a skipped place, so no longer by place
    names = names or {}
    hints = hints or Hints()
    kinds = {}
    own = inspect.unwrap(function)  # without the documented names, which methods have from `Public`
    for i, p in enumerate(inspect.signature(own).parameters.values()):
        if i == 0:
            continue
        if p.name in skip:
            behind = p.kind is p.POSITIONAL_OR_KEYWORD
            continue
        annotation = hints.within(own, p.annotation)
        kinds[p.name] = annotation
        default = "" if p.default is p.empty else f" = {p.default!r}"
        optional = optional or p.name in names.values()
        if optional and not default:
            annotation, default = or_none(annotation), " = None"
        if p.kind is p.VAR_POSITIONAL:
            taken.append(f"*{p.name}: {annotation}")
            passed.append(f"*{p.name}")
            star = True
        elif p.kind is p.VAR_KEYWORD:
            taken.append(f"**{p.name}: {annotation}")
            passed.append(f"**{p.name}")
        elif p.kind is p.KEYWORD_ONLY:
            if not star:
                taken.append("*")
                star = True
            taken.append(f"{p.name}: {annotation}{default}")
            passed.append(f"{p.name}={p.name}")
        else:
            taken.append(f"{p.name}: {annotation}{default}")
            passed.append(f"{p.name}={p.name}" if behind else p.name)
    if names and not star:
        taken.append("*")
    taken += [f"{alias}: {or_none(kinds[own_name])} = None" for alias, own_name in names.items()]
    return "".join(f", {t}" for t in taken), "".join(f", {p}" for p in passed)


def forms(name: str, function: Any, skip: tuple[str, ...], hints: Hints) -> str:
    """The overloads of a function as those of its method `name`, as lines of source text."""
    own = inspect.unwrap(function)
    lines = ""
    for node in copy.deepcopy(overloads(own)):
        arguments = node.args
        del arguments.args[0]
        del arguments.defaults[: max(0, len(arguments.defaults) - len(arguments.args))]
        kept = [(a, d) for a, d in _keywords(arguments) if a.arg not in skip]
        arguments.kwonlyargs = [argument for argument, _ in kept]
        arguments.kw_defaults = [default for _, default in kept]
        for argument in ast.walk(arguments):
            if isinstance(argument, ast.arg) and argument.annotation:
                text = hints.within(own, ast.unparse(argument.annotation))
                argument.annotation = ast.parse(text, mode="eval").body
        taken = ast.unparse(arguments)
        returns = hints.within(own, ast.unparse(node.returns) if node.returns else "Any")
        lines += f"@overload\ndef {name}(self{', ' if taken else ''}{taken}) -> {returns}: ...\n"
    return lines


def _keywords(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr | None]]:
    return list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))


def overloads(function: Any) -> list[ast.FunctionDef]:
    """The overloads of a function, in its module's order."""
    return [
        node
        for node in _tree(_module(function)).body
        if isinstance(node, ast.FunctionDef)
        and node.name == function.__name__
        and any(ast.unparse(d) == "overload" for d in node.decorator_list)
    ]


def or_none(annotation: str) -> str:
    """An annotation that also allows None."""
    parts = annotation.split(" | ")
    return annotation if "None" in parts or annotation == "Any" else f"{annotation} | None"


class Hints:
    """Annotations of functions as they read in another module, and what that one has to import.

    Attributes:
        hidden: names of builtins that mean something else there, to others for them.
        imports: the names that annotations used, to the statements that import them.
    """

    def __init__(self, hidden: Mapping[str, str] | None = None) -> None:
        self.hidden = hidden or {}
        self.imports: dict[str, str] = {}

    def within(self, function: Any, annotation: object) -> str:
        """The annotation as it reads in the other module.

        Raises:
            TypeError: two modules mean different things by a name.
        """
        if not isinstance(annotation, str):
            return "Any"
        homes = _homes(_module(function))
        tree = ast.parse(annotation, mode="eval")
        for node in ast.walk(tree):
            if not isinstance(node, ast.Name):
                continue
            if node.id in homes:
                line = homes[node.id]
                if (other := self.imports.setdefault(node.id, line)) != line:
                    raise TypeError(f"{function.__name__}: {line!r}, but elsewhere {other!r}")
            else:
                node.id = self.hidden.get(node.id, node.id)
        return ast.unparse(tree)


def _module(function: Any) -> str:
    """Where a function is written; ``__module__`` is where it is offered."""
    return function.__globals__["__name__"]


@functools.cache
def _tree(module: str) -> ast.Module:
    return ast.parse(Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8"))


@functools.cache
def _homes(module: str) -> dict[str, str]:
    """The names that a module imports or defines, to statements that import them from it."""
    homes = {}
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name
                renamed = f" as {name}" if name != alias.name else ""
                homes[name] = f"from {node.module} import {alias.name}{renamed}"
        elif isinstance(node, ast.ClassDef):
            homes[node.name] = f"from {module} import {node.name}"
    return homes


def renamings(method: str, function: Any, names: Mapping[str, str]) -> str:
    """The lines of a method that give the documented names of its arguments their meaning."""
    parameters = inspect.signature(inspect.unwrap(function)).parameters
    lines = ""
    for target in dict.fromkeys(names.values()):
        others = [alias for alias, meant in names.items() if meant == target]
        used = " or ".join(f"{alias} is not None" for alias in others)
        if parameters[target].default is inspect.Parameter.empty:
            given = ", ".join(f"{n}={n}" for n in (target, *others))
            lines += f"if {target} is None or {used}:\n"
            lines += f'    {target} = only_one("{method}", {given})\n'
        else:
            lines += "".join(f"if {a} is not None:\n    {target} = {a}\n" for a in others)
    return lines


def listed(names: Sequence[str], brackets: str = "()") -> str:
    """Names as a tuple, or with other brackets, one in a line."""
    return "\n".join([brackets[0], *[f'    "{name}",' for name in names], brackets[1]])
