"""What the package says that it has: to `dir`, to `help` and to type checkers."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import flambeau as fb

STUB = ast.parse(Path(str(fb.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))


def test_dir_names_what_programs_may_use_and_nothing_else():
    public = [name for name in dir(fb) if not name.startswith("_")]
    assert not {"Any", "TYPE_CHECKING", "annotations", "importlib", "pkgutil"} & set(public)
    assert {"Tensor", "rand", "float32", "nn", "compile", "cuda"} <= set(public)


def test_every_public_name_is_one_to_type_checkers():
    lines = [node for node in STUB.body if isinstance(node, ast.ImportFrom)]
    known = {alias.asname for node in lines for alias in node.names if alias.asname == alias.name}
    known |= {node.name for node in STUB.body if isinstance(node, ast.ClassDef)}
    known |= {ast.unparse(node.targets[0]) for node in STUB.body if isinstance(node, ast.Assign)}
    assert {name for name in dir(fb) if not name.startswith("_")} <= known


@pytest.mark.parametrize(
    ("function", "argument", "annotation"),
    [
        (fb.rand, "shape", "Ints"),
        (fb.rand, "device", "DeviceLike | None"),
        (fb.Tensor.softmax, "dim", "_int"),
        (fb.Tensor.__add__, "other", "Tensor | Number"),
        (fb.Tensor.tile, "given", "Ints"),
        (fb.Tensor.split, "split_size", "Ints | None"),
    ],
)
def test_signatures_say_what_arguments_are(function, argument, annotation):
    assert inspect.signature(function).parameters[argument].annotation == annotation


def test_signatures_say_what_results_are():
    assert inspect.signature(fb.Tensor.sort).return_annotation == "sort_return"
    assert inspect.signature(fb.Tensor.unbind).return_annotation == "tuple[Tensor, ...]"
