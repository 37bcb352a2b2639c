"""Data loading takes PyTorch's order from PyTorch's random numbers, and draws no more of them."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import torch

import flambeau

Pair = namedtuple("Pair", ["left", "right"])


def plain(value: Any) -> Any:
    """`value` with tensors of either library as (dtype, nested lists), and container types."""
    if isinstance(value, (torch.Tensor, flambeau.Tensor)):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(item) for item in value]
    return value


def both(program: Any, seed: int = 5) -> list[Any]:
    """What `program` gives in each library, and the next number of the global generator."""
    results = []
    for lib in (flambeau, torch):
        lib.manual_seed(seed)
        results.append((plain(program(lib)), lib.randn(3).tolist()))
    return results


def rows(lib: Any) -> Any:
    return lib.utils.data.TensorDataset(lib.arange(70).reshape(35, 2), lib.arange(35))


def seeded(lib: Any) -> Any:
    return lib.Generator().manual_seed(11)


LOADERS = {
    "in order": lambda lib: {"batch_size": 8},
    "shuffled": lambda lib: {"batch_size": 8, "shuffle": True},
    "shuffled, last dropped": lambda lib: {"batch_size": 8, "shuffle": True, "drop_last": True},
    "shuffled by a generator": lambda lib: {"shuffle": True, "generator": seeded(lib)},
    "one by one": lambda lib: {"batch_size": None, "shuffle": True},
    "subset": lambda lib: {"sampler": lib.utils.data.SubsetRandomSampler([3, 1, 4, 15, 9])},
    "weighted": lambda lib: {
        "sampler": lib.utils.data.WeightedRandomSampler(list(range(35)), 50),
        "batch_size": 7,
    },
    "batches of random indices": lambda lib: {
        "batch_sampler": lib.utils.data.BatchSampler(
            lib.utils.data.RandomSampler(range(35), replacement=True, num_samples=40), 9, True
        )
    },
}


@pytest.mark.parametrize("options", LOADERS.values(), ids=LOADERS)
def test_two_epochs_give_the_same_batches_and_leave_the_generator_alike(options):
    def program(lib):
        loader = lib.utils.data.DataLoader(rows(lib), **options(lib))
        return [len(loader), [list(loader), list(loader)]]

    ours, theirs = both(program)
    assert ours == theirs


def test_random_numbers_drawn_while_loading_interleave_alike():
    def program(lib):
        loader = lib.utils.data.DataLoader(rows(lib), batch_size=16, shuffle=True)
        return [(batch, lib.rand(2)) for batch in loader]

    ours, theirs = both(program)
    assert ours == theirs


def test_an_iterator_that_is_never_read_draws_alike():
    ours, theirs = both(lambda lib: len(iter(lib.utils.data.DataLoader(rows(lib), shuffle=True))))
    assert ours == theirs


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 64, 100])
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("own", [False, True], ids=["global generator", "own generator"])
def test_random_samplers_draw_alike_at_every_length(n, replacement, own):
    def program(lib):
        generator = seeded(lib) if own else None
        sampler = lib.utils.data.RandomSampler(
            range(33), replacement, num_samples=n, generator=generator
        )
        return [list(sampler), lib.rand(2, generator=generator)]

    ours, theirs = both(program)
    assert ours == theirs


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("own", [False, True], ids=["global generator", "own generator"])
def test_weighted_samplers_draw_alike(replacement, own):
    def program(lib):
        generator = seeded(lib) if own else None
        weights = [0.1, 0.9, 0.0, 4.0, 0.7, 3.0, 0.6]
        sampler = lib.utils.data.WeightedRandomSampler(weights, 6, replacement, generator)
        return [list(sampler), list(sampler)]

    ours, theirs = both(program)
    assert ours == theirs


@pytest.mark.parametrize(
    "lengths", [[3, 7], [10], [0.3, 0.3, 0.4], [0.1] * 9 + [0.1], [0.5, 0.25, 0.25]], ids=str
)
@pytest.mark.parametrize("own", [False, True], ids=["global generator", "own generator"])
def test_random_splits_are_alike(lengths, own):
    if len(lengths) == 10:
        lengths = [1] * 10

    def program(lib):
        generator = {"generator": seeded(lib)} if own else {}
        parts = lib.utils.data.random_split(range(10), lengths, **generator)
        return [part.indices for part in parts]

    ours, theirs = both(program)
    assert ours == theirs


SAMPLES = {
    "tensors": lambda lib: [lib.ones(2, 3), lib.zeros(2, 3)],
    "0-d tensors": lambda lib: [lib.tensor(1), lib.tensor(2)],
    "ints": lambda lib: [1, 2],
    "floats": lambda lib: [1.0, 2],
    "bools": lambda lib: [True, False],
    "strings": lambda lib: ["a", "b"],
    "pairs": lambda lib: [(1, 2.0), (3, 4.0)],
    "named pairs": lambda lib: [Pair(1, "a"), Pair(2, "b")],
    "dicts of lists": lambda lib: [{"a": [1, (2, 3)]}, {"a": [4, (5, 6)]}],
    "float32 arrays": lambda lib: [np.ones((2, 1), np.float32)] * 2,
    "numpy float32": lambda lib: [np.float32(0.1), np.float32(0.2)],
    "numpy float64": lambda lib: [np.float64(0.1), np.float64(0.2)],
    "numpy ints": lambda lib: [np.int8(1), np.int8(2)],
    "numpy bools": lambda lib: [np.bool_(True), np.bool_(False)],
    "numpy strings": lambda lib: [np.str_("a"), np.str_("b")],
    "ranges": lambda lib: [range(2), range(2)],
}


@pytest.mark.parametrize("samples", SAMPLES.values(), ids=SAMPLES)
def test_samples_collate_alike(samples):
    ours, theirs = both(lambda lib: lib.utils.data.default_collate(samples(lib)))
    assert ours == theirs


@pytest.mark.parametrize("samples", SAMPLES.values(), ids=SAMPLES)
def test_samples_convert_alike(samples):
    ours, theirs = both(lambda lib: lib.utils.data.default_convert(samples(lib)))
    assert ours == theirs


BAD_SAMPLES = {
    "objects": lambda lib: [object()],
    "none": lambda lib: [None],
    "arrays of strings": lambda lib: [np.array(["a"])],
    "arrays of objects": lambda lib: [np.array([None])],
    "nothing": lambda lib: [],
    "tensors of two shapes": lambda lib: [lib.ones(2), lib.ones(3)],
    "lists of two lengths": lambda lib: [[1], [1, 2]],
}


@pytest.mark.parametrize("samples", BAD_SAMPLES.values(), ids=BAD_SAMPLES)
def test_samples_that_do_not_collate_raise_the_same_class(samples):
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - it is what we compare with
        torch.utils.data.default_collate(samples(torch))
    with pytest.raises(type(theirs.value)):
        flambeau.utils.data.default_collate(samples(flambeau))
