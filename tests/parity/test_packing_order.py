"""`saved_tensors_hooks` pack what an op saves in PyTorch's order: by name, results last.

Where a call of the op parity suite or of a layer saves in both libraries the same tensors, they are
packed one after the other alike.
"""

from __future__ import annotations

import functools
import math
import re
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from calls_with_operands import Operands, calls  # noqa: E402
from op_parity import _code, _writes, to_ours  # noqa: E402

PARTS = "Made of several functions, of which each packs its own."
DIFFERENCES = {
    r"addcdiv|addmv|baddbmm": PARTS,
    r"\b(mv|matmul)\(": PARTS + "  A vector is a second operand like others.",
    r"cosine_|poisson_nll": PARTS,
    r"matrix_power": "The last product has its factors the other way round.",
    r"\bsvd": "Singular values are the second result.",
}
"""Patterns of ``call: theirs | ours`` with the reasons why these are not the same."""


def _packed(library: Any, call: str, operands: Operands) -> list[str]:
    """Which operand's memory each packed tensor has, its shape and dtype."""
    names = {"t": library, "F": library.nn.functional, "d": library.float64, "math": math}
    places, kept, packed = {}, [], []
    for letter, value in operands.items():
        tensor = value.clone() if library is torch else to_ours(value)
        if value.is_floating_point():
            tensor.requires_grad_()
        names[letter] = tensor = tensor * 1 if _writes(call) else tensor
        places[tensor.untyped_storage().data_ptr()] = letter

    def pack(tensor: Any) -> Any:
        kept.append(tensor)  # so that no other takes its memory
        place = places.get(tensor.untyped_storage().data_ptr(), "")
        dtype = str(tensor.dtype).partition(".")[2]
        packed.append(f"{place}{tuple(tensor.shape)} {dtype}")
        return tensor

    library.manual_seed(0)
    with library.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        eval(_code(call), names)
    return packed


@functools.cache
def compared() -> tuple[tuple[str, ...], int]:
    """The calls that pack the same in another order, and how many there are in the same one."""
    found, same = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call, operands in calls():
            try:
                theirs, ours = (_packed(library, call, operands) for library in (torch, fb))
            except Exception:
                continue  # op parity has errors
            if len(theirs) > 1 and theirs == ours:
                same += 1
            elif sorted(theirs) == sorted(ours) and theirs != ours:
                found.append(f"{call}: {', '.join(theirs)} | {', '.join(ours)}")
    return tuple(found), same


def test_saved_tensors_are_packed_in_pytorchs_order():
    found, same = compared()
    assert [case for case in found if not any(re.search(p, case) for p in DIFFERENCES)] == []
    assert same > 200


@pytest.mark.parametrize("pattern", DIFFERENCES)
def test_recorded_differences_are_there(pattern):
    assert any(re.search(pattern, case) for case in compared()[0])
