"""Matrix products by oneDNN against float64, and what is left to NumPy."""

from __future__ import annotations

import gc
import os
from typing import Any

import numpy as np
import pytest

import flambeau as fb
from flambeau.plugin.host import host
from flambeau_numpy import products
from flambeau_numpy.dtypes import BFLOAT16
from flambeau_numpy.extending import offered
from flambeau_numpy.kernels import KERNELS as NUMPY
from flambeau_numpy.kernels import linalg as general
from flambeau_onednn.kernels import linalg
from flambeau_onednn.library import onednn
from flambeau_onednn.runs import Plans
from flambeau_onednn.threads import limited

pytestmark = pytest.mark.skipif(
    not linalg.KERNELS, reason="on other processors than x86-64 products are NumPy's"
)

RANDOM = np.random.default_rng(0)
FLOAT32, FLOAT16 = np.dtype(np.float32), np.dtype(np.float16)
DTYPES = [FLOAT32, BFLOAT16, FLOAT16]
EPS = {FLOAT32: 2e-6, BFLOAT16: 4e-3, FLOAT16: 5e-4}
"""Of the sum of the sizes of the terms; a rounding to a 16-bit float is 2⁻⁸ or 2⁻¹¹ at most."""

LEAST = {FLOAT32: 1e-30, BFLOAT16: 1e-30, FLOAT16: 2.0**-24}
"""Errors that count as none: float16 has no smaller numbers."""

SHAPES = [(1, 1, 1), (2, 3, 2), (5, 1, 7), (1, 40, 33), (40, 33, 1), (17, 65, 31), (64, 784, 10)]
LAYOUTS = ("rows", "columns", "padded", "padded columns", "backwards", "steps", "repeated")


def draw(*shape: int, dtype: Any = FLOAT32) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(dtype)


def laid(a: np.ndarray, layout: str) -> np.ndarray:
    """The last two dimensions of `a` in another layout; "repeated" has other values."""
    if layout == "columns":
        return np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout.startswith("padded"):
        width = [(0, 0)] * (a.ndim - 2) + [(2, 1), (1, 3)]
        inner = (..., slice(2, -1), slice(1, -3))
        padded = np.pad(a.astype(np.float64), width, constant_values=np.nan).astype(a.dtype)
        return laid(padded, layout[7:])[inner]
    if layout == "backwards":
        return np.ascontiguousarray(a[..., ::-1, ::-1])[..., ::-1, ::-1]
    if layout == "steps":
        return np.repeat(np.repeat(a, 2, -1), 3, -2)[..., ::3, ::2]
    if layout == "repeated":
        return np.broadcast_to(a[..., :1, :], a.shape)
    return a


def close(found: np.ndarray, wanted: np.ndarray, scale: np.ndarray, dtype: np.dtype) -> None:
    assert found.dtype == dtype
    assert found.shape == wanted.shape
    error = abs(found.astype(np.float64) - wanted)
    assert (error <= EPS[dtype] * scale + LEAST[dtype]).all(), (error / scale).max()


def check_matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    before = a.copy(), b.copy()
    found = np.asarray(linalg.matmul(a, b))
    wide = a.astype(np.float64), b.astype(np.float64)
    close(found, np.matmul(*wide), np.matmul(*map(abs, wide)), a.dtype)
    np.testing.assert_array_equal(a, before[0])
    np.testing.assert_array_equal(b, before[1])
    return found


@pytest.fixture(autouse=True, params=["compiled threads", "Python's threads"])
def parts(monkeypatch, request):
    """Whose threads compute the parts of a float32 product."""
    sgemm = None
    if request.param == "compiled threads":
        native = pytest.importorskip("flambeau_native.extension").native
        if native is None:
            pytest.skip("flambeau-native was installed without a compiler")
        sgemm = native.sgemm
    monkeypatch.setattr(offered, "sgemm", sgemm)
    for asked_first in "linear", "matrices":
        monkeypatch.setattr(offered, asked_first, None)
    return request.param


