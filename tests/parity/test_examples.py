"""Each example trains alike on flambeau and, after changing its import line, on PyTorch."""

from __future__ import annotations

import difflib
from itertools import islice
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
# The digits have their own tests: test_digits.py.
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "digits")
LIBRARIES = ("import flambeau as torch", "import torch")
STEPS = 50


def source(name: str, library: str) -> str:
    return (FOLDER / f"{name}.py").read_text().replace(LIBRARIES[0], library)


def load(name: str, library: str) -> ModuleType:
    module = ModuleType(name)
    exec(compile(source(name, library), f"{name}.py", "exec"), module.__dict__)
    return module


def losses(name: str, library: str, seed: int = 0) -> list[float | tuple[float, float]]:
    program = load(name, library)
    return list(islice(program.train(*program.setup(seed, "cpu", program.torch.float64)), STEPS))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_two_programs_differ_in_one_line(name):
    ours, theirs = (source(name, library).splitlines() for library in LIBRARIES)
    changed = [line for line in difflib.ndiff(ours, theirs) if line[:2] in ("+ ", "- ")]
    assert changed == [f"- {LIBRARIES[0]}", f"+ {LIBRARIES[1]}"]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_fifty_losses_agree_from_the_first_step_on(name):
    ours, theirs = (losses(name, library) for library in LIBRARIES)
    assert len(ours) == STEPS
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_initial_weights_are_identical(name):
    states = []
    for library in LIBRARIES:
        program = load(name, library)
        parts = program.setup(0, "cpu", program.torch.float32)
        modules = [part for part in parts if isinstance(part, program.torch.nn.Module)]
        states.append([{k: v.tolist() for k, v in m.state_dict().items()} for m in modules])
    ours, theirs = states
    assert ours
    assert ours == theirs
