"""The conformance kit finds kernels with one fault: a few of those that ``make mutants`` makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import killing
import survivors

EVERY = 200
POPULATION = killing.population()


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    with killing.registered():
        yield


def test_there_are_mutants_of_every_kernel_with_samples() -> None:
    assert len(POPULATION) > 2000
    assert {"add", "relu", "sort", "scatter", "conv2d", "adam_step_"} <= {m[0] for m in POPULATION}
    assert len({(name, what) for name, what, _ in POPULATION}) == len(POPULATION)


def test_reasons_are_those_of_mutants() -> None:
    known = {(name, what) for name, what, _ in POPULATION}
    assert survivors.REASONS.keys() <= known


@pytest.mark.parametrize(
    ("name", "what", "make"),
    [pytest.param(*m, id=f"{m[0]}, {m[1]}") for m in POPULATION[7::EVERY]],
)
def test_the_kit_kills(name: str, what: str, make: Any) -> None:
    tests = list(killing.cases(name))
    assert killing.complaint(name, lambda kernel: lambda *a: kernel(*a), tests) == ""
    said = killing.complaint(name, make, tests)
    assert bool(said) != bool(survivors.reason(name, what))


def test_a_kernel_without_a_fault_lives() -> None:
    assert (
        killing.complaint("sub", lambda kernel: lambda *a: kernel(*a), list(killing.cases("sub")))
        == ""
    )
