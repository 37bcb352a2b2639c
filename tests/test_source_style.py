"""What formatters do not see: headings in comments, torn paragraphs, names that lead nowhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("backends", "benchmarks", "core", "docs", "examples", "nn", "tests")
NOT_OURS = {"build", "__pycache__", "node_modules"}

DIRECTIVE = re.compile(r"# *(ruff|pyright|fmt):")
ALONE = re.compile(r"\n\n([ \t]*)(#.*(?:\n[ \t]*#.*)*)\n(?=\n)")
ALONE_IN_C = re.compile(r"\n\n[ \t]*(/\*.*\*/|//.*)\n(?=\n)")
HEAD = re.compile(r"[*-] |\d+[.)] |[\w*`]+(, [\w*`]+)*: |>>>|\.\.\. ")
QUOTED = re.compile(r"(`{1,2})([^`\n]+)\1")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
ENDINGS = (".py", ".md", ".c", ".h", ".cu", ".cuh")
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+\.(?:py|md|c|h|cu|cuh)")
DOTTED = re.compile(r"(flambeau(?:_\w+)?|_[a-z]\w*)((?:\.\w+)+)(?:\(.*\))?")


@cache
def files(*endings: str) -> list[Path]:
    """The files of the repository's folders, without what was built there."""
    return sorted(
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in endings and not NOT_OURS.intersection(path.relative_to(ROOT).parts)
    )


def ends(path: str) -> list[str]:
    """`a/b/c`, `b/c` and `c`."""
    parts = path.split("/")
    return ["/".join(parts[i:]) for i in range(len(parts))]


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT).as_posix()}:{line}"


@cache
def strings_and_docstrings(source: str) -> tuple[set[int], list[tuple[int, int]]]:
    """The lines inside of strings of several lines, and where docstrings begin and end."""
    inside, documents = set(), []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant | ast.JoinedStr):
            inside.update(range(node.lineno + 1, node.end_lineno + 1))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                documents.append((first.lineno, first.end_lineno))
    return inside, documents


def comments(source: str) -> dict[int, str]:
    """The comments that have a line of their own, by its number."""
    inside, _ = strings_and_docstrings(source)
    return {
        number: line.strip()
        for number, line in enumerate(source.split("\n"), 1)
        if line.lstrip().startswith("#") and number not in inside
    }


def docstrings(source: str) -> Iterator[tuple[int, list[str]]]:
    """The first line's number and the lines of each docstring."""
    lines = ["", *source.split("\n")]
    for first, last in strings_and_docstrings(source)[1]:
        yield first, lines[first : last + 1]


def headings(source: str) -> list[int]:
    """Lines of comments that stand between two empty lines, so that they belong to no code."""
    found = [
        source.count("\n", 0, match.start(2)) + 1
        for match in ALONE.finditer(source)
        if not DIRECTIVE.match(match[2])
    ]
    return [line for line in found if line in comments(source)] if found else []


def torn(lines: list[str]) -> list[int]:
    """Places of lines that end early in the middle of a sentence, which goes on in the next."""
    found, session = [], False
    for i, (line, following) in enumerate(pairwise(lines)):
        session = bool(line.strip()) and (session or line.lstrip().startswith(">>>"))
        text, rest = line.lstrip(" #"), following.lstrip(" #")
        same = len(line) - len(text) == len(following) - len(rest)
        first = rest.split(" ")[0].rstrip()
        if (
            not session
            and same
            and not HEAD.match(rest)
            and re.fullmatch(r"[a-z]{2,}[,.;:]?", first)
            and re.search(r"\w,?$", text)
            and len(line) + 1 + len(first) <= 60
        ):
            found.append(i)
    return found


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file that speak of others, each with the number of its first line."""
    text = path.read_text()
    if path.suffix == ".md":
        yield 1, FENCED.sub(lambda block: "\n" * block[0].count("\n"), text)
    elif path.suffix == ".py":
        yield from comments(text).items()
        for line, lines in docstrings(text):
            yield line, "\n".join(lines)
    else:
        for match in re.finditer(r"/\*.*?\*/|//.*", text, re.DOTALL):
            yield text.count("\n", 0, match.start()) + 1, match[0]


class Tree:
    """The files of the repository and the words in them, to look up what a text names."""

    def __init__(self) -> None:
        self.paths = [path.relative_to(ROOT).as_posix() for path in files(*ENDINGS)]
        self.ends = {end for path in self.paths for end in ends(path)}
        self.modules: dict[str, list[str]] = {}
        for path in self.paths:
            if path.endswith(".py"):
                for end in ends(path.removesuffix(".py").removesuffix("/__init__")):
                    self.modules.setdefault(end, []).append(path)

    def words(self, path: str) -> set[str]:
        """The words of a module; of a package, those of all its modules."""
        own = path.removesuffix("/__init__.py")
        parts = [path] if own == path else [p for p in self.paths if p.startswith(own + "/")]
        return {w for p in parts for w in re.findall(r"\w+", (ROOT / p).read_text())}

    @cached_property
    def attributes(self) -> set[str]:
        """The private names that packages read from objects, and strings of two names."""
        sources = "\n".join(path.read_text() for path in files(".py") if "src" in path.parts)
        return {*re.findall(r"\w\.(_[a-z]\w*)", sources), *re.findall(r'"(\w+\.\w+)"', sources)}

    def has(self, name: str) -> bool:
        """Whether a path ends a file's, or a dotted name leads through modules to a word there."""
        if PATH.fullmatch(name):
            return name in self.ends
        parts = name.split(".")
        for k in range(len(parts), 0, -1):
            if found := self.modules.get("/".join(parts[:k])):
                return any(self.words(path).issuperset(parts[k:]) for path in found)
        return name in self.attributes or parts[0] in self.attributes

    def missing(self, text: str) -> list[tuple[int, str]]:
        """What `text` names in backquotes and is not there, with the line of the text."""
        return [
            (text.count("\n", 0, match.start()), match[2])
            for match in QUOTED.finditer(text)
            if (name := PATH.fullmatch(match[2]) or DOTTED.fullmatch(match[2]))
            and not self.has(name[0] if name.re is PATH else name[1] + name[2])
        ]


