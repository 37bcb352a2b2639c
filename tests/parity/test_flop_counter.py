"""Operations counted in networks, against PyTorch's counter."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode as Theirs

import flambeau as fb
from flambeau.compat._torch.utils.flop_counter import FlopCounterMode as Ours


def mlp(m):
    return m.nn.Sequential(m.nn.Linear(6, 5), m.nn.ReLU(), m.nn.Linear(5, 4)), m.ones(3, 6)


def convolutions(m):
    # Of gradients of weights in groups PyTorch counts the products between the groups, too.
    net = m.nn.Sequential(
        m.nn.Conv2d(3, 4, 3, stride=2, padding=1), m.nn.Conv2d(4, 6, 2, dilation=2)
    )
    return net, m.ones(2, 3, 11, 9)


def attention(m):
    return m.nn.MultiheadAttention(8, 2), m.ones(5, 2, 8)


def batched(m):
    class Products(m.nn.Module):
        def forward(self, x):
            return x @ x.mT + m.einsum("bij,bkj->bik", x, x)

    return Products(), m.ones(3, 4, 5)


@pytest.mark.parametrize("net", [mlp, convolutions, attention, batched])
def test_as_many_operations_are_counted_as_by_pytorch(net):
    found = {}
    for m, counter in ((torch, Theirs), (fb, Ours)):
        model, x = net(m)
        # PyTorch's other kernel for CPUs is not counted.
        formula = m.nn.attention.sdpa_kernel(m.nn.attention.SDPBackend.MATH)
        with formula, counter(display=False) as counted:
            model(x, x, x, need_weights=False) if net is attention else model(x)
        forward = counted.get_total_flops()
        x = x.clone().requires_grad_()
        with counter(display=False) as counted:
            out = model(x, x, x) if net is attention else model(x)
            (out[0] if net is attention else out).sum().backward()
        found[m] = forward, counted.get_total_flops()
    assert found[torch] == found[fb] and min(found[fb]) > 0


def test_operations_belong_to_the_modules_that_run_them(capsys):
    tables = []
    for m, counter in ((torch, Theirs), (fb, Ours)):
        model, x = mlp(m)
        with counter(display=False) as counted:
            model(x)
        totals = {name: sum(c.values()) for name, c in counted.get_flop_counts().items()}
        tables.append(totals)
    assert tables[0] == tables[1] == {
        "Global": 300, "Sequential": 300, "Sequential.0": 180, "Sequential.2": 120,
    }  # fmt: skip
    assert "Sequential.2" in counted.get_table() and "linear" in counted.get_table()
