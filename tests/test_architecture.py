"""The layout: folders are layers, imports run downwards, and what is drawn is what is checked."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "core" / "src"
SOURCES = [CORE, ROOT / "nn" / "src", *sorted(ROOT.glob("backends/*/src"))]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = {c["name"]: c for c in SETTINGS["tool"]["importlinter"]["contracts"]}
HOUSE = CONTRACTS["the house: a folder imports what is below it"]


@dataclass(frozen=True)
class Import:
    """One import of a module of ours; `late` if it stands in a function."""

    importer: str
    imported: str
    late: bool
    reason: str  # the comment on its line


def modules(*roots: Path) -> dict[str, Path]:
    """Module names to files."""
    found = {}
    for root in roots:
        for path in root.rglob("*.py"):
            name = ".".join(path.relative_to(root).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def imports_of(name: str, text: str, known: set[str]) -> Iterator[Import]:
    """The imports of modules in `known`, without those for type checkers."""
    lines = text.split("\n")

    def visit(node: ast.AST, late: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = late or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                for other in child.orelse:
                    yield from visit(ast.Module([other], []), late)
                continue
            targets = set()
            if isinstance(child, ast.Import):
                targets = {alias.name for alias in child.names}
            elif isinstance(child, ast.ImportFrom) and child.module:
                whole = {f"{child.module}.{alias.name}" for alias in child.names}
                targets = {t if t in known else child.module for t in whole}
            for target in sorted(targets & known):
                reason = lines[child.lineno - 1].partition("#")[2].strip()
                yield Import(name, target, late, reason)
            yield from visit(child, inside)

    yield from visit(ast.parse(text), False)


@cache
def all_imports(*roots: Path) -> list[Import]:
    """Every import between our modules."""
    found = modules(*roots)
    return [
        each
        for name, path in sorted(found.items())
        for each in imports_of(name, path.read_text(encoding="utf-8"), set(found))
    ]


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected parts of more than one module (Tarjan 1972)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def enter(v: str) -> None:
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in edges.get(v, ()):
            if w not in number:
                enter(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == number[v]:
            part = stack[stack.index(v) :]
            del stack[stack.index(v) :]
            if len(part) > 1:
                found.append(sorted(part))

    for v in sorted(edges):
        if v not in number:
            enter(v)
    return found


def at_import(*roots: Path) -> dict[str, set[str]]:
    """What each module imports when it is imported; the bare package puts all of them together."""
    edges: dict[str, set[str]] = {}
    for each in all_imports(*roots):
        if not each.late and each.imported != "flambeau" and each.importer != each.imported:
            edges.setdefault(each.importer, set()).add(each.imported)
    return edges


def test_modules_import_each_other_in_no_circle() -> None:
    assert circles(at_import(*SOURCES)) == []


def test_a_circle_would_be_found() -> None:
    edges = at_import(CORE)
    edges["flambeau._types.dtype"] = {"flambeau._memory.views"}
    (found,) = circles(edges)
    assert {"flambeau._types.dtype", "flambeau._memory.views"} <= set(found)


def test_imports_in_functions_are_lazy_or_listed_or_explained() -> None:
    code = "import flambeau, sys; print(*[m for m in sys.modules if m.startswith('flambeau')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    listed = {
        tuple(line.split(" -> ")) for line in HOUSE["ignore_imports"] if not line.endswith("**")
    }
    unexplained = [
        f"{each.importer} -> {each.imported}"
        for each in all_imports(*SOURCES)
        if each.late
        and each.imported in loaded - {"flambeau"}
        and (each.importer, each.imported) not in listed
        and not each.reason
        and not each.importer.startswith("flambeau._tools")
    ]
    assert unexplained == []


def test_late_imports_are_few() -> None:
    late = [each for each in all_imports(CORE) if each.late]
    assert len(late) <= 110  # half of what there were before the layers


def floors() -> list[set[str]]:
    """The floors of the contract, from the top."""
    return [{part.strip() for part in layer.split(":")} for layer in HOUSE["layers"]]


def test_the_picture_of_the_house_is_the_contract() -> None:
    text = (ROOT / "docs" / "design" / "core.md").read_text(encoding="utf-8")
    picture = re.search(r"```text\n(__main__.*?)```", text, re.DOTALL)
    assert picture is not None
    drawn: list[set[str]] = [set()]
    for line in picture[1].splitlines():
        names, ends, _ = line.partition("|")  # a floor ends with what it is for
        drawn[-1] |= set(names.split())
        if ends:
            drawn.append(set())
    assert drawn == [*floors(), set()]


def test_every_folder_of_the_package_has_a_floor() -> None:
    roots = [CORE / "flambeau", ROOT / "nn" / "src" / "flambeau"]
    entries = {
        path.stem
        for root in roots
        for path in root.iterdir()
        if path.suffix == ".py" or (path.is_dir() and path.name != "__pycache__")
    }
    assert entries - {"__init__"} == set().union(*floors())


def test_the_machinery_of_the_core_can_be_taken_in_at_a_glance() -> None:
    package = CORE / "flambeau"
    private = [p for p in package.iterdir() if p.name.startswith("_") and p.name != "__pycache__"]
    assert len(private) <= 16
