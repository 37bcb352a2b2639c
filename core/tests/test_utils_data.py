"""Data sets, samplers and collation."""

from __future__ import annotations

from collections import OrderedDict, UserList, namedtuple
from itertools import chain

import pytest
from data_sets import Counter, Squares, lists

import flambeau as fb
from flambeau.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    random_split,
)

Point = namedtuple("Point", ["x", "y"])


def test_a_data_set_and_a_sampler_without_definition_say_so():
    with pytest.raises(NotImplementedError, match="Dataset does not define __getitem__"):
        Dataset()[0]
    with pytest.raises(NotImplementedError, match="Sampler does not define __iter__"):
        iter(Sampler())


def test_samples_of_a_tensor_data_set_are_rows_of_all_tensors():
    data = TensorDataset(fb.arange(6).reshape(3, 2), fb.tensor([7, 8, 9]))
    first, second = data[-1]
    assert (first.tolist(), second.item(), len(data)) == ([4, 5], 9, 3)


def test_tensors_of_different_lengths_are_refused():
    with pytest.raises(AssertionError, match=r"Size mismatch between tensors.*\[2, 3\]"):
        TensorDataset(fb.zeros(2), fb.zeros(3))


def test_stacked_data_sets_give_tuples_or_dicts_one_by_one_and_in_batches():
    pair = StackDataset(Squares(3), "abc")
    named = StackDataset(square=Squares(3), letter="abc")
    assert (pair[2], len(pair)) == ((4, "c"), 3)
    assert named[1] == {"square": 1, "letter": "b"}
    assert pair.__getitems__([0, 2]) == [(0, "a"), (4, "c")]
    assert named.__getitems__([0, 2]) == [
        {"square": 0, "letter": "a"},
        {"square": 4, "letter": "c"},
    ]
    assert pair.__getitems__([]) == []


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "At least one dataset"),
        (("a",), {"b": "b"}, "both types are given"),
        (("a", "bc"), {}, "Size mismatch between datasets"),
        ((), {"a": "a", "b": "bc"}, "Size mismatch between datasets"),
    ],
)
def test_data_sets_that_do_not_stack_are_refused(args, kwargs, message):
    with pytest.raises(ValueError, match=message):
        StackDataset(*args, **kwargs)


def test_a_nested_data_set_that_returns_too_few_samples_is_an_error():
    class Forgetful(Squares):
        def __getitems__(self, indices):
            return [0]

    with pytest.raises(ValueError, match="Expected 2, got 1"):
        StackDataset(Forgetful(3)).__getitems__([0, 1])


def test_concatenation_reads_across_parts_and_from_the_end():
    both = Squares(2) + Squares(3)
    assert isinstance(both, ConcatDataset)
    assert [both[i] for i in range(-5, 5)] == [0, 1, 0, 1, 4] * 2
    with pytest.raises(ValueError, match="absolute value of index"):
        both[-6]
    with pytest.raises(IndexError):
        both[5]


def test_concatenation_refuses_nothing_and_streams():
    with pytest.raises(AssertionError, match="empty iterable"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        ConcatDataset([Counter(1)])


def test_the_old_spelling_of_cumulative_sizes_warns():
    with pytest.warns(FutureWarning, match="renamed to `cumulative_sizes`"):
        assert ConcatDataset([Squares(2), Squares(3)]).cummulative_sizes == [2, 5]


def test_streams_chain_and_their_lengths_add_up():
    both = Counter(2, claimed=2) + Counter(3, claimed=3)
    assert isinstance(both, ChainDataset)
    assert (list(both), len(both)) == ([0, 1, 0, 1, 2], 5)
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(ChainDataset([Squares(1)]))


def test_a_stream_without_iter_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        IterableDataset()


def test_a_subset_maps_indices_also_for_lists_and_nested_subsets():
    inner = Subset(TensorDataset(fb.arange(10)), [9, 7, 5, 3])
    outer = Subset(inner, [2, 0])
    assert [outer[i][0].item() for i in range(2)] == [5, 9]
    assert inner[[0, 1]][0].tolist() == [9, 7]
    assert [x.item() for (x,) in outer.__getitems__([1])] == [9]


def test_a_subset_class_that_would_be_bypassed_by_loaders_is_refused():
    class Doubled(Subset):
        def __getitem__(self, idx):
            return 2 * super().__getitem__(idx)

    with pytest.raises(NotImplementedError, match="__getitems__"):
        Doubled(Squares(3), [0])


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [([3, 7], [3, 7]), ([0.25, 0.25, 0.5], [3, 2, 5]), ([1.0], [10]), ([0, 10], [0, 10])],
)
def test_a_random_split_covers_every_sample_once(lengths, expected):
    parts = random_split(Squares(10), lengths)
    assert [len(part) for part in parts] == expected
    assert sorted(i for part in parts for i in part.indices) == list(range(10))