@pytest.fixture
def everything(monkeypatch):
    """oneDNN is asked for products of any size; those by its `sgemm` are counted."""
    for name in ("few", "pair"):  # of another package that is installed
        monkeypatch.setattr(general.offered, name, None)
    monkeypatch.setattr(linalg, "LEAST", 0)
    monkeypatch.setattr(linalg, "LEAST_HALF", 0)
    with monkeypatch.context() as small:
        small.setattr(general, "SMALL", 0)
        matmul = general.make_matmul(linalg._large_matmul, linalg._half_matmul)
        linear = general.make_linear(linalg._any_linear)
    monkeypatch.setattr(linalg, "matmul", matmul)
    monkeypatch.setattr(linalg, "linear", linear)
    made: list[int] = []
    whole = linalg._sum

    def counted(*arguments: Any, **options: Any) -> np.ndarray:
        made.append(1)
        return whole(*arguments, **options)

    monkeypatch.setattr(linalg, "_sum", counted)
    return made


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_agree_with_float64_in_every_layout(everything, shape, dtype):
    rows, depth, columns = shape
    for left in LAYOUTS:
        for right in LAYOUTS:
            a = laid(draw(rows, depth, dtype=dtype), left)
            b = laid(draw(depth, columns, dtype=dtype), right)
            assert check_matmul(a, b).flags.c_contiguous
    if dtype == FLOAT32:
        expected = len(LAYOUTS) ** 2 if rows > 1 < columns and depth > 1 else 0
        assert len(everything) == expected


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_large_products_agree_with_float64(dtype):
    for a, b in (
        (draw(130, 300, dtype=dtype), draw(300, 210, dtype=dtype)),
        (draw(300, 130, dtype=dtype).T, draw(300, 210, dtype=dtype)),  # of a weight's gradient
        (draw(3, 50, 300, dtype=dtype), draw(300, 210, dtype=dtype)),
        (draw(50, 3, 300, dtype=dtype).swapaxes(0, 1), draw(210, 300, dtype=dtype).T),
    ):
        check_matmul(a, b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((7,), (7,)),
        ((7,), (7, 5)),
        ((5, 7), (7,)),
        ((7,), (2, 3, 7, 5)),
        ((2, 3, 5, 7), (7,)),
        ((2, 3, 5, 7), (7, 4)),
        ((5, 7), (2, 3, 7, 4)),
        ((3, 5, 7), (3, 7, 4)),
        ((1, 5, 7), (3, 7, 4)),
        ((2, 1, 5, 7), (3, 7, 4)),
        ((2, 1, 5, 1), (3, 1, 4)),
        ((*(1,) * 11, 5, 7), (7, 4)),
        ((*(2,) * 6, *(1,) * 5, 5, 7), (*(1,) * 11, 7, 4)),
    ],
    ids=str,
)
def test_vectors_batches_and_broadcasting_agree_with_float64(everything, a, b, dtype):
    check_matmul(draw(*a, dtype=dtype), draw(*b, dtype=dtype))
    if len(a) > 2 and len(b) > 2:
        check_matmul(laid(draw(*a, dtype=dtype), "columns"), laid(draw(*b, dtype=dtype), "columns"))


