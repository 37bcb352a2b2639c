"""The loader: batches, their order and number, and the options it refuses."""

from __future__ import annotations

import pickle
import warnings
from itertools import chain, count

import pytest
from data_sets import Counter, Squares, lists

import flambeau as fb
from flambeau.utils.data import (
    DataLoader,
    Subset,
    TensorDataset,
)
from flambeau.utils.data._utils.fetch import DatasetKind
from flambeau.utils.data._utils.passes import MultiProcessPass, SingleProcessPass


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_the_loader_gives_as_many_batches_as_its_length(size, drop_last):
    loader = DataLoader(Squares(5), batch_size=size, drop_last=drop_last)
    batches = lists(loader)
    assert len(batches) == len(loader) == len(iter(loader))
    assert list(chain(*batches)) == [i**2 for i in range(5 - 5 % size if drop_last else 5)]


def test_shuffling_visits_every_sample_once_in_a_new_order_each_time():
    fb.manual_seed(0)
    loader = DataLoader(range(30), batch_size=30, shuffle=True)
    (first,), (second,) = lists(loader), lists(loader)
    assert sorted(first) == sorted(second) == list(range(30))
    assert first != second


def test_without_batch_size_samples_come_one_by_one_uncollated():
    samples = list(DataLoader(Squares(3), batch_size=None))
    assert samples == [0, 1, 4]
    assert list(DataLoader(Squares(3), batch_size=None, sampler=[2, 1])) == [4, 1]


def test_a_batch_sampler_decides_the_batches():
    loader = DataLoader(Squares(5), batch_sampler=[[4, 0], [2]])
    assert (lists(loader), len(loader), loader.batch_size) == ([[16, 0], [4]], 2, None)


def test_a_collate_function_sees_the_list_of_samples():
    assert list(DataLoader(Squares(4), batch_size=2, collate_fn=sum)) == [1, 13]


def test_a_data_set_that_reads_many_samples_at_once_is_asked_to():
    class Batched(Squares):
        def __getitems__(self, indices):
            return [-1] * len(indices)

    assert lists(DataLoader(Batched(3), batch_size=2)) == [[-1, -1], [-1]]


@pytest.mark.parametrize("shape", [(7,), (7, 2, 3)])
def test_batches_of_tensor_data_sets_equal_stacked_samples(shape):
    size = 7 * (6 if len(shape) > 1 else 1)
    data = TensorDataset(fb.arange(size).reshape(shape), fb.arange(7.0))
    for dataset in (data, Subset(Subset(data, [6, 2, 4, 0]), [3, 1, 2])):
        for order in ([0, 2, 1], [-1, 0]):
            (x, y) = next(iter(DataLoader(dataset, batch_sampler=[order])))
            samples = [dataset[i] for i in order]
            assert x.tolist() == [s[0].tolist() for s in samples]
            assert y.tolist() == [s[1].item() for s in samples]
            assert (x.dtype, y.dtype) == (fb.int64, fb.float32)


def test_a_subclass_of_a_tensor_data_set_defines_its_own_samples():
    class Negated(TensorDataset):
        def __getitem__(self, index):
            return tuple(-x for x in super().__getitem__(index))

    (batch,) = DataLoader(Negated(fb.arange(3)), batch_size=3)
    assert batch[0].tolist() == [0, -1, -2]


def test_an_index_out_of_range_is_an_index_error():
    for dataset in (
        Squares(3),
        TensorDataset(fb.zeros(3)),
        Subset(TensorDataset(fb.zeros(3)), [0]),
    ):
        with pytest.raises(IndexError):
            list(DataLoader(dataset, sampler=[5]))


def test_a_stream_is_cut_into_batches():
    assert lists(DataLoader(Counter(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert lists(DataLoader(Counter(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Counter(2), batch_size=None)) == [0, 1]
    assert list(DataLoader(Counter(0), batch_size=2)) == []


def test_an_ended_stream_stays_ended():
    batches = iter(DataLoader(Counter(3), batch_size=2))
    assert len(list(batches)) == 2
    assert list(batches) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"batch_size": 2}, 3), ({"batch_size": 2, "drop_last": True}, 2), ({"batch_size": None}, 5)],
)
def test_the_length_over_a_stream_is_what_the_stream_claims(options, expected):
    assert len(DataLoader(Counter(5, claimed=5), **options)) == expected


