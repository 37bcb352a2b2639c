"""Convolutions and their adjoints over grids of settings, in dtypes that have their own kernels.

The settings of a case are drawn from all combinations of one dimension, so that they differ between
the dimensions.
"""

from __future__ import annotations

import itertools
import random

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from oracle import ours_of  # noqa: E402

SETTINGS = [  # kernel, stride, dilation, padding, output padding
    (k, s, d, p, e)
    for k, s, d, p in itertools.product((1, 2, 3), (1, 2, 3), (1, 2, 4), (0, 1, 2))
    for e in range(max(s, d))
]
TOLERANCE = {"float64": 1e-10, "float32": 2e-5, "bfloat16": 4e-2}


def _of_images(count: int) -> list[tuple[tuple[int, ...], ...]]:
    drawn = random.Random(f"{count} dimensions")
    return [tuple(zip(*drawn.sample(SETTINGS, count), strict=True)) for _ in range(60)]


def _compared(call, operands, dtype, device):
    """Compare the result and all gradients of both libraries."""
    kind = getattr(torch, dtype)
    theirs = [x.to(kind).requires_grad_() for x in operands]
    ours = [ours_of(x, device) for x in theirs]
    expected, found = call(torch, *theirs), call(fb, *ours)
    weights = torch.rand(expected.shape, generator=torch.Generator().manual_seed(1)).to(kind)
    wanted = [expected, *torch.autograd.grad((expected * weights).sum(), theirs)]
    made = [found, *fb.autograd.grad((found * ours_of(weights, device)).sum(), ours)]
    for a, b in zip(made, wanted, strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        values = torch.tensor(a.detach().flatten().tolist(), dtype=kind).reshape(b.shape)
        limit = TOLERANCE[dtype]
        torch.testing.assert_close(values, b.detach(), rtol=limit, atol=limit * 4)


def _refused(call, operands):
    for t, of in ((torch, lambda x: x), (fb, ours_of)):
        with pytest.raises(RuntimeError):
            call(t, *map(of, operands))


def _operands(seed, *shapes):
    numbers = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=numbers, dtype=torch.float64) for shape in shapes]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_transposed_convolutions_over_settings(count, dtype):
    for place, (k, s, d, p, e) in enumerate(_of_images(count)):
        groups = 1 + place % 2
        size = tuple(2 + (place + axis) % 3 for axis in range(count))

        def call(t, x, w, b, how=(s, p, e, groups, d)):
            return getattr(t.nn.functional, f"conv_transpose{count}d")(x, w, b, *how)

        shapes = (2, 4, *size), (4, 2, *k), (2 * groups,)
        operands = _operands(place, *shapes)
        axes = zip(size, s, p, d, k, e, strict=True)
        if min((n - 1) * step - 2 * q + g * (m - 1) + f for n, step, q, g, m, f in axes) < 0:
            _refused(call, operands)
        else:
            _compared(call, operands, dtype, "cpu")


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_convolutions_over_settings(count, dtype):
    for place, (k, s, d, p, _) in enumerate(_of_images(count)):
        groups = 1 + place % 2
        size = tuple(3 + (place + axis) % 4 for axis in range(count))

        def call(t, x, w, b, how=(s, p, d, groups)):
            return getattr(t.nn.functional, f"conv{count}d")(x, w, b, *how)

        shapes = (2, 4, *size), (2 * groups, 4 // groups, *k), (2 * groups,)
        operands = _operands(place, *shapes)
        if any(n + 2 * q < g * (m - 1) + 1 for n, q, g, m in zip(size, p, d, k, strict=True)):
            _refused(call, operands)
        else:
            _compared(call, operands, dtype, "cpu")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_reference_agrees_where_the_output_is_padded_by_a_step_or_more(count):
    def call(t, x, w, b):
        step, extra, spread = ([n] * count for n in (2, 3, 4))
        function = getattr(t.nn.functional, f"conv_transpose{count}d")
        return function(x, w, b, step, 1, extra, 1, spread)

    shapes = (1, 2, *[2] * count), (2, 1, *[2] * count), (1,)
    _compared(call, _operands(0, *shapes), "float64", "ref")


def test_an_output_padded_by_more_than_a_step_has_no_leftover_memory():
    """The case that was found: stride (3, 2), output padding (2, 3), dilation (4, 4), groups 2."""

    def call(t, x, w):
        how = {"stride": (3, 2), "output_padding": (2, 3), "dilation": (4, 4), "groups": 2}
        return t.nn.functional.conv_transpose2d(x, w, **how)

    for dtype in TOLERANCE:
        _compared(call, _operands(0, (1, 4, 3, 3), (4, 1, 2, 2)), dtype, "cpu")
