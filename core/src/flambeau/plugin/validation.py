"""Checks of what plugins offer, made once when a device is activated and never when an op runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from flambeau.plugin.backend import STRIDED_METHODS, Backend
from flambeau.plugin.errors import did_you_mean
from flambeau.plugin.kernels import KernelSet

VIEW_KERNELS = frozenset({"slice", "permute", "view", "expand", "diagonal"})
"""Kernels that return aliases on strided backends."""

STRIDED_KERNELS = VIEW_KERNELS | {"assign", "fill_"}
"""Kernels that strided backends owe, whether or not the op table lists them."""

WRITING_KERNELS = frozenset(
    """nextafter_ copysign_ hypot_ frac_ nan_to_num_ lerp_ masked_fill_ addcmul_ addcdiv_
    logical_not_ clamp_min_ clamp_max_ exp2_
    masked_scatter_ scatter_product_""".split()
)
"""Kernels of functions that are no ops: they write what those give into their first argument."""


class OpInfo(Protocol):
    """What the host reads of an op that the core declares."""

    @property
    def name(self) -> str: ...
    @property
    def tier(self) -> str: ...
    @property
    def overridable(self) -> bool: ...
    @property
    def why_not(self) -> str: ...


OpTable = Mapping[str, OpInfo]


def writes_or_aliases(op: str, *, strided: bool = True) -> bool:
    """Whether a kernel writes into its argument or aliases it, so that a copy cannot stand in."""
    return op.endswith("_") or op == "assign" or (strided and op in VIEW_KERNELS)


def check_kernels(offer: KernelSet, ops: OpTable) -> None:
    """Accept kernels whose names are ops that may be overridden; with an empty table accept all.

    Raises:
        ValueError: a name that is no op, or an op whose gradient comes from its parts.
    """
    if not ops:
        return
    unknown = []
    for name in offer.kernels:
        op = ops.get(name)
        if op is None and name not in STRIDED_KERNELS | WRITING_KERNELS:
            op = ops.get(name[:-1]) if name.endswith("_") else None
            if op is None:
                unknown.append(name)
                continue
        if op is not None and not op.overridable:
            raise ValueError(
                f"{offer.provider} offers a kernel for {name!r}, which cannot be overridden: "
                f"{op.why_not}"
            )
    if unknown:
        raise ValueError(
            f"{offer.provider} offers kernels for ops that flambeau-core does not declare: "
            + ", ".join(repr(name) + _guess(name, ops) for name in sorted(unknown))
        )


def _guess(name: str, ops: Iterable[str]) -> str:
    hint = did_you_mean(name, [*ops, *STRIDED_KERNELS])
    return f" ({hint.strip()})" if hint else ""


def check_backend(backend: object, device_type: str) -> Backend:
    """Return `backend` if it keeps the contract for `device_type`.

    Raises:
        TypeError: it is no `Backend`, serves another device type, or lacks a required part.
    """
    kind = type(backend).__name__
    if isinstance(backend, type):
        raise TypeError(
            f"flambeau_backend returned the class {backend.__name__} for device {device_type!r}; "
            f"expected an instance, as {backend.__name__}() makes"
        )
    if not isinstance(backend, Backend):
        raise TypeError(
            f"flambeau_backend returned {kind} for device {device_type!r}; "
            "expected an instance of a subclass of flambeau.plugin.Backend"
        )
    if (stated := getattr(backend, "device_type", None)) != device_type:
        raise TypeError(
            f"{kind}.device_type is {stated!r}, but it was returned for {device_type!r}"
        )
    if not isinstance(array := getattr(backend, "array", None), type):
        raise TypeError(f"{kind}.array must be the class of its native arrays, got {array!r}")
    if backend.strided:
        absent = [m for m in STRIDED_METHODS if getattr(type(backend), m) is getattr(Backend, m)]
        if absent:
            raise TypeError(f"{kind} says strided = True and must define {', '.join(absent)}")
    return backend