@pytest.mark.parametrize("dtype", [*DTYPES, np.dtype(np.float64), np.dtype(np.int32)], ids=str)
@pytest.mark.parametrize(
    ("a", "b"),
    [((0, 3), (3, 4)), ((3, 0), (0, 4)), ((3, 4), (4, 0)), ((0, 3, 4), (4, 5)), ((0,), (0,))],
)
def test_empty_operands_give_zeros_or_nothing(everything, a, b, dtype):
    found = np.asarray(linalg.matmul(np.ones(a, dtype), np.ones(b, dtype)))
    np.testing.assert_array_equal(found, np.matmul(np.ones(a), np.ones(b)).astype(dtype))
    assert found.dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_shapes_that_do_not_fit_are_errors(everything, dtype):
    for a, b in (((40, 50), (60, 70)), ((40, 1), (40, 70)), ((9, 40, 50), (60, 70))):
        x, y = np.ones(a, dtype), np.ones(b, dtype)
        with pytest.raises(ValueError, match="match|broadcast|size"):
            linalg.matmul(x, y)
        with pytest.raises(ValueError, match="match|broadcast|size|reshape"):
            linalg.linear(x, y.T, None)
        if x.ndim == 2:
            with pytest.raises(ValueError, match="match|broadcast|size"):
                linalg.addmm(y[0], x, y, 1, 1)
    assert not everything


@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.int32, np.bool_])
def test_other_dtypes_are_left_to_numpy(everything, dtype):
    a, b = draw(70, 80).astype(dtype), draw(80, 90).astype(dtype)
    np.testing.assert_array_equal(linalg.matmul(a, b), NUMPY["matmul"](a, b))
    np.testing.assert_array_equal(linalg.linear(a, b.T, b[0]), NUMPY["linear"](a, b.T, b[0]))
    np.testing.assert_array_equal(linalg.addmm(b[0], a, b, 2, 3), NUMPY["addmm"](b[0], a, b, 2, 3))
    assert not everything


