"""Compiled recurrent steps against the NumPy kernels: options, ragged batches, threads."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau_native.kernels import KERNELS as COMPILED
from flambeau_numpy.kernels import KERNELS as NUMPY

DTYPES = [np.float32, np.float64]
SIZES = [(4, 4, 4), (5, 3, 3, 1), (1,), (40,) * 3]


def numbers(shape, dtype, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def agree(name, *args):
    dtype = next(a.dtype for a in args if a is not None)
    bound = 2e-5 if dtype == np.float32 else 1e-12
    kept = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    found, wanted = COMPILED[name](*args), NUMPY[name](*args)
    for have, want in zip(found, wanted, strict=True):
        assert have.shape == want.shape
        assert have.dtype == dtype
        np.testing.assert_allclose(have, want, rtol=bound, atol=bound)
    for given, before in zip(args, kept, strict=True):
        np.testing.assert_array_equal(given, before, "an argument was written")
    return wanted


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("width", [3, 130])
def test_lstm(width, sizes, projected, reverse, dtype):
    total, batch, out = sum(sizes), sizes[0], 2 if projected else width
    hx, cx = numbers((batch, out), dtype, 1), numbers((batch, width), dtype, 2)
    weight = numbers((4 * width, out), dtype, 3) / width**0.5
    projection = numbers((out, width), dtype, 4) if projected else None
    x = numbers((total, 4 * width), dtype)
    given = x, hx, cx, weight.astype(dtype), projection
    output, h, c, cells, gates = agree("lstm_sequence", *given, sizes, reverse)
    grads = [numbers(a.shape, dtype, 5) for a in (output, h, c, cells, gates)]
    saved = *given[1:], output, cells, gates, sizes, reverse
    agree("lstm_sequence_backward", *grads, *saved)
    for alone in range(5):
        some = [g if i == alone else None for i, g in enumerate(grads)]
        agree("lstm_sequence_backward", *some, *saved)
    expanded = np.broadcast_to(grads[0][:1], output.shape)
    agree("lstm_sequence_backward", expanded, None, None, None, None, *saved)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("width", [3, 130])
def test_gru(width, sizes, biased, reverse, dtype):
    total, batch = sum(sizes), sizes[0]
    hx = numbers((batch, width), dtype, 1)
    weight = (numbers((3 * width, width), dtype, 3) / width**0.5).astype(dtype)
    bias = numbers(3 * width, dtype, 4) if biased else None
    x = numbers((total, 3 * width), dtype)
    output, h, gates = agree("gru_sequence", x, hx, weight, bias, sizes, reverse)
    grads = [numbers(a.shape, dtype, 5) for a in (output, h, gates)]
    saved = hx, weight, output, gates, sizes, reverse
    agree("gru_sequence_backward", *grads, *saved)
    for alone in range(3):
        some = [g if i == alone else None for i, g in enumerate(grads)]
        agree("gru_sequence_backward", *some, *saved)
    agree("gru_sequence_backward", np.broadcast_to(grads[0][:1], output.shape), None, None, *saved)


def test_other_layouts_and_dtypes_of_the_arguments():
    sizes, x = (4, 4, 2), numbers((16, 10), np.float32).T
    hx, cx = numbers((4, 4), np.float32, 1).T, numbers((4, 4), np.float32, 2).T
    turned = numbers((4, 16), np.float32, 3).T
    for weight in (turned, numbers((32, 4), np.float32, 3)[::2]):
        agree("lstm_sequence", x, hx, cx, weight, None, sizes, False)
        output, _, _, cells, gates = NUMPY["lstm_sequence"](x, hx, cx, weight, None, sizes, False)
        grads = output[::-1], None, None, None, None
        saved = hx, cx, weight, None, output, cells.copy("F"), gates.copy("F"), sizes, False
        agree("lstm_sequence_backward", *grads, *saved)
    half = [a.astype(np.float16) for a in (x, hx, cx, turned)]
    found, wanted = (t["lstm_sequence"](*half, None, sizes, False) for t in (COMPILED, NUMPY))
    for have, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize("batch", [100, 300])  # few rows, and so many that BLAS multiplies
def test_a_sequence_does_not_depend_on_the_number_of_threads(batch, threads):
    x, state = numbers((2 * batch, 1024), np.float32), numbers((batch, 256), np.float32, 1)
    weight, found = numbers((1024, 256), np.float32, 2) / 16, []
    for count in (1, 3):
        threads(count)
        args = x, state, state, weight, None, (batch, batch), False
        found.append(COMPILED["lstm_sequence"](*args))
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("dtype", DTYPES)
def test_infinity_and_nan_saturate_or_pass_as_in_numpy(dtype):
    x = numbers((3, 16), dtype)
    x[0, 0], x[1, 4], x[2, 9], x[0, 13] = np.inf, -np.inf, np.inf, np.nan
    zero, weight = np.zeros((3, 4), dtype), np.zeros((16, 4), dtype)
    agree("lstm_sequence", x, zero, zero, weight, None, (3,), False)
    agree("gru_sequence", x[:, :12].copy(), zero, weight[:12], None, (3,), False)
