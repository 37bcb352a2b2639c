"""The names that programs for PyTorch find beside flambeau's are PyTorch's."""

from __future__ import annotations

import importlib
import inspect
import warnings

import pytest

from flambeau.compat import torch_alias
from flambeau.compat._absent import absent, table
from flambeau.compat._moved import IMPORTED

torch = pytest.importorskip("torch")


def test_absent_names_are_names_of_pytorch():
    for path, names in table().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(path)
        for name in names:
            assert hasattr(module, name), f"{path}.{name}"


def test_absent_exceptions_are_exceptions():
    for path, names in table().items():
        module = importlib.import_module(path)
        for name in names:
            theirs, ours = getattr(module, name), absent(f"{path}.{name}")
            if inspect.isclass(theirs) and issubclass(theirs, BaseException):
                assert issubclass(ours, Exception), f"{path}.{name}"


@pytest.mark.parametrize("below", IMPORTED)
def test_modules_of_python_are_found_where_files_of_pytorch_import_them(below):
    theirs = importlib.import_module(f"torch.{below}")
    with torch_alias():
        ours = importlib.import_module(f"torch.{below}")
        assert ours is not theirs
        for name in IMPORTED[below].split():
            assert getattr(ours, name) is getattr(theirs, name) is importlib.import_module(name)


@pytest.mark.parametrize("tree", [{"a": 1, "b": [2, (3, 4)]}, [], 5, ((1, [2]), {"x": {}})])
def test_trees_are_flattened_as_by_pytorch(tree):
    import torch.utils._pytree as theirs

    with torch_alias():
        import torch.utils._pytree as ours
    flat = theirs.tree_flatten(tree)[0]
    leaves, spec = ours.tree_flatten(tree)
    assert ours is not theirs
    assert leaves == flat and spec.num_leaves == len(flat)
    assert ours.tree_unflatten(leaves, spec) == tree
    double = [lib.tree_map(lambda x: 2 * x, tree) for lib in (ours, theirs)]
    assert double[0] == double[1]


def test_versions_compare_as_in_pytorch():
    from flambeau.compat._torch.torch_version import TorchVersion as Ours

    theirs = torch.torch_version.TorchVersion
    texts = ["1.2.0", "2.13.0", "2.13.0+cpu", "2.13.0a0", "2.9", "2.13.1rc1", "10.0"]
    for a in texts:
        for b in [*texts, (2, 13), (2, 13, 0), (1, 2)]:
            for compare in ("__lt__", "__le__", "__eq__", "__ge__", "__gt__"):
                one, two = (getattr(kind(a), compare)(b) for kind in (Ours, theirs))
                assert one == two, (a, compare, b)
