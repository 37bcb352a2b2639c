"""Captured plans with neighbouring elementwise calls as one program each.

`calls` says which calls a program can take, `groups` which of a plan it takes together, `program`
makes the function.  csrc/program.c runs it.  `decisions` are calls that csrc/decision.c answers,
`joined` are those that the steps of a loop make alike.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any

from flambeau.plugin.plan import Plan, replayed
from flambeau_native.fusion.decisions import with_decisions
from flambeau_native.fusion.groups import fused
from flambeau_native.fusion.joined import joined
from flambeau_native.fusion.rewrites import simplified

__all__ = ["compile_plan"]


def compile_plan(plan: Plan) -> Callable[..., tuple[Any, ...]] | None:
    """A function that runs `plan`; None where nothing can be fused."""
    whole = joined(plan)
    steps, constants = simplified(whole)
    steps = fused(whole, with_decisions(whole, steps, constants), constants)
    if len(steps) == len(plan.steps) and all(map(is_, steps, plan.steps)):
        return None
    return replayed(whole.with_steps(steps, constants))
