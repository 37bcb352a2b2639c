"""Kept primitives, threads, and forked processes."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest

from flambeau_numpy import extending
from flambeau_numpy.threads import followers
from flambeau_onednn.kernels import convolution
from flambeau_onednn.kernels.convolution import KERNELS
from flambeau_onednn.library import Unsupported, onednn
from flambeau_onednn.primitives import Convolution
from flambeau_onednn.runs import Plans
from flambeau_onednn.threads import get_num_threads, limited, set_num_threads

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(4, 16, 20, 20)).astype(np.float32)
WEIGHT = RANDOM.normal(size=(32, 16, 3, 3)).astype(np.float32)
GEOMETRY = ((1, 1), (1, 1), (1, 1), 1)


def conv() -> np.ndarray:
    return KERNELS["conv2d"](X, WEIGHT, None, *GEOMETRY)


def test_a_plan_is_made_once_for_a_geometry_and_a_number_of_threads(monkeypatch, threads):
    monkeypatch.setattr(convolution, "plans", Plans(8))
    conv()
    conv()
    assert len(convolution.plans.kept) == 1
    threads(get_num_threads() + 1)
    conv()
    assert len(convolution.plans.kept) == 2
    KERNELS["conv2d"](X, WEIGHT, None, (1, 1), (0, 0), (1, 1), 1)
    assert len(convolution.plans.kept) == 3


def test_what_is_not_supported_is_asked_once_and_remembered():
    asked = []

    def make():
        asked.append(1)
        raise Unsupported("convolution")

    plans = Plans(4)
    assert plans.find("key", make) is plans.find("key", make) is None
    assert len(asked) == 1


def test_old_plans_are_destroyed_and_made_again(monkeypatch):
    monkeypatch.setattr(convolution, "plans", Plans(2))
    wanted = conv()
    for padding in range(2, 6):
        KERNELS["conv2d"](X, WEIGHT, None, (1, 1), (padding, padding), (1, 1), 1)
    gc.collect()
    assert len(convolution.plans.kept) == 2
    np.testing.assert_array_equal(conv(), wanted)


def test_threads_may_run_one_plan_at_the_same_time(agree_at_once):
    def convolved(x):
        return KERNELS["conv2d"](x, WEIGHT, None, *GEOMETRY)

    images = [X * scale for scale in (1, 2, 4, 8)]
    agree_at_once(convolved, images, [convolved(x) for x in images])


@pytest.mark.parametrize("count", [2, 3])
def test_results_for_several_threads_agree(threads, count):
    threads(1)
    wanted = conv()
    threads(count)
    np.testing.assert_allclose(conv(), wanted, rtol=1e-5, atol=1e-5)


def test_the_number_of_threads_of_others_is_put_back():
    library = onednn()
    if library.get_threads is None:
        pytest.skip("this oneDNN does not use OpenMP")
    before = library.get_threads()
    with limited(before + 2):
        assert library.get_threads() == before + 2
    assert library.get_threads() == before


def test_the_number_of_threads_must_be_positive():
    with pytest.raises(ValueError, match="must be positive, got 0"):
        set_num_threads(0)


def test_set_num_threads_of_flambeau_governs_oneDNN(threads, monkeypatch):
    import flambeau as fb
    from flambeau_onednn.plugin import flambeau_kernels

    before = fb.get_num_threads()
    monkeypatch.setitem(followers, "flambeau-onednn", None)
    assert flambeau_kernels("cpu") is not None
    assert flambeau_kernels("cuda") is None
    assert get_num_threads() == before
    try:
        fb.set_num_threads(2)
        assert get_num_threads() == 2
    finally:
        fb.set_num_threads(before)


def test_a_failure_names_the_function_and_the_version():
    with pytest.raises(RuntimeError, match=r"oneDNN 3\..*: dnnl_engine_create failed with status"):
        onednn().made("engine_create", 77, 0)


def test_a_geometry_that_does_not_fit_is_an_error():
    with pytest.raises(Unsupported, match="convolution_forward_primitive_desc_create"):
        Convolution(onednn(), 64, (1, 2, 4, 4), (3, 5, 3, 3), False, GEOMETRY, np.dtype(np.float32))


@pytest.mark.parametrize("kind", [64, 160, 192])
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("short", [0, 1])
def test_a_plan_is_held_to_the_lengths_of_its_layouts_from_the_first_call_on(
    kind, native, short, monkeypatch
):
    if not native:
        monkeypatch.setattr(extending.offered, "primitives", None)
    plan = Convolution(
        onednn(), kind, (1, 4, 6, 6), (8, 4, 3, 3), False, GEOMETRY, np.dtype(np.float32)
    )
    given = [np.ones(shape, np.float32) for shape in plan.takes]
    result = plan(*given)
    fresh = Convolution(
        onednn(), kind, (1, 4, 6, 6), (8, 4, 3, 3), False, GEOMETRY, np.dtype(np.float32)
    )
    for each in (fresh, plan):
        held = list(given)
        held[short] = held[short].reshape(-1)[:-1].copy()
        with pytest.raises(RuntimeError, match="bytes"):
            each(*held)
        assert np.array_equal(each(*given), result)


def _in_child(queue):
    set_num_threads(4)
    queue.put((get_num_threads(), conv()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_one_thread_and_finishes(threads, answer_of_child):
    threads(2)
    wanted = conv()  # the pool of threads exists now
    count, received = answer_of_child(_in_child)
    assert count == 1
    np.testing.assert_allclose(received, wanted, rtol=1e-5, atol=1e-5)
