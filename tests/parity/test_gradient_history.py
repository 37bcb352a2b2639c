"""Under ``create_graph`` gradients require a gradient where PyTorch's do.

PyTorch computes the gradients of many functions by one function of all that they depend on: that of
a convolution in its input requires a gradient because the input does, though it is linear in it.
Every call of the op parity suite and of the layers is differentiated with each operand alone as a
leaf, and with all of them; compared are which gradients have a history, and which leaves get
gradients from it.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from calls_with_operands import Operands, calls  # noqa: E402
from op_parity import _code, _writes, to_ours  # noqa: E402
from oracle import flattened  # noqa: E402

PARTS = "Made of several functions, none of which takes all that PyTorch's one function takes."
CONSTANT = "A constant result has no history; PyTorch's has one whose gradient is zero."
WHOLE = "One function of all that it depends on; of several, as PyTorch's, some depend on less."
KEPT = "A statistic that is a result of the op has its history; PyTorch's is kept without one."
DIFFERENCES = {
    r"adaptive_avg_pool|mode=\"area\"": PARTS,
    r"mode=\"(reflect|replicate)\"": PARTS,
    r"\bstft": PARTS + "  It reflects its input at both ends.",
    r"fractional_max_pool": PARTS,
    r"\bgroup_norm": WHOLE,
    r"F\.multi(label)?_margin_loss": PARTS + "  It cannot be differentiated twice.",
    r"(cdist|pdist)\(.*\b0\)": PARTS + "  It cannot be differentiated twice.",
    r"conv_transpose\dd.* (constant; --\+; -\+-|-\+-; \+--; constant)$": "The bias is added.",
    r"conv_tbc": "A convolution like the others; PyTorch's keeps no history of these gradients.",
    r"beta=0\)": CONSTANT,
    r"rounding_mode='floor'": CONSTANT,
    r"x\.(eq|ne|lt|le|gt|ge)_\(": CONSTANT,
    r"rounding_mode='trunc'": "The quotient, which is rounded, is differentiated.",
    r"\bpow_?\((x, )?0\)": "The gradient of a power, which the exponent makes zero.",
    r"\bremainder": "Whole quotients have no history; PyTorch's have one whose gradient is zero.",
    r"F\.(batch|instance)_norm.*, of b: ": KEPT,
    r"F\.nll_loss": KEPT,
    r"rnn_relu|\"relu\"": "The gradient has the result's history; it is PyTorch's that is zero.",
    r"u\.addbmm_\(A, B\)": "An error, since the result does not fit into the operand.",
}
"""Patterns of ``call, of leaves: theirs | ours`` with the reasons why these are not the same."""


def _histories(library: Any, call: str, operands: Operands, chosen: tuple[str, ...]) -> list[str]:
    """What each gradient is: absent, without history, or with one in which leaves have a part.

    Raises:
        Exception: the library cannot do the call.
    """
    names = {"t": library, "F": library.nn.functional, "d": library.float64, "math": math}
    leaves = []
    for letter, value in operands.items():
        tensor = value.clone() if library is torch else to_ours(value)
        if letter in chosen:
            leaves.append(tensor.requires_grad_())
            tensor = tensor * 1 if _writes(call) else tensor
        names[letter] = tensor
    library.manual_seed(0)
    results = flattened(eval(_code(call), names))
    results = [r for r in results if isinstance(r, library.Tensor) and r.requires_grad]
    if not results:
        return ["the result is a constant"]
    ones = [library.ones_like(r) for r in results]
    how = {"allow_unused": True}
    grads = library.autograd.grad(results, leaves, ones, create_graph=True, **how)
    return [_history(library, grad, leaves) for grad in grads]


def _history(library: Any, grad: Any, leaves: list[Any]) -> str:
    if grad is None or not grad.requires_grad:
        return "none" if grad is None else "constant"
    try:
        again = library.autograd.grad(
            grad, leaves, library.ones_like(grad), retain_graph=True, allow_unused=True
        )
    except RuntimeError:  # has no second derivative
        return "?"
    return "".join(["-" if g is None else "+" for g in again])


def _alike(theirs: list[str], ours: list[str]) -> bool:
    """Whether histories are the same, as far as PyTorch can differentiate twice."""
    pairs = itertools.zip_longest(theirs, ours, fillvalue="")
    return all(t == o or (t == "?" and o[:1] in "+-") for t, o in pairs)


@functools.cache
def differing() -> tuple[str, ...]:
    """The cases in which the libraries differ."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call, operands in calls():
            real = [letter for letter, value in operands.items() if value.is_floating_point()]
            for chosen in dict.fromkeys([*((letter,) for letter in real), tuple(real)]):
                try:
                    theirs = _histories(torch, call, operands, chosen)
                except Exception:
                    continue  # op parity has errors
                if theirs == ["the result is a constant"]:
                    continue
                try:
                    ours = _histories(fb, call, operands, chosen)
                except Exception as error:
                    ours = [type(error).__name__]
                if not _alike(theirs, ours):
                    leaves = ", ".join(chosen)
                    found.append(f"{call}, of {leaves}: {'; '.join(theirs)} | {'; '.join(ours)}")
    return tuple(found)


def test_gradients_have_a_history_where_pytorchs_have_one():
    assert [case for case in differing() if not any(re.search(p, case) for p in DIFFERENCES)] == []


@pytest.mark.parametrize("pattern", DIFFERENCES)
def test_recorded_differences_are_there(pattern):
    assert any(re.search(pattern, case) for case in differing())


if __name__ == "__main__":
    print(*differing(), sep="\n")
