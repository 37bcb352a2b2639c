"""Gradient formulas of ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau.ops.declaration import written
from flambeau.ops.declaration.lazily import lazily
from flambeau.ops.declaration.parameters import PLAIN, parameters

if TYPE_CHECKING:
    from flambeau.ops.declaration.table import Op


class Rule:
    """One gradient formula: the inputs it serves and what it needs saved.

    Attributes:
        at: the edges of the inputs; None if the op takes lists of tensors.
        wants: the formula's parameters after ``F, g``, which say what is kept for it.
        asks: whether it wants to know which of its inputs need a gradient.
        keeps_tensors: whether tensors are among what it keeps.
        keeps_results: whether results of the op are.

    Raises:
        TypeError: the formula wants what nothing is known of.
    """

    def __init__(self, op: Op, inputs: tuple[str, ...], formula: Callable[..., Any]) -> None:
        self.op = op
        self.inputs = inputs
        self.at = op.places and tuple(op.inputs.index(name) for name in inputs)
        self.formula = formula
        self.wants = parameters(formula)[2:]
        self.asks = "needs" in self.wants
        if unknown := [want for want in self.wants if not self._knows(want)]:
            forms = [f"{name}{end}" for name in op.inputs for end in ("_shape", "_dtype")]
            known = [*op.params, *forms, "result", "result0", "needs"]
            raise TypeError(
                f"{op.name}: gradient saves unknown names {sorted(unknown)}; known are {known}"
            )
        self.keeps_tensors = any(self.keeps_tensor(want) for want in self.wants)
        results = [want for want in self.wants if want.startswith("result")]
        self.keeps_results = any(want not in op.params for want in results)

    @lazily
    def keep(self) -> Callable[[tuple[Any, ...], Any], tuple[Any, ...]]:
        """``keep(arguments, result)`` gives the values to keep for the formula."""
        return written.keeping(self)

    @lazily
    def run(self) -> Callable[..., Any]:
        """``run(node, F, g, kept, needs)`` calls the formula with them."""
        return written.calling(self)

    def keeps_tensor(self, want: str) -> bool:
        """Whether tensors are kept for a parameter of the formula."""
        if want in self.op.params:
            return self.op.kinds[self.op.params.index(want)] is not PLAIN
        return want.startswith("result")

    def _knows(self, want: str) -> bool:
        if want in self.op.params or want in ("needs", "result"):
            return True
        if want.startswith("result") and want[6:].isdigit():
            return True
        name = want[1:] if want.startswith("_") else want[:-6]
        return name in self.op.inputs and (
            want.startswith("_") or want.endswith(("_shape", "_dtype"))
        )


def operands_used(op: Op, formula: Callable[..., Any]) -> int:
    """Which operands a formula of a broadcasting op uses: bit 0 the first, bit 1 the second."""
    wants = parameters(formula)[2:]
    if len(wants) != 2 or wants[0].lstrip("_") != "self" or wants[1].lstrip("_") != "other":
        raise TypeError(
            f"{op.name}: a formula of a broadcasting op takes (F, g, self, other), each with an "
            f"underscore if unused; got {wants}"
        )
    return (not wants[0].startswith("_")) + 2 * (not wants[1].startswith("_"))
