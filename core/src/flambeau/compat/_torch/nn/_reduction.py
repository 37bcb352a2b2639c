"""How losses are reduced, by the numbers and the older arguments of PyTorch 1."""

from __future__ import annotations

import importlib
import warnings

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction.

    Raises:
        ValueError: there is no such reduction.
    """
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The reduction that two older arguments mean."""
    arguments = importlib.import_module("flambeau.nn.functional._arguments")
    with warnings.catch_warnings():
        if not emit_warning:
            warnings.simplefilter("ignore")
        return arguments.legacy_reduction(size_average, reduce)


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """The number of the reduction that two older arguments mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