def paragraphs(source: str) -> Iterator[tuple[int, list[str]]]:
    """The docstrings of a module and its comments of several lines, with their first lines."""
    yield from docstrings(source)
    lines, numbers = ["", *source.split("\n")], sorted(comments(source))
    for number in numbers:
        if number - 1 not in numbers:
            last = number
            while last + 1 in numbers:
                last += 1
            yield number, lines[number : last + 1]


def test_no_comment_stands_alone_as_a_heading():
    found = [place(path, line) for path in files(".py") for line in headings(path.read_text())]
    for path in files(".c", ".h", ".cu", ".cuh"):
        text = path.read_text()
        for match in ALONE_IN_C.finditer(text):
            found.append(place(path, text.count("\n", 0, match.start(1)) + 1))
    assert not found, f"say it where it holds, or not at all: {found}"


def test_paragraphs_are_filled():
    found = [
        place(path, first + i)
        for path in files(".py")
        for first, lines in paragraphs(path.read_text())
        for i in torn(lines)
    ]
    assert not found, f"wrap these again: {found}"


def test_files_and_private_modules_that_texts_name_are_there():
    tree = Tree()
    found = [
        f"{place(path, first + i)}: {name}"
        for path in [*sorted(ROOT.glob("*.md")), *files(*ENDINGS)]
        for first, text in prose(path)
        for i, name in tree.missing(text)
    ]
    assert not found, f"these lead nowhere: {found}"


@pytest.mark.parametrize("heading", ["# Facts.", "# == public functions ====", "# A\n# B"])
@pytest.mark.parametrize("indent", ["", "    "])
def test_a_heading_is_found(heading, indent):
    comment = indent + heading.replace("\n", "\n" + indent)
    source = f"class A:\n    a = 1\n\n{comment}\n\n    b = 2\n"
    assert headings(source) == [4]


@pytest.mark.parametrize(
    "source",
    [
        "a = 1\n\n# Why b is 2.\nb = 2\n",
        "a = 1\n# Why a is 1.\n\nb = 2\n",
        "a = 1\n\n# ruff: noqa: E501 - a table\n\nb = 2\n",
        'text = """\n\n# Not a comment.\n\n"""\n',
    ],
    ids=["above", "below", "directive", "string"],
)
def test_a_comment_at_its_code_is_no_heading(source):
    assert headings(source) == []


def test_a_torn_paragraph_is_found():
    text = """What executes it is whichever backend packages, of which there may be several,
are
installed.  One that is short

    or stands by itself, or a list:
    a: of names
    b: and meanings
    >>> is no
    sentence
"""
    assert torn(text.split("\n")) == [1]


def test_a_name_that_leads_nowhere_is_found():
    text = """`ops/_nothing.py`, ``_nothing.here`` and `flambeau._nowhere`, but `flambeau.ops`,
    `flambeau.nn.Linear`, `tests/test_source_style.py`, `_missing_.x` of `nobody.knows`,
    `_types._nil` """
    names = [(0, "ops/_nothing.py"), (0, "_nothing.here"), (0, "flambeau._nowhere")]
    assert Tree().missing(text) == [*names, (1, "_missing_.x"), (2, "_types._nil")]
