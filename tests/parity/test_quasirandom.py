"""Sobol sequences against PyTorch's, bit by bit."""

from __future__ import annotations

import pytest
import torch

import flambeau as fb


def same(theirs: torch.Tensor, ours: fb.Tensor) -> bool:
    return theirs.shape == ours.shape and theirs.numpy().tobytes() == ours.numpy().tobytes()


@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize("dimension", [1, 2, 7, 300])
def test_points_states_and_jumps_are_pytorchs(dimension, scramble):
    theirs = torch.quasirandom.SobolEngine(dimension, scramble, 3)
    ours = fb.quasirandom.SobolEngine(dimension, scramble, 3)
    assert same(theirs.sobolstate, ours.sobolstate) and same(theirs.shift, ours.shift)
    for n in (1, 3, 8, 1):
        assert same(theirs.draw(n), ours.draw(n)) and same(theirs.quasi, ours.quasi)
    assert same(theirs.draw(5, dtype=torch.float64), ours.draw(5, dtype=fb.float64))
    theirs.fast_forward(1000), ours.fast_forward(1000)
    assert same(theirs.quasi, ours.quasi) and same(theirs.draw(4), ours.draw(4))
    theirs.reset(), ours.reset()
    assert same(theirs.draw_base2(4), ours.draw_base2(4))
    assert repr(theirs) == repr(ours)


def test_the_direction_numbers_of_all_dimensions_are_pytorchs():
    theirs, ours = (m.quasirandom.SobolEngine(21201).sobolstate for m in (torch, fb))
    assert same(theirs, ours)


def test_scrambling_without_a_seed_draws_what_pytorch_draws():
    torch.manual_seed(5), fb.manual_seed(5)
    theirs, ours = (m.quasirandom.SobolEngine(4, True).draw(3) for m in (torch, fb))
    assert same(theirs, ours)
    assert same(torch.rand(2), fb.rand(2))
