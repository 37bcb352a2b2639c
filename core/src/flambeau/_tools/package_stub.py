"""The stub of the package itself: its public names, each with its home, for type checkers.

What ``import flambeau`` binds is gathered, and much of it bound at first use; a checker follows
neither.  It reads the stub in place of the module, so a name that is not there is an error.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LEGACY = "_Legacy"  # what makes the tensor classes of old


def stub_text(package: Path) -> str:
    """The text of ``flambeau/__init__.pyi``."""
    package_itself: Any = importlib.import_module("flambeau")

    names = ast.parse((package / "_api" / "names.py").read_text(encoding="utf-8"))
    lines = list(_gathered(names))
    modules = {*package_itself._SUBMODULES, *package_itself._PARTS, "ops"}
    lines += [f"from flambeau import {name} as {name}" for name in sorted(modules)]
    for home, lazy in package_itself._NAMES.items():
        lines += [f"from flambeau.{home} import {name} as {name}" for name in sorted(lazy)]
    imports = [line for line in lines if line.startswith("from")]
    others = [line for line in lines if not line.startswith("from")]
    others.append("Storage = FloatStorage")  # that of the default dtype, asked for when used
    return "\n".join([*imports, *others, *_assigned(names), "__version__: str", ""])


def _gathered(tree: ast.Module) -> Iterator[str]:
    """What a module imports, under the names that it gives."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            yield from _imports_of_all(str(node.module))
        else:
            yield from _imports(node)


def _imports_of_all(module: str) -> Iterator[str]:
    found = importlib.import_module(module)
    source = ast.parse(Path(str(found.__file__)).read_text(encoding="utf-8"))
    homes = {
        alias.name: str(node.module)
        for node in source.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for name in found.__all__:
        yield f"from {homes.get(name, module)} import {name} as {name}"


def _imports(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            name = alias.asname or alias.name
            if name == _LEGACY:
                continue
            if name == alias.name:
                yield f"from {node.module} import {name} as {name}"
            else:  # to a checker, an import under another name is the stub's own affair
                yield f"from {node.module} import {alias.name} as _own_{alias.name}"
                yield f"{name} = _own_{alias.name}"


def _assigned(tree: ast.Module) -> Iterator[str]:
    """Names that a module gives to what it has: other names, and the tensor classes of old."""
    for node in tree.body:
        if not isinstance(node, ast.Assign) or not isinstance(name := node.targets[0], ast.Name):
            continue
        if isinstance(value := node.value, ast.Name):
            yield f"{name.id} = {value.id}"
        elif isinstance(value, ast.Call) and ast.unparse(value.func) == _LEGACY:
            yield f"class {name.id}(Tensor): ..."
