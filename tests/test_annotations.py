"""Annotations say something: `Any` alone is rare among those of the packages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = [ROOT / "core/src", ROOT / "nn/src", *ROOT.glob("backends/*/src")]
AT_MOST = 0.06


def annotations(tree: ast.Module) -> Iterator[ast.expr]:
    """Of parameters, results and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            each = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            yield from (x.annotation for x in each if x is not None and x.annotation is not None)
            if node.returns is not None:
                yield node.returns
        elif isinstance(node, ast.AnnAssign):
            yield node.annotation


def is_any(annotation: ast.expr) -> bool:
    match annotation:
        case ast.Name(id="Any") | ast.Attribute(attr="Any") | ast.Constant(value="Any"):
            return True
    return False


def test_bare_any_is_counted_in_parameters_results_and_variables():
    source = 'def f(a: Any, *b: "Any", c: list[Any], d: int) -> typing.Any:\n    e: Any = a\n'
    assert [is_any(x) for x in annotations(ast.parse(source))].count(True) == 4


def test_few_annotations_are_bare_any():
    total, bare = 0, {}
    for package in PACKAGES:
        for path in package.rglob("*.py"):
            found = [is_any(x) for x in annotations(ast.parse(path.read_text("utf-8")))]
            total += len(found)
            bare[str(path.relative_to(ROOT))] = sum(found)
    count = sum(bare.values())
    worst = sorted(bare, key=bare.__getitem__)[-10:]
    shown = ", ".join(f"{name}: {bare[name]}" for name in reversed(worst))
    assert total > 40_000
    assert count < AT_MOST * total, f"{count} of {total}, most in {shown}"
