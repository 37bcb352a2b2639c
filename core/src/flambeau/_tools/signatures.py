"""Signatures and docstrings of functions as source text for methods that forward to them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any


def first_line(function: Any) -> str:
    """The first sentence of a function's docstring."""
    doc = inspect.getdoc(function) or ""
    text = doc.split("\n\n")[0].replace("\n", " ").strip()
    first = re.split(r"(?<=[.;]) ", text)[0].rstrip(";")
    return first.replace('"', "'") if first else "See the function of the same name."


def parameters(
    function: Any, skip: tuple[str, ...] = ("out",), names: Mapping[str, str] | None = None
) -> tuple[str, str]:
    """(parameters after self, arguments to forward) of a function as source text.

    Where there are some, each follows a comma.
    """
    taken, passed = [], []
    star = optional = behind = False  # behind: after a skipped place, so no longer by place
    names = names or {}
    own = inspect.unwrap(function)  # without the documented names, which methods have from `Public`
    for i, p in enumerate(inspect.signature(own).parameters.values()):
        if i == 0:
            continue
        if p.name in skip:
            behind = p.kind is p.POSITIONAL_OR_KEYWORD
            continue
        annotation = p.annotation if isinstance(p.annotation, str) else "Any"
        annotation = _plain_annotation(annotation)
        default = "" if p.default is p.empty else f" = {p.default!r}"
        optional = optional or p.name in names.values()
        if optional and not default:
            annotation, default = "Any", " = None"
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
    taken += [f"{alias}: Any = None" for alias in names]
    return "".join(f", {t}" for t in taken), "".join(f", {p}" for p in passed)


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


def _plain_annotation(text: str) -> str:
    # Names like int and float are methods of the class: inside it they would mean those.
    known = {"Tensor", "Tensor | None", "Any"}
    return text if text in known else "Any"


def listed(names: Sequence[str], brackets: str = "()") -> str:
    """Names as a tuple, or with other brackets, one in a line."""
    return "\n".join([brackets[0], *[f'    "{name}",' for name in names], brackets[1]])
