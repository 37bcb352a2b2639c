"""Which signature a call means, and what its arguments become."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from flambeau.jit import _types as T
from flambeau.jit._frontend.state import described
from flambeau.jit._graph import Value
from flambeau.jit._parts import compiler
from flambeau.jit._schemas import NO_DEFAULT, Argument, Schema, schemas
from flambeau.jit._types import NamedTupleType, Type

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping, Sequence

    from flambeau.jit._frontend.state import Compilation

_IMPLICIT = {
    T.INT: "aten::IntImplicit",
    T.FLOAT: "aten::FloatImplicit",
    T.COMPLEX: "aten::ComplexImplicit",
    T.NUMBER: "aten::ScalarImplicit",
}
_OF_NUMBER = {T.INT: "aten::Int", T.FLOAT: "aten::Float", T.COMPLEX: "aten::Complex"}


def fits(want: Type, have: Type, variables: dict[Type, Type]) -> bool:
    """Whether a value of a type can be given for another, which may have type variables."""
    if want.kind.startswith("var:"):
        known = variables.get(want)
        if known is None:
            variables[want] = have
            return True
        joined = T.unify(known, have)
        if joined is None:
            return False
        variables[want] = joined
        return True
    if not _has_variables(want):
        return T.is_subtype(have, want)
    if want.kind == "Optional":
        if have is T.NONE:
            return want.args[0] in variables or not want.args[0].kind.startswith("var:")
        return fits(want.args[0], have.args[0] if have.kind == "Optional" else have, variables)
    return (
        want.kind == have.kind
        and len(want.args) == len(have.args)
        and all(fits(w, h, variables) for w, h in zip(want.args, have.args, strict=True))
    )


@cache
def _has_variables(kind: Type) -> bool:
    return kind.kind.startswith("var:") or any(map(_has_variables, kind.args))


def bound(kind: Type, variables: Mapping[Type, Type]) -> Type:
    """A type with its variables filled in."""
    if kind.kind.startswith("var:"):
        return variables.get(kind, kind)
    if not kind.args or isinstance(kind, NamedTupleType):
        return kind
    return Type(kind.kind, *(bound(each, variables) for each in kind.args))


def convert(
    c: Compilation, value: Value, want: Type, *, allow: bool, at: ast.AST | None = None
) -> Value | None:
    """A value as one of another type, or None where that cannot be.

    Args:
        allow: whether tensors may become numbers, and texts devices.
    """
    have = value.type()
    if have is T.UNKNOWN or want is T.UNKNOWN or T.is_subtype(have, want):
        return value
    inner = want.args[0] if want.kind == "Optional" else want
    if inner.kind == "Union" and have.kind == "Tuple":
        made = (convert(c, value, each, allow=False, at=at) for each in inner.args)
        return next((each for each in made if each is not None), None)
    if inner.kind == "List" and have.kind == "Tuple":
        if all(T.is_subtype(each, inner.args[0]) for each in have.args):
            return c.emit("prim::ListConstruct", unpack(c, value), inner, at=at)
        return None
    if inner.kind == "List" and have.kind == "List" and _is_literal(value):
        return _retyped(value, inner)
    if inner.kind == "Dict" and have.kind == "Dict" and _is_literal(value):
        return _retyped(value, inner)
    if isinstance(inner, NamedTupleType) and have.kind == "Tuple":
        if T.is_subtype(have, T.tuple_of(*inner.args)):
            return c.emit("prim::TupleConstruct", unpack(c, value), inner, at=at)
        return None
    if not allow:
        return None
    if have is T.TENSOR and inner in _IMPLICIT:
        return c.emit(_IMPLICIT[inner], [value], inner, at=at)
    if have is T.NUMBER and inner in _OF_NUMBER:
        return c.emit(_OF_NUMBER[inner], [value], inner, at=at)
    if have is T.STR and inner is T.DEVICE:
        return c.emit("aten::device", [value], T.DEVICE, at=at)
    return None


def _is_literal(value: Value) -> bool:
    node = value.node
    return (
        node is not None
        and node.kind in ("prim::ListConstruct", "prim::DictConstruct")
        and "_open" in node.attributes
        and not value.readers
    )


def _retyped(value: Value, want: Type) -> Value | None:
    """A literal list or dict whose elements fit a wider type, as one of that."""
    node = value.node
    assert node is not None
    width = len(want.args)
    for at, member in enumerate(node.inputs_):
        if not T.is_subtype(member.type(), want.args[at % width]):
            inner = want.args[at % width]
            alike = member.type().kind == inner.kind and len(inner.args)
            if not (alike and _nested_literal(member) and _retyped(member, inner)):
                return None
    return value.setType(want)


def _nested_literal(value: Value) -> bool:
    node = value.node
    return node is not None and "_open" in node.attributes and len(value.readers) == 1


def unpack(c: Compilation, value: Value) -> list[Value]:
    """The members of a tuple."""
    node = value.node
    if node is not None and node.kind == "prim::TupleConstruct":
        return list(node.inputs_)
    return list(c.node("prim::TupleUnpack", [value], value.type().args).outputs())


class Mismatch(Exception):  # noqa: N818 - it is no error of the program
    """Why a call does not fit a signature."""


def match(
    c: Compilation,
    schema: Schema,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    *,
    allow: bool,
    at: ast.AST | None = None,
) -> tuple[list[Value], dict[Type, Type]]:
    """The inputs for a signature, defaults included.

    Raises:
        Mismatch: the call does not fit; nothing was added to the graph.
    """
    before = len(c.block.nodes_)
    try:
        return _match(c, schema, list(args), dict(kwargs), allow, at)
    except Mismatch:
        for node in reversed(c.block.nodes_[before:]):
            node.destroy()
        raise


def _match(
    c: Compilation,
    schema: Schema,
    args: list[Value],
    kwargs: dict[str, Value],
    allow: bool,
    at: ast.AST | None,
) -> tuple[list[Value], dict[Type, Type]]:
    variables: dict[Type, Type] = {}
    inputs: list[Value] = []
    used = 0
    arguments = schema.arguments
    for index, argument in enumerate(arguments):
        if not argument.keyword_only and used < len(args):
            if _takes_rest(arguments, index, args[used:], allow):
                inputs.append(_list(c, args[used:], argument, variables, allow, at))
                used = len(args)
                continue
            value = args[used]
            used += 1
            if argument.name in kwargs:
                raise Mismatch(f"Argument '{argument.name}' specified twice")
        elif argument.name in kwargs:
            value = kwargs.pop(argument.name)
        elif argument.name == "self" and "input" in kwargs:
            value = kwargs.pop("input")
        elif argument.default is not NO_DEFAULT:
            inputs.append(default(c, argument, at))
            continue
        else:
            raise Mismatch(f"Argument {argument.name} not provided")
        inputs.append(_given(c, value, argument, variables, allow, at))
    if used < len(args) and schema.varargs:
        inputs += args[used:]
        used = len(args)
    if used < len(args):
        raise Mismatch(
            f"Expected at most {sum(not a.keyword_only for a in arguments)} arguments but found "
            f"{len(args)} positional arguments"
        )
    for name in kwargs:
        if any(argument.name == name for argument in arguments):
            raise Mismatch(f"Argument '{name}' specified twice")
        raise Mismatch(f"Unknown keyword argument '{name}'")
    return inputs, variables


def _takes_rest(
    arguments: Sequence[Argument], index: int, rest: Sequence[Value], allow: bool
) -> bool:
    """Whether a list is given as its elements: ``x.view(2, 3)``."""
    argument = arguments[index]
    kind = argument.type
    if kind.kind != "List" or argument.size is not None or kind.args[0].kind.startswith("var:"):
        return False
    if any(not each.keyword_only for each in arguments[index + 1 :]):
        return False
    first = rest[0].type()
    element = kind.args[0]
    return first in (T.INT, element) or (allow and first is T.TENSOR and element is T.INT)


def _list(
    c: Compilation,
    values: Sequence[Value],
    argument: Argument,
    variables: dict[Type, Type],
    allow: bool,
    at: ast.AST | None,
) -> Value:
    element = replace(argument, type=argument.type.args[0], text="", means="")
    members = [_given(c, value, element, variables, allow, at) for value in values]
    return c.emit("prim::ListConstruct", members, argument.type, at=at)


def _given(
    c: Compilation,
    value: Value,
    argument: Argument,
    variables: dict[Type, Type],
    allow: bool,
    at: ast.AST | None,
) -> Value:
    want, have = argument.type, value.type()
    inner = want.args[0] if want.kind == "Optional" else want
    if inner.kind == "List":
        element = inner.args[0]
        single = argument.size is not None and not element.kind.startswith("var:")
        if single and T.is_subtype(have, element):
            count = argument.size or 1
            return c.emit("prim::ListConstruct", [value] * count, inner, at=at)
        if have.kind == "Tuple" and have.args:
            trial = dict(variables)
            if all(fits(element, each, trial) for each in have.args):
                variables.update(trial)
                kind = T.list_of(bound(element, variables))
                return c.emit("prim::ListConstruct", unpack(c, value), kind, at=at)
            if allow and element is T.INT and all(e in (T.INT, T.TENSOR) for e in have.args):
                members = [convert(c, e, T.INT, allow=True, at=at) or e for e in unpack(c, value)]
                return c.emit("prim::ListConstruct", members, inner, at=at)
    trial = dict(variables)
    if fits(want, have, trial):
        variables.update(trial)
        return value
    if not _has_variables(want):
        converted = convert(c, value, want, allow=allow, at=at)
        if converted is not None:
            return converted
        raise Mismatch(_expected(argument, value, want))
    raise Mismatch(
        f"Could not match type {described(value)} to {shown(want)} in argument "
        f"'{argument.name}': Cannot match {shown(want)} to {described(value)}."
    )


def _expected(argument: Argument, value: Value, want: Type) -> str:
    wanted = f"Optional[{shown(want.args[0])}]" if want.kind == "Optional" else shown(want)
    text = (
        f"Expected a value of type '{wanted}' for argument '{argument.name}' but instead found "
        f"type '{described(value)}'."
    )
    if value.inferred:
        text += (
            f"\nInferred the value for argument '{argument.name}' to be of type 'Tensor' because "
            "it was not annotated with an explicit type."
        )
    elif argument.inferred:
        text += (
            f"\nInferred '{argument.name}' to be of type 'Tensor' because it was not annotated "
            "with an explicit type."
        )
    return text


def shown(kind: Type) -> str:
    """A type of a signature as errors have it."""
    return re.sub("var:", "", kind.annotation)


def default(c: Compilation, argument: Argument, at: ast.AST | None) -> Value:
    """The default of an argument as a constant."""
    value, kind = argument.default, argument.type
    inner = kind.args[0] if kind.kind == "Optional" else kind
    if value is None:
        return c.constant(None, T.NONE, at)
    if inner.kind == "List":
        element = inner.args[0]
        many = value if isinstance(value, (list, tuple)) else [value] * (argument.size or 1)
        members = [c.constant(each, _number_type(each, element), at) for each in many]
        return c.emit("prim::ListConstruct", members, inner, at=at)
    constant_of = compiler.values.constant_of

    if isinstance(value, (tuple, dict)) or not isinstance(value, (bool, int, float, str, complex)):
        return constant_of(c, at, value, kind)
    return c.constant(value, _number_type(value, inner), at)


def _number_type(value: object, kind: Type) -> Type:
    if kind is T.NUMBER or kind.kind.startswith("var:"):
        return {bool: T.BOOL, int: T.INT, float: T.FLOAT, complex: T.COMPLEX}[type(value)]
    return kind


def call_op(
    c: Compilation,
    name: str,
    args: Sequence[Value],
    kwargs: Mapping[str, Value] | None = None,
    *,
    at: ast.AST | None = None,
    shown_name: str = "",
) -> Value:
    """Add the op of a name whose signature fits.

    Raises:
        CompilationError: none fits; says why each does not.
    """
    kwargs = kwargs or {}
    candidates = schemas(name)
    found = _first(c, candidates, args, kwargs, at, allow=False)
    if found is None:
        found = _swapped(c, name, args, kwargs, at)
    if found is None:
        found = _first(c, candidates, args, kwargs, at, allow=True)
    if found is not None:
        return found
    bare = shown_name or name
    if not candidates:
        c.fail(at, f"Unknown builtin op: {bare}.\nCould not find any similar ops to {bare}")
    c.fail(at, _reasons(c, candidates, args, kwargs, at))


def _first(
    c: Compilation,
    candidates: Sequence[Schema],
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    at: ast.AST | None,
    allow: bool,
) -> Value | None:
    for schema in candidates:
        try:
            inputs, variables = match(c, schema, args, kwargs, allow=allow, at=at)
        except Mismatch:
            continue
        return emit_op(c, schema, inputs, variables, at)
    return None


_VARIANTS = 2000
"""Characters that say why each signature of an op does not fit."""


def _reasons(
    c: Compilation,
    candidates: Sequence[Schema],
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    at: ast.AST | None,
) -> str:
    reasons = []
    for schema in candidates:
        try:
            match(c, schema, args, kwargs, allow=True, at=at)
        except Mismatch as why:
            reasons.append((schema, str(why)))
    texts = [f"{schema}:\n{why}" for schema, why in reasons]
    if len(texts) == 1:
        return texts[0]
    kept = sum(total <= _VARIANTS for total in accumulate(map(len, texts)))
    if kept < len(texts):
        texts[kept:] = [f"and {len(texts) - kept} more"]
    listed = "\n".join(f"  {line}" for line in "\n\n".join(texts).splitlines())
    return (
        "Arguments for call are not valid.\nThe following variants are available:\n  \n"
        f"{listed}\n\nThe original call is"
    )


def emit_op(
    c: Compilation,
    schema: Schema,
    inputs: Sequence[Value],
    variables: Mapping[Type, Type],
    at: ast.AST | None,
) -> Value:
    """Add a node for a signature; several outputs become a tuple."""
    types = [bound(each.type, variables) for each in schema.returns]
    outputs = c.node(schema.name, inputs, types, at=at, schema=schema).outputs_
    if len(outputs) == 1:
        return outputs[0]
    if not outputs:
        return c.constant(None, T.NONE, at)
    names = [each.name for each in schema.returns]
    kind: Type = T.tuple_of(*types)
    if all(names):
        kind = _result_type(schema.name, tuple(names), tuple(types))
    return c.emit("prim::TupleConstruct", outputs, kind, at=at)


@cache
def _result_type(name: str, names: tuple[str, ...], types: tuple[Type, ...]) -> Type:
    return NamedTupleType(name, names, types)


# A number before a tensor: the op that is the same with the tensor first.
_MIRRORED = {
    "add": "add",
    "mul": "mul",
    "eq": "eq",
    "ne": "ne",
    "lt": "gt",
    "gt": "lt",
    "le": "ge",
    "ge": "le",
}
_NUMBERS = (T.INT, T.FLOAT, T.COMPLEX)


def _swapped(
    c: Compilation,
    name: str,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    at: ast.AST | None,
) -> Value | None:
    if kwargs or len(args) != 2:
        return None
    number, tensor = args
    if number.type() not in _NUMBERS or tensor.type() is not T.TENSOR:
        return None
    op = name.removeprefix("aten::")
    if op in _MIRRORED:
        return call_op(c, f"aten::{_MIRRORED[op]}", [tensor, number], at=at)
    if op == "sub":
        return call_op(c, "aten::add", [call_op(c, "aten::neg", [tensor], at=at), number], at=at)
    if op in ("div", "true_divide"):
        inverse = call_op(c, "aten::reciprocal", [tensor], at=at)
        return call_op(c, "aten::mul", [inverse, number], at=at)
    return None
