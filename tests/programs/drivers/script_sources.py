"""What the sources of functions in a file of tests are as scripts: a line for each.

Sources are strings that hold nothing but functions, and functions inside of others, each compiled
by itself as ``CompilationUnit`` does; a line says what types it has, or that it was refused.

Arguments: the files.
"""

from __future__ import annotations

import ast
import sys
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path


def main() -> None:
    """Print a line for each source."""
    import torch

    warnings.simplefilter("ignore")
    for argument in sys.argv[1:]:
        path = Path(argument)
        seen = set()
        for line, source in sources(path.read_text("utf-8")):
            if source in seen:
                continue
            seen.add(source)
            print("PASSED", f"{path.name}:{line}", told(torch, source), flush=True)


def sources(text: str) -> Iterator[tuple[int, str]]:
    """The sources in a file, each with its line."""
    tree = ast.parse(text)
    inside: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            inside.update(each for each in ast.walk(node) if each is not node)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            source = textwrap.dedent(node.value)
            if "def " in source and _functions_only(source):
                yield node.lineno, source
        elif isinstance(node, ast.FunctionDef) and node in inside and _alone(node):
            lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
            yield node.lineno, textwrap.dedent("\n".join(lines)) + "\n"


def _functions_only(source: str) -> bool:
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return False
    return bool(body) and all(isinstance(each, ast.FunctionDef) for each in body)


def _alone(function: ast.FunctionDef) -> bool:
    """Whether a function is no method, and has no default that is a name from around it."""
    arguments = function.args
    names = [each.arg for each in arguments.args]
    plain = all(isinstance(each, ast.Constant) for each in arguments.defaults)
    return plain and names[:1] not in (["self"], ["cls"], ["ctx"]) and not arguments.vararg


def told(torch: object, source: str) -> str:
    """The types of a source's functions, or that it is refused."""
    try:
        unit = torch.jit.CompilationUnit(source)
        found = []
        for each in ast.parse(source).body:
            schema = getattr(unit, each.name).schema
            types = [
                [str(value.type) for value in side] for side in (schema.arguments, schema.returns)
            ]
            found.append(f"{each.name}({', '.join(types[0])}) -> {', '.join(types[1])}")
    except Exception:  # whatever a library refuses a source with
        return "is refused"
    return "; ".join(found)


if __name__ == "__main__":
    main()
