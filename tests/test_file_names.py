"""The names of source files: unique, shared by an op and its kernels, and few in a folder."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from flambeau.ops import OPS

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "core/src/flambeau"
OPS_FILES = sorted(p for p in (SOURCE / "ops").glob("*/*.py") if p.stem != "__init__")
NN = ROOT / "nn/src/flambeau/nn"
FUNCTIONALS = sorted((NN / "functional").glob("[!_]*.py"))
BACKENDS = sorted(p.parent for p in ROOT.glob("backends/*/src/*/kernels"))
MOST_FILES = 25


def repeated(names: Iterable[str]) -> list[str]:
    """The names that occur more than once."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def test_a_name_of_a_file_of_ops_says_which_file_is_meant() -> None:
    assert repeated(path.stem for path in OPS_FILES) == []
    assert repeated(["loss", "fold", "loss"]) == ["loss"]


def test_groups_of_ops_have_names_that_are_no_ops() -> None:
    groups = {path.parent.name for path in OPS_FILES}
    assert len(groups) > 10
    assert not groups & set(OPS)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda path: path.name)
def test_kernels_stand_in_files_of_the_names_of_their_ops(backend: Path) -> None:
    kernels = {path.stem for path in (backend / "kernels").glob("[!_]*.py")}
    assert kernels
    assert kernels <= {path.stem for path in OPS_FILES}


def test_all_backends_are_looked_at() -> None:
    names = {path.name for path in BACKENDS}
    assert names == {"flambeau_cupy", "flambeau_native", "flambeau_numpy", "flambeau_onednn"}


@pytest.mark.parametrize("path", FUNCTIONALS, ids=lambda path: path.stem)
def test_a_functional_of_nn_stands_in_the_file_of_its_op_or_says_where_that_is(path: Path) -> None:
    says = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    assert path.stem in {p.stem for p in OPS_FILES} or re.search(r"\bops?\b", says)


def test_losses_are_sorted_in_the_same_way_everywhere() -> None:
    layers, functions = losses(NN / "modules"), losses(NN / "functional")
    assert layers == {*functions, "loss_reduction"}
    assert losses(SOURCE / "ops/losses") == layers


def losses(folder: Path) -> set[str]:
    """The files of losses in a folder."""
    return {path.stem for path in folder.glob("*_loss*.py")} | {
        path.stem for path in folder.glob("loss_*.py")
    }


def test_no_folder_of_the_core_is_crowded() -> None:
    folders = Counter(path.parent for path in SOURCE.rglob("*.py"))
    # PyTorch documents a module for each distribution, by which programs import it.
    folders.pop(SOURCE / "distributions")
    assert {str(f): n for f, n in folders.items() if n > MOST_FILES} == {}
