"""The protocol of ``F``, from the declarations of ops."""

from __future__ import annotations

import re

from flambeau.ops.declaration.parameters import PLAIN
from flambeau.ops.declaration.table import OPS, Op

_KNOWN = re.compile(r"(?:\b(?:DType|bool|float|int|str|tuple|None)\b|[\[\], |.])+")
"""Annotations that mean the same in any module."""


def formulas_text(template: str) -> str:
    """The module of the protocol: the helpers of the template, and a method for each op."""
    written = set(re.findall(r"^    def (\w+)", template, re.MULTILINE))
    return template + "".join(
        _method(op) for name, op in sorted(OPS.items()) if name not in written
    )


def _method(op: Op) -> str:
    taken = ", ".join(
        f"{name.rstrip('_')}_: {_taken(op, name, kind)}"
        for name, kind in zip(op.params, op.kinds, strict=True)
    )
    return f"    def {op.name}(self, {taken}, /) -> {_given(op)}: ...\n"


def _taken(op: Op, name: str, kind: str) -> str:
    annotation = str(op.body.__annotations__.get(name))
    if kind == PLAIN:
        return annotation if _KNOWN.fullmatch(annotation) else "object"
    return re.sub(r"\bTensor\b", "Array", annotation)


def _given(op: Op) -> str:
    if op.name.endswith("_"):  # writes into its arguments
        return "None"
    return "Array" if op.results == 1 else f"tuple[{', '.join(['Array'] * op.results)}]"