def test_a_stream_longer_than_it_claimed_warns_if_its_length_was_asked_for():
    loader = DataLoader(Counter(3, claimed=1), batch_size=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sum(1 for _ in loader) == 3  # list() would ask for the length
    assert len(loader) == 1
    with pytest.warns(UserWarning, match="was reported to be 1 .* but [23] samples") as caught:
        assert sum(1 for _ in loader) == 3
    assert ["3 samples" in str(warning.message) for warning in caught] == [False, True]


def test_a_stream_without_length_gives_a_loader_without_length():
    with pytest.raises(TypeError, match="unknown length"):
        len(DataLoader(Counter(3)))


@pytest.mark.parametrize("name", ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset"])
def test_attributes_that_were_used_to_build_the_loader_are_fixed(name):
    loader = DataLoader(Squares(3))
    with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader"):
        setattr(loader, name, None)


def test_other_attributes_may_be_set():
    loader = DataLoader(Squares(3), batch_size=3)
    loader.collate_fn = max
    assert list(loader) == [4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified"),
        ({"num_workers": 1, "prefetch_factor": -1}, "prefetch_factor option should be non-neg"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"multiprocessing_context": "fork"}, "multiprocessing_context can only be used"),
        ({"sampler": [0], "shuffle": True}, "mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
        ({"batch_sampler": [[0]], "drop_last": True}, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables"),
        ({"batch_size": 0}, "batch_size=0"),
    ],
    ids=str,
)
def test_options_that_exclude_each_other_or_are_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        DataLoader(Squares(3), **options)


@pytest.mark.parametrize("option", [{"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}])
def test_a_stream_takes_no_order(option):
    (name,) = option
    with pytest.raises(ValueError, match=f"expected unspecified {name} option"):
        DataLoader(Counter(3), **option)


def test_a_timeout_needs_workers():
    with pytest.raises(AssertionError, match="timeout=3"):
        iter(DataLoader(Squares(3), timeout=3))


def test_pinning_memory_warns_and_loads_nonetheless():
    with pytest.warns(UserWarning, match="pin_memory"):
        assert lists(DataLoader(Squares(2), batch_size=2, pin_memory=True)) == [[0, 1]]


def test_a_loader_can_be_pickled_but_not_an_iteration_of_it():
    loader = pickle.loads(pickle.dumps(DataLoader([1, 2, 3], batch_size=2)))
    assert lists(loader) == [[1, 2], [3]]
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(iter(loader))


def test_two_iterations_at_once_do_not_disturb_each_other():
    loader = DataLoader(Squares(4), batch_size=2)
    assert [(a.tolist(), b.tolist()) for a, b in zip(loader, loader, strict=True)] == [
        ([0, 1], [0, 1]),
        ([4, 9], [4, 9]),
    ]


class OnlyLooksLikeALoader:
    """What a library hands to the passes: the names that they read, and no loader."""

    _IterableDataset_len_called, _auto_collation, drop_last, in_order = None, False, False, True
    _index_sampler, generator, prefetch_factor = count(), None, 2
    _dataset_kind = DatasetKind.Iterable
    pin_memory, pin_memory_device, timeout, persistent_workers = False, "", 0, False
    worker_init_fn, multiprocessing_context = None, None

    def __init__(self, batches, num_workers):
        self.dataset, self.batches, self.num_workers = self, batches, num_workers

    def collate_fn(self, batch):
        return batch

    def __iter__(self):
        return iter(self.batches)


def test_what_only_looks_like_a_loader_is_passed_over():
    assert list(SingleProcessPass(OnlyLooksLikeALoader("abc", 0))) == ["a", "b", "c"]
    assert list(MultiProcessPass(OnlyLooksLikeALoader("abc", 1))) == ["a", "b", "c"]
