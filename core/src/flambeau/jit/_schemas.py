"""The signatures of the ops: read from ``schemas.txt``, one name at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from flambeau.jit import _types as T
from flambeau.jit._types import Type

NO_DEFAULT: Any = type("NoDefault", (), {"__repr__": lambda self: "no default"})()

_NAMED = {
    "Tensor": T.TENSOR,
    "int": T.INT,
    "SymInt": T.INT,
    "float": T.FLOAT,
    "bool": T.BOOL,
    "str": T.STR,
    "complex": T.COMPLEX,
    "Scalar": T.NUMBER,
    "number": T.NUMBER,
    "None": T.NONE,
    "NoneType": T.NONE,
    "Device": T.DEVICE,
    "ScalarType": T.INT,
    "Layout": T.INT,
    "MemoryFormat": T.INT,
    "Any": T.ANY,
    "Generator": T.GENERATOR,
    "Stream": T.STREAM,
    "AnyEnumType": T.ANY_ENUM,
    "Dimname": T.STR,
}
_SPECIAL = ("ScalarType", "Layout", "MemoryFormat", "Device")


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """An argument of a signature.

    Attributes:
        means: ``"ScalarType"``, ``"Layout"`` or ``"MemoryFormat"`` for integers that stand for one.
        size: how many numbers a single one stands for, as the kernel size of a convolution does.
        text: the type as the signature has it, with the marks of what is written to.
    """

    name: str
    type: Type
    default: Any = NO_DEFAULT
    keyword_only: bool = False
    means: str = ""
    size: int | None = None
    text: str = ""
    inferred: bool = False

    def __str__(self) -> str:
        shown = f"{self.text or self.type.shown} {self.name}"
        if self.default is NO_DEFAULT:
            return shown
        return f"{shown}={_shown_default(self.default)}"


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The signature of an op or of a function."""

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    varargs: bool = False
    varreturns: bool = False
    text: str = ""

    @property
    def writes(self) -> bool:
        """Whether it changes what it is given."""
        return "!" in self.text

    def __str__(self) -> str:
        if self.text:
            return self.text
        dot = f".{self.overload}" if self.overload else ""
        shown: list[str] = []
        for argument in self.arguments:
            if argument.keyword_only and "*" not in shown:
                shown.append("*")
            shown.append(str(argument))
        back = ", ".join(r.text or r.type.shown for r in self.returns)
        back = f"({back})" if len(self.returns) != 1 else back
        return f"{self.name}{dot}({', '.join(shown)}) -> {back}"


def _shown_default(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(map(_shown_default, value))}]"
    return str(value)


def _split(text: str) -> list[str]:
    """The parts between commas that are in no bracket."""
    parts, depth, current = [], 0, ""
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append(current.strip())
            current = ""
        else:
            current += letter
    return [*parts, current.strip()] if current.strip() else parts


def _closing(text: str, start: int) -> int:
    """Where the bracket that opens at a place is closed."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at
    return len(text)


_ALIAS = re.compile(r"\((?:[a-z*][a-z0-9*]*(?:\|[a-z*][a-z0-9*]*)*)?!?(?: -> [a-z0-9*|]+)?\)")


@cache
def parse_type(text: str) -> Type:
    """A type as signatures write it: ``int[2]?``, ``Tensor(a!)``, ``Dict(str, t)``."""
    text = text.strip()
    if text.endswith(("?",)):
        return T.optional(parse_type(text[:-1]))
    if found := re.fullmatch(r"(.*)\[\d*\]", text):
        return T.list_of(parse_type(found[1]))
    for kind in ("Dict", "Future", "Await", "RRef"):
        if text.startswith(f"{kind}("):
            inside = text[len(kind) + 1 : _closing(text, len(kind))]
            return Type(kind, *map(parse_type, _split(inside)))
    stripped = _ALIAS.sub("", text)
    if stripped != text:
        return parse_type(stripped)
    if text.startswith("("):
        return T.tuple_of(*map(parse_type, _split(text[1:-1])))
    if text in _NAMED:
        return _NAMED[text]
    if len(text) <= 2:
        return Type("var:" + text)
    return Type(text)


def _parse_default(text: str, kind: Type) -> Any:
    named = {"None": None, "True": True, "False": False}
    if text in named:
        return named[text]
    inner = kind.args[0] if kind.kind == "Optional" else kind
    if text.startswith("["):
        element = inner.args[0] if inner.kind == "List" else T.INT
        return [_parse_default(part, element) for part in _split(text[1:-1])]
    if text[:1] in "\"'":
        return text[1:-1]
    if inner.kind == "List":
        inner = inner.args[0]
    if inner is T.FLOAT:
        return float(text)
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return _ENUMERATED.get(text, text)


_ENUMERATED = {"Mean": 1, "contiguous_format": 0, "long": 4, "strided": 0}


def _parse_argument(text: str, keyword_only: bool) -> Argument:
    default = NO_DEFAULT
    if "=" in text:
        text, _, shown = text.partition("=")
    else:
        shown = ""
    written, _, name = text.rpartition(" ")
    if not written:
        written, name = name, ""
    kind = parse_type(written)
    if shown:
        default = _parse_default(shown, kind)
    bare = written.rstrip("?")
    means = next((each for each in _SPECIAL[:3] if bare.startswith(each)), "")
    sized = re.search(r"\[(\d+)\]", written)
    return Argument(
        name, kind, default, keyword_only, means, int(sized[1]) if sized else None, written
    )


@cache
def parse(text: str) -> Schema:
    """A signature: ``aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor``."""
    head, _, rest = text.partition("(")
    body, _, back = rest.rpartition(" -> ")
    body = body[: body.rindex(")")]
    name, _, overload = head.partition(".")
    arguments, keyword_only, varargs = [], False, False
    for part in _split(body):
        if part == "*":
            keyword_only = True
        elif part == "...":
            varargs = True
        else:
            arguments.append(_parse_argument(part, keyword_only))
    if back == "...":
        return Schema(name, overload, tuple(arguments), (), varargs, True, text)
    inside = _split(back[1:-1]) if back.startswith("(") else [back]
    returns = tuple(_parse_return(each) for each in inside)
    return Schema(name, overload, tuple(arguments), returns, varargs, False, text)


def _parse_return(text: str) -> Argument:
    found = re.fullmatch(r"(.*[\w\])?!]) (\w+)", text)
    if found and not text.endswith(")"):
        return Argument(found[2], parse_type(found[1]), text=found[1])
    return Argument("", parse_type(text), text=text)


@cache
def _lines() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in files("flambeau.jit").joinpath("schemas.txt").read_text("utf-8").splitlines():
        name = line.partition("(")[0].partition(".")[0]
        found.setdefault(name, []).append(line)
    return found


@cache
def schemas(name: str) -> tuple[Schema, ...]:
    """The signatures of an op such as ``"aten::add"``; none if there is no such op."""
    return tuple(parse(line) for line in _lines().get(name, ()))


def names() -> list[str]:
    """The names of all ops."""
    return list(_lines())
