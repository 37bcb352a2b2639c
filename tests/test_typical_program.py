"""The program that type checkers accept is one that runs."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import flambeau as fb

TYPICAL = Path(__file__).with_name("typing") / "typical.py"


def test_the_program_that_both_type_checkers_accept_runs():
    names = runpy.run_path(str(TYPICAL))
    fb.manual_seed(0)
    model = names["Classifier"](8, 3)
    assert all(math.isfinite(loss) for loss in names["train"](model, 2))
    assert names["accuracy"](model, fb.randn(4, 8), fb.zeros(4)) in (0.0, 0.25, 0.5, 0.75, 1.0)
    loss = names["language"](fb.tensor([[1, 2, 3], [4, 5, 6]]))
    assert math.isfinite(loss)
    assert names["kinds"](fb.nn.Conv2d(1, 1, 1)) and not names["kinds"](fb.nn.ReLU())
    assert len(names["sampler"](fb.utils.data.TensorDataset(fb.ones(2)))) == 2
    assert names["as_tensor"]("1 2").equal(names["as_tensor"](fb.tensor([[1.0, 2.0]])))
    assert names["forms"](fb.randn(3, 4)).shape == (2, 4, 6)
