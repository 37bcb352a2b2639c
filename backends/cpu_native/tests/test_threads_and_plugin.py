"""Threads, forked processes, and what is left when the package is blocked."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

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
            native.add_rows_f32(a, index, out, 2, 2, 3)
        with pytest.raises(IndexError, match="index out of range"):
            KERNELS["cross_entropy"](out, index, -100)


def test_the_provider_is_shown_where_it_serves():
    providers = host.providers("cpu")
    assert providers["gelu"].startswith("flambeau-native")
    assert providers["lt"].startswith("flambeau-numpy")
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
