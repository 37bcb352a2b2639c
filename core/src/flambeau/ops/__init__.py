"""The ops.  ``flambeau.ops.<name>`` is the canonical op of that name (docs/design/contract.md).

Canonical ops take tensors and complete, positional, normalised arguments; the public functions
(``flambeau.<name>``) and tensor methods are what programs call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau.ops.declaration.table import OPS

if TYPE_CHECKING:
    from flambeau.ops.declaration.table import Op


def __getattr__(name: str) -> Op:
    try:
        return OPS[name]
    except KeyError:
        raise AttributeError(
            f"module {__name__!r} has no canonical op {name!r}; flambeau.ops.OPS lists them"
        ) from None


__all__ = ["OPS"]
