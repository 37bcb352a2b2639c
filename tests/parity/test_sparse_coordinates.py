"""Coordinates of sparse tensors, and where rows begin in them, by the names that libraries use."""

from __future__ import annotations

import pytest
import torch

import flambeau as fb
from flambeau.compat import torch_alias


def both(function):
    with torch_alias() as alias:
        ours = function(alias)
    return ours, function(torch)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("rows", [[0, 0, 2], [], [3], [1, 1, 1, 1]])
def test_rows_begin_where_pytorch_says(rows, dtype, narrow):
    def begins(t):
        given = t.tensor(rows, dtype=getattr(t, dtype))
        found = t._convert_indices_from_coo_to_csr(given, 4, out_int32=narrow)
        return found.tolist(), found.dtype.itemsize

    ours, theirs = both(begins)
    assert ours == theirs


@pytest.mark.parametrize("facts", [{}, {"transpose": True}, {"out_int32": True}])
@pytest.mark.parametrize(
    "case",
    [
        ([0, 2, 2, 3], [1, 0, 2]),
        ([0], []),
        ([[0, 2, 2, 3], [0, 1, 2, 3]], [[1, 0, 2], [1, 1, 1]]),
        ([[[0, 1], [0, 1]]], [[[4], [5]]]),
    ],
    ids=["matrix", "nothing", "batch", "batches"],
)
def test_coordinates_are_pytorchs(case, facts):
    def coordinates(t):
        begins, columns = (t.tensor(each, dtype=t.int64) for each in case)
        found = t._convert_indices_from_csr_to_coo(begins, columns, **facts)
        return found.tolist(), found.dtype.itemsize

    ours, theirs = both(coordinates)
    assert ours == theirs


def test_sparse_tensors_are_told_that_they_are_coalesced():
    def told(t):
        s = t.sparse_coo_tensor(t.tensor([[1, 0, 1]]), t.ones(3), (2,), check_invariants=False)
        same = s._coalesced_(True) is s
        return same, s.is_coalesced(), s.indices().tolist(), s._coalesced_(False).is_coalesced()

    ours, theirs = both(told)
    assert ours == theirs


def test_coordinates_of_dense_tensors():
    x = fb.tensor([[0.0, 7.0], [0.0, 0.0]], requires_grad=True)
    s = x.to_sparse_coo()
    s.to_dense().sum().backward()
    assert s.indices().tolist() == [[0], [1]] and x.grad.tolist() == [[0, 1], [0, 0]]
    assert s.to_sparse_coo() is s


def test_profiles_have_ranges_that_operators_begin_and_end():
    with torch_alias() as alias:
        with alias.autograd.profiler.profile() as profile:
            handle = alias.ops.profiler._record_function_enter_new("a range", None)
            alias.ops.profiler._record_function_exit(handle)
        assert "a range" in [event.name for event in profile.function_events]
        assert str(alias.ops.profiler._record_function_exit) == "profiler._record_function_exit"
