"""The kernels in CUDA C, run on the host, against float64; and compiled for devices by NVRTC."""

from __future__ import annotations

import ctypes as C
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import on_host
import pytest
from scipy import special

from flambeau_cupy import philox
from flambeau_cupy.source import FAMILIES, TYPES, text

needs_compiler = pytest.mark.skipif(
    on_host.COMPILER is None or sys.platform != "linux",
    reason="needs g++ or clang++ on Linux",
)
needs_nvrtc = pytest.mark.skipif(
    on_host.nvrtc() is None, reason="needs NVRTC: pip install nvidia-cuda-nvrtc-cu12"
)
I64, DOUBLE, INT = C.c_longlong, C.c_double, C.c_int
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}
SHAPES = [(1, 1), (3, 7), (5, 33), (2, 257), (0, 4), (4, 64)]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    return cache(lambda family, dtype: on_host.Library(family, dtype, folder))


@pytest.fixture(params=sorted(TYPES))
def dtype(request):
    return request.param


def numbers(shape, dtype, seed=0, scale=3.0):
    """Random numbers whose memory begins in the middle of what a vector load would take."""
    made = np.random.default_rng(seed).normal(0, scale, int(np.prod(shape)) + 1).astype(dtype)
    return made[1:].reshape(shape)


def close(found, wanted, dtype):
    np.testing.assert_allclose(found, wanted, TOLERANCE[dtype], TOLERANCE[dtype])


# Compilation for devices.


