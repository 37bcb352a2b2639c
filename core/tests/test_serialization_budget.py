"""What `save` writes is within what `load` allows, whatever it is."""

from __future__ import annotations

import collections
import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flambeau as fb
from flambeau.serialization import CheckpointError, WeightsOnlyError, _budget

pytest.importorskip("flambeau_numpy", reason="needs the CPU backend")

simple = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.sampled_from([fb.float32, fb.device("cpu"), fb.device("cuda", 1), fb.strided]),
)
shapes = st.lists(st.integers(0, 3), max_size=3)
tensors = st.builds(
    lambda shape, dtype, view: view(fb.ones(shape, dtype=dtype)),
    shapes,
    st.sampled_from([fb.float32, fb.int64, fb.bool, fb.bfloat16, fb.complex64]),
    st.sampled_from([lambda t: t, lambda t: t.expand(5, *t.shape), lambda t: t.flatten()[1:]]),
)
keys = st.recursive(
    st.one_of(simple, st.lists(st.integers(0, 9), max_size=3).map(fb.Size)),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)
values = st.recursive(
    simple | tensors | tensors.map(lambda t: t.storage()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.lists(inner, max_size=2).map(lambda found: [found] * 3),
        st.dictionaries(keys, inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4).map(collections.OrderedDict),
        st.dictionaries(keys, st.integers(), max_size=4).map(collections.Counter),
        st.sets(keys, max_size=4),
        st.binary(max_size=9).map(bytearray),
        st.integers(0, 3).map(lambda n: fb.eye(3)[:n].to_sparse()),
    ),
    max_leaves=12,
)


def same(a, b):
    if isinstance(a, fb.Tensor):
        same_facts = (a.dtype, a.shape, a.layout) == (b.dtype, b.shape, b.layout)
        return same_facts and a.to_dense().tolist() == b.to_dense().tolist()
    if isinstance(a, fb.TypedStorage):
        return a.dtype is b.dtype and a.tolist() == b.tolist()
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(values, st.sampled_from([2, 3, 4, 5]))
def test_whatever_is_saved_is_loaded_with_a_tenth_of_the_budget(value, protocol):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_budget, "STEPS", 1000)  # nothing comes for free: the file alone justifies it
        patch.setattr(_budget, "COPIES", 1000)
        patch.setattr(_budget, "STEPS_PER_BYTE", _budget.STEPS_PER_BYTE / 10)
        patch.setattr(_budget, "COPIES_PER_BYTE", _budget.COPIES_PER_BYTE / 10)
        file = io.BytesIO()
        fb.save(value, file, pickle_protocol=protocol)
        file.seek(0)
        assert same(value, fb.load(file))


@pytest.mark.parametrize("depth", [1, _budget.DEPTH - 2, _budget.DEPTH])
def test_tuples_are_saved_as_deep_as_they_are_loaded(depth, monkeypatch):
    import sys

    monkeypatch.setattr(sys, "setrecursionlimit", sys.setrecursionlimit)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10 * _budget.DEPTH)
    try:
        value = ()
        for _ in range(depth):
            value = (value,)
        file = io.BytesIO()
        if depth >= _budget.DEPTH:
            with pytest.raises(RecursionError, match="which `load` refuses"):
                fb.save({value: 1}, file)
            return
        fb.save({value: 1}, file)
        file.seek(0)
        assert fb.load(file) == {value: 1}
    finally:
        sys.setrecursionlimit(before)


def test_many_keys_of_one_hash_are_work_and_few_are_none():
    prime = 2**61 - 1

    def put(count):
        budget, body = _budget.Budget(1000), {}
        for i in range(count):
            budget.key(body, prime * (i + 1))

    put(1000)
    with pytest.raises(_budget.BudgetError, match="more work"):
        put(20_000)


def test_positions_of_sparse_tensors_are_spelt_out():
    spread = fb.zeros(1, 1, dtype=fb.int64).expand(1, 1000)
    x = fb.sparse_coo_tensor(spread, fb.ones(1000), (3,), check_invariants=False)
    file = io.BytesIO()
    fb.save(x, file)
    assert len(file.getvalue()) > 8000
    file.seek(0)
    assert fb.equal(fb.load(file).to_dense(), x.to_dense())


def test_errors_show_a_part_of_what_a_file_says():
    shared = ()
    for _ in range(60):
        shared = (shared, shared)
    for value in (shared, "x" * 10**6, b"x" * 10**6, 10**2000, [["a"] * 100] * 100, object(), int):
        assert len(_budget.shown(value)) < 300
    assert _budget.shown((1, "a", None)) == "(1, 'a', None)"
    assert _budget.told(KeyError(shared)) == "KeyError: (…, …)"
    assert issubclass(WeightsOnlyError, CheckpointError)
