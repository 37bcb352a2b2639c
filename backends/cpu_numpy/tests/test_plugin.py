"""What the package tells the plugin host, and that its kernels are those of the contract."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from flambeau import ops
from flambeau.ops.declaration.table import OPS, Op
from flambeau.plugin import Backend, Expectations, KernelSet
from flambeau.plugin.validation import STRIDED_KERNELS
from flambeau_numpy import __version__, kernels, plugin

CONTRACT = Path(__file__).resolve().parents[3] / "docs" / "design" / "contract.md"


def declared() -> dict[str, Op]:
    """All ops of the core; each family declares its own when it is imported."""
    for module in pkgutil.walk_packages(ops.__path__, f"{ops.__name__}."):
        importlib.import_module(module.name)
    return OPS


def test_hooks_answer_for_the_cpu_only() -> None:
    assert isinstance(plugin.flambeau_backend("cpu"), Backend)
    offer = plugin.flambeau_kernels("cpu")
    assert isinstance(offer, KernelSet)
    assert offer.provider == f"flambeau-numpy {__version__}"
    assert isinstance(plugin.flambeau_expectations("cpu"), Expectations)
    assert {"numpy", "scipy", "ml_dtypes", "blas"} <= set(plugin.flambeau_report("cpu"))
    for hook in ("backend", "kernels", "expectations", "report"):
        assert getattr(plugin, f"flambeau_{hook}")("cuda") is None


def test_the_report_says_what_makes_numpy_faster_where_it_is_not_installed(monkeypatch) -> None:
    def version_of(name: str) -> str:
        if name == "flambeau-native":
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(plugin, "version", lambda name: "1")
    assert "flambeau-native" not in plugin.flambeau_report("cpu")
    monkeypatch.setattr(plugin, "version", version_of)
    report = plugin.flambeau_report("cpu")
    assert report["flambeau-native"] == "not installed: NumPy alone takes about twice its time"


def test_the_plugin_module_imports_no_array_library() -> None:
    program = "import sys, flambeau_numpy.plugin; print({'numpy', 'scipy'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.strip() == "set()"


def test_families_offer_disjoint_kernels() -> None:
    names = [name for family in kernels.FAMILIES for name in family.KERNELS]
    assert len(names) == len(set(names)) == len(kernels.KERNELS)


@pytest.mark.parametrize("family", kernels.FAMILIES, ids=lambda f: f.__name__.rpartition(".")[2])
def test_kernels_are_named_in_the_contract_or_declared_by_the_core(family: object) -> None:
    known = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", CONTRACT.read_text()))))
    known |= {*declared(), *STRIDED_KERNELS}
    offered = set(family.KERNELS)  # type: ignore[attr-defined]
    assert {n for n in offered if n not in known and n.removesuffix("_") not in known} == set()


def test_kernels_take_the_arguments_of_their_ops() -> None:
    for name, op in declared().items():
        kernel = kernels.KERNELS.get(name)
        if not isinstance(kernel, FunctionType):
            continue  # ufuncs and methods of C
        parameters = list(inspect.signature(kernel).parameters.values())
        if name not in ("tril", "triu") and all(
            p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters
        ):
            assert len(parameters) == len(op.params), name


def test_kernels_make_arrays_that_share_nothing_with_their_inputs() -> None:
    a = np.ones((3, 3), np.float32)
    for name in ("clone", "contiguous", "floor", "sign", "relu", "abs"):
        assert not np.shares_memory(kernels.KERNELS[name](a), a)
    integers = a.astype(np.int32)
    for name in ("floor", "round", "trunc", "abs", "sign"):
        result = kernels.KERNELS[name](integers)
        assert not np.shares_memory(result, integers)
        assert result.dtype == np.int32
    for dims in ((0, 1), (1,)):
        one = np.ones((3, 1), np.float32)
        assert not np.shares_memory(kernels.KERNELS["sum"](one, dims, True), one)
