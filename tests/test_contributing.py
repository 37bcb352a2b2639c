"""CONTRIBUTING's op and kernel work as they are shown there, with no other file touched."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
SHOWN = re.compile(r"^```python (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SOURCES = (
    "core/src",
    "backends/cpu_numpy/src",
    "examples/backends",
    "core/tests/contract.json",
    "core/tests/conftest.py",
)
TESTS = "core/tests/test_op_table.py", "core/tests/test_samples.py"

OP = "core/src/flambeau/ops/pointwise/gudermann.py"
KERNELS = "backends/cpu_numpy/src/flambeau_numpy/kernels/hyperbolic.py"
GENERATED = {
    "core/src/flambeau/_api/functions.py",
    "core/src/flambeau/_api/inplace_functions.py",
    "core/src/flambeau/_tensor/methods.py",
    "core/src/flambeau/ops/declaration/formulas.py",
    "core/tests/contract.json",
}

PYTEST = ("-m", "pytest", "-p", "no:cacheprovider")
USE = """
import math
import flambeau as fb
import flambeau_numpy

x = fb.tensor([-3.0, 0.0, 0.5, 20.0], dtype=fb.float64, requires_grad=True)
expected = [math.atan(math.sinh(v)) for v in x.tolist()]
close = lambda found: all(map(math.isclose, found.tolist(), expected))
assert close(fb.gudermann(x)) and close(x.gudermann())
assert "gudermann" in fb.__all__ and "gudermann_" in fb.__all__
assert fb.gudermann(fb.tensor([1, 2])).dtype is fb.float32

for write in (fb.gudermann_, fb.Tensor.gudermann_):
    y = x.clone()
    assert write(y) is y and close(y)
    (gradient,) = fb.autograd.grad(y.sum(), x)
    assert all(map(math.isclose, gradient.tolist(), [1 / math.cosh(v) for v in x.tolist()]))
out = fb.empty(4, dtype=fb.float64)
assert fb.gudermann(x.detach(), out=out) is out and close(out)
assert fb.autograd.gradcheck(fb.gudermann, x) and fb.autograd.gradgradcheck(fb.gudermann, x)

from flambeau._dispatch.bound import bind
from flambeau_numpy.kernels import hyperbolic
assert bind("cpu").kernels["gudermann"] is hyperbolic.gudermann
print("at", fb.__file__, flambeau_numpy.__file__)
"""


pytestmark = pytest.mark.slow


class Tree:
    """A copy of the sources, which its own interpreters import."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in (*SOURCES, *TESTS):
            source, copy = ROOT / name, root / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy)

    def run(self, *arguments: str) -> str:
        """What Python prints for the arguments; it has to succeed."""
        paths = [str(self.root / name) for name in SOURCES[:2]]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONDONTWRITEBYTECODE": "1",
            "FLAMBEAU_BLOCK": "flambeau-native,flambeau-onednn",
        }
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def generate(self) -> None:
        """What ``make generate`` runs."""
        commands = re.search(r"^generate:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
        assert commands
        for line in commands[1].splitlines():
            self.run(*line.split()[1:])

    def files(self) -> dict[str, bytes]:
        """The contents of every file, by its path."""
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("before"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The sources with what CONTRIBUTING shows written where it says, and generated anew."""
    tree = Tree(tmp_path_factory.mktemp("contributed"))
    for name, code in SHOWN.findall(PAGE):
        with (tree.root / name).open("a", encoding="utf-8") as file:
            file.write(code if name == OP else f"\n\n{code}")
    tree.generate()
    return tree


def test_an_op_and_its_kernel_are_two_files_and_the_generated_ones(
    before: Tree, tree: Tree
) -> None:
    assert [name for name, _ in SHOWN.findall(PAGE)] == [OP, KERNELS]
    old, new = before.files(), tree.files()
    assert {n for n in old.keys() | new.keys() if old.get(n) != new.get(n)} == {
        OP,
        KERNELS,
        *GENERATED,
    }


def test_generated_files_gain_lines_and_lose_none(before: Tree, tree: Tree) -> None:
    old, new = before.files(), tree.files()
    for name in GENERATED:
        lines = iter(new[name].splitlines())
        assert all(line in lines for line in old[name].splitlines()), name


def test_the_op_is_function_method_and_in_place_form_with_a_gradient(tree: Tree) -> None:
    printed = tree.run("-c", USE)
    assert all(str(tree.root) in path for path in printed.split()[1:])
    tree.run(*PYTEST, "--doctest-modules", OP)


def test_the_kit_tests_the_op_on_the_reference_and_the_backend(tree: Tree) -> None:
    kit = "--pyargs flambeau.testing.backend -v -k gudermann --device ref --device cpu".split()
    passed = set(re.findall(r"::(test_\w+)\[(\w+)-gudermann-.* PASSED", tree.run(*PYTEST, *kit)))
    gradients = {"test_gradients_are_derivatives", "test_gradients_agree_with_reference"}
    shapes = {"test_an_operand_of_another_shape_is_refused_or_computed_with"}
    kernels = {
        "test_kernels_agree_with_their_decomposition",
        "test_gradients_agree_with_those_of_the_decomposition",
    }
    assert {name for name, device in passed if device == "ref"} == gradients | shapes
    assert {name for name, device in passed if device == "cpu"} >= gradients | kernels | shapes


def test_the_tests_of_the_core_find_nothing_missing(tree: Tree) -> None:
    tree.run(*PYTEST, *TESTS, "-k", "gudermann or names")


def test_a_function_that_the_generated_files_name_may_change_its_name(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    module = tmp_path / "core/src/flambeau/ops/pointwise/hyperbolic.py"
    text = module.read_text(encoding="utf-8")
    module.write_text(text.replace("sinc", "cardinal_sine"), encoding="utf-8")
    tree.generate()
    tree.run("-c", "import flambeau as fb; assert fb.cardinal_sine and fb.Tensor.cardinal_sine_")
