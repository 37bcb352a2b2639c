"""Which package runs captured plans as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["compile_plan", "offer_plans"]

CompilePlan = Callable[[Any], Callable[..., tuple[Any, ...]] | None]

_offers: dict[str, CompilePlan] = {}


def offer_plans(provider: str, compile_plan: CompilePlan | None) -> None:
    """Let plans be run by a package: `compile_plan` is that of `flambeau.plugin.Backend`.

    A package calls it where it offers its kernels; None takes back what it offered before.
    """
    _offers.pop(provider, None)
    if compile_plan is not None:
        _offers[provider] = compile_plan


def compile_plan(plan: object) -> Callable[..., tuple[Any, ...]] | None:
    """What the first package that can makes of a plan, or None."""
    found = (compile_plan(plan) for compile_plan in _offers.values())
    return next((run for run in found if run is not None), None)
