"""Every function is as accurate as docs/design/native.md says, in units of the last place."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS
from flambeau_numpy.extending import KERNELS as NUMPY


def floats(low=-np.inf, high=np.inf):
    """A float32 out of every 1009, NaN and infinities aside, and the edges."""
    bits = np.arange(0, 1 << 32, 1009, dtype=np.uint64).astype(np.uint32).view(np.float32)
    edges = np.array([0.0, -0.0, 1e-45, -1e-45, 1.0, -1.0, 2.0, 88.7, -88.7], np.float32)
    beside = np.nextafter(edges, np.float32(0)), np.nextafter(edges, np.float32(9))
    some = np.concatenate([bits, edges, *beside])
    return some[(some >= low) & (some <= high) & np.isfinite(some)]


def softplus(x):
    return np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 30))))


def silu(x):
    return x * special.expit(x)


def log_gamma(x):
    """Of numbers from 0 down: the logarithm of `special.gamma` has not its digits beside a zero."""
    at_pole = x == np.floor(x)
    return np.array([np.inf if p else math.lgamma(one) for one, p in zip(x, at_pole, strict=True)])


# Function, numbers, exact function, greatest error in ulp, interval.
F32 = [
    ("exp", (), np.exp, 1.1, ()),
    ("log", (), np.log, 1, (1e-45, np.inf)),
    ("log1p", (), np.log1p, 1.5, (-1, np.inf)),
    ("exp2", (), np.exp2, 1, (-149, 128)),
    ("sin", (), np.sin, 1.6, (-8192, 8192)),
    ("cos", (), np.cos, 1.6, (-8192, 8192)),
    ("tanh", (), np.tanh, 2.5, ()),
    ("sigmoid", (), special.expit, 3, (-87, np.inf)),
    ("silu", (), silu, 4, (-87, np.inf)),
    ("erf", (), special.erf, 2, ()),
    ("elu", (1.0, 1.0, 1.0), np.expm1, 1.5, (-np.inf, 0)),
    ("rsqrt", (), lambda x: 1 / np.sqrt(x), 1.5, (1e-38, np.inf)),
    ("reciprocal", (), lambda x: 1 / x, 1, (1e-37, 1e37)),
    ("softplus", (1.0, 20.0), softplus, 3, (-87, np.inf)),
    ("log_sigmoid", (), lambda x: -softplus(-x), 3, (-np.inf, 87)),
    ("lgamma", (), special.gammaln, 2, (1e-38, 4e36)),
    ("lgamma", (), log_gamma, 0.51, (-4e36, 0)),
    ("erfc", (), special.erfc, 0.51, (-np.inf, 9.19)),
    ("erfinv", (), special.erfinv, 0.51, (-1, 1)),
    ("i0", (), special.i0, 0.51, (-91, 91)),
    ("i0e", (), special.i0e, 0.51, ()),
    ("i1", (), special.i1, 0.52, (-91, 91)),
    ("i1e", (), special.i1e, 0.52, ()),
    ("trigamma", (), lambda x: special.polygamma(1, x), 0.51, (1e-18, np.inf)),
]


def ulp(found, exact):
    nearest = exact.astype(found.dtype)
    return np.abs(found.astype(exact.dtype) - exact) / np.spacing(np.abs(nearest))


@pytest.mark.parametrize(("name", "numbers", "exact", "bound", "interval"), F32)
def test_float32_error_in_ulp(name, numbers, exact, bound, interval):
    x = floats(*interval)
    out = np.empty_like(x)
    getattr(native, f"{name}_f32")(out, x, x.size, *numbers)
    with np.errstate(all="ignore"):
        wanted = exact(x.astype(np.float64))
    kept = np.isfinite(wanted) & (np.abs(wanted) < 3e38)
    errors = ulp(out[kept], wanted[kept])
    worst = errors.argmax()
    assert errors[worst] <= bound, (x[kept][worst], out[kept][worst])


def test_the_second_derivative_of_log_gamma_below_zero():
    x = np.random.default_rng(0).uniform(-50, 0.5, 100_000).astype(np.float32)
    odd = [0.0, -0.0, -1.0, -7.0, -3e38, np.inf, -np.inf, np.nan, 1e-45, 1e-30, 3e38]
    x = np.concatenate([x, np.array(odd, np.float32)])
    found = KERNELS["polygamma"](x, 1)
    with np.errstate(all="ignore"):
        wanted = NUMPY["polygamma"](x.astype(np.float64), 1).astype(np.float32)
    np.testing.assert_allclose(found, wanted, 1.2e-7)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_waves_near_their_zeros_and_far_out(name):
    quarters = (np.arange(-5000, 5000) * (np.pi / 2)).astype(np.float32)
    far = np.geomspace(8193, 3e38, 999).astype(np.float32)
    for x, bound in ((quarters, 1.6), (far, 1), (-far, 1)):
        out = np.empty_like(x)
        getattr(native, f"{name}_f32")(out, x, x.size)
        assert ulp(out, getattr(np, name)(x.astype(np.float64))).max() <= bound


def test_logarithms_beside_one():
    x = np.arange(0x3F000000, 0x40000000, 7, dtype=np.uint32).view(np.float32)
    out = np.empty_like(x)
    native.log_f32(out, x, x.size)
    wanted = np.log(x.astype(np.float64))
    beside = wanted != 0
    assert ulp(out[beside], wanted[beside]).max() <= 1
    assert not out[~beside].any()


def test_tanh_stays_within_one_and_nears_it():
    x = np.arange(0x40800000, 0x41400000, 11, dtype=np.uint32).view(np.float32)  # 4 to 12
    out = np.empty_like(x)
    native.tanh_f32(out, x, x.size)
    assert out.max() == 1
    assert (out[x > 9.1] == 1).all()
    assert ulp(out, np.tanh(x.astype(np.float64))).max() <= 2.5


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "tanh"])
def test_edges_are_those_of_the_c_library(name):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 1e30, -1e30], np.float32)
    out = np.empty_like(x)
    getattr(native, f"{name}_f32")(out, x, x.size)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_max_ulp(out, wanted, 2)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(out[numbers]), np.signbit(wanted[numbers]))


@pytest.mark.parametrize("name", ["sigmoid", "silu"])
def test_float64_error_in_ulp(name):
    x = np.random.default_rng(0).uniform(-700, 700, 200_000)
    x = np.concatenate([x, x / 100, x / 1e6])
    out = np.empty_like(x)
    getattr(native, f"{name}_f64")(out, x, x.size)
    wide = x.astype(np.longdouble)
    wanted = 1 / (1 + np.exp(-wide))
    if name == "silu":
        wanted = wanted * wide
    assert ulp(out, wanted).max() <= 4


@pytest.mark.parametrize(("name", "tanh"), [("gelu", False), ("gelu_tanh", True)])
def test_gelu_error_is_small_against_its_argument(name, tanh):
    x = floats(-20, 20)
    out = np.empty_like(x)
    getattr(native, f"{name}_f32")(out, x, x.size)
    wide = x.astype(np.float64)
    if tanh:
        inner = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
        wanted = 0.5 * wide * (1 + np.tanh(inner))
    else:
        wanted = wide * special.ndtr(wide)
    assert (np.abs(out - wanted) <= 1.5e-7 * np.abs(wide) + 1e-45).all()


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_error_is_small_against_the_greatest(name, dtype):
    x = np.random.default_rng(1).normal(0, 20, (50, 333)).astype(dtype)
    out = np.empty_like(x)
    getattr(native, f"{name}_{'f32' if dtype is np.float32 else 'f64'}")(out, x, *x.shape)
    wanted = getattr(special, name)(x.astype(np.longdouble), axis=1)
    scale = 1.0 if name == "softmax" else np.abs(wanted).max()
    assert np.abs(out - wanted).max() <= 8 * np.finfo(dtype).eps * scale


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(50, 333), (40_000, 5)])
def test_softmax_error_of_columns_is_small_against_the_greatest(name, dtype, shape):
    x = np.random.default_rng(1).normal(0, 20, shape).astype(dtype)
    out = np.empty_like(x)
    suffix = "f32" if dtype is np.float32 else "f64"
    getattr(native, f"{name}_columns_{suffix}")(out, x, 1, *x.shape)
    wanted = getattr(special, name)(x.astype(np.longdouble), axis=0)
    scale = 1.0 if name == "softmax" else np.abs(wanted).max()
    assert np.abs(out - wanted).max() <= 8 * np.finfo(dtype).eps * scale


def test_sums_lose_no_more_than_a_few_ulp():
    x = np.random.default_rng(2).uniform(0, 1, 3_000_001).astype(np.float32)
    out = np.empty(1, np.float32)
    native.sum_f32(out, x, 1, x.size, 1, 1.0)
    assert ulp(out, np.array([x.astype(np.float64).sum()]))[0] <= 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_the_error_of_sums_of_exponentials(name, dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.normal(0, 5, 200_000).astype(dtype) for _ in range(2))
    out = np.empty_like(a)
    getattr(native, f"{name}_f{8 * out.itemsize}")(out, a, b, a.size)
    wanted = getattr(np, name)(a.astype(np.longdouble), b.astype(np.longdouble))
    error = np.abs(out - wanted) / np.maximum(np.abs(wanted), 1) / np.finfo(dtype).eps
    assert error.max() < (0.51 if dtype is np.float32 else 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1, 40, 1000])
def test_the_error_of_running_sums_of_exponentials(scale, dtype):
    a = np.random.default_rng(0).normal(0, scale, (3, 2000)).astype(dtype)
    out = np.empty_like(a)
    getattr(native, f"logcumsumexp_f{8 * out.itemsize}")(out, a, 3, 2000, 1)
    wanted = np.logaddexp.accumulate(a.astype(np.longdouble), 1)
    error = np.abs(out - wanted) / np.maximum(np.abs(wanted), 1) / np.finfo(dtype).eps
    assert error.max() < (0.51 if dtype is np.float32 else 6)


def of_factors(size, spread, seed):
    """Factors of any size whose product is near 1, among them some that are their neighbours'."""
    logs = np.random.default_rng(seed).normal(0, spread, size)
    return np.exp(logs - logs.mean()).astype(np.float32)


