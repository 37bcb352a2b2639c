"""The schema of an op, from the annotations of a function."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

import flambeau as fb

__all__ = ["infer_schema"]

_BASES: dict[object, str] = {
    fb.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    fb.dtype: "ScalarType",
    fb.device: "Device",
    int | float | bool: "Scalar",
}
_LISTS = (list, collections.abc.Sequence)


def _optional(kind: Any) -> Any:
    """What `X | None` is besides None; None for anything else."""
    if typing.get_origin(kind) not in (typing.Union, types.UnionType):
        return None
    rest = [each for each in typing.get_args(kind) if each is not type(None)]
    if len(rest) == len(typing.get_args(kind)):
        return None
    return rest[0] if len(rest) == 1 else typing.Union[tuple(rest)]  # noqa: UP007 - made here


def _type_name(kind: object, where: str) -> str:
    if (inner := _optional(kind)) is not None:
        return _type_name(inner, where) + "?"
    if typing.get_origin(kind) in _LISTS:
        return _type_name(typing.get_args(kind)[0], where) + "[]"
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        if set(typing.get_args(kind)) <= {int, float, bool}:
            return "Scalar"
    elif kind in _BASES:
        return _BASES[kind]
    raise ValueError(f"infer_schema(func): {where} has unsupported type {kind}.")


def _default(value: object, where: str) -> str:
    if value is inspect.Parameter.empty:
        return ""
    if not (value is None or isinstance(value, (int, float, str, fb.dtype, fb.device))):
        raise ValueError(
            f"infer_schema(func): {where} has an unsupported default value type {type(value)}."
        )
    if isinstance(value, str):
        return f'="{value}"'
    if isinstance(value, fb.dtype):
        return f"={value.name}"
    return f'="{value}"' if isinstance(value, fb.device) else f"={value}"


def _returned(kind: object) -> str:
    if kind is None or kind is type(None):
        return "()"
    if typing.get_origin(kind) is tuple:
        inner = ", ".join(_returned(each) for each in typing.get_args(kind))
        return f"({inner})"
    return _type_name(kind, "Return")


def infer_schema(
    prototype_function: Callable[..., object],
    /,
    *,
    mutates_args: str | Iterable[str] = (),
    op_name: str | None = None,
) -> str:
    """The schema of a function with annotations, such as ``(Tensor x, float y=1.0) -> Tensor``.

    Args:
        prototype_function: the function; every parameter and the result have annotations.
        mutates_args: the names of the tensors that it changes, or ``"unknown"`` for all.
        op_name: a name to put in front.

    Raises:
        ValueError: an annotation is missing, or of a kind that schemas have not.
    """
    unknown = isinstance(mutates_args, str)
    if unknown and mutates_args != "unknown":
        raise ValueError("mutates_args must either be a sequence of names or the string 'unknown'.")
    changed = set() if unknown else set(mutates_args)
    hints = typing.get_type_hints(prototype_function)
    signature = inspect.signature(prototype_function)
    if missing := changed - set(signature.parameters):
        raise ValueError(f"infer_schema(func): {missing} in mutates_args are no parameters.")
    said: list[str] = []
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.POSITIONAL_ONLY or parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            raise ValueError("infer_schema(func): parameters are to be had by name.")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in said:
            said.append("*")
        if name not in hints:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        kind = _type_name(hints[name], f"Parameter {name}")
        if name in changed or (unknown and kind.startswith("Tensor")):
            if not kind.startswith("Tensor"):
                raise ValueError(
                    f"infer_schema(func): Parameter {name} is in mutates_args but no tensor"
                )
            place = len([each for each in said if each != "*"])
            kind = kind.replace("Tensor", f"Tensor(a{place}!)", 1)
        default = _default(parameter.default, f"Parameter {name}")
        said.append(f"{kind} {name}{default}")
    if "return" not in hints:
        raise ValueError("infer_schema(func): No return type annotation was provided.")
    return f"{op_name or ''}({', '.join(said)}) -> {_returned(hints['return'])}"
