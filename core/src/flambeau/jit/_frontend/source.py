"""Places in sources, and errors that show them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

_AROUND = 3
"""How many lines before and after a place are shown."""
_WIDTH = 240
"""How many columns of a line are shown."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text that is compiled: its lines, where it is from, and where in that it begins."""

    lines: tuple[str, ...]
    filename: str = "<string>"
    first_line: int = 1
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a source: lines count from one, columns from nought."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    @classmethod
    def of(cls, source: Source, node: Any) -> Place:
        """Where a node of the syntax tree is.  Calls, attributes and functions show their head."""
        line, column = node.lineno, node.col_offset
        end_line, end_column = node.end_lineno or line, node.end_col_offset or column
        if isinstance(node, ast.Call):
            end_line, end_column = node.func.end_lineno or line, node.func.end_col_offset or column
        elif isinstance(node, ast.FunctionDef):
            end_line, end_column = line, column + 4 + len(node.name)
        elif end_line > line:
            end_line, end_column = line, len(source.lines[line - 1]) if source.lines else column
        return cls(source, line, column, end_line, end_column)

    def brief(self) -> str:
        """``file.py:12:4``."""
        source = self.source
        line = source.first_line + self.line - 1
        return f"{source.filename}:{line}:{self.column + source.indent}"

    def highlighted(self) -> str:
        """The lines around the place, with a line of marks below it; of long ones a part."""
        source = self.source
        number = source.first_line + self.line - 1
        if not 0 < self.line <= len(source.lines):
            return f'  File "{source.filename}", line {number}\n'
        shown = [f'  File "{source.filename}", line {number}']
        first = max(0, self.line - 1 - _AROUND)
        left = max(0, self.column - _WIDTH // 2)
        for at in range(first, min(len(source.lines), self.line + _AROUND)):
            text = source.lines[at]
            if at >= self.line and not text.strip():
                break
            part = _part(text, left)
            shown.append(" " * source.indent + part if part else part)
            if at == self.line - 1:
                end = self.end_column if self.end_line == self.line else len(text)
                at_most = left + _WIDTH - self.column
                mark = "~" * max(1, min(end - self.column, at_most))
                indent = self.column - left + source.indent
                shown.append(" " * indent + mark + " <--- HERE")
        return "\n".join(shown) + "\n"


def _part(line: str, left: int) -> str:
    """What is shown of a line from a column on."""
    part = line[left : left + _WIDTH]
    if left and part:
        part = "..." + part[3:]
    return part[:-3] + "..." if len(line) > left + _WIDTH else part


class CompilationError(RuntimeError):
    """A source that is no TorchScript, or whose types do not fit; says where."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        self.message, self.place = message, place
        self.callers: list[tuple[str, str, Place]] = []
        super().__init__(message)

    def called_from(self, name: str, caller: str, place: Place) -> None:
        """Note through which call the source came to be compiled."""
        self.callers.append((name, caller, place))

    def __str__(self) -> str:
        text = f"\n{self.message}:\n{self.place.highlighted()}" if self.place else self.message
        for name, caller, place in self.callers:
            text += f"'{name}' is being compiled since it was called from '{caller}'\n"
            text += place.highlighted()
        return text


class NotSupportedError(CompilationError):
    """A part of Python that TorchScript has not got."""


class Error(RuntimeError):
    """What a scripted program has raised while it ran.

    >>> import flambeau as fb
    >>> @fb.jit.script
    ... def positive(x: int):
    ...     if x < 0:
    ...         raise ValueError("negative")
    ...     return x
    >>> try:
    ...     positive(-1)
    ... except fb.jit.Error as error:
    ...     print(str(error).splitlines()[-1])
    builtins.ValueError: negative
    """


def pieces(text: str) -> dict[str, str]:
    """The functions and classes of a text, each with blank lines for what stands before it.

    What a program needs of a long text is parsed alone; its lines have the numbers of the text's.

    >>> pieces("def f(): return 1\\ndef g():\\n  return 2\\n")["g"]
    '\\ndef g():\\n  return 2\\n'
    """
    found = re.compile(r"^(?:def|class) (\w+)", re.MULTILINE)
    places = [(each.start(), each[1]) for each in found.finditer(text)]
    ends = [*(start for start, _ in places[1:]), len(text)]
    return {
        name: "\n" * text.count("\n", 0, start) + text[start:end]
        for (start, name), end in zip(places, ends, strict=True)
    }
