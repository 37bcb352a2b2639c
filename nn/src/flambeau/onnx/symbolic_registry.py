"""The table of symbolic functions, under the names of the first versions of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.onnx._export.exporting import register_custom_op_symbolic
from flambeau.onnx._export.opset_functions import write_op
from flambeau.onnx._export.table import custom, load

__all__ = ["get_registered_op", "is_registered_op", "register_op"]


def register_op(opname: str, op: Callable[..., Any], domain: str, version: int) -> None:
    """Say how an op is written: `register_custom_op_symbolic`; no domain is that of ``aten``.

    >>> from flambeau.onnx import symbolic_registry
    >>> symbolic_registry.register_op("mine", lambda g, x: g.op("mine::Op", x), "", 9)
    >>> symbolic_registry.is_registered_op("mine", "", 11)
    True
    """
    register_custom_op_symbolic(f"{domain or 'aten'}::{opname}", op, version)


def is_registered_op(opname: str, domain: str, version: int) -> bool:
    """Whether an op can be written in an opset."""
    if custom(f"{domain or 'aten'}::{opname}", version) is not None:
        return True
    entry = load().get(opname) if domain in ("", "aten") else None
    return entry is not None and entry.since <= version


def get_registered_op(opname: str, domain: str, version: int) -> Callable[..., Any]:
    """The function that writes an op.

    Raises:
        KeyError: there is none.
    """
    own = custom(f"{domain or 'aten'}::{opname}", version)
    if own is not None:
        return own
    if not is_registered_op(opname, domain, version):
        raise KeyError(f"no symbolic function writes {domain or 'aten'}::{opname}")
    return lambda g, *args, **named: write_op(g, opname, *args, **named)
