"""Sizes per dimension as modules keep them: one int stands for all dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any


def ntuple(value: int | Iterable[int], count: int) -> tuple[int, ...]:
    """`value` `count` times, or its elements if it has several."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * count


def _ntuple(n: int, name: str = "parse") -> Callable[[int | Iterable[int]], tuple[int, ...]]:
    """A function that does what `ntuple` does with `n`."""

    def parse(x: int | Iterable[int]) -> tuple[int, ...]:
        return ntuple(x, n)

    parse.__name__ = name
    return parse


def _single(value: int | Iterable[int]) -> tuple[int, ...]:
    return ntuple(value, 1)


def _pair(value: int | Iterable[int]) -> tuple[int, ...]:
    return ntuple(value, 2)


def _triple(value: int | Iterable[int]) -> tuple[int, ...]:
    return ntuple(value, 3)


def _quadruple(value: int | Iterable[int]) -> tuple[int, ...]:
    return ntuple(value, 4)


def _reverse_repeat_tuple(values: Sequence[int], count: int) -> tuple[int, ...]:
    """The elements from last to first, each `count` times: sizes per side as `pad` takes them."""
    return tuple(value for value in reversed(values) for _ in range(count))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix off the names of a state, in place: ``module.`` of what `DataParallel` saved.

    Names without it stay.

    >>> state = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module."); state
    {'bias': 2, 'weight': 1}
    """
    for name in list(state_dict):
        if name.startswith(prefix):
            state_dict[name[len(prefix) :]] = state_dict.pop(name)
    facts = getattr(state_dict, "_metadata", {})
    for name in list(facts):  # of modules, whose names have no dot at the end
        if name and (name == prefix.replace(".", "") or name.startswith(prefix)):
            facts[name[len(prefix) :]] = facts.pop(name)