def test_a_random_split_repeats_with_the_seed_of_its_generator():
    splits = [
        [part.indices for part in random_split(range(20), [5, 15], fb.Generator().manual_seed(1))]
        for _ in range(2)
    ]
    assert splits[0] == splits[1]


def test_a_random_split_that_does_not_add_up_is_an_error():
    with pytest.raises(ValueError, match="Sum of input lengths"):
        random_split(Squares(5), [2, 2])
    with pytest.raises(ValueError, match="index 0 is not between 0 and 1"):
        random_split(Squares(5), [-0.5, 1.5])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split(Squares(2), [0.99, 0.01])


def test_random_sampling_without_replacement_shuffles_and_starts_over():
    order = list(RandomSampler(range(4), num_samples=10))
    assert sorted(order[:4]) == sorted(order[4:8]) == [0, 1, 2, 3]
    assert len(set(order[8:])) == 2


@pytest.mark.parametrize("count", [1, 31, 32, 33, 100])
def test_random_sampling_with_replacement_gives_the_number_asked_for(count):
    sampler = RandomSampler(range(3), replacement=True, num_samples=count)
    order = list(sampler)
    assert len(order) == len(sampler) == count
    assert set(order) <= {0, 1, 2}


def test_random_samplers_repeat_with_the_global_seed():
    for sampler in (
        RandomSampler(range(50)),
        SubsetRandomSampler(range(50)),
        WeightedRandomSampler([1.0] * 50, 20),
    ):
        fb.manual_seed(3)
        first = list(sampler)
        second = list(sampler)
        fb.manual_seed(3)
        assert list(sampler) == first != second


def test_the_number_of_samples_follows_a_data_source_that_grows():
    source = [1, 2]
    sampler = RandomSampler(source)
    source.append(3)
    assert len(sampler) == 3
    assert sorted(sampler) == [0, 1, 2]


def test_an_index_of_weight_zero_is_never_drawn():
    assert set(WeightedRandomSampler([0.0, 1.0, 0.0, 3.0], 200)) == {1, 3}


def test_weighted_sampling_without_replacement_draws_each_index_once():
    assert sorted(WeightedRandomSampler([1.0, 2.0, 3.0], 3, replacement=False)) == [0, 1, 2]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("n", [0, 1, 4, 5, 6])
