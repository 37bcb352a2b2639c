"""Operands with gaps between their rows, or that repeat: numbers and order of NumPy's results."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau_native.extension import native
from flambeau_native.kernels import KERNELS
from flambeau_numpy.kernels import KERNELS as NUMPY

BINARY = ("add", "sub", "mul", "div", "lt", "ge", "eq")
UNARY = ("neg", "abs", "sqrt", "relu", "exp", "sigmoid")
EXACT = {"neg", "abs", "sqrt", "relu", *BINARY}


class Other(np.ndarray):
    """An array of a class that compiled code does not read where it lies."""


def filled(shape, dtype, seed):
    """Numbers, of which some are zero, infinite or NaN."""
    x = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    flat = x.reshape(-1)
    flat[::7], flat[3::31], flat[5::37] = 0, np.inf, np.nan
    return x


def alike(name, *operands):
    with np.errstate(all="ignore"):
        found, wanted = KERNELS[name](*operands), NUMPY[name](*operands)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    steps = [[s for s, n in zip(a.strides, a.shape, strict=True) if n > 1] for a in (found, wanted)]
    assert steps[0] == steps[1]  # where there is one element, they lead nowhere
    if name in EXACT:
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(
            found, wanted, 1e-2 if found.dtype == np.float16 else 2e-6, 1e-30
        )


@st.composite
def pairs(draw):
    """Two operands cut from larger arrays; dimensions of them are missing, 1, or turned."""
    shape = draw(st.lists(st.integers(1, 9) | st.just(40), min_size=1, max_size=4).map(tuple))
    dtype = draw(st.sampled_from([np.float32, np.float64, np.float16]))
    operands = []
    for seed in (0, 1):
        before = draw(st.tuples(*[st.integers(0, 2)] * len(shape)))
        x = filled([n + 3 for n in shape], dtype, seed)
        x = x[tuple(slice(b, b + n) for b, n in zip(before, shape, strict=True))]
        repeated = draw(st.sets(st.integers(0, len(shape) - 1)))
        x = x[tuple(slice(1) if d in repeated else slice(None) for d in range(len(shape)))]
        match draw(
            st.sampled_from(["own", "expanded", "dense", "fewer", "turned", "every second"])
        ):
            case "expanded":
                x = np.broadcast_to(x, shape)
            case "dense":
                x = np.ascontiguousarray(x)
            case "fewer" if 0 in repeated:
                x = x[0, ...]
            case "turned":
                x = np.ascontiguousarray(x.T).T
            case "every second":
                x = np.repeat(x, 2, -1)[..., ::2]
        operands.append(x)
    return operands


@given(pairs(), st.sampled_from(BINARY))
@settings(max_examples=400, deadline=None)
def test_functions_of_two_operands_with_gaps(operands, name):
    alike(name, *operands)


@given(pairs(), st.sampled_from(UNARY))
@settings(max_examples=200, deadline=None)
def test_functions_of_operands_with_gaps(operands, name):
    alike(name, abs(operands[0]) if name == "sqrt" else operands[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("line", [4, 15, 16, 17, 1023, 1024, 1025, 16384, 16400, 40000])
def test_lines_of_any_length_are_cut_into_pieces(line, dtype):
    x, y = filled((5, line + 8), dtype, 0), filled((5, line), dtype, 1)
    column, number = x[:, :1], np.array(1.5, dtype)
    for a, b in itertools.product((x[:, 3 : line + 3], x[:, :line]), (y, x[:, 8:], column, number)):
        for name in ("add", "div", "lt"):
            alike(name, a, b)
            alike(name, b, a)
        alike("neg", a)


def test_rows_with_gaps_and_rows_that_repeat_are_read_where_they_lie():
    def refuse(*args):
        raise NotImplementedError

    x = filled((5, 9, 40), np.float32, 0)
    two = native.whole(refuse, ((x.dtype, native.add_f32),), 1 << 30, np.empty)
    one = native.whole(refuse, ((x.dtype, native.neg_f32),), 1 << 30, np.empty)
    row, number = x[0, 0, :30], np.array(2, np.float32)
    for b in (x[..., 5:35], x[:, :1, :30], x[..., :1], x[0, 1, :30], row.copy(), number):
        np.testing.assert_array_equal(two(x[..., :30], b), x[..., :30] + b)
        np.testing.assert_array_equal(two(b, x[..., :30]), b + x[..., :30])
    np.testing.assert_array_equal(one(x[:, 1:, 3:]), -x[:, 1:, 3:])
    for short in (x[..., ::2], x[..., :3], x[..., 5], x[:, 3, 4:6], x[..., 1::7]):
        np.testing.assert_array_equal(one(short), -short)
        np.testing.assert_array_equal(two(short, short[:1]), short + short[:1])
    for other in (x.T, x[::-1], x.view(Other)[..., 1:]):
        with pytest.raises(NotImplementedError):
            one(other)
    with pytest.raises(NotImplementedError):
        one(np.broadcast_to(x[:, :1, :30], (5, 9, 30)))  # each element is computed once


@given(
    st.lists(st.integers(1, 5) | st.just(40), min_size=1, max_size=3).map(tuple),
    st.lists(st.tuples(*[st.integers(0, 12)] * 2), min_size=3, max_size=3),
    st.lists(st.tuples(*[st.integers(1, 3)] * 2), min_size=3, max_size=3),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([np.add, np.multiply]),
    st.sampled_from(["shared", "another", "row", "number", "itself"]),
)
@settings(max_examples=600, deadline=None)
def test_rows_with_gaps_are_written_in_place(shape, starts, steps, dtype, function, kind):
    """As NumPy does, which copies operands that share memory; the gaps stay."""
    whole = filled([3 * n + 12 for n in shape], dtype, 0)
    cuts = [
        tuple(
            slice(at[k], at[k] + n * step[k], step[k])
            for n, at, step in zip(shape, starts, steps, strict=False)
        )
        for k in (0, 1)
    ]
    found, wanted = whole.copy(), whole.copy()
    with np.errstate(all="ignore"):
        for x, write in (
            (found, KERNELS[{"add": "add_", "multiply": "mul_"}[function.__name__]]),
            (wanted, lambda a, b: function(a, b, out=a)),
        ):
            other = {
                "shared": x[cuts[1]],
                "another": whole.copy()[cuts[1]],
                "row": whole[(0,) * (len(shape) - 1)][cuts[1][-1]],
                "number": np.array(1.5, dtype),
                "itself": x[cuts[0]],
            }[kind]
            write(x[cuts[0]], other)
    np.testing.assert_array_equal(found, wanted)


def test_functions_write_rows_with_gaps_in_place():
    def refuse(*args):
        raise NotImplementedError

    x = filled((40, 90), np.float32, 0)
    found = x.copy()
    write = native.whole(refuse, ((x.dtype, native.relu_f32),), 1 << 30, None)
    write(found[::2, 3:17])
    write(found[:, 20:22])
    write(found[1:3, 70::5])
    wanted = x.copy()
    for part in (wanted[::2, 3:17], wanted[:, 20:22], wanted[1:3, 70::5]):
        part[part < 0] = 0
    np.testing.assert_array_equal(found, wanted)
    still = found[:, 3:9]
    still.setflags(write=False)
    windows = np.lib.stride_tricks.sliding_window_view(found[0], 50, writeable=True)
    for other in (still, windows, np.broadcast_to(found[:1], (3, 90)), found.T):
        with pytest.raises(NotImplementedError):
            write(other)
    np.testing.assert_array_equal(found, wanted)


def test_the_number_of_threads_makes_no_difference():
    x = filled((3, 70, 300, 10), np.float32, 0)
    before, found = native.get_threads(), []
    try:
        for threads in (1, 2, 3):
            native.set_threads(threads)
            found.append(KERNELS["add"](x[:, 1:, ..., 1:], x[:1, :-1, ..., :-1]))
    finally:
        native.set_threads(before)
    np.testing.assert_array_equal(found[0], x[:, 1:, ..., 1:] + x[:1, :-1, ..., :-1])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_shapes_that_do_not_fit_are_refused():
    x = filled((4, 9), np.float32, 0)
    with pytest.raises(ValueError, match="broadcast"):
        KERNELS["add"](x[:, :8], x[:, :7])
    with pytest.raises(ValueError, match="broadcast"):
        KERNELS["add"](x[:3, :8], x[:, :8])
    assert KERNELS["add"](x[:0, :8], x[:1, :8]).shape == (0, 8)


@given(pairs(), st.data())
@settings(max_examples=400, deadline=None)
def test_what_is_written_to_rows_with_gaps_leaves_the_gaps(operands, data):
    """From and to dimensions in any order of memory."""
    a, b = operands
    try:
        b = np.broadcast_to(b, a.shape)
    except ValueError:
        return
    if 0 in a.strides:
        return
    orders = st.permutations(range(a.ndim))
    to, back = data.draw(orders), data.draw(orders)
    b = b.transpose(back).copy().transpose(np.argsort(back))
    found, wanted = (np.full([a.shape[d] + 5 for d in to], 7, a.dtype) for _ in range(2))
    place = (..., *(slice(2, a.shape[d] + 2) for d in to))
    KERNELS["assign"](found[place].transpose(np.argsort(to)), b)
    np.copyto(wanted[place].transpose(np.argsort(to)), b)
    np.testing.assert_array_equal(found, wanted)


@given(
    st.lists(st.integers(1, 9) | st.just(40), min_size=1, max_size=3).map(tuple),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=3, max_size=3),
    st.sampled_from([np.float32, np.float64, np.int8, np.bool_]),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_rows_that_share_memory_are_written_as_they_were_before(shape, starts, dtype, is_turned):
    whole = np.random.default_rng(0).integers(0, 99, [n + 12 for n in shape]).astype(dtype)
    cuts = []
    for which in (0, 1):
        at = [pair[which] for pair in starts[: len(shape)]]
        cuts.append(tuple(slice(s, s + n) for s, n in zip(at, shape, strict=True)))
    found, wanted = whole.copy(), whole.copy()
    views = [(x.T if is_turned else x) for x in (found, wanted)]
    cut = [c[::-1] if is_turned else c for c in cuts]
    KERNELS["assign"](views[0][cut[0]], views[0][cut[1]])
    np.copyto(views[1][cut[0]], views[1][cut[1]].copy())
    np.testing.assert_array_equal(found, wanted)


@given(
    st.integers(4, 9),
    st.integers(2, 4),
    st.permutations(range(3)),
    st.tuples(*[st.integers(0, 2)] * 6),
    st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=300, deadline=None)
def test_cubes_that_share_memory_are_written_in_any_order(line, side, order, starts, dtype):
    """The last dimension is longer; the others are the same and change places."""
    shape = (side, side, side, line)
    whole = np.random.default_rng(0).normal(size=[n + 2 for n in shape]).astype(dtype)
    cuts = [
        tuple(slice(s, s + n) for s, n in zip((*at, at[0]), shape, strict=True))
        for at in (starts[:3], starts[3:])
    ]
    found, wanted = whole.copy(), whole.copy()
    for x, read in ((found, None), (wanted, wanted.copy())):
        a, b = x[cuts[0]], (x if read is None else read)[cuts[1]].transpose(*order, 3)
        KERNELS["assign"](a, b)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.complex64])
def test_copies_of_slices_are_row_major_and_of_their_own(dtype):
    x = np.arange(6 * 70 * 40).reshape(6, 70, 40).astype(dtype)
    for a in (x[..., 3:], x[:, 1:, :20], x[:1, ..., :30], x[::2], x[..., ::3], x[::-1], x[..., :3]):
        for name in ("clone", "contiguous"):
            found = KERNELS[name](a)
            np.testing.assert_array_equal(found, a)
            assert found.strides == (a.copy("K") if name == "clone" else a.copy("C")).strides
            assert not np.shares_memory(found, x)


ROWS = {
    "sum": ((-1,), False),
    "mean": ((0,), True),
    "prod": ((-1,), False),
    "amax": ((-1,), False),
    "extremum": (-1, False, True),
    "argmin": (0, False),
    "all": ((-1,), True),
    "count_nonzero": ((0,), False),
    "var": ((-1,), 1, False),
    "softmax": (-1,),
    "log_softmax": (0,),
    "logsumexp": ((-1,), False),
    "cumsum": (-1,),
}


@given(pairs(), st.sampled_from(sorted(ROWS)))
@settings(max_examples=400, deadline=None)
def test_rows_with_gaps_are_reduced_as_a_copy_of_them_is(operands, name):
    x, rank = operands[0], operands[0].ndim
    if not rank:
        return
    if list(x.strides) != sorted(x.strides, reverse=True) or 0 in x.strides:
        x = np.repeat(np.ascontiguousarray(x), 3, -1)[..., 1::3]
    settings = [
        tuple(d % rank for d in s) if type(s) is tuple else s % rank if i == 0 else s
        for i, s in enumerate(ROWS[name])
    ]
    with np.errstate(all="ignore"):
        found = KERNELS[name](x, *settings)
        wanted = KERNELS[name](np.ascontiguousarray(x), *settings)
    for a, b in zip(*(f if type(f) is tuple else (f,) for f in (found, wanted)), strict=True):
        assert a.strides == b.strides
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16])
def test_elements_are_collected_from_rows_of_any_length_and_step(itemsize):
    dtype = {1: np.bool_, 2: np.float16, 4: np.int32, 8: np.int64, 16: np.complex128}[itemsize]
    found = []

    def prepare(a):
        found.append(a.shape)

    def refuse(a):
        raise NotImplementedError

    seen = native.prepared("seen", "a", prepare, lambda a: None, np.ndarray, np.empty)
    table = native.prepared("table", "t", refuse, lambda a: None, np.ndarray, np.empty)
    x = np.zeros((4, 5, 60), dtype)
    for a in (
        x[..., :1],
        x[..., :2],
        x[..., 3:40],
        x[:, ::2, ::3],
        x[::3],
        x[0, :, 5],
        x[0, 0, ::7],
    ):
        seen(a)
        table(a)
        assert found.pop() == a.shape
    windows = np.lib.stride_tricks.sliding_window_view(x[0, 0], 50)
    for a in (np.broadcast_to(x[:, :1], x.shape), windows, x.T, x[..., ::-1], x.view(Other)):
        seen(a)
        assert not found
