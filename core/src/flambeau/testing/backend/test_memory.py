"""Arrays come from the host, go back to it, travel between devices, and are described correctly."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import flambeau as fb
from flambeau._dispatch.bound import bind
from flambeau._types import dtype as D
from flambeau.plugin import Backend
from flambeau.plugin.host import host
from flambeau.testing.backend import _support as kit
from flambeau.testing.samples import LAYOUTS, Arr, lay_out, special_values

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


LEVEL = "memory"

SHAPES = ((), (1,), (3,), (2, 3), (2, 1, 4), (0,), (2, 0, 3))


def dtypes(device: str) -> Iterator[Any]:
    for dtype in D.ALL:
        yield kit.case(device, dtype, dtype, id=dtype.name)


def laid_out(device: str) -> Iterator[Any]:
    for dtype in (fb.float32, fb.int64, fb.bool):
        for layout in LAYOUTS:
            yield kit.case(device, dtype, dtype, layout, id=f"{dtype.name}-{layout}")


def targets(device: str) -> Iterator[Any]:
    for name in host.device_types():
        if name != "meta" and host.is_available(name):
            yield pytest.param(name, id=name)


def packed(shape: tuple[int, ...], dtype: fb.dtype) -> bytes:
    numbers = special_values(dtype)
    return D.pack([numbers[i % len(numbers)] for i in range(math.prod(shape))], dtype)


@kit.cases("dtype", dtypes)
def test_bytes_survive_the_way_to_the_device_and_back(device: str, dtype: DType) -> None:
    backend = bind(device).backend
    for shape in SHAPES:
        data = packed(shape, dtype)
        array = backend.from_host(data, shape, dtype, 0)
        assert type(array) is backend.array
        assert array.shape == shape
        assert all(type(n) is int for n in array.shape)
        assert backend.dtype_of(array) is dtype
        assert bytes(backend.to_host(array)) == data


def test_a_large_array_survives(device: str) -> None:
    backend = bind(device).backend
    (dtype, *_) = kit.supported(device, (fb.float32, fb.int64, fb.uint8))
    count = 100_003
    data = bytes(i * 7 % 251 for i in range(count)) * dtype.itemsize
    found = bytes(backend.to_host(backend.from_host(data, (count,), dtype, 0)))
    assert not kit.difference(found, data)


@kit.cases("dtype", dtypes)
def test_from_host_copies(device: str, dtype: DType) -> None:
    backend = bind(device).backend
    data = packed((2, 3), dtype)
    source = bytearray(data)
    for buffer in (source, memoryview(source)):
        array = backend.from_host(buffer, (2, 3), dtype, 0)
        source[:] = bytes(len(source))
        assert bytes(backend.to_host(array)) == data, "the array shares memory with its source"
        source[:] = data


@kit.cases("dtype", dtypes)
def test_values_are_python_numbers(device: str, dtype: DType) -> None:
    be = bind(device)
    backend = be.backend
    kind = (bool, int, float, complex)[dtype.category]
    values = D.unpack(packed((2, 2), dtype), dtype)
    array = be.host_array(values, (2, 2), dtype)
    found = backend.tolist(array)
    assert repr(found) == repr([values[:2], values[2:]])
    assert all(type(v) is kind for row in found for v in row)
    for value in values:
        item = backend.item(backend.scalar(value, dtype))
        assert type(item) is kind
        assert repr(item) == repr(value)
    assert repr(backend.tolist(backend.scalar(values[0], dtype))) == repr(values[0])
    assert backend.tolist(be.host_array([], (2, 0), dtype)) == [[], []]
    assert repr(backend.item(be.host_array(values[:1], (1, 1), dtype))) == repr(values[0])


@kit.cases("dtype", dtypes)
def test_scalars_are_0d_arrays_of_their_dtype(device: str, dtype: DType) -> None:
    backend = bind(device).backend
    array = backend.scalar(1, dtype)
    assert type(array) is backend.array
    assert array.shape == ()
    assert backend.dtype_of(array) is dtype


def test_item_of_several_elements_is_refused(device: str) -> None:
    be = bind(device)
    (dtype, *_) = kit.supported(device)
    for shape in ((2,), (0,)):
        array = be.host_array([1] * math.prod(shape), shape, dtype)
        with pytest.raises(ValueError, match=r"\S"):
            be.backend.item(array)


@kit.cases("dtype layout", laid_out)
def test_every_layout_reads_back_in_row_major_order(device: str, dtype: DType, layout: str) -> None:
    for shape in SHAPES:
        t = lay_out(Arr(shape, seed=3), layout, kit.maker(device), dtype)
        e = lay_out(Arr(shape, seed=3), layout, kit.maker(kit.REFERENCE), dtype)
        assert kit.numbers(t) == kit.numbers(e)
        assert t.tolist() == e.tolist()
        assert t.shape == e.shape


@kit.cases("dtype layout", laid_out)
def test_copies_share_nothing(device: str, dtype: DType, layout: str) -> None:
    t = lay_out(Arr((2, 3), seed=3), layout, kit.maker(device), dtype)
    before = kit.memory(t), t.tolist()
    for made in (t.clone(), t.to(device, copy=True)):
        assert made.tolist() == before[1]
        made.fill_(1)
        made.fill_(0)
        assert (kit.memory(t), t.tolist()) == before
    assert copy.deepcopy(t).tolist() == before[1]
    assert pickle.loads(pickle.dumps(t)).tolist() == before[1]
    assert pickle.loads(pickle.dumps(t)).device == t.device


@kit.cases("target", targets)
def test_copies_to_and_from_other_devices(device: str, target: str) -> None:
    for dtype in kit.supported(target, tuple(kit.supported(device))):
        for layout in LAYOUTS:
            t = lay_out(Arr((2, 3), seed=5), layout, kit.maker(device), dtype)
            there = t.to(target)
            assert there.device.type == target
            assert (there.dtype, there.shape) == (t.dtype, t.shape)
            assert kit.numbers(there) == kit.numbers(t)
            back = there.to(device)
            assert back.device == t.device
            assert kit.numbers(back) == kit.numbers(t)
            if target != device:
                before = kit.numbers(t)
                for value in (1, 0):
                    there.fill_(value)
                    back.fill_(value)
                    assert kit.numbers(t) == before, "the copy shares memory with its source"


def test_device_indices_are_those_that_exist(device: str) -> None:
    be = bind(device)
    count = be.backend.device_count()
    assert count >= 1
    (dtype, *_) = kit.supported(device)
    assert fb.zeros(2, dtype=dtype, device=f"{device}:{count - 1}").device.type == device
    with pytest.raises(RuntimeError, match=rf"{device}:{count}\b"):
        fb.zeros(2, dtype=dtype, device=f"{device}:{count}")
    for index in range(count):
        assert be.backend.synchronize(index) is None
    made = be.host_array([1], (1,), dtype)
    assert be.backend.index_of(made) == be.backend.current_device()


@kit.cases("dtype layout", laid_out)
def test_strides_describe_memory(device: str, dtype: DType, layout: str) -> None:
    be = bind(device)
    if not be.strided:
        pytest.skip(f"device {device!r} has no strides")
    backend = be.backend
    make = kit.maker(device)
    for shape in SHAPES:
        t = lay_out(Arr(shape, seed=3), layout, make, dtype)
        e = lay_out(Arr(shape, seed=3), layout, kit.maker(kit.REFERENCE), dtype)
        root = t._a if t._base is None else t._base._a
        strides, offset = backend.strides(t._a), backend.offset(t._a, root)
        assert all(type(n) is int for n in (*strides, offset))
        assert backend.is_contiguous(t._a) is Backend.is_contiguous(backend, t._a)
        if t.numel():
            relevant = [i for i, n in enumerate(t.shape) if n > 1]
            assert [strides[i] for i in relevant] == [e.stride()[i] for i in relevant]
            assert offset == e.storage_offset()
            distance = backend.data_ptr(t._a) - backend.data_ptr(root)
            assert distance == offset * dtype.itemsize
        again = backend.as_strided(root, tuple(t.shape), strides, offset)
        assert bytes(backend.to_host(again)) == bytes(backend.to_host(t._a))
        fresh = make([1] * math.prod(shape), shape, dtype)
        assert backend.owns(fresh._a)


def test_as_strided_refuses_to_leave_the_memory(device: str) -> None:
    be = bind(device)
    if not be.strided:
        pytest.skip(f"device {device!r} has no strides")
    root = be.host_array([1, 2, 3, 4], (4,), kit.supported(device)[0])
    for shape, stride, offset in (((5,), (1,), 0), ((2, 2), (3, 1), 1), ((1,), (1,), 4)):
        with pytest.raises(be.error):
            be.backend.as_strided(root, shape, stride, offset)
