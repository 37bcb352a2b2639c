"""Says why the other tests of this folder did not run, and when kernels are to be built again."""

from __future__ import annotations

import os
from importlib.util import find_spec
from types import SimpleNamespace

import pytest


@pytest.mark.skipif(find_spec("flambeau_native") is None, reason="flambeau-native not installed")
def test_the_extension_was_built():
    if find_spec("flambeau_native._native") is None:
        pytest.skip("flambeau-native was installed without a C compiler: no compiled kernels")
    from flambeau_native.extension import native

    assert native is not None


@pytest.fixture
def sources(tmp_path):
    """A folder of sources, and the module that was just built of them."""
    sources = pytest.importorskip("flambeau_native.sources")
    folder = tmp_path / "csrc"
    folder.mkdir()
    (folder / "a.c").write_text("int a;")
    (folder / "b.h").write_text("int b;")
    library = tmp_path / "module.so"
    library.touch()
    made = SimpleNamespace(__file__=str(library), sources=sources.digest(str(folder)))
    return sources.demand_those_of, made, folder


def _later(folder, name, text):
    (folder / name).write_text(text)
    os.utime(folder / name, (2**32, 2**32))


def test_kernels_older_than_their_sources_are_refused_with_the_command_that_builds_them(sources):
    demand, module, folder = sources
    demand(module, str(folder))
    _later(folder, "b.h", "long b;")
    with pytest.raises(ImportError, match=r"older than the sources.*pip install .*native"):
        demand(module, str(folder))


def test_sources_that_were_written_again_as_they_were_are_no_reason_to_build(sources):
    demand, module, folder = sources
    _later(folder, "b.h", "int b;")
    demand(module, str(folder))
    _later(folder, "c.txt", "no source")
    demand(module, str(folder))


def test_without_sources_beside_them_kernels_are_what_was_installed(sources, tmp_path):
    demand, module, _ = sources
    demand(module, str(tmp_path / "none"))
