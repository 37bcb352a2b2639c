"""Compiled functions read and write within their arrays, whoever calls them with whatever."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau_native.extension import native

ROWS = [
    getattr(native, name)
    for name in dir(native)
    if (f := getattr(native, name)).__doc__ and set(f.__doc__) <= set("rwoWif")
]
ADDRESSES = {"sgemm"}  # which takes matrices by their addresses


@pytest.mark.parametrize("size", [1 << 16, 1 << 62], ids=["many", "more than a number holds"])
@pytest.mark.parametrize("function", ROWS, ids=lambda f: f.__name__)
def test_arrays_that_are_too_short_are_refused(function, size):
    if function.__name__ in ADDRESSES:
        return
    values = []
    for kind in function.__doc__:
        if kind == "i":
            values.append(size)
        else:
            values.append(1.0 if kind == "f" else np.zeros(1, np.uint8))
    with pytest.raises(RuntimeError, match="bytes|one shape"):
        function(*values)


@pytest.mark.parametrize("shape", [(3, 2), (6,), (7,), (5,)])
def test_a_step_is_of_arrays_of_one_shape(shape):
    p, state = np.zeros((2, 3), np.float32), np.zeros(shape, np.float32)
    with pytest.raises(RuntimeError, match="one shape|bytes"):
        native.adagrad_f32(p, p.copy(), state, 6, 0, 0.0, -0.1, 1e-8)


def test_the_best_are_no_more_than_there_are():
    values, places = np.zeros(5, np.float32), np.zeros(5, np.int64)
    with pytest.raises(RuntimeError, match="out of range"):
        native.topk_f32(values, places, np.zeros(3, np.float32), 1, 3, 5, 1)


@pytest.mark.parametrize("step", [3, (1 << 62), (1 << 63) - 1])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_steps_that_leave_a_volume_end_its_windows(step, kind):
    function = native.max_boxes_f32 if kind is np.float32 else native.max_boxes_f64
    volume = np.arange(27, dtype=kind)
    values, places = np.zeros(8, kind), np.zeros(8, np.int64)
    first, end = np.array([0, 1]), np.array([2, 3])
    bounds = (first, end, first, end, first, end)
    function(values, places, volume, *bounds, 1, 3, 3, 3, 2, 2, 2, step, step, step)
    corners = [9 * i + 3 * j + k for i in (0, 1) for j in (0, 1) for k in (0, 1)]
    assert values.tolist() == places.tolist() == corners
