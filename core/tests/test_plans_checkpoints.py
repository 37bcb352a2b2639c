"""Compiled functions within checkpoints: their second run records what the first did."""

import contextlib
import gc
import weakref

import pytest

import flambeau as fb
from flambeau.utils.checkpoint import checkpoint

W = [[0.5, -1.0], [2.0, 0.25]]


class Layer:
    """A function with a weight, a number, and dropout."""

    def __init__(self, leaf, compiled):
        self.by, self.w = 1.0, leaf(W)
        self.run = fb.compile(self._run) if compiled else self._run

    def _run(self, x):
        return fb.nn.functional.dropout((x @ self.w).tanh() * self.by, 0.5)


def trained(leaf, compiled, act, rounds=5):
    """The gradients of some rounds, and the layer."""
    fb.manual_seed(0)
    layer = Layer(leaf, compiled)
    found = []
    for _ in range(rounds):
        x, layer.w.grad = leaf([[1.0, 2.0]]), None
        act(layer, x)
        found.append((layer.w.grad.tolist(), x.grad.tolist()))
    found.append(fb.rand(1).tolist())
    return found, layer


def several(layer, x):
    for _ in range(3):
        x = checkpoint(layer.run, x, use_reentrant=False)
    x.sum().backward()


def reentrant(layer, x):
    for _ in range(3):
        x = checkpoint(layer.run, x, use_reentrant=True)
    x.sum().backward()


def before_and_after(layer, x):
    y = layer.run(x)
    y = y + checkpoint(layer.run, x, use_reentrant=False)
    (y + layer.run(x)).sum().backward()


def nested(layer, x):
    def inner(x):
        return checkpoint(layer.run, x * 1, use_reentrant=False) * 2

    def outer(x):
        return inner(layer.run(inner(x)))

    checkpoint(
        outer, checkpoint(outer, x, use_reentrant=False), use_reentrant=False
    ).sum().backward()


def changed_between(layer, x):
    y = checkpoint(lambda x: layer.run(layer.run(x)), x, use_reentrant=False)
    layer.by = 3.0
    y.sum().backward()
    layer.by = 1.0


def of_gradients(layer, x):
    y = checkpoint(lambda x: layer.run(layer.run(x)), x, use_reentrant=False)
    (g,) = fb.autograd.grad(y.sum(), x, create_graph=True)
    g.square().sum().backward()


def in_blocks(first, second):
    def act(layer, x):
        with first():
            y = checkpoint(lambda x: layer.run(layer.run(x)), x, use_reentrant=False)
        with second():
            y.float().sum().backward()

    return act


def narrow():
    return fb.autocast("cpu", dtype=fb.bfloat16)


@pytest.mark.parametrize(
    "act",
    [
        several,
        reentrant,
        before_and_after,
        nested,
        changed_between,
        in_blocks(contextlib.nullcontext, fb.autograd.detect_anomaly),
        in_blocks(fb.autograd.detect_anomaly, contextlib.nullcontext),
        in_blocks(contextlib.nullcontext, fb.profiler.profile),
        in_blocks(fb.profiler.profile, contextlib.nullcontext),
        in_blocks(narrow, contextlib.nullcontext),
        in_blocks(contextlib.nullcontext, narrow),
    ],
)
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_gradients_are_those_without_plans(leaf, act):
    expected, _ = trained(leaf, False, act)
    found, layer = trained(leaf, True, act)
    assert found == expected
    blocks = act.__qualname__.startswith("in_blocks")
    assert layer.run.explain().replays > 0 or blocks


def test_gradients_of_gradients_are_those_without_plans(leaf):
    expected, _ = trained(leaf, False, of_gradients)
    found, layer = trained(leaf, True, of_gradients)
    for one, other in zip(found, expected, strict=True):  # of which sums are made in other orders
        fb.testing.assert_close(list(map(fb.tensor, one)), list(map(fb.tensor, other)))
    assert layer.run.explain().replays > 0


def test_plans_are_repeated_in_both_runs(leaf):
    _, layer = trained(leaf, True, several, rounds=5)
    assert layer.run.explain().replays == 26  # of 30 calls: the first, a capture, their second runs


def test_arguments_of_plans_between_are_not_kept(leaf):
    layer, seen = Layer(leaf, True), []

    def both(x):
        between = layer.run(x)
        seen.append(weakref.ref(between))
        return layer.run(between)

    for _ in range(4):
        y = checkpoint(both, leaf([[1.0, 2.0]]), use_reentrant=False)
    gc.collect()
    assert seen[-1]() is None
    y.sum().backward()


def test_scripts_in_checkpoints_run_as_they_are(leaf):
    @fb.jit.script
    def squashed(x):
        return (x * 2).tanh() * x

    for _ in range(6):
        for _ in range(20):  # until it has plans
            squashed(leaf([1.0, 2.0]) * 1)
        x = leaf([1.0, 2.0])
        y = checkpoint(squashed, x * 1, use_reentrant=False)
        for _ in range(20):
            squashed(leaf([1.0, 2.0]) * 1)
        y.sum().backward()
        z = leaf([1.0, 2.0])
        ((z * 2).tanh() * z).sum().backward()
        assert x.grad.tolist() == z.grad.tolist()
