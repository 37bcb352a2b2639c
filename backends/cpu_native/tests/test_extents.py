"""Compiled functions read and write within their arrays, whoever calls them with whatever."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau_native.extension import native

ROWS = [
    getattr(native, name)
    for name in dir(native)
    if (f := getattr(native, name)).__doc__ and set(f.__doc__) <= set("rwoWiaf")
]
ADDRESSES = {"sgemm"}  # which takes matrices by their addresses


@pytest.mark.parametrize("size", [1 << 16, 1 << 62], ids=["many", "more than a number holds"])
@pytest.mark.parametrize("function", ROWS, ids=lambda f: f.__name__)
def test_arrays_that_are_too_short_are_refused(function, size):
    if function.__name__ in ADDRESSES:
        return
    values = []
    for kind in function.__doc__:
        if kind in "ia":
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


def test_lists_of_other_lengths_and_of_no_arrays_are_refused():
    some = [np.zeros(3, np.float32), np.zeros(2, np.float32)]
    with pytest.raises(ValueError, match="one length"):
        native.sgd_each_f32(some, some[:1], 0, 0.0, -0.1)
    with pytest.raises(TypeError):
        native.sgd_each_f32(some, 3, 0, 0.0, -0.1)
    with pytest.raises(TypeError, match="takes 5 arguments, got 4"):
        native.sgd_each_f32(some, some, 0, 0.0)
    with pytest.raises(TypeError):
        native.sgd_each_f32(some, some, "no", 0.0, -0.1)
    assert native.sgd_each_f32(some, [some[0], None], 0, 0.0, -0.1) is False
    assert native.sgd_each_f64(some, some, 0, 0.0, -0.1) is False
    for a in some:
        a.flags.writeable = False
    assert native.sgd_each_f32(some, some, 0, 0.0, -0.1) is False
    assert native.sgd_each_f32([], [], 0, 0.0, -0.1) is True


@pytest.mark.parametrize("step", [(-1, 1), (0, 3), (4, 1), (3, 2), (1 << 62, 1), (0, -1)])
@pytest.mark.parametrize("name", ["lstm_sequence", "lstm_sequence_backward"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_steps_of_a_sequence_are_rows_that_there_are(name, step, kind):
    total, batch, size = 4, 2, 16
    steps = np.array([[0, 2], step], np.int64)
    wide, rows, states = (
        np.zeros(shape, kind) for shape in ((total, 4 * size), (total, size), (batch, size))
    )
    packed = np.zeros((4 * size, size), kind)
    arrays = [wide, rows, states, states.copy(), rows.copy(), wide.copy(), packed, steps]
    filled = 4 * size
    if name == "lstm_sequence_backward":
        before = rows.copy()
        arrays = [wide, states, states.copy(), rows, None, None, wide.copy(), rows.copy()]
        arrays, filled = [*arrays, before, packed, steps], size
    function = getattr(native, f"{name}_f32" if kind is np.float32 else f"{name}_f64")
    with pytest.raises(IndexError, match="rows that are not there"):
        function(*arrays, total, batch, size, 2, filled)
    steps[1] = 2, 2
    function(*arrays, total, batch, size, 2, filled)
    with pytest.raises(RuntimeError, match="columns|bytes"):
        function(*arrays, total, batch, size, 2, filled - 16)
