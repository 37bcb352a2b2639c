"""How a template, a module in Python with names in capitals, becomes the text of a generated file.

* A function, or a variable, for which there is a table stands once for each of its rows.  A row
  maps names to the text that replaces them, as parts of longer names too (``node_OP``), or any
  other piece of text; ``FIRST()`` is replaced by whole lines.
* ``if FLAG:``, where a row maps the flag to a bool, leaves one of its blocks.
* ``return end_of_x(...)`` is replaced by the body of that function of the template, in which its
  parameters in capitals are what the call gives.
* The docstring and the imports of placeholders are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import dedent, indent

Row = Mapping[str, str | bool]

_PLACEHOLDERS = "flambeau._tools.templates.placeholders"
_INLINED = "end_of_"


def title(template: str) -> str:
    """The first line of a template's docstring."""
    return (ast.get_docstring(ast.parse(template)) or "").split("\n")[0]


def expand(template: str, tables: Mapping[str, Sequence[Row]]) -> str:
    """The text of a template with its tables written out."""
    text = _written_out(template)
    lines = text.splitlines(keepends=True)
    for node in reversed(list(_statements(ast.parse(text)))):
        start, end = _extent(node, lines)
        if (name := _name(node)) in tables:
            gap = ("\n" if node.col_offset else "\n\n") if isinstance(node, ast.FunctionDef) else ""
            chunk = "".join(lines[start:end])
            lines[start:end] = [gap.join(_filled(chunk, row) for row in tables[name])]
        elif isinstance(node, ast.ImportFrom) and node.module == _PLACEHOLDERS:
            del lines[start:end]
    return "".join(lines[_docstring_end(text) :]).lstrip("\n")


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in tree.body:
        yield node
        if isinstance(node, ast.ClassDef):
            yield from node.body


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef):
        return node.name
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def _extent(node: ast.stmt, lines: Sequence[str]) -> tuple[int, int]:
    """The lines of a statement: the index of the first, and the one behind the last."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    assert node.end_lineno
    return min([node.lineno, *[d.lineno for d in decorators]]) - 1, node.end_lineno


def _docstring_end(text: str) -> int:
    return ast.parse(text).body[0].end_lineno or 0


def _written_out(text: str) -> str:
    """The text with the bodies of functions ``end_of_...`` in place of their calls."""
    lines = text.splitlines(keepends=True)
    tree = ast.parse(text)
    ends = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith(_INLINED)
    }
    changes: list[tuple[int, int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and isinstance(call := node.value, ast.Call):
            if isinstance(call.func, ast.Name) and (function := ends.get(call.func.id)):
                assert node.end_lineno
                body = indent(_body(function, call, text, lines), " " * node.col_offset)
                changes.append((node.lineno - 1, node.end_lineno, body))
    for node in ends.values():
        start, end = _extent(node, lines)
        while lines[start - 1].startswith("#"):
            start -= 1
        while lines[start - 1] == "\n":
            start -= 1
        changes.append((start, end, ""))
    for start, end, new in sorted(changes, reverse=True):
        lines[start:end] = [new]
    return "".join(lines)


def _body(function: ast.FunctionDef, call: ast.Call, text: str, lines: Sequence[str]) -> str:
    """The body of a function without its docstring, for the arguments of a call."""
    given = [ast.get_source_segment(text, argument) or "" for argument in call.args]
    names = [argument.arg for argument in function.args.args]
    row: dict[str, str | bool] = {n: v for n, v in zip(names, given, strict=False) if n.isupper()}
    if rest := function.args.vararg:
        row[f"*{rest.arg}"] = ", ".join(given[len(names) :])
    first, last = function.body[1], function.body[-1]
    body = "".join(lines[first.lineno - 1 : last.end_lineno])
    return _filled(dedent(body), row)


def _filled(text: str, row: Row) -> str:
    """A piece of a template for one row of its table."""
    for flag, value in row.items():
        if isinstance(value, bool):
            text = _chosen(text, flag, value)
    words = {key: value for key, value in row.items() if isinstance(value, str)}
    for key, value in words.items():
        if key.endswith("()"):
            line = re.compile(rf"^( *){re.escape(key)}\n", re.MULTILINE)
            text = line.sub(lambda found, value=value: indent(value, found[1]), text)
    pattern = "|".join(
        rf"(?<![A-Za-z0-9]){key}(?![A-Za-z0-9])" if key.isidentifier() else re.escape(key)
        for key in sorted(words, key=len, reverse=True)
    )
    return re.sub(pattern, lambda found: words[found[0]], text) if words else text


def _chosen(text: str, flag: str, value: bool) -> str:
    """The text with only one block of each ``if`` of a flag, which loses its indentation."""
    lines = text.splitlines(keepends=True)
    for i in reversed(range(len(lines))):
        if lines[i].strip() != f"if {flag}:":
            continue
        pad = lines[i][: lines[i].index("if")]
        kept, middle = value, i + 1
        end = _block_end(lines, middle, pad)
        chosen = lines[middle:end] if kept else []
        if end < len(lines) and lines[end] == f"{pad}else:\n":
            middle, end = end + 1, _block_end(lines, end + 1, pad)
            chosen = chosen if kept else lines[middle:end]
        lines[i:end] = [line[4:] for line in chosen]
    return "".join(lines)


def _block_end(lines: Sequence[str], start: int, pad: str) -> int:
    """The line behind the block that begins at `start`, below a line indented by `pad`."""
    for i in range(start, len(lines)):
        if lines[i].strip() and not lines[i].startswith(f"{pad}    "):
            return i
    return len(lines)
