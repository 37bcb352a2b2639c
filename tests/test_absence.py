"""Names that PyTorch has and flambeau has not tell what to use instead, whichever way one asks."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import flambeau as fb
from flambeau._tensor.absent import NAMES
from flambeau.absence import Imports, instead
from flambeau.compat import torch_alias

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "core/src/flambeau/absence.txt").read_text(encoding="utf-8")
MODULES = sorted({word[:-1] for word in re.findall(r"^ +(torch[\w.]*:)", TEXT, re.MULTILINE)})


def listed(module: str) -> list[str]:
    found: list[str] = []
    for names in re.findall(rf"^  {re.escape(module)}:((?:.*\n    )*.*)$", TEXT, re.MULTILINE):
        found += names.split()
    return found


def named(module: str) -> object:
    if module == "torch.Tensor":
        return fb.Tensor
    return importlib.import_module(module.replace("torch", "flambeau", 1))


@pytest.mark.parametrize("module", MODULES)
def test_every_listed_name_is_absent_and_says_what_to_use(module):
    names = listed(module)
    assert names == sorted(set(names), key=names.index)
    for name in names:
        advice = instead(module.replace("torch", "flambeau", 1), name)
        with pytest.raises(AttributeError) as caught:
            getattr(named(module), name)
        assert f"has no attribute {name!r}: PyTorch has it, and it is not in flambeau; " in str(
            caught.value
        )
        assert str(caught.value).endswith(advice)


def test_what_is_to_be_used_instead_exists():
    paths = set(re.findall(r"`(flambeau(?:\.\w+)+)", TEXT))
    assert paths
    for path in paths:
        found: object = fb
        for part in path.split(".")[1:]:
            found = getattr(found, part)


@pytest.mark.parametrize("module", MODULES)
def test_other_names_have_the_usual_error(module):
    with pytest.raises(AttributeError, match=r"has no attribute 'flumb'$"):
        getattr(named(module), "flumb")  # noqa: B009 - the error is what is wanted


def test_programs_for_pytorch_are_told_too():
    with torch_alias() as torch, pytest.raises(AttributeError, match=r"instead: .*linalg\.eigh"):
        getattr(torch, "lobpcg")  # noqa: B009 - the error is what is wanted


@pytest.mark.parametrize("alias", [nullcontext, torch_alias])
@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("torch.zeross", "zeros"),
        ("torch.flot32", "float32"),
        ("torch.nn.Lineer", "Linear"),
        ("torch.nn.functional.reluu", "relu"),
        ("torch.optim.Adm", "Adam"),
        ("torch.linalg.svdd", "svd"),
        ("torch.utils.data.DataLoder", "DataLoader"),
        ("torch.rand(2).sume", "sum"),
        ("torch.nn.Linear(1, 1).wieght", "weight"),
    ],
)
def test_tracebacks_end_with_the_name_that_was_meant(capsys, alias, wrong, meant):
    with alias() as torch:
        try:
            eval(wrong, {"torch": torch or fb})
        except AttributeError:
            sys.__excepthook__(*sys.exc_info())
    assert capsys.readouterr().err.rstrip().endswith(f"Did you mean: '{meant}'?")


def test_tensors_are_told_of_what_they_lack_and_list_none_of_it():
    assert sorted(listed("torch.Tensor")) == sorted(NAMES)
    t = fb.ones(2, 2)
    assert not NAMES & set(dir(t))
    assert [name for name in NAMES if hasattr(t, name)] == []
    with pytest.raises(AttributeError, match=r"^'Tensor' object has no attribute 'chalf': PyTorch"):
        t.chalf()
    with pytest.raises(AttributeError, match=r"has no attribute 'flumb'$"):
        t.flumb()


def test_what_a_program_sets_on_a_tensor_comes_before_the_advice():
    class Named(fb.Tensor):
        volatile = "a class's"

    t = fb.ones(2)
    t.chalf = "an instance's"
    assert t.chalf == "an instance's" and "chalf" in dir(t)
    assert t.as_subclass(Named).volatile == "a class's"
    assert fb.nn.Parameter(t).grad is None and not hasattr(fb.nn.Parameter(t), "resize")


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("import flambeau.export", ModuleNotFoundError),
        ("from flambeau.export import export", ModuleNotFoundError),
        ("import flambeau.ao.quantization", ModuleNotFoundError),
        ("from flambeau import lobpcg", ImportError),
        ("from flambeau.nn.functional import grouped_mm", ImportError),
    ],
)
def test_imports_of_absent_names_are_told_what_to_use(statement, error):
    with pytest.raises(error, match="PyTorch has it, and it is not in flambeau; instead: ") as said:
        exec(statement, {})
    assert type(said.value) is error
    assert error is ImportError or said.value.name in ("flambeau.export", "flambeau.ao")


@pytest.mark.parametrize(
    "statement", ["import flambeau.flumb", "from flambeau import flumb", "import flambeau.nn.flumb"]
)
def test_imports_of_other_names_have_the_usual_error(statement):
    with pytest.raises(ImportError, match=r"flumb'") as said:
        exec(statement, {})
    assert "instead" not in str(said.value)


def test_who_asks_whether_an_absent_module_is_there_hears_no():
    assert importlib.util.find_spec("flambeau.export") is None
    known = [finder for finder in sys.meta_path if finder is Imports]
    Imports.install()
    assert known == [Imports] == [finder for finder in sys.meta_path if finder is Imports]
