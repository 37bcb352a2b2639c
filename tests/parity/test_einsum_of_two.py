"""Equations of two operands, with dots, sizes of 1 and none, and nothing to sum, as PyTorch's."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as fb

SIZES = {"a": 2, "b": 3, "c": 4}


@st.composite
def operands(draw):
    names = draw(st.permutations("abc"))[: draw(st.integers(0, 3))]
    parts = list(names)
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), "...")
    shape = []
    for part in parts:
        if part == "...":
            shape += draw(st.sampled_from([[], [5], [2, 5], [1], [1, 5], [2, 1]]))
        else:
            shape.append(draw(st.sampled_from([SIZES[part]] * 9 + [1, 0])))
    return parts, shape


@settings(max_examples=500, deadline=None)
@given(operands(), operands(), st.randoms(use_true_random=False))
def test_products_of_two(first, second, random):
    (x, one), (y, other) = first, second
    output = [n for n in sorted({*x, *y} - {"..."}) if random.random() < 0.7]
    random.shuffle(output)
    if "..." in x + y and random.random() < 0.9:
        output.insert(random.randint(0, len(output)), "...")
    equation = f"{''.join(x)},{''.join(y)}->{''.join(output)}"
    found = []
    for t in (torch, fb):
        inputs = [
            (t.arange(float(_count(s))).reshape(s) % 7 - 3).requires_grad_() for s in (one, other)
        ]
        try:
            result = t.einsum(equation, *inputs)
        except RuntimeError:
            assert t is torch
            _check_refused(equation, one, other)
            return
        result.sum().backward()
        found.append([list(result.shape), result.tolist(), *[i.grad.tolist() for i in inputs]])
    assert found[1] == found[0]


def _count(shape):
    return torch.zeros(shape).numel()


def _check_refused(equation, one, other):
    with pytest.raises(RuntimeError):
        fb.einsum(equation, fb.zeros(one), fb.zeros(other))
