"""Products of two matrices by one call of `offered.matrices`."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as fb
from flambeau_native.extension import native
from flambeau_native.kernels.linalg import linear, matrices
from flambeau_numpy.extending import offered

pytestmark = pytest.mark.skipif(not native.has_linear(), reason="the processor has no AVX-512")


def numbers(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def product(a, b, a_turned=False, b_turned=False, line=None, relu=0):
    """a @ b + line by the compiled function, however small; operands are stored as is said."""
    (rows, depth), columns = a.shape, b.shape[1]
    out = np.full((rows, columns), 7, np.float32)
    left, right = (
        np.ascontiguousarray(x.T if turned else x) for x, turned in ((a, a_turned), (b, b_turned))
    )
    native.matrices(out, left, right, line, rows, columns, depth, a_turned, b_turned, relu)
    return out


LAYOUTS = [(False, False), (True, False), (False, True), (True, True)]


@pytest.mark.parametrize("rows", [1, 3, 6, 13, 47, 200])
@pytest.mark.parametrize("columns", [1, 15, 16, 33, 64, 100, 130, 200])
@pytest.mark.parametrize("depth", [1, 2, 64, 129, 300])
def test_products_agree_with_float64_and_every_layout_and_thread_gives_the_same_bits(
    rows, columns, depth, threads
):
    a, b = numbers(rows, depth), numbers(depth, columns)
    wanted = a.astype(np.float64) @ b
    bound = (depth + 2) * 2.0**-24 * (abs(a.astype(np.float64)) @ abs(b))
    threads(1)
    first = product(a, b)
    assert (abs(first - wanted) <= bound).all()
    for layout in LAYOUTS:
        for number in 1, 3:
            threads(number)
            np.testing.assert_array_equal(product(a, b, *layout), first)


def test_large_products_are_divided_and_have_the_same_bits(threads):
    a, b = numbers(150, 300), numbers(300, 170)
    threads(1)
    first = product(a, b)
    for number in 2, 3, 7, 64:
        threads(number)
        for layout in LAYOUTS:
            np.testing.assert_array_equal(product(a, b, *layout), first)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("rows", "depth", "columns"), [(7, 5, 9), (40, 700, 100), (13, 0, 20)])
def test_lines_are_added_to_sums_that_are_over_and_relu_comes_last(rows, depth, columns, layout):
    a, b, line = numbers(rows, depth), numbers(depth, columns), numbers(columns)
    line[0], line[1] = np.nan, -0.0
    a[0] = 0
    wanted = product(a, b, *layout) + line
    np.testing.assert_array_equal(product(a, b, *layout, line), wanted)
    for relu, zero in ((1, np.float32(-0.0)), (2, np.float32(0))):
        found = product(a, b, *layout, line, relu)
        positive = np.where(wanted < 0, np.float32(0), wanted) + zero
        np.testing.assert_array_equal(found.view(np.int32), positive.view(np.int32))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("depth", [511, 512, 513, 1025])
def test_blocks_of_the_depth_leave_no_trace(depth, layout):
    a, b = numbers(9, depth), numbers(depth, 70)
    sums = np.zeros((9, 70), np.float32)
    for k in range(depth):  # multiply-adds, rounded once
        exact = a[:, k : k + 1].astype(np.float64) * b[k] + sums
        sums = exact.astype(np.float32)
    found = product(a, b, *layout)
    assert (abs(found - sums) <= 2.0**-23 * abs(sums)).mean() > 0.9
    np.testing.assert_array_equal(found[:, :16], product(a, b[:, :16].copy(), *layout))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nan_and_infinity_reach_no_other_sums(layout):
    a, b = np.ones((20, 140), np.float32), np.ones((140, 30), np.float32)
    a[3, 5], a[19, 139], b[138, 7] = np.nan, np.inf, -np.inf
    wanted = np.full((20, 30), 140, np.float32)
    wanted[19], wanted[:, 7], wanted[19, 7], wanted[3] = np.inf, -np.inf, np.nan, np.nan
    np.testing.assert_array_equal(product(a, b, *layout), wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 4), (0, 0, 0)])
def test_of_empty_matrices_the_product_is_zero(shape, layout):
    rows, depth, columns = shape
    assert (product(numbers(rows, depth), numbers(depth, columns), *layout) == 0).all()


def test_subnormal_sums_and_signed_zeros_are_those_of_the_terms_in_order():
    tiny, less = np.full((4, 2), 2.0**-74, np.float32), np.full((2, 4), 2.0**-75, np.float32)
    np.testing.assert_array_equal(product(tiny, less), np.full((4, 4), 2.0**-148, np.float32))
    zeros = -np.zeros((4, 3), np.float32)
    assert not np.signbit(product(zeros, np.ones((3, 4), np.float32))).any()  # as of 0 + -0


A, B, OUT = numbers(120, 100), numbers(100, 128), np.zeros((120, 128), np.float32)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (A, B),
        (np.asfortranarray(A), B),
        (A, np.asfortranarray(B)),
        (np.asfortranarray(A), np.asfortranarray(B)),
        (numbers(20, 60), np.asfortranarray(numbers(60, 100))),  # OpenBLAS copies turned ones
    ],
    ids=range(5),
)
def test_matrices_without_gaps_are_multiplied_here(a, b):
    out = np.full((len(a), b.shape[1]), 7, np.float32)
    assert matrices(a, b, out)
    np.testing.assert_allclose(out, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("a", "b", "out"),
    [
        (A.astype(np.float64), B, OUT),
        (A, B.astype(np.float64), OUT),
        (A, B, OUT.astype(np.float64)),
        (A.astype(np.float16), B, OUT),
        (numbers(120, 200)[:, ::2], B, OUT),
        (A, numbers(100, 256)[:, ::2], OUT),
        (A, B, np.zeros((120, 256), np.float32)[:, ::2]),
        (A, B, np.asfortranarray(OUT)),
        (A, B, np.zeros((120, 127), np.float32)),
        (A[:, :99].copy(), B, OUT),
        (A, numbers(1, 128)[np.zeros(100, int)][:, :0], np.zeros((120, 0), np.float32)),
        (np.broadcast_to(A[:1], A.shape), B, OUT),
        (numbers(3, 2000), numbers(2000, 400), np.zeros((3, 400), np.float32)),  # few rows
        (
            numbers(600, 200),
            numbers(200, 17),
            np.zeros((600, 17), np.float32),
        ),  # two vectors, one full
        (numbers(64, 64), numbers(64, 64), np.zeros((64, 64), np.float32)),  # BLAS copies nothing
        (numbers(520, 520), numbers(520, 520), np.zeros((520, 520), np.float32)),
        (numbers(32, 800), numbers(800, 800), np.zeros((32, 800), np.float32)),  # copied for little
        # Lines of the first meet in few places of a cache.
        (np.asfortranarray(numbers(1024, 300)), numbers(300, 64), np.zeros((1024, 64), np.float32)),
    ],
    ids=range(18),
)
def test_what_others_do_better_is_left_to_them(a, b, out):
    before = out.copy()
    assert not matrices(a, b, out)
    np.testing.assert_array_equal(out, before)


@pytest.mark.parametrize("line", [numbers(127), numbers(256)[::2], numbers(128).astype(float)])
def test_lines_that_do_not_fit_are_left_to_others(line):
    out = np.full((120, 128), 7, np.float32)
    assert not matrices(A, B, out, line)
    assert (out == 7).all()


@pytest.mark.parametrize("turned", [False, True])
def test_lines_and_relu_are_added_to_what_is_offered(turned):
    b, line = np.asfortranarray(B) if turned else B, numbers(128)
    plain, more = np.empty((2, 120, 128), np.float32)
    assert matrices(A, b, plain)
    assert matrices(A, b, more, line, True)
    np.testing.assert_array_equal(more, np.maximum(plain + line, 0))


def test_products_on_cpu_are_made_here(monkeypatch):
    made = []

    def counted(a, b, out, *more):
        done = matrices(a, b, out, *more)
        made.append((a.shape, b.shape, done))
        return done

    a, b = fb.randn(120, 100, requires_grad=True), fb.randn(100, 128, requires_grad=True)
    grad = fb.randn(120, 128)
    monkeypatch.setattr(offered, "matrices", counted)
    (a @ b).backward(grad)
    assert made == [
        ((120, 100), (100, 128), True),
        ((120, 128), (128, 100), True),
        ((100, 120), (120, 128), True),
    ]
    monkeypatch.setattr(offered, "matrices", None)
    left, right = (t.detach().requires_grad_() for t in (a, b))
    (left @ right).backward(grad)
    fb.testing.assert_close(left.grad, a.grad)
    fb.testing.assert_close(right.grad, b.grad)


def test_a_layer_without_bias_is_the_product():
    x, weight = numbers(200, 100), numbers(96, 100)
    np.testing.assert_array_equal(linear(x, weight, None), product(x, weight.T.copy()))


def laid_out(t, kind):
    """Equal numbers that lie otherwise: in a transpose, or beside others."""
    if kind == "columns":
        return t.mT.contiguous().mT
    return fb.cat((t, t), -1)[..., : t.shape[-1]] if kind == "part" else t


@pytest.mark.parametrize("left", ["rows", "columns", "part"])
@pytest.mark.parametrize("right", ["rows", "columns", "part"])
@pytest.mark.parametrize(
    ("shape", "columns"),
    [
        ((160, 100), 64),
        ((20, 8, 100), 64),
        ((2, 3, 40, 64), 200),
        ((5, 500), 512),
        ((200, 300), 200),
        ((100, 64), 200),
        ((6, 9), 16),
        ((5000, 1), 16),
        ((300,), 32),
        ((3, 5000), 16),
        ((1, 5000), 300),
        ((0, 5000), 16),
        ((20, 512), 300),
        ((130, 600), 700),
        ((640, 200), 192),
        ((40, 700), 400),
        ((12, 1000), 1000),
        ((1024, 260), 100),
    ],
)
def test_products_of_plans_have_the_bits_of_the_kernel(left, right, shape, columns, threads):
    threads(1)
    a, b = fb.randn(shape), fb.randn(shape[-1], columns)
    a = laid_out(a, left) if len(shape) > 1 else a
    b = laid_out(b, right)
    weight, line = laid_out(fb.randn(columns, shape[-1]), right), fb.randn(columns)

    def layers(a):
        found = a @ b, fb.nn.functional.linear(a, weight).relu(), a.mT @ a if a.ndim == 2 else a
        rows = a.reshape(-1, a.shape[-1])
        return *found, fb.addmm(line, rows, b), fb.addmm(line, rows, b, beta=2)

    compiled = fb.compile(layers)
    wanted = layers(a)
    for _ in range(3):
        for found, one in zip(compiled(a), wanted, strict=True):
            assert found.shape == one.shape
            assert found.stride() == one.stride()
            assert found.numpy().tobytes() == one.numpy().tobytes()
    assert compiled.explain().replays == 1


def test_plans_ask_nothing_of_matrices_that_suit(monkeypatch):
    asked = []
    monkeypatch.setattr(offered, "matrices", lambda *args: asked.append(args) or matrices(*args))
    a, b = fb.randn(160, 100), fb.randn(100, 64)
    for offers, times in ((offered.matrices, 4), (matrices, 0)):
        monkeypatch.setattr(offered, "matrices", offers)
        compiled = fb.compile(fb.matmul)
        for _ in range(2):
            compiled(a, b)
        asked.clear()
        for _ in range(4):
            compiled(a, b)
        assert len(asked) == times
