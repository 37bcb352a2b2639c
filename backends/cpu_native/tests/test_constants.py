"""Arrays of equal numbers in plans: made once where nobody writes to them or gets hold of them."""

from __future__ import annotations

from typing import Any

import plans_agree
import pytest
from plans_agree import ops_of

import flambeau as fb


def state(x: fb.Tensor) -> fb.Tensor:
    h = fb.zeros(2, 3, 4)
    return (x + h[1]).tanh() * h[0].view(3, 4).exp()


def summed(x: fb.Tensor) -> fb.Tensor:
    x = x.detach().requires_grad_()
    (x * x).exp().sum().backward()
    assert x.grad is not None
    return x.grad * 1


def written(x: fb.Tensor) -> fb.Tensor:
    h = fb.zeros(2, 3, 4)
    h += x
    return h * 1


def written_by_a_view(x: fb.Tensor) -> fb.Tensor:
    h = fb.ones(2, 3, 4)
    before = h * 2
    h[1].view(12).add_(x.view(12))
    return h[0] + h[1] + before


def written_beside_a_view(x: fb.Tensor) -> fb.Tensor:
    h = fb.ones(2, 3, 4)
    row = h[0]
    h[0].mul_(x)
    return row + x


def filled_at_random(x: fb.Tensor) -> fb.Tensor:
    h = fb.zeros(3, 4)
    h.uniform_()
    return h + x


def large(x: fb.Tensor) -> fb.Tensor:
    return fb.full((1000, 3, 4), 0.5) + x


@pytest.mark.parametrize("function", [state, summed])
def test_equal_numbers_are_made_once(function: Any, programs: list[Any]) -> None:
    x = fb.randn(3, 4)
    plans_agree.agree(lambda x: [function(x)], x)
    assert "full" not in ops_of(programs)
    assert "slice" not in ops_of(programs)


@pytest.mark.parametrize(
    "function", [written, written_by_a_view, written_beside_a_view, filled_at_random, large]
)
def test_what_is_written_to_is_what_it_was_in_every_run(function: Any, programs: list[Any]) -> None:
    compiled, x = fb.compile(function), fb.randn(3, 4)
    for _ in range(6):
        fb.manual_seed(0)
        expected = function(x)
        fb.manual_seed(0)
        assert fb.equal(compiled(x), expected)
    assert compiled.explain().replays == 4
    assert ("full" in ops_of(programs)) is (function is written_by_a_view)


@pytest.mark.parametrize("part", [lambda h: h, lambda h: h[0], lambda h: h.view(6).detach()[1:]])
def test_what_is_returned_is_made_in_every_run(part: Any) -> None:
    def function(x: fb.Tensor) -> Any:
        h = fb.zeros(2, 3)
        return x + h, part(h)

    compiled, x = fb.compile(function), fb.ones(2, 3)
    for _ in range(6):
        found, held = compiled(x)
        assert fb.equal(found, x)
        assert not held.any()
        held.add_(1)


def test_a_gradient_of_ones_is_made_in_every_run() -> None:
    x = fb.ones(3, requires_grad=True)

    @fb.compile
    def step() -> None:
        x.grad = None
        x.sum().backward()

    for _ in range(6):
        step()
        assert x.grad is not None
        assert x.grad.tolist() == [1.0] * 3
        x.grad.add_(1)
    assert step.explain().replays == 4
