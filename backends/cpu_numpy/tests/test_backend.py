"""The runtime of the CPU: host memory, strides, values, and data from NumPy and Python."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest

from flambeau import plugin
from flambeau_numpy import threads
from flambeau_numpy.backend import NumpyBackend
from flambeau_numpy.dtypes import FROM_NUMPY, TO_NUMPY

CPU = NumpyBackend()
DTYPES = plugin.dtypes


def sample(dtype: plugin.dtype) -> np.ndarray:
    return np.array([[0, 1, 1], [1, 0, 1]]).astype(TO_NUMPY[dtype])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_host_bytes_round_trip_from_every_layout(dtype: plugin.dtype) -> None:
    a = sample(dtype)
    for x in (a, a.T, a[:, ::2], a[:0], a[0, 0].reshape(())):
        data = CPU.to_host(x)
        assert len(data) == x.size * dtype.itemsize
        back = CPU.from_host(bytearray(data), x.shape, dtype, 0)
        assert CPU.dtype_of(back) is dtype
        np.testing.assert_array_equal(back, x)
        assert back.flags.writeable


def test_from_host_copies() -> None:
    data = bytearray(8)
    a = CPU.from_host(data, (2,), plugin.float32, 0)
    data[0:8] = b"\xff" * 8
    assert a.tolist() == [0, 0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_scalar_item_and_tolist_are_python_numbers(dtype: plugin.dtype) -> None:
    a = CPU.scalar(1, dtype)
    assert a.shape == ()
    assert CPU.dtype_of(a) is dtype
    expected = {0: bool, 1: int, 2: float, 3: complex}[dtype.category]
    assert type(CPU.item(a)) is expected
    assert type(CPU.item(a.reshape(1, 1))) is expected
    assert type(CPU.tolist(a)) is expected
    nested = CPU.tolist(sample(dtype))
    assert [type(x) for x in nested[0]] == [expected] * 3
    assert nested == [[0, 1, 1], [1, 0, 1]]


def test_item_of_several_elements_is_refused() -> None:
    with pytest.raises(ValueError, match=r"got 6 \(shape \(2, 3\)\)"):
        CPU.item(sample(plugin.float32))


def test_kernel_results_that_are_numbers_become_arrays() -> None:
    for value in (np.float32(2), np.bool_(True), ml_dtypes.bfloat16(2), np.complex64(2)):
        a = CPU.to_array(value)
        assert type(a) is np.ndarray
        assert a.shape == ()
        assert a.dtype == value.dtype


def test_strides_and_offsets_count_elements() -> None:
    a = np.arange(24.0).reshape(4, 6)
    v = a[1::2, 2:]
    assert CPU.strides(v) == (12, 1)
    assert CPU.offset(v, a) == 8
    assert CPU.offset(a, a) == 0
    assert CPU.data_ptr(v) - CPU.data_ptr(a) == 64
    assert CPU.data_ptr(np.empty(0)) == 0


def test_owns_tells_views_from_arrays() -> None:
    for n in (4, 400):
        a = plugin_zeros(n)
        assert CPU.owns(a)
        assert not CPU.owns(a[1:])
        assert not CPU.owns(a.T)


def plugin_zeros(n: int) -> np.ndarray:
    from flambeau_numpy.kernels.creation import full

    return full((n, n), 1.0, plugin.float64)


@pytest.mark.parametrize("order", ["C", "F"])
def test_as_strided_reaches_all_memory_of_its_root_and_no_more(order: str) -> None:
    memory = np.arange(12.0)
    root = memory.reshape(3, 4) if order == "C" else memory.reshape(4, 3).T
    v = CPU.as_strided(root, (2, 3), (1, 2), 4)
    assert v.tolist() == [[4, 6, 8], [5, 7, 9]]
    v[0, 0] = 77
    assert memory[4] == 77
    assert CPU.as_strided(root, (3, 2), (0, 0), 11).tolist() == [[11, 11]] * 3
    assert CPU.as_strided(root, (0, 5), (1, 1), 40).shape == (0, 5)
    assert CPU.as_strided(root, (), (), 5).tolist() == 5
    for shape, stride, offset in (((2,), (1,), 11), ((3, 3), (4, 4), 0), ((1,), (1,), 12)):
        with pytest.raises(ValueError, match="beyond the memory"):
            CPU.as_strided(root, shape, stride, offset)


def test_from_numpy_shares_memory_and_copies_on_request() -> None:
    a = np.arange(6.0).reshape(2, 3).T
    assert CPU.from_numpy(a) is a
    copy = CPU.from_numpy(a, copy=True)
    assert not np.shares_memory(copy, a)
    assert copy.tolist() == a.tolist()
    view = CPU.numpy(a)
    assert view is not a
    assert np.shares_memory(view, a)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_from_numpy_makes_plain_arrays_of_subclasses_and_numbers() -> None:
    a = CPU.from_numpy(np.matrix([[1.0, 2.0]]))
    assert type(a) is np.ndarray
    assert CPU.from_numpy(np.float32(3)).shape == ()


def test_from_numpy_refuses_what_tensors_cannot_be() -> None:
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got list\)"):
        CPU.from_numpy([1])
    with pytest.raises(TypeError, match="can't convert np.ndarray of type"):
        CPU.from_numpy(np.array(["a"]))
    with pytest.raises(TypeError, match="complex256|longdouble|clongdouble"):
        CPU.from_numpy(np.zeros(2, np.clongdouble))
    with pytest.raises(ValueError, match="byte order"):
        CPU.from_numpy(np.zeros(2, ">f4"))
    with pytest.raises(ValueError, match="negative"):
        CPU.from_numpy(np.arange(3)[::-1])
    record = np.zeros(3, [("a", "u1"), ("b", "<f4")])
    with pytest.raises(ValueError, match="not a multiple"):
        CPU.from_numpy(record["b"])
    assert CPU.from_numpy(np.arange(3)[::-1], copy=True).tolist() == [2, 1, 0]


def test_from_numpy_warns_of_read_only_arrays() -> None:
    a = np.arange(3)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        assert CPU.from_numpy(a) is a
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert CPU.from_numpy(a, copy=True).flags.writeable


def test_from_nested_takes_plain_numbers() -> None:
    for data, dtype in (
        ([True, False], plugin.bool_),
        ([[1, 2], [3, 4]], plugin.int64),
        ([True, 2], plugin.int64),
    ):
        array, found = CPU.from_nested(data, None)
        assert found is dtype
        assert array.tolist() == data
    array, found = CPU.from_nested(((1.5, 2), (3, 4)), plugin.bfloat16)
    assert found is plugin.bfloat16
    assert array.dtype == TO_NUMPY[plugin.bfloat16]
    array, _ = CPU.from_nested([1e300, 1.0], plugin.float32)
    assert array.tolist() == [np.inf, 1.0]


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([], None),
        ([[1, 2], [3]], None),
        ([1 << 70], None),
        ([1.5], None),
        ([1.5], plugin.int64),
        ([300], plugin.uint8),
        (["a"], None),
        ([None], None),
        ([1, "a"], None),
        ([1 + 2j], plugin.float32),
        (3, plugin.uint8),
    ],
)
def test_from_nested_leaves_the_rest_to_the_core(data: object, dtype: plugin.dtype | None) -> None:
    assert CPU.from_nested(data, dtype) is None


def test_dtypes_are_a_bijection() -> None:
    assert set(TO_NUMPY) == {*DTYPES, *plugin.limited_dtypes}
    assert {FROM_NUMPY[d]: d for d in TO_NUMPY.values()} == TO_NUMPY
    for dtype, native in TO_NUMPY.items():
        assert native.itemsize == dtype.itemsize
        assert native.isnative


def test_number_of_threads_can_be_set() -> None:
    before = threads.get_num_threads()
    try:
        threads.set_num_threads(1)
        assert threads.get_num_threads() == 1
        for count in (0, -1):
            with pytest.raises(RuntimeError, match="positive"):
                threads.set_num_threads(count)
    finally:
        threads.set_num_threads(before)
