"""Training steps of the examples as plans: the losses of the program itself, to the last bit."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import flambeau as fb

pytest.importorskip("matplotlib")  # the programs import it, to draw
pytest.importorskip("sklearn")  # they take images from it
pytest.importorskip("tqdm")

FOLDER = Path(__file__).resolve().parents[1] / "examples"
STEPS = 6
ALL = STEPS - 2  # the first step runs as it is, the second is captured

# How many steps are replays. The regression reads values, and sentences have other lengths in each
# batch.
PROGRAMS = {
    "characters": ALL,
    "dcgan": ALL,
    "flow": ALL,
    "regression": 0,
    "style": ALL,
    "super_resolution": ALL,
    "translation": None,
    "vae": ALL,
}


@pytest.fixture(autouse=True)
def same_numbers_afterwards() -> Iterator[None]:
    state = fb.get_rng_state()
    yield
    fb.set_rng_state(state)


def loaded(name: str) -> ModuleType:
    """A program as a module, in which PyTorch's name means this library."""
    spec = importlib.util.spec_from_file_location(f"compiled_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _value(node: ast.expr) -> ast.expr:
    """What ``x.item()`` is asked of, of each part of a tuple."""
    if isinstance(node, ast.Tuple):
        return ast.Tuple([_value(part) for part in node.elts], ast.Load())
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return node.func.value


class _StepOfItsOwn(ast.NodeTransformer):
    """Makes what a loop does up to its ``yield`` a function ``step``, given to ``compiled``."""

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        at = next((i for i, s in enumerate(node.body) if _is_yield(s)), None)
        if at is None:
            return self.generic_visit(node)
        names = [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name) and n.id != "_"]
        end = node.body[at]
        assert isinstance(end, ast.Expr) and isinstance(end.value, ast.Yield) and end.value.value
        step = ast.parse(f"@compiled\ndef step({', '.join(names)}): pass").body[0]
        assert isinstance(step, ast.FunctionDef)
        step.body = [*node.body[:at], ast.Return(_value(end.value.value))]
        call = ast.parse(f"yield step({', '.join(names)})").body
        node.body = [*call, *node.body[at + 1 :]]
        return [step, node]


def _is_yield(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield)


def with_plans(train: Callable, found: list) -> Callable:
    """`train` with its step compiled, which is appended to `found`; it yields tensors."""

    def compiled(step: Callable) -> Callable:
        found.append(fb.compile(step))
        return found[-1]

    tree = _StepOfItsOwn().visit(ast.parse(textwrap.dedent(inspect.getsource(train))))
    names = {**train.__globals__, "compiled": compiled}
    exec(compile(ast.fix_missing_locations(tree), "<with plans>", "exec"), names)
    return names[train.__name__]


def numbers(losses) -> list[float]:
    return [x.item() if isinstance(x, fb.Tensor) else x for x in losses]


@pytest.mark.parametrize("name", PROGRAMS)
def test_losses_of_a_compiled_step_are_those_of_the_program(name):
    example, found = loaded(name), []
    runs = []
    for train in (example.train, with_plans(example.train, found)):
        arguments = example.setup(0, "cpu", fb.float32)
        losses = list(train(*arguments, STEPS))
        runs.append([numbers(x if isinstance(x, tuple) else (x,)) for x in losses])
    assert runs[0] == runs[1] and len(runs[0]) == STEPS
    told, wanted = found[0].explain(), PROGRAMS[name]
    assert told.calls == STEPS
    assert wanted in (None, told.replays), str(told)
    if wanted == 0:
        assert any(why.startswith("values were read") for why in told.reasons)
