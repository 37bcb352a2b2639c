"""Clipping gradients and converting parameters."""

from __future__ import annotations

import math

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn import utils


def with_gradients(*gradients: list[float]) -> list[nn.Parameter]:
    parameters = []
    for gradient in gradients:
        parameter = nn.Parameter(fb.zeros(len(gradient)))
        parameter.grad = fb.tensor(gradient)
        parameters.append(parameter)
    return parameters


@pytest.mark.parametrize(
    ("norm_type", "norm"),
    [(2, 13.0), (1, 19.0), (math.inf, 12.0), ("inf", 12.0)],
)
def test_the_total_norm_is_that_of_one_vector(norm_type, norm):
    parameters = [*with_gradients([3.0, 4.0], [-12.0]), nn.Parameter(fb.ones(2))]
    total = utils.clip_grad_norm_(parameters, norm / 2, norm_type)
    assert total.item() == pytest.approx(norm)
    assert parameters[0].grad.tolist() == pytest.approx([1.5, 2.0], rel=1e-5)
    assert parameters[2].grad is None


def test_short_gradients_are_not_lengthened():
    (parameter,) = with_gradients([0.3, 0.4])
    utils.clip_grad_norm_(parameter, 10.0)
    assert parameter.grad.tolist() == pytest.approx([0.3, 0.4])


def test_no_gradients_have_norm_0():
    assert utils.clip_grad_norm_([nn.Parameter(fb.ones(2))], 1.0).item() == 0.0


def test_an_empty_generator_warns():
    with pytest.warns(UserWarning, match="empty generator"):
        utils.clip_grad_norm_((p for p in []), 1.0)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_non_finite_norms_raise_if_asked(bad):
    parameters = with_gradients([bad, 1.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
    assert not math.isfinite(utils.clip_grad_norm_(parameters, 1.0).item())


def test_values_are_limited_on_both_sides():
    parameters = with_gradients([3.0, -4.0, 0.5])
    utils.clip_grad_value_(parameters, 1)
    assert parameters[0].grad.tolist() == [1.0, -1.0, 0.5]


def test_a_vector_and_back():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    vector = utils.parameters_to_vector(model.parameters())
    assert vector.shape == (13,) and vector.requires_grad
    other = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    utils.vector_to_parameters(vector, other.parameters())
    x = fb.ones(1, 2)
    assert other(x).tolist() == model(x).tolist()
    assert all(p.is_leaf and p.requires_grad for p in other.parameters())


def test_only_tensors_become_parameters():
    with pytest.raises(TypeError, match=r"expected torch.Tensor, but got: list"):
        utils.vector_to_parameters([1.0], [])


def test_parameters_on_two_devices_are_refused():
    with pytest.raises(TypeError, match="different devices"):
        utils.parameters_to_vector([fb.ones(1), fb.ones(1, device="meta")])
