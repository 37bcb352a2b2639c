"""Operands of another shape than they should have: an error, or a result, and no other memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.ops import OPS
from flambeau.testing.backend import _support as kit
from flambeau.testing.misfits import misfits
from flambeau.testing.samples import DTYPES, SAMPLES, realise

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


LEVEL = "inference"

WHOLE = os.environ.get("FLAMBEAU_TEST_WHOLE", "") not in ("", "0")
"""Whether all samples are changed, in all dtypes, and not the first of each op in one."""

REFUSED = RuntimeError, IndexError, TypeError, ValueError


def all_ops(device: str) -> Iterator[Any]:
    for name in SAMPLES:
        dtypes = [dtype for dtype in DTYPES[name] if dtype in kit.supported(device)]
        if not WHOLE:
            dtypes = [fb.float32] if fb.float32 in dtypes else dtypes[:1]
        for dtype in dtypes:
            yield kit.case(device, dtype, name, dtype, id=f"{name}-{dtype.name}")


def refused(name: str, args: tuple[Any, ...]) -> Exception | None:
    """What the op demands of its operands, if they do not fulfil it."""
    demands = OPS[name].checks
    if demands is not None:
        try:
            demands(*args)
        except REFUSED as error:
            return error
    return None


@kit.cases("name dtype", all_ops)
def test_an_operand_of_another_shape_is_refused_or_computed_with(
    device: str, name: str, dtype: DType
) -> None:
    # Operands lie amid other memory, in which a kernel that trusts their shapes would write.
    layout = "offset" if fb.zeros(1, device=device)._be.strided else "contiguous"
    wrong = []
    for text, args in misfits(name, None if WHOLE else 1):
        generator = fb.Generator(device).manual_seed(0)
        made = realise(args, kit.maker(device), dtype, layout=layout, generator=generator)
        wanted = refused(name, made)
        try:
            found = kit.Outcome(device, name, made)
            kit.wait(device)
        except Exception as error:
            if kit.for_want_of_a_dtype(device, error):
                continue
            wrong.append(f"{name} ({text}): raised {error!r}, no user's error")
            continue
        if found.changed and not name.endswith("_"):
            wrong.append(f"{name} ({text}): changed operands {found.changed}")
        if type(found.error) is not type(wanted) and wanted is not None:
            wrong.append(f"{name} ({text}): {found.error!r}, where the op says {wanted!r}")
    kit.fail_with(wrong)
