"""Tensors from nested lists in which NumPy's arrays and scalars, tensors and numbers meet."""

from __future__ import annotations

import itertools

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy")

LEAVES = """True 1 1.5 1j np.bool_(1) np.uint8(1) np.int8(1) np.int16(1) np.int32(1) np.int64(1)
    np.float16(1) np.float32(1) np.float64(1) np.complex64(1) np.complex128(1)
    t.tensor(1.5,dtype=t.float64) t.tensor(1,dtype=t.int32)""".split()
ROWS = """[1,2] [1.5,2] np.array([1,2]) np.array([1.5,2.5]) np.array([1,2],dtype=np.float32)
    np.array([True,False]) np.array([1,2],dtype=np.uint8) np.array([1,2])[::-1]""".split()
RAGGED = """[np.array([1,2]),np.array([3])] [np.array([1,2]),3]
    [1,np.array([2,3])]""".split()
WAYS = """t.tensor(data) t.as_tensor(data) t.tensor(data,dtype=t.float64)
    t.tensor(data,dtype=t.int64) t.zeros(1).new_tensor(data)""".split()


def _made(t, data, way="t.tensor(data)"):
    names = {"t": t, "np": np}
    return eval(way, {**names, "data": eval(data, names)})


def _assert_same(data, way="t.tensor(data)"):
    try:
        expected = _made(torch, data, way)
    except (TypeError, Warning):  # PyTorch converts few of NumPy's scalars to another dtype
        return
    found = _made(fb, data, way)
    assert str(found.dtype) == str(expected.dtype)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("leaf", LEAVES)
def test_one_number_in_a_list(leaf, way):
    _assert_same(f"[{leaf}]", way)
    _assert_same(f"[[{leaf}], [{leaf}]]", way)


@pytest.mark.parametrize("first", LEAVES)
def test_two_kinds_of_numbers_have_their_common_dtype(first):
    for second in LEAVES:
        _assert_same(f"[{first}, {second}]")
        _assert_same(f"[[{first}], ({second},)]")


@pytest.mark.parametrize("way", WAYS[:4])
@pytest.mark.parametrize("rows", list(itertools.product(ROWS, repeat=2)))
def test_arrays_in_a_list_are_stacked(rows, way):
    first, second = rows
    _assert_same(f"[{first}, {second}]", way)
    _assert_same(f"[[{first}, {second}], [{second}, {first}]]", way)


@pytest.mark.parametrize("data", RAGGED)
def test_arrays_of_different_shapes_are_refused(data):
    for t in (torch, fb):
        with pytest.raises((ValueError, TypeError)):
            _made(t, data)


def test_a_list_that_contains_itself_is_refused():
    first, second = [], [1]
    first.append(first)
    second.append(second)
    for t, dtype in itertools.product((torch, fb), ("float32", None)):
        kind = dtype and getattr(t, dtype)
        for make in (t.tensor, t.as_tensor):
            with pytest.raises(ValueError, match="too many dimensions 'list'"):
                make(first, dtype=kind)
            with pytest.raises((TypeError, ValueError)):
                make(second, dtype=kind)
