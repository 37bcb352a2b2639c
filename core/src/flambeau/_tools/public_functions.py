"""The public functions, found in the modules of ops by what stands beside them."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any, NamedTuple

from flambeau.ops.declaration.public import Public, offered


class Function(NamedTuple):
    """A public function under one of its names."""

    name: str
    function: Any
    public: Public


def public_functions(folder: Path) -> dict[str, list[Function]]:
    """The public functions of each module of the folder of ops.

    Raises:
        TypeError: two modules have functions of one name.
    """
    homes: dict[str, str] = {}
    found = {}
    for path in sorted(folder.glob("*/*.py"), key=lambda path: (path.stem, path)):
        home = f"flambeau.ops.{path.parent.name}.{path.stem}"
        module = vars(importlib.import_module(home))
        members = []
        for name in sorted(_bound(path)):
            if public := offered(name, module.get(name)):
                if (other := homes.setdefault(name, home)) != home:
                    raise TypeError(f"{name!r} is public in {other} and in {home}")
                members.append(Function(name, module[name], public))
        if members:
            found[home] = members
    return found


def _bound(path: Path) -> set[str]:
    """The names that a module gives to its own functions, and not those that it imports."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return {name for name in found if not name.startswith("_")}