def test_elements_off_their_alignment_are_read_as_they_are(everything):
    a, b = draw(20, 30), draw(30, 40)
    memory = np.zeros(a.nbytes + 1, np.uint8)
    memory[1:] = np.frombuffer(a.tobytes(), np.uint8)
    odd = memory[1:].view(FLOAT32).reshape(a.shape)
    assert not odd.flags.aligned
    records = np.zeros((20, 30), np.dtype([("a", np.uint8), ("b", FLOAT32)]))
    records["b"] = a
    for x in (odd, records["b"]):
        np.testing.assert_array_equal(linalg.matmul(x, b), linalg.matmul(a, b))
    a.flags.writeable = False
    check_matmul(a, b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shift", [None, (), (50,)], ids=str)
@pytest.mark.parametrize("rows", [(1,), (33,), (4, 9), (300,)], ids=str)
def test_linear_agrees_with_float64(everything, rows, shift, dtype):
    x, weight = draw(*rows, 140, dtype=dtype), draw(50, 140, dtype=dtype)
    bias = None if shift is None else draw(*shift, dtype=dtype) if shift else x[(0,) * x.ndim]
    bias = None if bias is None else np.asarray(bias)
    for weight_layout in ("rows", "columns", "padded"):
        found = linalg.linear(x, laid(weight, weight_layout), bias)
        wide = [np.asarray(a, np.float64) for a in (x, weight, 0.0 if bias is None else bias)]
        scale = abs(wide[0]) @ abs(wide[1]).T + abs(wide[2])
        close(found, wide[0] @ wide[1].T + wide[2], scale, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shift", [(), (50,), (33, 1), (33, 50)], ids=str)
@pytest.mark.parametrize(
    ("beta", "alpha"), [(1, 1), (0, 1), (1, 2.5), (-0.5, 1), (3, -2), (0, 0.25)]
)
def test_addmm_agrees_with_float64(everything, beta, alpha, shift, dtype):
    added, a, b = np.asarray(draw(*shift, dtype=dtype) if shift else dtype.type(2)), None, None
    a, b = draw(33, 40, dtype=dtype), draw(40, 50, dtype=dtype)
    before = added.copy()
    found = linalg.addmm(added, a, b, beta, alpha)
    wide = [x.astype(np.float64) for x in (added, a, b)]
    wanted = np.broadcast_to(beta * wide[0], (33, 50)) + alpha * (wide[1] @ wide[2])
    scale = abs(beta * wide[0]) + abs(alpha) * (abs(wide[1]) @ abs(wide[2]))
    close(found, wanted, scale, dtype)
    np.testing.assert_array_equal(added, before)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_is_added_does_not_count_with_beta_0(everything, dtype):
    a, b = draw(33, 40, dtype=dtype), draw(40, 50, dtype=dtype)
    nothing = np.full((33, 50), np.nan, dtype)
    for alpha in (1, 2):
        assert np.isfinite(linalg.addmm(nothing, a, b, 0, alpha).astype(np.float64)).all()
    assert np.isnan(linalg.addmm(nothing, a, b, 1, 1).astype(np.float64)).all()


def test_nan_counts_with_alpha_0_and_factors_beyond_float32_are_infinite(everything):
    a, b, zero = draw(33, 40), draw(40, 50), np.zeros((), np.float32)
    found = linalg.addmm(zero, abs(a), abs(b), 1, 1e39)
    assert np.isposinf(found).all()
    a[3, 5] = np.nan
    found = linalg.addmm(zero, a, b, 1, 0)
    assert np.isnan(found[3]).all()
    assert (np.delete(found, 3, 0) == 0).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nan_and_infinity_reach_their_row_or_column_and_no_other(dtype):
    # Results of memory that held NaN before: nothing of it may remain.
    a, b = np.ones((200, 150), dtype), np.ones((150, 190), dtype)
    for _ in range(3):
        rubbish = linalg.matmul(np.full_like(a, np.nan), b)
        assert np.isnan(rubbish.astype(np.float64)).all()
        del rubbish
    a[7, 3], b[9, 11], b[10, 12], b[11, 12] = np.nan, np.inf, np.inf, -np.inf
    found = linalg.matmul(a, b).astype(np.float64)
    wanted = np.full((200, 190), 150.0)
    wanted[:, 11], wanted[:, 12], wanted[7] = np.inf, np.nan, np.nan
    np.testing.assert_array_equal(found, wanted)


def test_small_products_and_vectors_are_left_to_numpy(monkeypatch):
    monkeypatch.setattr(linalg, "_sum", None)  # would fail
    a, b = draw(100, 100), draw(1, 2_000_000)
    np.testing.assert_array_equal(linalg.matmul(a, a), NUMPY["matmul"](a, a))
    np.testing.assert_array_equal(linalg.matmul(b, b.T), NUMPY["matmul"](b, b.T))
    np.testing.assert_array_equal(linalg.linear(b, b, None), NUMPY["linear"](b, b, None))
    d = draw(600, 1000)  # too wide to be read by columns
    np.testing.assert_array_equal(linalg.matmul(d.T, d), NUMPY["matmul"](d.T, d))
    c = draw(3000, 1)
    np.testing.assert_array_equal(linalg.matmul(c, c.T), c * c.T)


def test_what_the_processor_has_no_instructions_for_is_computed_in_float32(everything, monkeypatch):
    monkeypatch.setattr(linalg, "plans", Plans(4))
    monkeypatch.setattr("flambeau_onednn.primitives._FAST", ())
    for dtype in (BFLOAT16, FLOAT16):
        a, b = draw(70, 80, dtype=dtype), draw(80, 90, dtype=dtype)
        check_matmul(a, b)
        wide = a.astype(np.float32), b.astype(np.float32)
        wanted = linalg.addmm(wide[1][0], *wide, 1, 1).astype(dtype)
        np.testing.assert_array_equal(linalg.linear(a, b.T, b[0]), wanted)
        np.testing.assert_array_equal(linalg.addmm(b[0], a, b, 1, 1), wanted)
    assert set(linalg.plans.kept.values()) == {None}
    assert everything


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("count", [2, 3])
def test_parts_of_several_threads_make_the_whole_product(
    everything, threads, monkeypatch, count, dtype
):
    monkeypatch.setattr(products, "SMALLEST", 1)
    cases = [
        (draw(70, 50, dtype=dtype), draw(50, 40, dtype=dtype)),
        (draw(50, 40, dtype=dtype).T, draw(70, 50, dtype=dtype).T),
        (draw(4, 33, 50, dtype=dtype), draw(1, 50, 40, dtype=dtype)),
        (draw(2, 50, dtype=dtype), draw(50, 400, dtype=dtype)),
        (draw(150, 130, dtype=dtype), draw(130, 140, dtype=dtype)),
        (draw(130, 140, dtype=dtype), draw(150, 140, dtype=dtype).T),
    ]
    threads(1)
    wanted = [linalg.matmul(a, b) for a, b in cases]
    threads(count)
    for (a, b), single in zip(cases, wanted, strict=True):
        found = check_matmul(a, b)
        np.testing.assert_array_equal(found, linalg.matmul(a, b))  # the same again
        scale = abs(a.astype(np.float64)) @ abs(b.astype(np.float64))
        close(found, single.astype(np.float64), 2 * scale, dtype)


def test_products_of_several_python_threads_do_not_disturb_each_other(threads, agree_at_once):
    threads(2)
    b = draw(256, 200)
    factors = [draw(150, 256) * scale for scale in (1, 2, 4, 8)]
    agree_at_once(lambda a: linalg.matmul(a, b), factors, [linalg.matmul(a, b) for a in factors])


def test_the_number_of_openmp_threads_of_the_caller_is_put_back():
    library = onednn()
    if library.get_threads is None:
        pytest.skip("this oneDNN does not use OpenMP")
    with limited(3):
        linalg.matmul(draw(200, 200), draw(200, 200))
        assert library.get_threads() == 3


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("shift", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("shape", [(9, 400), (64, 200), (3, 40, 70), (30,)], ids=str)
def test_linear_and_relu_in_one_are_the_two(everything, threads, shape, shift, count):
    threads(count)
    x, weight = draw(*shape), draw(300, shape[-1])
    x[..., 0] = 0
    bias = draw(300) if shift else None
    if bias is not None:
        bias[:2] = np.nan, -np.inf
    found, nothing = linalg.linear_activation(x, weight, bias, "relu", True)
    np.testing.assert_array_equal(found, NUMPY["relu"](linalg.linear(x, weight, bias)))
    assert nothing.size == 0
    taken = linalg.linear_activation.takes(x, weight, bias, "relu", True)
    assert taken == (offered.sgemm is not None and x.ndim > 1)
    assert not linalg.linear_activation.takes(x, weight, bias, "gelu_tanh", True)


@pytest.mark.parametrize("dtype", [*DTYPES, np.dtype(np.float64)], ids=str)
def test_linear_and_gelu_keep_what_the_gradient_needs(dtype):
    x, weight, bias = (draw(*shape, dtype=dtype) for shape in ((20, 30), (40, 30), (40,)))
    z = linalg.linear(x, weight, bias)
    for saves in (True, False):
        found, kept = linalg.linear_activation(x, weight, bias, "gelu_tanh", saves)
        np.testing.assert_array_equal(found, host.activate("cpu").kernels["gelu"](z, "tanh"))
        np.testing.assert_array_equal(kept, z if saves else z[:0, 0])


def test_results_share_their_memory_with_nobody(everything):
    owns = host.activate("cpu").backend.owns
    a, b = draw(40, 30), draw(30, 50)
    assert owns(linalg.matmul(a, b))
    assert owns(linalg.matmul(draw(2, 40, 30), b))
    assert owns(linalg.addmm(b[0], a, b, 1, 1))
    for x in (a, draw(2, 40, 30)):
        assert owns(linalg.linear(x, b.T, b[0]))
        assert owns(linalg.linear_activation(x, b.T, b[0], "relu", True)[0])
    assert everything


def test_layers_and_their_relu_are_one_kernel_and_have_the_gradients_of_two(parts):
    if not host.providers("cpu")["linear_activation"].startswith("flambeau-onednn"):
        pytest.skip("another package has precedence, or flambeau-onednn is blocked")
    nn = fb.nn
    layers = nn.Linear(300, 200), nn.ReLU(), nn.Linear(200, 300), nn.ReLU()
    model, x = nn.Sequential(*layers), fb.tensor(draw(80, 300)).requires_grad_()
    found = model(x)
    together = parts == "compiled threads"
    assert (found.grad_fn.name() == "LinearActivationBackward0") == together
    apart = x
    for layer in layers:
        apart = layer(apart)
    inputs = [x, *model.parameters()]
    wanted = fb.autograd.grad(apart.square().sum(), inputs)
    for one, two in zip(fb.autograd.grad(found.square().sum(), inputs), wanted, strict=True):
        fb.testing.assert_close(one, two)


@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16], ids=str)
def test_old_plans_are_destroyed_and_made_again(everything, monkeypatch, dtype):
    monkeypatch.setattr(linalg, "plans", Plans(2))
    a, b = draw(40, 50, dtype=dtype), draw(50, 60, dtype=dtype)
    wanted = linalg.matmul(a, b)
    for rows in range(2, 6):
        linalg.matmul(a[:rows], b)
    gc.collect()
    assert len(linalg.plans.kept) == 2
    np.testing.assert_array_equal(linalg.matmul(a, b), wanted)


def test_the_recorded_path_and_the_gradients_use_oneDNN(monkeypatch):
    if not host.providers("cpu")["matmul"].startswith("flambeau-onednn"):
        pytest.skip("another package has precedence, or flambeau-onednn is blocked")
    made: list[tuple[int, ...]] = []
    whole = linalg._sum

    def noted(a: np.ndarray, b: np.ndarray, *rest: Any) -> np.ndarray:
        made.append((*a.shape, b.shape[1]))
        return whole(a, b, *rest)

    monkeypatch.setattr(linalg, "_sum", noted)
    before = fb.get_num_threads()
    try:
        fb.set_num_threads(1)
        x, w = (fb.tensor(draw(*shape)).requires_grad_() for shape in ((64, 400), (200, 400)))
        fb.nn.functional.linear(x, w, fb.zeros(200)).sum().backward()
    finally:
        fb.set_num_threads(before)
    assert made == [(64, 400, 200), (64, 200, 400), (200, 64, 400)]


def _in_child(queue, a, b):
    fb.set_num_threads(4)
    queue.put(linalg.matmul(a, b))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_forked_child_finishes(threads, answer_of_child, dtype):
    threads(2)
    a, b = draw(300, 300, dtype=dtype), draw(300, 300, dtype=dtype)
    wanted = linalg.matmul(a, b).astype(np.float64)
    received = answer_of_child(_in_child, a, b)
    np.testing.assert_allclose(received.astype(np.float64), wanted, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("rows", [1, 8, 9, 16, 63, 64, 200])
@pytest.mark.parametrize("turned", [False, True])
def test_what_plans_ask_for_at_once_is_asked_before_onednn(monkeypatch, rows, turned):
    asked = []
    monkeypatch.setattr(offered, "pair", None)  # which is asked before
    monkeypatch.setattr(offered, "matrices", lambda *args: asked.append(args) or True)
    for depth in (64, 100, 300, 512, 1024):
        for columns in (64, 200, 512, 2048):
            a, b = np.zeros((rows, depth), FLOAT32), np.zeros((depth, columns), FLOAT32)
            b = np.asfortranarray(b) if turned else b
            if general.is_left(rows, rows * depth * columns, turned):
                asked.clear()
                linalg.matmul(a, b)
                linalg.addmm(np.zeros(columns, FLOAT32), a, b, 1, 1)
                assert len(asked) == 2 or max(a.size, b.size) < general.SMALL
