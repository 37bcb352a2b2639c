"""On device ``meta`` random tensors are shapes, and no generator is drawn from, as in PyTorch."""

from __future__ import annotations

import pytest

import flambeau as fb

DRAWN = {
    "rand": lambda m: fb.rand(3, 4, device="meta"),
    "randn": lambda m: fb.randn(3, 4, device="meta"),
    "randint": lambda m: fb.randint(5, (3, 4), device="meta"),
    "rand_like": fb.rand_like,
    "normal": lambda m: fb.normal(m, m),
    "bernoulli": fb.bernoulli,
    "poisson": fb.poisson,
    "binomial": lambda m: fb.binomial(m, m),
    "rrelu": lambda m: fb.rrelu(m, training=True),
    "dropout": lambda m: fb.dropout(m, 0.5, True),
    "multinomial": lambda m: fb.multinomial(m, 4),
    "normal_": lambda m: m.normal_(),
    "uniform_": lambda m: m.uniform_(),
    "bernoulli_": lambda m: m.bernoulli_(m),
    "exponential_": lambda m: m.exponential_(),
    "geometric_": lambda m: m.geometric_(0.5),
    "random_": lambda m: m.random_(),
}


@pytest.mark.parametrize("name", DRAWN)
def test_random_functions_give_shapes_on_meta_and_draw_nothing(name):
    before = fb.get_rng_state().tolist()
    drawn = DRAWN[name](fb.empty(3, 4, device="meta"))
    assert (drawn.device.type, tuple(drawn.shape)) == ("meta", (3, 4))
    assert drawn.dtype is (fb.int64 if name in ("randint", "multinomial") else fb.float32)
    assert fb.get_rng_state().tolist() == before


def test_a_module_that_draws_its_parameters_is_made_on_meta():
    with fb.device("meta"):
        drawn = fb.randn(1, 4, 5, requires_grad=True)
        order = fb.randperm(7)
    assert drawn.is_meta and drawn.requires_grad and order.shape == (7,)
