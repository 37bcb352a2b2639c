"""Loaders with worker processes give PyTorch's batches, in its order, from its random numbers."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402


def dataset(t: Any) -> Any:
    class Noisy(t.utils.data.Dataset):
        def __len__(self) -> int:
            return 23

        def __getitem__(self, index: int) -> Any:
            import numpy as np

            drawn = random.random(), float(np.random.rand())
            return index, t.full((3,), float(index)), t.rand(2), t.randn(2), drawn

    return Noisy()


def passes(t: Any, **options: Any) -> Any:
    t.manual_seed(3)
    data = dataset(t)
    loader = t.utils.data.DataLoader(
        data, batch_size=4, num_workers=2, multiprocessing_context="fork", **options
    )
    found = []
    for _ in range(2):
        for index, values, uniform, normal, drawn in loader:
            found.append((index.tolist(), values.tolist(), uniform.tolist()))
            found.append((normal.tolist(), [d.tolist() for d in drawn]))
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True},
        {"shuffle": True, "persistent_workers": True},
        {"shuffle": True, "drop_last": True, "prefetch_factor": 1},
        {"persistent_workers": True, "prefetch_factor": 3},
    ],
)
def test_batches_and_random_numbers_of_workers_agree(options: dict[str, Any]) -> None:
    assert passes(fb, **options) == passes(torch, **options)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("count", [1, 2, 7, 8, 20])
@pytest.mark.parametrize("replicas", [1, 3, 8])
def test_the_distributed_sampler_agrees(count: int, replicas: int, drop_last: bool) -> None:
    for rank in range(replicas):
        found = []
        for t in (fb, torch):
            sampler = t.utils.data.distributed.DistributedSampler(
                range(count), replicas, rank, seed=5, drop_last=drop_last
            )
            sampler.set_epoch(2)
            shuffled = list(sampler)
            plain = t.utils.data.DistributedSampler(
                range(count), replicas, rank, shuffle=False, drop_last=drop_last
            )
            found.append((shuffled, list(plain), len(sampler)))
        assert found[0] == found[1]


def test_the_distributed_sampler_refuses_a_rank_outside_of_the_group() -> None:
    for t in (fb, torch):
        with pytest.raises(ValueError, match="Invalid rank 2"):
            t.utils.data.DistributedSampler(range(3), num_replicas=2, rank=2)