def product(x, name="prod_f32"):
    out = np.empty((), x.dtype)
    getattr(native, name)(out, x, 1, x.size, 1)
    return np.longdouble(out[()])


@pytest.mark.parametrize("spread", [1e-7, 1e-4, 0.02, 0.5, 2])
@pytest.mark.parametrize("size", [64, 300, 4095, 4096, 4351, 16_384, 40_001, 100_000])
def test_products_of_floats_are_rounded_once(size, spread):
    for seed in range(5):
        x = of_factors(size, spread / max(1, size / 16_384), seed)
        exact = np.multiply.reduce(x.astype(np.longdouble))
        assert abs(product(x) / exact - 1) <= 0.51 * 2.0**-23


@pytest.mark.parametrize("spread", [12, 20, 40])
@pytest.mark.parametrize("size", [4096, 102_400])
def test_products_of_floats_have_the_range_of_double(size, spread):
    """Of a few factors in a row, float has no number, or few digits of it."""
    large = np.exp(np.random.default_rng(size).uniform(0, spread, size // 2)).astype(np.float32)
    for length in (64, 128, 256):
        whole = np.concatenate([large.reshape(-1, length), 1 / large.reshape(-1, length)], axis=1)
        for shift in (0, 1, 64, 128, 200):
            x = np.roll(whole.reshape(-1), shift)
            exact = np.multiply.reduce(x.astype(np.longdouble))
            assert abs(product(x) / exact - 1) <= 0.51 * 2.0**-23


@pytest.mark.parametrize("place", [0, 4095, 5000])
def test_products_of_many_pass_on_what_is_no_normal_number(place):
    x = np.ones(5001, np.float32)
    for value in (0.0, -0.0, np.inf, -np.inf, 1e-42, -3.0):
        x[place] = value
        assert product(x) == np.longdouble(np.float32(value))
        assert np.signbit(product(x)) == np.signbit(value)
    x[place] = np.nan
    assert np.isnan(product(x))
    x[place], x[1] = np.inf, 0
    assert np.isnan(product(x))
