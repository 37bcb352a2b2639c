"""Initial weights: what each filling promises."""

from __future__ import annotations

import math

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn import init


@pytest.mark.parametrize("shape", [(50, 80), (80, 50), (20, 10, 3, 3)], ids=str)
@pytest.mark.parametrize("mode", ["fan_in", "fan_out", "FAN_IN"])
def test_kaiming_fills_have_the_variance_of_their_fan(shape, mode):
    fan_in, fan_out = init._calculate_fan_in_and_fan_out(fb.empty(shape))
    fan = fan_in if mode.lower() == "fan_in" else fan_out
    fb.manual_seed(0)
    for fill in (init.kaiming_uniform_, init.kaiming_normal_):
        w = fill(fb.empty(shape), mode=mode, nonlinearity="relu")
        assert w.std().item() == pytest.approx(math.sqrt(2 / fan), rel=0.1)
        assert w.mean().item() == pytest.approx(0.0, abs=0.1 / math.sqrt(fan) + 0.01)


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="Mode fan_on not supported"):
        init.kaiming_normal_(fb.empty(2, 2), mode="fan_on")


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (4, 2, 3)], ids=str)
def test_orthogonal_rows_or_columns(shape):
    w = init.orthogonal_(fb.empty(shape, dtype=fb.float64), gain=2.0).reshape(shape[0], -1)
    short = w @ w.t() if w.shape[0] <= w.shape[1] else w.t() @ w
    assert (short - 4 * fb.eye(short.shape[0], dtype=fb.float64)).abs().max().item() < 1e-12


@pytest.mark.parametrize(("a", "b"), [(-1.0, 2.0), (0.9, 1.0), (2.5, 3.5)])
def test_truncated_values_stay_within_the_limits(a, b):
    fb.manual_seed(0)
    w = init.trunc_normal_(fb.empty(500), 0.9, 1.0, a, b)
    assert a <= w.min().item() and w.max().item() <= b
    assert w.std().item() > 0


def test_fills_run_on_meta_tensors():
    for fill in (init.trunc_normal_, init.orthogonal_, init.kaiming_uniform_, init.ones_):
        w = fb.empty(3, 3, device="meta")
        assert fill(w) is w


def test_fills_bump_no_graph_and_keep_leaves():
    layer = nn.Linear(3, 3)
    init.zeros_(layer.weight)
    init.dirac_(conv := nn.Conv2d(2, 2, 3).weight)
    assert layer.weight.is_leaf and conv.is_leaf and conv.requires_grad
    assert layer.weight.abs().sum().item() == 0.0


def test_equal_seeds_give_equal_models():
    weights = []
    for _ in range(2):
        fb.manual_seed(42)
        weights.append(nn.utils.parameters_to_vector(nn.Conv2d(3, 8, 3).parameters()).tolist())
    assert weights[0] == weights[1]
