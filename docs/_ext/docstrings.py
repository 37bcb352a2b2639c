"""Docstrings as Markdown: paragraphs, sections, sessions and names, and nothing that can fail.

A docstring is text for `help()` first. So every character of it that Markdown would take for
markup is escaped, except backticks; names in backticks become links where they are documented.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator

SECTION = re.compile(r"(Args|Arguments|Attributes|Raises|Returns|Yields):$")
CODE = re.compile(r"(``.+?``|`[^`\n]+?`)", re.DOTALL)
EMPHASIS = re.compile(r"(?<![\w*])\*(\w[^*\n]*\w|\w)\*(?![\w*])")
MARKUP = re.compile(r"([\\*_{}\[\]<>#|~$`])")
LIST_LIKE = re.compile(r"^(\s*)([-+=:]|\d+[.)])(?=\s|$|[-=:])")
ITEM = re.compile(r"[*-] ")

Resolve = Callable[[str], str | None]
"""From a name as a docstring writes it to the full name of what is documented, or None."""


def text(source: str, resolve: Resolve) -> str:
    """A paragraph as Markdown: code stays code, and known names become links."""
    pieces = []
    for piece in CODE.split(source):
        if CODE.fullmatch(piece):
            pieces.append(_code(" ".join(piece.strip("`").split()), resolve))
        else:
            escaped = "".join(f"*{_escape(p)}*" if e else _escape(p) for e, p in _emphasis(piece))
            pieces.append("\n".join(LIST_LIKE.sub(r"\1\\\2", line) for line in lines(escaped)))
    return "".join(pieces)


def _escape(source: str) -> str:
    return MARKUP.sub(r"\\\1", source)


def _emphasis(source: str) -> Iterator[tuple[bool, str]]:
    """The pieces of `source`, each with whether it stands between two asterisks."""
    for i, piece in enumerate(EMPHASIS.split(source)):
        yield i % 2 == 1, piece


def lines(source: str) -> list[str]:
    """The lines of `source`; unlike `str.splitlines`, a final line break gives a final line."""
    return source.split("\n")


def _code(code: str, resolve: Resolve) -> str:
    target = resolve(code.removesuffix("()"))
    return f"``{code}``" if target is None else f"{{py:obj}}`{code} <{target}>`"


def markdown(docstring: str, resolve: Resolve) -> str:
    """The whole docstring as Markdown, without headings."""
    return "\n\n".join(_blocks(lines(inspect.cleandoc(docstring)), resolve))


def _blocks(rows: list[str], resolve: Resolve) -> Iterator[str]:
    place = 0
    while place < len(rows):
        row = rows[place]
        if not row.strip():
            place += 1
        elif row.lstrip().startswith(">>>"):
            block, place = _while(rows, place, lambda line: bool(line.strip()))
            yield "```pycon\n" + inspect.cleandoc("\n" + "\n".join(block)) + "\n```"
        elif SECTION.match(row):
            body, place = _indented(rows, place + 1)
            yield f"**{row[:-1]}**"
            yield _section(body, resolve)
        elif row.startswith(" "):
            block, place = _indented(rows, place)
            yield "```text\n" + inspect.cleandoc("\n" + "\n".join(block)) + "\n```"
        elif ITEM.match(row):
            body, place = _item(rows, place)
            yield "* " + text("\n".join(body)[2:], resolve)
        else:
            block, place = _while(
                rows,
                place,
                lambda line: (
                    bool(line.strip())
                    and not line.lstrip().startswith(">>>")
                    and not ITEM.match(line)
                    and not SECTION.match(line)
                ),
            )
            yield text("\n".join(line.strip() for line in block).removesuffix("::"), resolve)


def _while(rows: list[str], start: int, belongs: Callable[[str], bool]) -> tuple[list[str], int]:
    end = start
    while end < len(rows) and belongs(rows[end]):
        end += 1
    return rows[start:end], end


def _indented(rows: list[str], start: int) -> tuple[list[str], int]:
    block, end = _while(rows, start, lambda line: not line.strip() or line.startswith(" "))
    while block and not block[-1].strip():
        block.pop()
    return block, end


def _item(rows: list[str], start: int) -> tuple[list[str], int]:
    """One item of a list: its line and those indented below it."""
    rest, end = _while(rows, start + 1, lambda line: line.startswith("  "))
    return [rows[start], *(f"  {line.strip()}" for line in rest)], end


def _section(body: list[str], resolve: Resolve) -> str:
    """``name: what it is`` as a list; text that is not of this form stays a paragraph."""
    rows = lines(inspect.cleandoc("\n" + "\n".join(body)))
    items: list[str] = []
    for row in rows:
        if row and not row.startswith(" "):
            items.append(row)
        elif items:
            items[-1] += "\n" + row.strip()
    return "\n".join("* " + _named(item, resolve).replace("\n", "\n  ") for item in items)


def _named(item: str, resolve: Resolve) -> str:
    name, colon, meaning = item.partition(":")
    if not colon or not re.fullmatch(r"[*\w. ,`()\[\]|]+", name):
        return text(item, resolve)
    return f"``{name.replace('`', '')}``: {text(meaning.strip(), resolve)}"
