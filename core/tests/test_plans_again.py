"""Gradients of gradients of compiled functions that draw random numbers or write to what they hold.

The function runs again for them: with the numbers of the first time, and with no trace left.
"""

import pytest

import flambeau as fb
from flambeau import nn

F = nn.functional
CALLS = 5


def assert_like_eager(make, uses=2):
    """A compiled function has the results, gradients and effects of the function itself."""
    sides = []
    for compiled in (False, True):
        fb.manual_seed(5)
        function, held = make()
        called = fb.compile(function) if compiled else function
        w = fb.randn(6, 6, dtype=fb.float64, requires_grad=True)
        found = []
        for _ in range(CALLS):
            x = fb.randn(4, 6, dtype=fb.float64)
            results = called(x, w)
            other = called(x + 1, w)  # is between, and has to stay as it was
            (g,) = fb.autograd.grad(results.pow(2).sum(), w, create_graph=True)
            second = [
                fb.autograd.grad(g.pow(2).sum(), w, retain_graph=True)[0] for _ in range(uses)
            ]
            other.sum().backward()
            assert w.grad is not None
            found += [results.detach(), g.detach(), *second, w.grad.clone(), fb.rand(3)]
            found += [t.clone().double() for t in held]
            w.grad = None
        sides.append(found)
        if compiled:
            assert called.explain().replays >= CALLS
    fb.testing.assert_close(sides[1], sides[0], rtol=1e-10, atol=1e-12)


def tanh_after(middle):
    return lambda: (lambda x, w: (middle(x @ w) @ w).tanh(), ())


def statistics():
    norm = nn.BatchNorm1d(6).double().requires_grad_(False)
    held = [norm.running_mean, norm.running_var, norm.num_batches_tracked]
    return lambda x, w: norm(F.dropout(x @ w, 0.3)).tanh(), held


def iterated():
    u = fb.ones(6, dtype=fb.float64)

    def normalised(x, w):
        with fb.no_grad():
            u.copy_(F.normalize(w @ u, dim=0))
        v = u.clone()  # the next call writes to it
        return x @ w / (v @ w @ v)

    return normalised, [u]


def replaced():
    noise = fb.zeros(4, 6, dtype=fb.float64)

    def noisy(x, w):
        noise.normal_()
        noise.mul_(2)
        return ((x + noise.clone()) @ w).sin()

    return noisy, [noise]


MAKERS = {
    "dropout": tanh_after(lambda t: F.dropout(t, 0.5)),
    "alpha dropout": tanh_after(lambda t: F.alpha_dropout(t, 0.5, training=True)),
    "rand_like": tanh_after(lambda t: t * fb.rand_like(t)),
    "randn": tanh_after(lambda t: t + fb.randn(4, 6, dtype=fb.float64)),  # one waits of a pair
    "odd randn": tanh_after(lambda t: t * fb.randn(1, dtype=fb.float64)),
    "bernoulli": tanh_after(lambda t: t * fb.bernoulli(t.sigmoid())),
    "two": tanh_after(lambda t: F.dropout(F.dropout(t, 0.2) * 2, 0.4)),
    "batch norm": statistics,
    "iteration": iterated,
    "noise": replaced,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_what_runs_again_draws_the_same_and_leaves_nothing_changed(make):
    assert_like_eager(make)


def test_a_run_again_that_fails_leaves_generators_where_they_were():
    fails = []

    def dropped(x):
        if fails:
            raise ValueError("again")
        return F.dropout(x, 0.5).tanh()

    compiled, x = fb.compile(dropped), fb.randn(8, requires_grad=True)
    y = [compiled(x) for _ in range(3)][-1]
    state = fb.get_rng_state()
    fails.append(1)
    assert compiled.explain().replays == 1
    with pytest.raises(ValueError, match="again"):
        fb.autograd.grad(y.sum(), x, create_graph=True)
    assert fb.equal(fb.get_rng_state(), state)
