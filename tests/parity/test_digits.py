"""The demonstration program trains alike on flambeau and, after changing one line, on PyTorch."""

from __future__ import annotations

import difflib
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "digits.py"
FLAMBEAU = PROGRAM.read_text()
PYTORCH = FLAMBEAU.replace("import flambeau as torch", "import torch")


def load(source: str) -> ModuleType:
    module = ModuleType("digits")
    exec(compile(source, str(PROGRAM), "exec"), module.__dict__)
    return module


def losses(source: str, dtype: str, steps: int, seed: int = 0) -> list[float]:
    digits = load(source)
    model, loader, _, _ = digits.setup(seed, "cpu", getattr(digits.torch, dtype))
    return list(islice(digits.train(model, loader, epochs=12), steps))


def run(folder: Path, *options: str) -> str:
    program = [sys.executable, str(PROGRAM), "--output-dir", str(folder), *options]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=600)
    return done.stdout


def test_the_two_programs_differ_in_one_line():
    changed = [
        line
        for line in difflib.ndiff(FLAMBEAU.splitlines(), PYTORCH.splitlines())
        if line[:2] in ("+ ", "- ")
    ]
    assert changed == ["- import flambeau as torch", "+ import torch"]


def test_initial_weights_and_batches_are_identical():
    states = []
    for source in (FLAMBEAU, PYTORCH):
        digits = load(source)
        model, loader, images, labels = digits.setup(0, "cpu", digits.torch.float32)
        weights = {name: tensor.tolist() for name, tensor in model.state_dict().items()}
        batches = [(x.tolist(), y.tolist()) for x, y in islice(loader, 5)]
        states.append((weights, batches, images.tolist(), labels.tolist()))
    for ours, theirs in zip(*states, strict=True):
        assert ours == theirs


@pytest.mark.parametrize(
    ("dtype", "steps", "tolerance"), [("float64", 100, 1e-6), ("float32", 20, 1e-4)]
)
def test_losses_agree_from_the_first_step_on(dtype, steps, tolerance):
    ours, theirs = (losses(source, dtype, steps) for source in (FLAMBEAU, PYTORCH))
    assert len(ours) == steps
    np.testing.assert_allclose(ours, theirs, rtol=tolerance)


@pytest.mark.slow
def test_the_program_reads_97_percent_of_held_out_digits_and_draws_two_pictures(tmp_path):
    pattern = r"accuracy (\d+\.\d) %; drawing pictures \.\.\.\nthe pictures are in (.+)\n"
    said = re.fullmatch(pattern, run(tmp_path))
    assert said is not None
    assert float(said[1]) >= 97.0
    assert Path(said[2]) == tmp_path.resolve()
    for picture in ("learning_curve.png", "predictions.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")


def test_the_same_seed_gives_the_same_losses_and_another_seed_others():
    first = losses(FLAMBEAU, "float32", 10)
    assert losses(FLAMBEAU, "float32", 10) == first
    assert losses(FLAMBEAU, "float32", 10, seed=1) != first
