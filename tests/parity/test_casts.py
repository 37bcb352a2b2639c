"""Floats in another precision have PyTorch's bits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flambeau

FLOATS = ("float16", "bfloat16", "float32", "float64")
PAIRS = [(a, b) for a in FLOATS for b in FLOATS if a != b]


def numbers(library, name: str, count: int):
    """Numbers of all magnitudes, and what lies in the middle between two of 16 bits."""
    random = np.random.default_rng(0)
    single = random.integers(0, 1 << 32, count, np.uint32).view(np.float32)
    single[np.isnan(single)] = 1
    double = single.astype(np.float64)
    ties = np.arange(count, dtype=np.float64) * 2.0**-13 + 2.0**-14 + 2.0**-50
    values = np.concatenate([double, ties, -ties])
    return library.from_numpy(values).to(getattr(library, name))


def bits(tensor) -> list[float]:
    return tensor.double().tolist()


@pytest.mark.parametrize("count", [20, 3000])
@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_floats_are_converted_to_the_same_bits(before, after, count):
    ours, theirs = (numbers(t, before, count) for t in (flambeau, torch))
    assert bits(ours) == bits(theirs)
    assert bits(ours.to(getattr(flambeau, after))) == bits(theirs.to(getattr(torch, after)))
    written, wanted = (t.zeros(3 * count, dtype=getattr(t, after)) for t in (flambeau, torch))
    written.copy_(ours)
    wanted.copy_(theirs)
    assert bits(written) == bits(wanted)
    written[::2].copy_(ours[::2])
    assert bits(written) == bits(wanted)


def test_numbers_become_float16_by_way_of_float32():
    tie = 1 + 2.0**-11 + 2.0**-40
    for make in (
        lambda t: t.tensor([tie], dtype=t.float16),
        lambda t: t.full((2,), tie, dtype=t.float16),
        lambda t: t.zeros(2, dtype=t.float16).fill_(tie),
        lambda t: t.tensor([tie], dtype=t.float64).half(),
    ):
        assert bits(make(flambeau)) == bits(make(torch))
