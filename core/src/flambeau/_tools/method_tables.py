"""What is put into the template of the tensor methods: operators, casts, the public functions."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Sequence
from textwrap import indent
from typing import Any

from flambeau._dispatch.dispatch import record_binary
from flambeau._dispatch.halves import SCALING
from flambeau._dispatch.keywords import many
from flambeau._tools.expansion import Row
from flambeau._tools.public_functions import Function
from flambeau._tools.signatures import (
    Hints,
    first_line,
    forms,
    listed,
    or_none,
    parameters,
    renamings,
)
from flambeau._types.dtype import bool_
from flambeau.ops.declaration.table import OPS, Op

# Operators with a fast path: dunder, canonical op, restriction on the dtype, whether it records.
BINARY = (
    ("__add__", "add", "", True),
    ("__sub__", "sub", "", True),
    ("__mul__", "mul", "", True),
    ("__truediv__", "div", "fp", True),
    ("__pow__", "pow", "fp", True),
    ("__eq__", "eq", "", False),
    ("__ne__", "ne", "", False),
    ("__lt__", "lt", "", False),
    ("__le__", "le", "", False),
    ("__gt__", "gt", "", False),
    ("__ge__", "ge", "", False),
)
# With which numbers an op does not promote, beside their type.
_NUMBERS = {
    "div": " and self.dtype.fp",
    "pow": " and (self.dtype.fp or (0 <= other < 128 and self.dtype.category == 1))",
}
SLOW_BINARY = (
    ("__floordiv__", "floor_divide"),
    ("__mod__", "remainder"),
    ("__and__", "bitwise_and"),
    ("__or__", "bitwise_or"),
    ("__xor__", "bitwise_xor"),
    ("__lshift__", "bitwise_left_shift"),
    ("__rshift__", "bitwise_right_shift"),
)
REFLECTED = (
    ("__rsub__", "sub"),
    ("__rpow__", "pow"),
    ("__rfloordiv__", "floor_divide"),
    ("__rmod__", "remainder"),
    ("__rand__", "bitwise_and"),
    ("__ror__", "bitwise_or"),
    ("__rxor__", "bitwise_xor"),
    ("__rlshift__", "bitwise_left_shift"),
    ("__rrshift__", "bitwise_right_shift"),
)
INPLACE_OPERATORS = (
    ("__iadd__", "add"),
    ("__isub__", "sub"),
    ("__imul__", "mul"),
    ("__itruediv__", "div"),
)
SLOW_INPLACE_OPERATORS = (
    ("__ipow__", "pow"),
    ("__ifloordiv__", "floor_divide"),
    ("__imod__", "remainder"),
    ("__iand__", "bitwise_and"),
    ("__ior__", "bitwise_or"),
    ("__ixor__", "bitwise_xor"),
    ("__ilshift__", "bitwise_left_shift"),
    ("__irshift__", "bitwise_right_shift"),
)
CASTS = {
    "bool": "bool_",
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "cfloat": "complex64",
    "cdouble": "complex128",
}

# Methods with a fast path of their own: the function behind it and the dtypes before it; the op.
REDUCTIONS = (
    ("sum", "summed", "(self.dtype.fp or self.dtype is int64)"),
    ("mean", "averaged", "self.dtype.fp"),
)
SOFTMAXES = ("softmax", "log_softmax")
EXTREMES = (("max", "amax"), ("min", "amin"))

# Functions that leave ordinary calls to the operator, and what makes them ordinary.
CONDITIONS = {
    "add": "not legacy and alpha == 1",
    "sub": "not legacy and alpha == 1",
    "div": "rounding_mode is None",
}
# Functions that add another tensor times a factor.
FACTORS = {"add": "alpha", "sub": "-alpha"}


def method_tables(
    functions: Sequence[Function], written: set[str], hints: Hints
) -> dict[str, list[Row]]:
    """The tables of the template, which has the methods `written` already."""
    offers = {f.name: f for f in functions}
    fast = [op for _, op in sorted(OPS.items()) if _fast(op, offers)]
    short = {name for name, *_ in (*REDUCTIONS, *EXTREMES)} | set(SOFTMAXES)
    done = {*written, *short, *(op.name for op in fast)}
    forwarded = [f for f in functions if f.public.method and f.name not in done]
    forwarded.sort(key=lambda f: f.name.startswith("new_"))
    recorded = {op for _, op, _, records in BINARY if records}
    recorded |= {op.name for op in fast if op.differentiable}
    called = [name for name, *_ in REDUCTIONS] + [*SOFTMAXES] + [op for _, op in EXTREMES]
    return {
        "node_OP": [{"OP": op} for op in sorted(recorded)],
        "op_OP": [{"OP": op} for op in called],
        "BINARY": [_binary(*entry) for entry in BINARY],
        "SLOW_BINARY": [{"SLOW_BINARY": method, "OP": op} for method, op in SLOW_BINARY],
        "REFLECTED": [{"REFLECTED": method, "OP": op} for method, op in REFLECTED],
        "INPLACE": [
            {
                "INPLACE": method,
                "ITS_BINARY": method.replace("i", "", 1),
                "OP": op,
                "dtype.takes": _numbers(op),
                " and FLOATING": " and self.dtype.fp" if op == "div" else _fit(op),
                "SAVES": str(offers[op].public.saves_self),
            }
            for method, op in INPLACE_OPERATORS
        ],
        "SLOW_INPLACE": [{"SLOW_INPLACE": m, "OP": op} for m, op in SLOW_INPLACE_OPERATORS],
        "REDUCTION": [
            {
                "REDUCTION": name,
                "OP": name,
                "DOC": first_line(offers[name].function),
                "GENERAL": general,
                "SUMMABLE": summable,
            }
            for name, general, summable in REDUCTIONS
        ],
        "SOFTMAX": [
            {"SOFTMAX": name, "OP": name, "DOC": first_line(offers[name].function)}
            for name in SOFTMAXES
        ],
        "EXTREME": [
            {
                "EXTREME": name,
                "NAME": name,
                "OP": op,
                "DOC": first_line(offers[name].function),
                "@FORMS()": forms(name, offers[name].function, ("out",), hints),
            }
            for name, op in EXTREMES
        ],
        "UNARY": [_unary(op, offers[op.name].function) for op in fast],
        "FORWARDED": [_forwarded(f, hints) for f in forwarded],
        "FORWARDED_": [_forwarded_(f, hints) for f in functions if f.public.inplace_method],
        "VIEW_": [_view(f, hints) for f in functions if f.public.inplace == "view"],
        "CAST": [
            {"CAST": name, "KIND": dtype.rstrip("_"), "DTYPE": dtype}
            for name, dtype in CASTS.items()
        ],
        "_RECORDED": [{"LISTED": listed(sorted({*recorded, "matmul"}))}],
        "_CALLED": [{"LISTED": listed(called)}],
    }


def _fast(op: Op, offers: dict[str, Function]) -> bool:
    """Whether the method of an op calls its kernel itself."""
    if op.params != ("self",) or op.kinds != ("tensor",) or op.results != 1:
        return False
    if op.name not in offers:
        return False
    public = offers[op.name].public
    return op.out in ("same", None, bool_) and public.method and public.direct


def _binary(method: str, op: str, restriction: str, records: bool) -> Row:
    return {
        "BINARY": method,
        "OP": op,
        "RECORDS": records,
        " and FLOATING": " and self.dtype.fp" if restriction else _fit(op),
        "dtype.takes": _numbers(op),
        " and FITTING": _NUMBERS.get(op, _fit(op)),
        "DTYPE": "self.dtype" if records else "bool_",
        "SAVED": _saved(OPS[op].node) if records else "",
    }


def _fit(op: str) -> str:
    # Kernels may well compute what is to be refused.
    if OPS[op].refuses_complex:
        return " and not self.dtype.is_complex"
    return " and self.dtype is not bool_" if OPS[op].refuses_bool else ""


def _numbers(op: str) -> str:
    return "dtype.scales" if op in SCALING or op == "pow" else "dtype.takes"


def _saved(node: Any) -> str:
    """What `record_binary` saves when both sides want a gradient, as source text for a method."""
    values = [
        statement.value
        for statement in ast.walk(ast.parse(inspect.getsource(record_binary)))
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "n.saved"
    ]
    nothing, both, first, second = map(ast.unparse, values)  # in the order of its branches
    text = (nothing, first, second, both)[node.keep[3]]
    return re.sub(r"\b[xy]\b", lambda name: {"x": "self", "y": "other"}[name[0]], text)


def _unary(op: Op, function: Any) -> Row:
    row: dict[str, str | bool] = {
        "UNARY": op.name,
        "OP": op.name,
        "DOC": first_line(function),
        "RECORDS": op.differentiable,
        "DTYPE": {"same": "self.dtype", None: "be.dtype_of(r)"}.get(op.out, "bool_"),
        " or UNFIT": _unfit(op),
        ", *TAKEN: Any": "",
    }
    if op.name == "round":
        row |= {
            " or UNFIT": f" or decimals{_unfit(op)}",
            ", *TAKEN: Any": ", *, decimals: _int = 0",
            'slow_unary("OP", self)': "_ops.round(self, decimals=decimals)",
        }
    return row


def _unfit(op: Op) -> str:
    """On which dtypes an op does not run as they are, as the end of a condition."""
    if (op.refuses_complex and op.promotes == "float") or op.name == "round":
        return " or self.dtype.category != 2"
    if op.refuses_complex and op.refuses_bool:
        return " or self.dtype.category not in (1, 2)"
    if op.refuses_complex:
        return " or self.dtype.is_complex"
    if op.promotes == "float":
        return " or not self.dtype.fp"
    if op.integral:
        return " or self.dtype.category >= 2"
    return " or self.dtype is bool_" if op.refuses_bool or op.promotes == "integer" else ""


def _forwarded(f: Function, hints: Hints) -> Row:
    skip = f.public.function_only
    taken, passed = parameters(f.function, skip, f.public.names, hints)
    if argument := f.public.variadic:
        kind = hints.within(many, "Ints")
        taken = f", *given: {kind}, {argument}: {or_none(kind)} = None"
        passed = f', many("{f.name}", "{argument}", given, {argument})'
    own = inspect.unwrap(f.function)
    return {
        "FORWARDED": f.name,
        "NAME": f.name,
        "RETURNS": hints.within(own, inspect.signature(own).return_annotation),
        "DOC": first_line(f.function),
        "@FORMS()": forms(f.name, f.function, skip, hints),
        "FIRST()": _own(f.name, own)
        + renamings(f.name, f.function, f.public.names)
        + _through_operator(f.name, {op: method for method, op, *_ in BINARY}),
        ", *TAKEN: Any": taken,
        ", *PASSED": passed,
    }


def _own(name: str, function: Any) -> str:
    """The lines that refuse a number for `self` where the function takes one for its first."""
    first, *rest = inspect.signature(function).parameters.values()
    op = OPS.get(function.__name__) if rest and rest[0].default is rest[0].empty else None
    if "Number" not in str(first.annotation) and not getattr(op, "promotes", None):
        return ""
    return f'if type(self) in NUMBERS:\n    need_self(self, "{name}")\n'


def _forwarded_(f: Function, hints: Hints) -> Row:
    taken, passed = parameters(f.function, names=f.public.names, hints=hints)
    first = renamings(f"{f.name}_", f.function, f.public.names)
    first += _through_operator(f.name, {op: method for method, op in INPLACE_OPERATORS})
    if f.public.same_dtype:
        first += "check_same_dtype(self, dim, dtype)\n"
    if f.name in FACTORS:
        first += f"if not legacy and added_to(self, other, {FACTORS[f.name]}):\n    return self\n"
    return {
        "FORWARDED_": f"{f.name}_",
        "NAME": f.name,
        "FIRST()": first,
        ", *TAKEN: Any": taken,
        ", *PASSED": passed if f.public.saves_self else f"{passed}, _saves_self=False",
    }


def _view(f: Function, hints: Hints) -> Row:
    taken, passed = parameters(f.function, hints=hints)
    return {"VIEW_": f"{f.name}_", "NAME": f.name, ", *TAKEN: Any": taken, ", *PASSED": passed}


def _through_operator(name: str, operators: dict[str, str]) -> str:
    """The lines of a method that leave ordinary calls to the operator, which has a fast path."""
    if name not in operators:
        return ""
    lines = f"result = self.{operators[name]}(other)\nif result is not NotImplemented:\n"
    lines += "    return result\n"
    return f"if {CONDITIONS[name]}:\n{indent(lines, '    ')}" if name in CONDITIONS else lines
