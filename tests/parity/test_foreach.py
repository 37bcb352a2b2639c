"""``torch._foreach_…`` beside PyTorch's, and factors of low rank for the same random numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flambeau as fb
from flambeau.compat import torch_alias
from flambeau.compat._foreach import _BINARY, _UNARY


def _lists(library, count=2):
    drawn = np.random.default_rng(3)
    shapes = ((2,), (3, 2))
    made = [[library.tensor(drawn.random(s) + 0.1) for s in shapes] for _ in range(count)]
    return made if count > 1 else made[0]


def _agree(call):
    found = []
    expected = call(torch)
    with torch_alias() as alias:
        found = call(alias)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize("name", _UNARY)
def test_unary_functions_agree(name):
    _agree(lambda library: getattr(library, f"_foreach_{name}")(_lists(library, 1)))

    def in_place(library):
        tensors = _lists(library, 1)
        getattr(library, f"_foreach_{name}_")(tensors)
        return tensors

    _agree(in_place)


@pytest.mark.parametrize("other", ["lists", 0.5, 2, [0.5, 1.5]], ids=str)
@pytest.mark.parametrize("name", _BINARY)
def test_binary_functions_agree(name, other):
    def fresh(library):
        tensors, others = _lists(library)
        return getattr(library, f"_foreach_{name}")(tensors, others if other == "lists" else other)

    def in_place(library):
        tensors, others = _lists(library)
        getattr(library, f"_foreach_{name}_")(tensors, others if other == "lists" else other)
        return tensors

    _agree(fresh)
    _agree(in_place)


@pytest.mark.parametrize("value", [1, 0.5, [0.5, 2.0]], ids=str)
@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_ternary_functions_agree(name, value):
    _agree(lambda library: getattr(library, f"_foreach_{name}")(*_lists(library, 3), value))


def test_norms_and_interpolations_agree():
    for order in (1, 2, float("inf")):
        _agree(lambda library, order=order: library._foreach_norm(_lists(library, 1), order))
    _agree(lambda library: library._foreach_lerp(*_lists(library), 0.3))
    _agree(lambda library: library._foreach_lerp(*_lists(library, 3)))
    _agree(lambda library: library._foreach_powsum(_lists(library, 1), 2))
    _agree(lambda library: library._foreach_max(_lists(library, 1)))


@pytest.mark.parametrize("name", ["svd_lowrank", "pca_lowrank"])
@pytest.mark.parametrize(("shape", "q"), [((7, 4), 3), ((3, 8), 2), ((2, 5, 4), 4)])
def test_factors_of_low_rank_are_those_of_the_same_seed(name, shape, q):
    a = np.random.default_rng(4).standard_normal(shape)
    results = []
    for library in (fb, torch):
        library.manual_seed(5)
        results.append(getattr(library, name)(library.tensor(a), q=q))
    for ours, theirs in zip(*results, strict=True):
        # The sign of a pair of vectors is free.
        np.testing.assert_allclose(abs(ours.numpy()), abs(theirs.numpy()), rtol=1e-9, atol=1e-12)
