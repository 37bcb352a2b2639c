"""Functions that write their result into their first argument.

The template of ``_api/inplace_functions.py``; `flambeau._tools.expansion` says how it is read.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._api import functions as _ops
from flambeau._dispatch.arguments import need_tensor
from flambeau._tensor.tensor import Tensor
from flambeau._tools.templates.placeholders import LISTED, METHOD, PASSED
from flambeau._writes.inplace import inplace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flambeau._types.hints import Number


def INPLACE(input: Tensor, *TAKEN: Any) -> Tensor:
    """`NAME` in place."""
    if METHOD:
        return need_tensor(input, "NAME_", "input").NAME_(*PASSED)
    else:
        return inplace(_ops.NAME, need_tensor(input, "NAME_", "input"), *PASSED)


__all__ = LISTED