@needs_nvrtc
@pytest.mark.parametrize("architecture", ["compute_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_source_compiles_for_the_device(family, architecture, dtype):
    library = on_host.nvrtc()
    assert library is not None
    code = on_host.compiled(library, text(family, dtype), architecture)
    for name in FAMILIES[family]:
        assert name.encode() in code


@needs_nvrtc
def test_a_source_with_a_fault_is_refused_with_the_log():
    library = on_host.nvrtc()
    assert library is not None
    with pytest.raises(RuntimeError, match="undefined_name"):
        on_host.compiled(
            library, text("loss") + "\n__device__ int f() { return undefined_name; }", "sm_80"
        )


# Values.


@needs_compiler
@pytest.mark.parametrize("n", [0, 1, 4, 5, 1001])
@pytest.mark.parametrize(("seed", "offset"), [(0, 0), (7, 4), (2**64 - 1, 2**34 + 8)])
def test_philox_on_the_device_is_the_reference(library, n, seed, offset):
    out = np.zeros(n, np.uint32)
    state = np.array([seed, offset], np.uint64)
    library("philox", "float32")("philox_words", 3, 32, out, state, I64(n))
    wanted = [w for b in range((n + 3) // 4) for w in philox.block(seed, offset // 4 + b)][:n]
    assert out.tolist() == wanted


@needs_compiler
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_dropout_drops_where_the_stream_says(library, dtype, p):
    n = 1003
    x, out, mask = numbers(n, dtype), np.empty(n, dtype), np.empty(n, np.bool_)
    state = np.array([5, 12], np.uint64)
    library("philox", dtype)("dropout_forward", 2, 64, out, mask, x, state, DOUBLE(p), I64(n))
    units = (philox.words(np, 5, 12, n) >> np.uint32(8)) * np.float32(2.0**-24)
    assert (mask == (units >= np.float32(p))).all()
    close(out, np.where(mask, x / (1 - min(p, 0.5) if p == 1 else 1 - p), 0), dtype)


@needs_compiler
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("block", [32, 96])
def test_softmax_and_its_gradients(library, dtype, shape, block):
    run = library("softmax", dtype)
    x, grad, sizes = numbers(shape, dtype), numbers(shape, dtype, 1), tuple(map(I64, shape))
    wide = x.astype(np.float64)
    for log, function in ((False, special.softmax), (True, special.log_softmax)):
        name = "log_softmax" if log else "softmax"
        out, back = np.empty(shape, dtype), np.empty(shape, dtype)
        run(f"{name}_forward", 2, block, out, x, *sizes)
        y = function(wide, 1) if x.size else wide
        close(out, y, dtype)
        result = y.astype(dtype)
        run(f"{name}_backward", 2, block, back, grad, result, *sizes)
        g = grad.astype(np.float64)
        total = (g if log else g * y).sum(1, keepdims=True)
        close(back, g - np.exp(y) * total if log else y * (g - total), dtype)


@needs_compiler
def test_softmax_passes_nan_on_and_bears_infinities(library, dtype):
    x = np.array([[np.nan, 1], [-np.inf, 0], [1e30, -1e30]], dtype)
    out = np.empty_like(x)
    library("softmax", dtype)("softmax_forward", 1, 32, out, x, I64(3), I64(2))
    assert np.isnan(out[0]).all() and out[1:].tolist() == [[0, 1], [1, 0]]


def derivative(function, x):
    h = 1e-6
    return (function(x + h) - function(x - h)) / (2 * h)


ACTIVATIONS = [
    lambda x: np.maximum(x, 0),
    special.expit,
    lambda x: x * special.expit(x),
    lambda x: x * special.ndtr(x),
    lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    lambda x: np.logaddexp(0, x),
]


@needs_compiler
@pytest.mark.parametrize("which", range(len(ACTIVATIONS)))
def test_activations_and_their_gradients(library, dtype, which):
    run, n = library("activation", dtype), 777
    x, grad = numbers(n, dtype), numbers(n, dtype, 1)
    out, back = np.empty(n, dtype), np.empty(n, dtype)
    run("activation_forward", 3, 64, out, x, INT(which), I64(n))
    run("activation_backward", 3, 64, back, grad, x, INT(which), I64(n))
    wide = x.astype(np.float64)
    close(out, ACTIVATIONS[which](wide), dtype)
    slope = derivative(ACTIVATIONS[which], wide)
    np.testing.assert_allclose(back, grad * slope, 2e-5, 1e-6 if dtype == "float64" else 2e-5)


@needs_compiler
def test_sigmoid_does_not_overflow(library, dtype):
    x = np.array([-1e4, 1e4, np.nan], dtype)
    out = np.empty_like(x)
    library("activation", dtype)("activation_forward", 1, 32, out, x, INT(1), I64(3))
    assert out[:2].tolist() == [0, 1] and np.isnan(out[2])


@needs_compiler
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("affine", [False, True])
def test_layer_norm_and_its_gradient(library, dtype, shape, affine):
    run, sizes = library("layer_norm", dtype), tuple(map(I64, shape))
    x, grad = numbers(shape, dtype), numbers(shape, dtype, 1)
    weight, bias = (numbers(shape[1], dtype, s) if affine else None for s in (2, 3))
    out, mean, invstd = np.empty(shape, dtype), np.empty(shape[0], dtype), np.empty(shape[0], dtype)
    run("layer_norm_forward", 2, 64, out, mean, invstd, x, weight, bias, *sizes, DOUBLE(1e-5))
    w = np.ones(shape[1]) if weight is None else weight.astype(np.float64)
    b = np.zeros(shape[1]) if bias is None else bias.astype(np.float64)
    wide = x.astype(np.float64)
    m = wide.mean(1, keepdims=True)
    s = 1 / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    y = (wide - m) * s
    # A row of one number has variance 0, and its invstd of 316 multiplies rounding errors.
    tolerance = 20 * TOLERANCE[dtype]
    np.testing.assert_allclose(out, y * w + b, tolerance, tolerance)
    np.testing.assert_allclose(invstd, s[:, 0], tolerance)
    back = np.empty(shape, dtype)
    run("layer_norm_backward_input", 2, 64, back, grad, x, weight, mean, invstd, *sizes)
    h = grad * w
    wanted = s * (h - h.mean(1, keepdims=True) - y * (h * y).mean(1, keepdims=True))
    np.testing.assert_allclose(back, wanted, tolerance, tolerance * 10)


@needs_compiler
@pytest.mark.parametrize("weighted", [False, True])
def test_nll_and_its_gradient(library, dtype, weighted):
    run, (rows, classes) = library("loss", dtype), (37, 5)
    x = numbers((rows, classes), dtype)
    target = np.random.default_rng(0).integers(0, classes, rows)
    target[::7] = -100
    weight = np.abs(numbers(classes, dtype, 4)) if weighted else None
    sizes = (I64(-100), I64(rows), I64(classes))
    loss, used = np.empty(rows, dtype), np.empty(rows, dtype)
    run("nll_forward", 2, 32, loss, used, x, target, weight, *sizes)
    w = np.ones(classes, dtype) if weight is None else weight
    counts = target != -100
    picked = np.where(counts, target, 0)
    assert (used == np.where(counts, w[picked], 0)).all()
    close(loss, np.where(counts, -w[picked] * x[np.arange(rows), picked], 0), dtype)
    grad, back = numbers(rows, dtype, 5), np.empty((rows, classes), dtype)
    run("nll_backward", 2, 32, back, grad, target, weight, *sizes)
    wanted = np.zeros((rows, classes))
    wanted[np.arange(rows)[counts], target[counts]] = (-grad * w[picked])[counts]
    close(back, wanted, dtype)


def group(dtype, count, sizes):
    arrays = [[numbers(n, dtype, 10 * k + i) for k in range(count)] for i, n in enumerate(sizes)]
    for row in arrays:
        row[-1] = np.abs(row[-1])
    addresses = np.array([[a.ctypes.data for a in row] for row in arrays], np.uintp)
    return arrays, addresses, np.array(sizes, np.int64)


@needs_compiler
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("nesterov", [0, 1])
@pytest.mark.parametrize("first", [0, 1])
def test_sgd_of_a_group_in_one_launch(library, dtype, momentum, nesterov, first):
    arrays, table, sizes = group(dtype, 3, [1, 70, 0, 333])
    before = [[a.astype(np.float64) for a in row] for row in arrays]
    options = (DOUBLE(0.1), DOUBLE(momentum), DOUBLE(0.2), DOUBLE(0.01), INT(nesterov), INT(first))
    library("optimizer", dtype)("sgd_step", (2, 4), 32, table, sizes, *options)
    for (p, _, buffer), (p0, g0, b0) in zip(arrays, before, strict=True):
        d = g0 + 0.01 * p0
        if momentum:
            b0 = d if first else momentum * b0 + 0.8 * d
            d = d + momentum * b0 if nesterov else b0
        close(buffer, b0, dtype)
        close(p, p0 - 0.1 * d, dtype)


@needs_compiler
@pytest.mark.parametrize("decoupled", [0, 1])
def test_adam_of_a_group_in_one_launch(library, dtype, decoupled):
    arrays, table, sizes = group(dtype, 4, [5, 64, 129])
    before = [[a.astype(np.float64) for a in row] for row in arrays]
    c1, c2 = 1 - 0.9**3, np.sqrt(1 - 0.99**3)
    options = [DOUBLE(v) for v in (0.1, 0.9, 0.99, 1e-8, 0.05)]
    library("optimizer", dtype)(
        "adam_step", (2, 3), 32, table, sizes, *options, INT(decoupled), DOUBLE(c1), DOUBLE(c2)
    )
    for found, (p, g, m, v) in zip(arrays, before, strict=True):
        d = g if decoupled else g + 0.05 * p
        p = p * (1 - 0.1 * 0.05) if decoupled else p
        m, v = 0.9 * m + 0.1 * d, 0.99 * v + 0.01 * d * d
        for have, want in zip(
            found, (p - 0.1 / c1 * m / (np.sqrt(v) / c2 + 1e-8), None, m, v), strict=True
        ):
            if want is not None:
                np.testing.assert_allclose(have, want, 1e-4 if dtype == "float32" else 1e-10, 1e-5)


# The emulation itself.


@needs_compiler
def test_a_barrier_that_not_all_threads_reach_is_found(tmp_path, monkeypatch):
    source = (
        'extern "C" __global__ void nll_forward() { if (threadIdx.x < 5) __syncthreads(); }\n'
        'extern "C" __global__ void nll_backward() {}'
    )
    monkeypatch.setattr(on_host, "text", lambda family, dtype: source)
    run = on_host.Library("loss", "float32", tmp_path)
    with pytest.raises(RuntimeError, match="not all threads reach"):
        run("nll_forward", 1, 32)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_kernels_stay_in_their_memory(family, tmp_path):
    """The tests above once more under AddressSanitizer, which must be loaded before Python."""
    assert on_host.COMPILER is not None
    question = [on_host.COMPILER, "-print-file-name=libasan.so"]
    runtime = subprocess.run(question, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(runtime).is_absolute():
        pytest.skip("the compiler has no libasan.so")
    program = (
        "import sys, pathlib; sys.path[:0] = sys.argv[2].split(':')\n"
        "import asan_cases\n"
        "asan_cases.run(sys.argv[1], pathlib.Path(sys.argv[3]))\n"
    )
    path = ":".join([str(Path(__file__).parent), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", program, family, path, str(tmp_path)],
        env={
            **os.environ,
            "LD_PRELOAD": runtime,
            "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
