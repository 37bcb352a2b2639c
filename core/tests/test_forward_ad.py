"""Dual tensors: a derivative in one direction beside every value, which itself has a history."""

from __future__ import annotations

import pytest

import flambeau as fb
from flambeau.autograd import forward_ad


def test_tangents_follow_a_program_and_stay_differentiable():
    x, t = fb.randn(4, 3, dtype=fb.float64), fb.randn(4, 3, dtype=fb.float64)
    weight = fb.randn(3, 2, dtype=fb.float64, requires_grad=True)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual((forward_ad.make_dual(x, t) @ weight).tanh())
    assert fb.allclose(found.tangent, (1 - (x @ weight).tanh() ** 2) * (t @ weight))
    (gradient,) = fb.autograd.grad(found.tangent.sum(), weight)
    (expected,) = fb.autograd.grad(((1 - (x @ weight).tanh() ** 2) * (t @ weight)).sum(), weight)
    assert fb.allclose(gradient, expected)


def test_writes_change_the_tangent_too():
    x = fb.tensor([1.0, 2.0])
    with forward_ad.dual_level():
        y = forward_ad.make_dual(x.clone(), fb.ones(2)).clone()
        y[0] = 5
        y.mul_(3)
        found = forward_ad.unpack_dual(y)
    assert found.primal.tolist() == [15, 6]
    assert found.tangent.tolist() == [0, 3]


def test_what_is_not_dual_has_no_tangent():
    x = fb.ones(2)
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(x) == (x, None)
        assert forward_ad.unpack_dual(fb.zeros(2)).tangent is None
        assert fb.zeros(2)._be is x._be
    assert forward_ad.unpack_dual(x).tangent is None


@forward_ad.dual_level()
def derivative(f, x):
    return forward_ad.unpack_dual(f(forward_ad.make_dual(x, fb.ones_like(x)))).tangent


def test_a_level_may_be_a_decorator():
    assert derivative(lambda x: x**3, fb.tensor(2.0)).item() == 12


def test_misuse_is_refused():
    x = fb.ones(2)
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(x, x)
    with pytest.raises(RuntimeError, match="not the last one"):
        forward_ad.exit_dual_level()
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="Nested"):
            forward_ad.enter_dual_level()
        with pytest.raises(RuntimeError, match="shape"):
            forward_ad.make_dual(x, fb.ones(3))
        with pytest.raises(ValueError, match="floating point"):
            forward_ad.make_dual(fb.ones(2, dtype=fb.int64), x)


def test_libraries_may_ask_whether_there_is_a_level():
    assert forward_ad._current_level == -1
    with forward_ad.dual_level():
        assert forward_ad._current_level == 0
    assert forward_ad._current_level == -1
    with pytest.raises(AttributeError, match="no attribute"):
        forward_ad.missing  # noqa: B018


def test_tangents_of_functions_without_a_rule_are_of_the_level_below():
    x = fb.tensor([[0.2, 0.3], [0.4, 0.1]])
    for function in (fb.matrix_exp, fb.inverse, fb.linalg.slogdet):
        result, tangents = fb.func.jvp(function, (x,), (x,))
        for t in (*result, *tangents):
            assert "GradTrackingTensor" not in repr(t)
