"""Writes by index go into the memory of the tensor: a buffer of any size costs what is written."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flambeau as fb

INDEX = fb.tensor([2, 0, 2])


def _two_dims(index):
    return index[:, None].expand(3, 4)


WRITES = {
    "x[i] = y": lambda x, i, y: x.__setitem__(i, y),
    "x[i] = number": lambda x, i, y: x.__setitem__(i, 7),
    "x[i, 1] = number": lambda x, i, y: x.__setitem__((i, 1), 7),
    "x[i, :2] = y": lambda x, i, y: x.__setitem__((i, slice(2)), y[:, :2]),
    "x[i, i] = number": lambda x, i, y: x.__setitem__((i, i), 7),
    "x[rows] = row": lambda x, i, y: x.__setitem__(fb.tensor([True, False] * 3), y[0]),
    "x[list] = y": lambda x, i, y: x.__setitem__([1, 0, 5], y),
    "index_put_": lambda x, i, y: x.index_put_((i,), y),
    "index_put_ that adds": lambda x, i, y: x.index_put_((i,), y, accumulate=True),
    "index_add_": lambda x, i, y: x.index_add_(0, i, y),
    "index_add_ of multiples": lambda x, i, y: x.index_add_(0, i, y, alpha=3),
    "index_add_ to columns": lambda x, i, y: x.index_add_(1, i, fb.ones(6, 3, dtype=y.dtype)),
    "index_copy_": lambda x, i, y: x.index_copy_(0, i, y),
    "index_fill_": lambda x, i, y: x.index_fill_(0, i, 7),
    "put_": lambda x, i, y: x.put_(i, y[:, 0]),
    "put_ that adds": lambda x, i, y: x.put_(i + 7, y[:, 1], accumulate=True),
    "scatter_": lambda x, i, y: x.scatter_(0, _two_dims(i), y),
    "scatter_ of a number": lambda x, i, y: x.scatter_(0, _two_dims(i), 7),
    "scatter_ that adds": lambda x, i, y: x.scatter_(0, _two_dims(i), y, reduce="add"),
    "scatter_reduce_ to a sum": lambda x, i, y: x.scatter_reduce_(0, _two_dims(i), y, "sum"),
    "scatter_add_": lambda x, i, y: x.scatter_add_(0, _two_dims(i), y),
}
EXTREMA = {
    "scatter_reduce_ to a maximum": lambda x, i, y: x.scatter_reduce_(0, _two_dims(i), y, "amax"),
    "scatter_reduce_ to a minimum": lambda x, i, y: x.scatter_reduce_(0, _two_dims(i), -y, "amin"),
    "index_reduce_ to a maximum": lambda x, i, y: x.index_reduce_(0, i, y, "amax"),
    "index_reduce_ to a minimum": lambda x, i, y: x.index_reduce_(0, i, -y, "amin"),
}
WRITES |= EXTREMA
DTYPES = [fb.float32, fb.float64, fb.int64, fb.bfloat16, fb.complex64]
CASES = [
    (name, dtype)
    for name, dtype in itertools.product(WRITES, DTYPES)
    if name not in EXTREMA or not dtype.is_complex  # which have no order
]


def _numbers(dtype):
    x = fb.arange(24).reshape(6, 4).to(dtype)
    return x, (fb.arange(12).reshape(3, 4) + 100).to(dtype)


@pytest.mark.parametrize("view", ["whole", "rows", "columns", "turned"])
@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_a_write_is_what_it_is_of_a_copy_and_copies_nothing(name, view, dtype, monkeypatch):
    numbers, y = _numbers(dtype)
    base = fb.zeros(12, 8, dtype=dtype)
    x = {
        "whole": lambda: fb.zeros(6, 4, dtype=dtype),
        "rows": lambda: base[::2, :4],
        "columns": lambda: base[:6, 1::2],
        "turned": lambda: fb.zeros(4, 6, dtype=dtype).t(),
    }[view]()
    x.copy_(numbers)
    recorded = numbers.clone().requires_grad_() if dtype.fp else None
    expected = numbers.clone()
    if recorded is not None:
        expected = recorded * 1
    WRITES[name](expected, INDEX, y)  # the way of writes that are recorded, where that is possible

    def copies(*args):
        raise AssertionError("the whole tensor was copied")

    if view == "whole":
        for op in ("index_put", "scatter", "scatter_add", "scatter_extremum"):
            monkeypatch.setattr(x._be, op, copies)
    version, memory = x._version, x.data_ptr()
    WRITES[name](x, INDEX, y)
    monkeypatch.undo()
    assert x._version == version + 1
    assert x.data_ptr() == memory
    assert x.equal(expected.detach())
    if view in ("rows", "columns"):
        assert base.count_nonzero() == x.count_nonzero()


@pytest.mark.parametrize("name", WRITES)
def test_what_is_recorded_is_as_without(name):
    _, y = _numbers(fb.float64)
    leaf, y = fb.ones(6, 4, dtype=fb.float64).requires_grad_(), y.requires_grad_()
    x = leaf * 1
    WRITES[name](x, INDEX, y)
    assert x.grad_fn is not None
    x.sum().backward()
    assert leaf.grad is not None


def test_operands_in_the_same_memory_are_read_before_anything_is_written():
    x = fb.arange(6.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[fb.tensor([1, 2])] = x[:2]
    x.index_add_(0, fb.arange(6), x.clone())
    assert x.tolist() == [0, 2, 4, 6, 8, 10]
    x = fb.arange(6.0)
    x.index_add_(0, fb.arange(6).flip(0), x)
    assert x.tolist() == [5, 5, 5, 5, 5, 5]
    i = fb.tensor([1, 2, 0])
    i.scatter_(0, i.clone(), i.clone())
    assert i.tolist() == [0, 1, 2]
    for written in (lambda t: t.index_add_(0, t, t.clone()), lambda t: t.index_fill_(0, t, 5)):
        t, copy = fb.tensor([1, 2, 0]), fb.tensor([1, 2, 0])
        where = t.clone()
        if "add" in written.__code__.co_names[0]:
            copy.index_add_(0, where, where)
        else:
            copy.index_fill_(0, where, 5)
        written(t)
        assert t.equal(copy)


def test_an_index_that_is_out_of_range_writes_nothing():
    for name, dtype in itertools.product(WRITES, (fb.float32, fb.int64)):
        x, y = _numbers(dtype)
        before = x.clone()
        if "rows" in name or "list" in name:
            continue
        with pytest.raises((IndexError, RuntimeError)):
            WRITES[name](x, fb.tensor([0, 1, 99]), y)
        assert x.equal(before)


@pytest.mark.parametrize("recorded", [False, True])
def test_products_take_the_entries_of_a_place_in_their_order(recorded):
    fb.manual_seed(0)
    places, factors = fb.randint(0, 9, (500,)), fb.rand(500) + 0.5
    wanted = np.ones(10, np.float32)
    for place, factor in zip(places.tolist(), factors.numpy(), strict=True):
        wanted[place] *= factor  # rounded after each
    factors.requires_grad_(recorded)
    found = fb.ones(10).scatter_reduce(0, places, factors, "prod")
    assert found.tolist() == wanted.tolist()
    if recorded:
        found.sum().backward()
        each = found.detach()[places] / factors.detach()
        fb.testing.assert_close(factors.grad, each, rtol=1e-4, atol=0.0)
