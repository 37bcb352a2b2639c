"""What writes or joins no element has the history that PyTorch gives it."""

from __future__ import annotations

import itertools

import pytest
import torch

import flambeau as fb

WRITES = {
    "scatter": lambda _, x, i, s: x.scatter(0, i, s),
    "scatter add": lambda _, x, i, s: x.scatter_add(0, i, s),
    "scatter_": lambda _, x, i, s: x.clone().scatter_(0, i, s),
    "scatter_add_": lambda _, x, i, s: x.clone().scatter_add_(0, i, s),
    "scatter_reduce sum": lambda _, x, i, s: x.scatter_reduce(0, i, s, "sum"),
    "scatter_reduce prod": lambda _, x, i, s: x.scatter_reduce(0, i, s, "prod"),
    "scatter_reduce mean": lambda _, x, i, s: x.scatter_reduce(0, i, s, "mean"),
    "scatter_reduce amax": lambda _, x, i, s: x.scatter_reduce(0, i, s, "amax", include_self=False),
    "index_add": lambda _, x, i, s: x.index_add(0, i, s),
    "index_copy": lambda _, x, i, s: x.index_copy(0, i, s),
    "index_put": lambda _, x, i, s: x.index_put((i,), s),
    "index_reduce": lambda _, x, i, s: x.index_reduce(0, i, s, "amin"),
    "put": lambda _, x, i, s: x.put(i, s),
    "masked_scatter": lambda m, x, i, s: x.masked_scatter(m.zeros(3, dtype=m.bool), s),
    "cat": lambda m, x, i, s: m.cat([x, s]),
    "cat of matrices": lambda m, x, i, s: m.cat([s, x.reshape(3, 1), x.reshape(3, 1)], 1),
}


def written(library, name, of_x, of_s):
    x = library.tensor([1.0, -0.0, 3.0], requires_grad=of_x)
    s = library.ones(0, requires_grad=of_s)
    y = WRITES[name](library, x, library.zeros(0, dtype=library.int64), s)
    if y.requires_grad:
        y.sum().backward()
    grads = [None if t.grad is None else t.grad.tolist() for t in (x, s)]
    return y.requires_grad, y.tolist(), str(y.tolist()), grads


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("name", WRITES)
def test_writes_of_nothing_have_pytorchs_history(name):
    for flags in itertools.product((True, False), repeat=2):
        assert written(fb, name, *flags) == written(torch, name, *flags)
