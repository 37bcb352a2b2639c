"""Threads, forked processes, and what is left when the package is blocked."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import flambeau as fb
from flambeau.plugin.host import host
from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS
from flambeau_numpy.threads import followers

LARGE = np.random.default_rng(0).normal(size=300_001).astype(np.float32)
TABLE = LARGE[:300_000].reshape(300, 1000)
CALLS = {
    "sigmoid": lambda: KERNELS["sigmoid"](LARGE),
    "sum": lambda: KERNELS["sum"](LARGE, (0,), False),
    "sum columns": lambda: KERNELS["sum"](TABLE, (0,), False),
    "softmax": lambda: KERNELS["softmax"](TABLE, 1),
    "softmax of columns": lambda: KERNELS["softmax"](TABLE, 0),
    "greatest of columns": lambda: KERNELS["extremum"](TABLE, 0, False, True)[1],
    "layer_norm": lambda: KERNELS["layer_norm"](TABLE, None, None, (1000,), 1e-5)[0],
    "layer_norm_backward": lambda: KERNELS["layer_norm_backward"](
        TABLE, TABLE, TABLE[0], TABLE[:, :1].copy(), TABLE[:, :1].copy(), (1000,)
    )[1],
    "index_put": lambda: KERNELS["index_put"](TABLE, (np.arange(300) // 7,), TABLE, True),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_do_not_depend_on_the_number_of_threads(name, threads):
    found = []
    for count in (1, 2, 3):
        threads(count)
        found.append(np.asarray(CALLS[name]()))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_several_python_threads_share_the_workers(threads, agree_at_once):
    threads(3)
    wanted = {name: np.asarray(call()) for name, call in CALLS.items()}

    def compute(item):
        name, pause = item
        time.sleep(pause)  # workers sleep in the longer ones, and look for work in the others
        return np.asarray(CALLS[name]())

    items = [(name, pause) for name in CALLS for pause in (0, 0.001)]
    agree_at_once(compute, items, [wanted[name] for name, _ in items])


def test_more_threads_than_processors_compute_the_same(threads):
    threads(1)
    wanted = {name: np.asarray(call()) for name, call in CALLS.items()}
    threads(64)
    for name, call in CALLS.items():
        np.testing.assert_array_equal(np.asarray(call()), wanted[name])


SGEMM = ctypes.CFUNCTYPE(
    *(ctypes.c_int, ctypes.c_char, ctypes.c_char, *[ctypes.c_int64] * 3),
    *(ctypes.c_float, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64),
    *(ctypes.c_float, ctypes.c_void_p, ctypes.c_int64),
)


class Multiplied:
    """A function like dnnl_sgemm, by NumPy; `parts` are the sizes that it was called with."""

    def __init__(self, status=0):
        self.parts, self.status = [], status
        self.function = SGEMM(self)
        self.address = ctypes.cast(self.function, ctypes.c_void_p).value

    def __call__(self, of_a, of_b, m, n, k, alpha, a, a_step, b, b_step, beta, c, c_step):
        def matrix(address, rows, columns, step):
            room = ctypes.c_float * ((rows - 1) * step + columns)
            flat = np.frombuffer(room.from_address(address), np.float32)
            return np.lib.stride_tricks.as_strided(flat, (rows, columns), (4 * step, 4))

        left = matrix(a, k, m, a_step).T if of_a == b"T" else matrix(a, m, k, a_step)
        right = matrix(b, n, k, b_step).T if of_b == b"T" else matrix(b, k, n, b_step)
        out = matrix(c, m, n, c_step)
        with np.errstate(invalid="ignore"):  # infinities meet, as in any library
            out[...] = alpha * (left @ right) + (beta * out if beta else 0)
        self.parts.append((m, n))
        return self.status


def product(function, a, b, out, bias=None, relu=False, alpha=1.0, beta=0.0):
    (m, k), n = a.shape, b.shape[1]
    turned = [x.strides[1] != 4 for x in (a, b)]
    steps = [max(x.strides) // 4 for x in (out, a, b)]
    addresses = [x.__array_interface__["data"][0] for x in (out, a, b)]
    native.sgemm(
        *(function.address, 0, 0, *addresses, bias, m, n, k, *steps, *turned, relu, alpha, beta)
    )


def test_primitives_of_a_library_see_their_memories_and_threads_and_their_failures_are_told():
    seen, data, statuses, threads = [], {}, [0, 0], [5]

    def set_data(memory, address):
        data[memory] = address
        return 0

    def execute(*run):
        seen.append((*run, threads[-1]))
        return statuses[len(seen) - 1]

    pointer, number = ctypes.c_void_p, ctypes.c_int
    functions = [
        ctypes.CFUNCTYPE(number, pointer, pointer)(set_data),
        ctypes.CFUNCTYPE(number, pointer, pointer, number, pointer)(execute),
        ctypes.CFUNCTYPE(number)(lambda: threads[-1]),
        ctypes.CFUNCTYPE(None, number)(threads.append),
    ]
    addresses = [ctypes.cast(function, pointer).value for function in functions]
    arrays = [np.zeros(4, np.float32) for _ in range(3)]
    scratch = np.zeros(128, np.uint8)
    held = [(11, 0), (12, 4), (13, 0), (0, 0)]
    numbers = [*addresses, 2, *sum(held, ()), 1, 2, 21, 64, 31, 32, 3, 33, 41, 42, 4, 43]
    listed = (ctypes.c_int64 * len(numbers))(*numbers)
    sizes = (16, 16, 16, 0, 128)
    run = [*arrays, None, scratch, ctypes.addressof(listed), *sizes]
    native.primitives(*run)
    starts = [a.__array_interface__["data"][0] for a in (*arrays, scratch)]
    assert data == {11: starts[0], 12: starts[1] + 4, 13: starts[2], 21: starts[3] + 64}
    assert seen == [(31, 32, 3, 33, 2), (41, 42, 4, 43, 2)]
    assert threads == [5, 2, 5]
    statuses[0] = 1
    seen.clear()
    with pytest.raises(RuntimeError, match="failed"):
        native.primitives(*run)
    assert len(seen) == 1
    assert threads == [5, 2, 5, 2, 5]
    with pytest.raises(RuntimeError, match="bytes"):
        native.primitives(*run[:-5], 20, *sizes[1:])


@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(("m", "n"), [(200, 150), (150, 200), (131, 129)])
@pytest.mark.parametrize("relu", [False, True])
def test_products_of_a_library_are_cut_along_the_longer_side(m, n, turned, relu, threads):
    draw = np.random.default_rng(m).normal
    factors = [draw(size=size).astype(np.float32) for size in ((m, 130), (130, n))]
    a, b = (np.asarray(x, order="F" if t else "C") for x, t in zip(factors, turned, strict=True))
    bias, out = draw(size=n).astype(np.float32), np.full((m, n), np.nan, np.float32)
    threads(2)
    function = Multiplied()
    product(function, a, b, out, bias, relu, alpha=0.5, beta=1.0)
    wanted = 0.5 * (a.astype(np.float64) @ b) + bias
    np.testing.assert_allclose(out, wanted.clip(0) if relu else wanted, rtol=1e-4, atol=1e-4)
    assert len(function.parts) == 2
    assert {part[m >= n] for part in function.parts} == {min(m, n)}
    assert sum(part[m < n] for part in function.parts) == max(m, n)


def test_a_small_product_of_a_library_is_one_part_and_keeps_nan(threads):
    threads(2)
    a, b, out = np.ones((4, 3), np.float32), np.ones((3, 5), np.float32), np.zeros((4, 5), "f")
    a[1, 1], a[2] = np.nan, -1
    function = Multiplied()
    product(function, a, b, out, relu=True)
    np.testing.assert_array_equal(out[:, 0], [3, np.nan, 0, 3])
    assert function.parts == [(4, 5)]


def widest():
    """Whether the processor has the instructions that the product of rows with a weight is for."""
    if os.environ.get("FLAMBEAU_NATIVE_NARROW"):  # built without
        return False
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return all(f" avx512{part}" in flags for part in ("f", "dq", "bw", "vl"))


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        *((16, 1, 16), (17, 15, 17), (33, 129, 50), (49, 300, 523), (64, 128, 64)),
        *((65, 257, 1100), (128, 40, 131), (192, 131, 193), (100, 16, 2051), (20, 70_000, 40)),
    ],
)
def test_rows_times_a_weight_agree_with_float64(m, k, n, biased, relu, threads):
    draw = np.random.default_rng(m).normal
    a, weight, bias = (draw(size=size).astype(np.float32) for size in ((m, k + 3), (n, k + 1), n))
    a, weight = a[:, 2:-1], weight[:, :-1]
    frame = np.full((m + 2, n + 5), np.nan, np.float32)
    out = frame[1:-1, 2:-3]
    wanted = a.astype(np.float64) @ weight.T + bias * biased
    bound = (k + 2) * 2.0**-24 * (abs(a.astype(np.float64)) @ abs(weight.T) + abs(bias))
    results = []
    for number in 1, 2, 7:
        threads(number)
        out[...] = np.nan if not biased else 0  # with beta 0, what was there does not count
        function = Multiplied()
        product(function, a, weight.T, out, bias if biased else None, relu, beta=float(biased))
        assert (function.parts == []) == widest()
        results.append(out.copy())
    assert (abs(results[0] - (wanted.clip(0) if relu else wanted)) <= bound).all()
    if widest():  # a sum is made in one order, whoever makes it
        assert all(np.array_equal(results[0], result) for result in results)
    out[...] = np.nan
    assert np.isnan(frame).all()


def test_rows_times_a_weight_spread_nan_and_infinity_no_further_than_their_sums(threads):
    threads(2)
    a, weight = np.ones((20, 40), np.float32), np.ones((30, 40), np.float32)
    a[3, 5], a[19, 39], weight[7, 38] = np.nan, np.inf, -np.inf
    out = np.zeros((20, 30), np.float32)
    product(Multiplied(), a, weight.T, out, relu=True)
    wanted = np.full((20, 30), 40, np.float32)
    wanted[19], wanted[:, 7], wanted[19, 7], wanted[3] = np.inf, 0, np.nan, np.nan
    np.testing.assert_array_equal(out, wanted)


def test_other_products_are_left_to_the_library(threads):
    threads(1)
    for m, k, n, options in (
        (15, 64, 64, {}),  # vectors would not be full
        (193, 64, 300, {}),
        (64, 64, 63, {}),  # less to copy the other way around
        (64, 64, 64, {"alpha": 2.0}),
        (64, 64, 64, {"beta": 1.0}),
    ):
        a, b, out = (np.ones(size, np.float32) for size in ((m, k), (n, k), (m, n)))
        function = Multiplied()
        product(function, a, b.T, out, **options)
        assert function.parts == [(m, n)]
        wanted = options.get("alpha", 1) * k + options.get("beta", 0)
        np.testing.assert_array_equal(out, np.full((m, n), wanted, np.float32))


def test_a_product_that_the_library_refuses_is_an_error(threads):
    threads(2)
    a = np.ones((160, 160), np.float32)
    with pytest.raises(RuntimeError, match="the library refuses the product"):
        product(Multiplied(status=2), a, a, np.empty_like(a))


def test_set_num_threads_governs_the_compiled_kernels(threads):
    fb.ones(1)  # the device is in use, so the kernels are registered
    before = fb.get_num_threads()
    assert followers["flambeau-native"] is not None
    try:
        fb.set_num_threads(2)
        assert native.get_threads() == 2
        fb.set_num_threads(1)
        assert native.get_threads() == 1
    finally:
        fb.set_num_threads(before)


def test_the_number_of_threads_must_be_positive():
    with pytest.raises(ValueError, match="must be positive"):
        native.set_threads(0)


def _in_child(queue):
    native.set_threads(4)
    queue.put((native.get_threads(), float(CALLS["sum"]())))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_one_thread_and_finishes(threads):
    threads(2)
    wanted = float(CALLS["sum"]())  # the pool of threads exists now
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    child.join(60)
    alive = child.is_alive()
    if alive:
        child.kill()
    assert not alive, "the child waits for threads that it does not have"
    assert child.exitcode == 0
    assert queue.get() == (1, wanted)


def test_wrong_arguments_are_refused_before_anything_is_read():
    a = np.zeros(4, np.float32)
    with pytest.raises(TypeError, match="takes 3 arguments, got 2"):
        native.relu_f32(a, a)
    with pytest.raises(ValueError, match="not C-contiguous"):
        native.relu_f32(a, np.zeros(8, np.float32)[::2], 4)
    a.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        native.relu_f32(a, a, 4)


def test_indices_out_of_range_are_refused():
    a, rows, out = np.zeros((3, 2), np.float32), np.array([0, 3]), np.zeros((2, 2), np.float32)
    for index in (rows, -rows):
        with pytest.raises(IndexError, match=r"take\(\): index out of range"):
            native.take(out, a, index, 2, 8, 3)
        with pytest.raises(IndexError, match="index out of range"):
            native.add_rows_f32(a, index, out, 1, 2, 2, 3)
        with pytest.raises(IndexError, match="index out of range"):
            KERNELS["index"](a.T.copy(), (None, index))
        with pytest.raises(IndexError, match="index out of range"):
            KERNELS["index_put_"](a.T.copy(), (None, index), out, True)
        with pytest.raises(IndexError, match="index out of range"):
            KERNELS["cross_entropy"](out, index, -100)


def test_the_provider_is_shown_where_it_serves():
    providers = host.providers("cpu")
    assert providers["gelu"].startswith("flambeau-native")
    assert providers["bitwise_and"].startswith("flambeau-numpy")
    assert host.report("cpu")["native"] == "compiled"


def test_blocking_the_package_leaves_everything_to_numpy():
    program = (
        "from flambeau.plugin.host import host; host.activate('cpu');"
        "print(sorted({p.split()[0] for p in host.providers('cpu').values()}))"
    )
    # flambeau-onednn, where it is installed, has kernels of its own
    environment = os.environ | {"FLAMBEAU_BLOCK": "flambeau-native,flambeau-onednn"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "['flambeau-numpy']"
