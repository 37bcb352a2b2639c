"""Plans: functions and whole training steps captured once as a list of kernel calls and repeated.

`flambeau.compile` is the way in.  docs/design/plans.md says how a capture becomes a plan, and when
it is not used.
"""

from __future__ import annotations

from flambeau.plans.compiled import Compiled, Explanation, compile, explain, reset
from flambeau.plans.decisions import known
from flambeau.plugin.plan import Number, Plan, Slot, Step, replayed

__all__ = [
    "Compiled",
    "Explanation",
    "Number",
    "Plan",
    "Slot",
    "Step",
    "compile",
    "explain",
    "known",
    "replayed",
    "reset",
]
