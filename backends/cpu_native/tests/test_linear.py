"""Linear layers of some rows or of a small weight, which `offered.linear` makes in one call."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as fb
from flambeau_native.extension import native
from flambeau_native.kernels.linalg import linear
from flambeau_numpy.extending import offered

pytestmark = pytest.mark.skipif(not native.has_linear(), reason="the processor has no AVX-512")


def numbers(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 7, 16, 33, 64, 200, 1000])
@pytest.mark.parametrize(
    ("depth", "lines"), [(1, 1), (1, 9), (5, 1), (8, 8), (130, 17), (300, 50), (16, 600)]
)
def test_layers_agree_with_float64(rows, depth, lines, biased, threads):
    x, weight, bias = numbers(rows, depth), numbers(lines, depth), numbers(lines)
    wanted = x.astype(np.float64) @ weight.T + bias * biased
    bound = (depth + 2) * 2.0**-24 * (abs(x.astype(np.float64)) @ abs(weight.T) + abs(bias))
    for number in 1, 3:
        threads(number)
        found = linear(x, weight, bias if biased else None)
        assert found.dtype == np.float32
        assert found.shape == (rows, lines)
        assert (abs(found - wanted) <= bound).all()


@pytest.mark.parametrize("outer", [(), (3, 5), (2, 1, 4)])
def test_the_outer_dimensions_of_the_input_are_those_of_the_result(outer):
    x, weight = numbers(*outer, 12), numbers(7, 12)
    found = linear(x, weight, None)
    assert found.shape == (*outer, 7)
    assert found.base is None  # it may become a gradient as it is
    np.testing.assert_allclose(found, x.astype(np.float64) @ weight.T, rtol=1e-5, atol=1e-5)


def test_nan_and_infinity_reach_no_other_sums():
    x, weight = np.ones((20, 40), np.float32), np.ones((30, 40), np.float32)
    x[3, 5], x[19, 39], weight[7, 38] = np.nan, np.inf, -np.inf
    wanted = np.full((20, 30), 40, np.float32)
    wanted[19], wanted[:, 7], wanted[19, 7], wanted[3] = np.inf, -np.inf, np.nan, np.nan
    np.testing.assert_array_equal(linear(x, weight, None), wanted)


X, WEIGHT, BIAS = numbers(20, 12), numbers(7, 12), numbers(7)


@pytest.mark.parametrize(
    "args",
    [
        (X.astype(np.float64), WEIGHT, BIAS),
        (X, WEIGHT.astype(np.float16), BIAS),
        (X, WEIGHT, BIAS.astype(np.float64)),
        (X[:, ::2], WEIGHT[:, :6].copy(), BIAS),
        (X, numbers(12, 7).T, BIAS),
        (X, WEIGHT, numbers(14)[::2]),
        (X, WEIGHT, BIAS[0]),
        (X, WEIGHT[0], None),
        (X, WEIGHT[:, :6].copy(), BIAS),
        (X[:0], WEIGHT, BIAS),
        (X, WEIGHT[:0], BIAS[:0]),
        (X[:, :0].copy(), WEIGHT[:, :0].copy(), BIAS),
        (numbers(7, 256), numbers(100, 256), None),  # BLAS is faster for few rows
        (numbers(15, 256), numbers(300, 256), None),
        (numbers(1000, 512), numbers(300, 512), None),  # and for many
    ],
    ids=range(15),
)
def test_what_others_do_better_is_left_to_them(args):
    assert linear(*args) is None


def test_layers_on_cpu_are_made_here(monkeypatch):
    made = []

    def counted(x, weight, bias):
        made.append(x.shape)
        return linear(x, weight, bias)

    fb.ones(1)  # the device is in use, so the kernels are registered
    monkeypatch.setattr(offered, "linear", counted)
    layer = fb.nn.Linear(12, 7)
    x = fb.randn(20, 12)
    found = layer(x)
    assert made == [(20, 12)]
    monkeypatch.setattr(offered, "linear", None)
    fb.testing.assert_close(found, layer(x))
    assert found.grad_fn is not None


@pytest.mark.parametrize("bias", [None, "row-major", "expanded", "strided"])
@pytest.mark.parametrize(
    "shape", [(4, 8), (8,), (2, 3, 8), (0, 8), (1, 8), (600, 8), (4, 0)], ids=str
)
def test_layers_in_plans_give_the_bits_of_layers(shape, bias):
    depth = shape[-1]
    weights = [fb.randn(16, depth), fb.randn(depth, 16).t(), fb.randn(16, 2 * depth)[:, ::2]]
    weights += [fb.randn(1, depth).expand(16, depth), fb.randn(0, depth), fb.randn(300, depth)]
    for weight in weights:
        lines = weight.shape[0]
        b = {
            None: None,
            "row-major": fb.randn(lines),
            "expanded": fb.randn(1).expand(lines),
            "strided": fb.randn(2 * lines)[::2],
        }[bias]
        for x in (fb.randn(shape), fb.randn(*shape, 2)[..., 0]):
            for kind in (fb.float32, fb.float64, fb.bfloat16):
                given = [t if t is None else t.to(kind) for t in (x, weight, b)]
                compiled = fb.compile(lambda *given: fb.nn.functional.linear(*given))
                wanted = fb.nn.functional.linear(*given)
                for _ in range(4):
                    assert fb.equal(compiled(*given), wanted)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("rows", "lines", "depth"),
    [(1, 5, 3), (32, 63, 64), (32, 64, 64), (32, 65, 64), (64, 64, 20), (65, 64, 20), (7, 31, 200)],
)
def test_layers_with_relu_in_plans_give_the_bits_of_both(rows, lines, depth, bias):
    layer = fb.nn.Linear(depth, lines, bias=bias).requires_grad_(False)
    compiled = fb.compile(lambda x: layer(x).relu())
    x = fb.randn(rows, depth)
    x[0] = 0.0
    if rows > 1:
        x[1] = fb.nan
        x[2] = fb.inf
    layer.weight[0] = -0.0
    layer.weight[1] = -fb.inf
    if bias:
        layer.bias[:2] = -0.0
    for given in (x, -x, x.abs(), x * 1e-38):
        expected = layer(given).relu().numpy().tobytes()
        for _ in range(4):
            assert compiled(given).numpy().tobytes() == expected
    assert "linear(" in compiled.explain().text


def test_a_layer_that_others_read_beside_its_relu_stays():
    layer = fb.nn.Linear(4, 3).requires_grad_(False)

    def both(x):
        y = layer(x)
        return y.relu(), y

    compiled, x = fb.compile(both), fb.randn(2, 4)
    for _ in range(4):
        assert all(map(fb.equal, compiled(x), both(x)))
