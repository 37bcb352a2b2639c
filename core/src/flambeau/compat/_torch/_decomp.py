"""Formulas of ops by simpler ones, which libraries register for compilers: there is none here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

__all__ = ["decomposition_table", "get_decompositions", "register_decomposition"]

Formula = TypeVar("Formula", bound=Callable[..., object])

decomposition_table: dict[object, Callable[..., object]] = {}
"""The formulas that were registered, by op."""


def register_decomposition(
    aten_op: object, registry: dict[object, Callable[..., object]] | None = None, **settings: object
) -> Callable[[Formula], Formula]:
    """A decorator that keeps a function as the formula of an op, or of several.

    Args:
        aten_op: the op, or a list of ops.
        registry: where to keep it; `decomposition_table` by default.
    """
    ops = list(aten_op) if isinstance(aten_op, (list, tuple, set)) else [aten_op]
    table = decomposition_table if registry is None else registry

    def keep(function: Formula) -> Formula:
        table.update(dict.fromkeys(ops, function))
        return function

    return keep


def get_decompositions(
    aten_ops: Iterable[object], type: str = "post_autograd"
) -> Mapping[object, Callable[..., object]]:
    """Those of the formulas that were registered for the ops."""
    return {op: decomposition_table[op] for op in aten_ops if op in decomposition_table}