def test_batches_of_indices_agree_with_their_length(n, drop_last):
    sampler = BatchSampler(SequentialSampler(range(n)), 2, drop_last)
    batches = list(sampler)
    assert len(batches) == len(sampler)
    assert list(chain(*batches)) == list(range(n - n % 2 if drop_last else n))
    assert all(len(batch) == 2 for batch in batches[:-1])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RandomSampler([]), ValueError, "num_samples=0"),
        (lambda: RandomSampler([1], num_samples=-1), ValueError, "num_samples=-1"),
        (lambda: RandomSampler([1], replacement=1), TypeError, "replacement=1"),
        (lambda: WeightedRandomSampler([1.0], 0), ValueError, "num_samples=0"),
        (lambda: WeightedRandomSampler([1.0], True), ValueError, "num_samples=True"),
        (lambda: WeightedRandomSampler([1.0], 1, replacement=0), ValueError, "replacement=0"),
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, r"shape \(1, 1\)"),
        (lambda: BatchSampler([1], 0, False), ValueError, "batch_size=0"),
        (lambda: BatchSampler([1], True, False), ValueError, "batch_size=True"),
        (lambda: BatchSampler([1], 1, 0), ValueError, "drop_last=0"),
    ],
)
def test_samplers_refuse_arguments_out_of_range(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_numbers_become_tensors_and_strings_stay():
    assert default_collate([1.5, 2.5]).dtype is fb.float64
    assert default_collate([1, 2]).dtype is fb.int64
    assert default_collate([True, False]).dtype is fb.bool
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a", b"b"]) == [b"a", b"b"]


def test_containers_are_collated_entry_by_entry():
    batch = default_collate([{"p": Point(1, (2, [3.0]))}, {"p": Point(4, (5, [6.0]))}])
    point = batch["p"]
    assert isinstance(point, Point)
    assert point.x.tolist() == [1, 4]
    assert isinstance(point.y, list)  # tuples become lists
    assert (point.y[0].tolist(), point.y[1][0].tolist()) == ([2, 5], [3.0, 6.0])


def test_the_type_of_a_container_is_kept():
    class Noted(UserList):
        note = None

    sample = Noted([1, 2])
    sample.note = "kept"
    batch = default_collate([sample, Noted([3, 4])])
    assert (type(batch), batch.note, lists(batch)) == (Noted, "kept", [[1, 3], [2, 4]])
    assert type(default_collate([OrderedDict(a=1)])) is OrderedDict
    assert type(default_convert(OrderedDict(a=1))) is OrderedDict


def test_a_container_that_cannot_be_rebuilt_becomes_a_plain_one():
    assert lists(default_collate([range(2), range(2)])) == [[0, 0], [1, 1]]
    assert default_convert(range(2)) == [0, 1]


def test_collation_does_not_change_the_samples():
    sample = {"a": [1, 2]}
    default_collate([sample, sample])
    assert sample == {"a": [1, 2]}


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        ([object()], TypeError, "found <class 'object'>"),
        ([None], TypeError, "found <class 'NoneType'>"),
        ([[1, 2], [1]], RuntimeError, r"of equal size.*\[2, 1\]"),
        ([], IndexError, "out of range: there are no samples"),
        ({}, TypeError, "a sequence of samples, got dict"),
        (3, TypeError, "a sequence of samples, got int"),
        ([{"a": 1}, {"b": 1}], KeyError, "not the key 'a' of the first"),
    ],
)
def test_batches_that_cannot_be_collated_say_why(batch, error, message):
    with pytest.raises(error, match=message):
        default_collate(batch)


def test_the_collate_map_can_be_extended_for_new_types():
    from flambeau.utils.data._utils.collate import collate, default_collate_fn_map

    def total(batch, *, collate_fn_map):
        return sum(item.imag for item in batch)

    extended = {**default_collate_fn_map, complex: total}
    batch = collate([(1j, 1), (2j, 2)], collate_fn_map=extended)
    assert (batch[0], batch[1].tolist()) == (3.0, [1, 2])


def test_conversion_leaves_what_is_no_array_alone():
    tensor = fb.ones(2)
    assert default_convert(tensor) is tensor
    assert default_convert({"a": (1, "b")}) == {"a": [1, "b"]}


def test_numpy_arrays_and_scalars_become_tensors_of_their_dtype():
    np = pytest.importorskip("numpy")
    assert default_collate([np.ones(2, np.float32)] * 3).shape == (3, 2)
    assert default_collate([np.float32(1), np.float32(2)]).dtype is fb.float32
    assert default_collate([np.int16(1), np.int16(2)]).dtype is fb.int16
    assert default_collate([np.float64(1)]).dtype is fb.float64
    assert default_convert([np.arange(2), np.str_("a")])[0].tolist() == [0, 1]
    assert default_convert(np.array(["a"])).dtype.kind == "U"
    with pytest.raises(TypeError, match="found <U1"):
        default_collate([np.array(["a"])])
