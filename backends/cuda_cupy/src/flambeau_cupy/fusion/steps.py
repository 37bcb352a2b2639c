"""The steps that expressions consist of: what each is in C, by category of its operands."""

from __future__ import annotations

import numpy as np

from flambeau_cupy.dtypes import BFLOAT16

NUMBER = "number"  # an input that is a Python float, passed by value

C_TYPES = {
    "bool": "bool",
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "int64",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float32": "float",
    "float64": "double",
}
TYPES = {np.dtype(name): name for name in C_TYPES if name != "bfloat16"}
TYPES[BFLOAT16] = "bfloat16"
HALF_TYPES = ("float16", "bfloat16")
_FLOATS = (*HALF_TYPES, "float32", "float64")

# By category of the first operand: bool, integer, float.  {0}, {1} are the operands, {t} is the
# type in which is computed.
_WRAPPING = "({{t}})((uint64){{0}} {} (uint64){{1}})"
STEPS: dict[str, dict[str, str]] = {
    "add": {"b": "({0} || {1})", "i": _WRAPPING.format("+"), "f": "({0} + {1})"},
    "sub": {"i": _WRAPPING.format("-"), "f": "({0} - {1})"},
    "mul": {"b": "({0} && {1})", "i": _WRAPPING.format("*"), "f": "({0} * {1})"},
    "div": {"f": "({0} / {1})"},
    "atan2": {"f": "atan2({0}, {1})"},
    "pow": {"i": "({t})power_of((int64){0}, (int64){1})", "f": "pow({0}, {1})"},
    "remainder": {
        "i": "({t})remainder_of((int64){0}, (int64){1})",
        "f": "remainder_of({0}, {1})",
    },
    "fmod": {"i": "({t})rest_of((int64){0}, (int64){1})", "f": "fmod({0}, {1})"},
    "floor_divide": {
        "i": "({t})floor_of_quotient((int64){0}, (int64){1})",
        "f": "floor_of_quotient({0}, {1})",
    },
    "maximum": {
        "b": "({0} || {1})",
        "i": "({0} >= {1} ? {0} : {1})",
        "f": "({0} != {0} || {0} >= {1} ? {0} : {1})",
    },
    "minimum": {
        "b": "({0} && {1})",
        "i": "({0} <= {1} ? {0} : {1})",
        "f": "({0} != {0} || {0} <= {1} ? {0} : {1})",
    },
    "neg": {"i": "({t})(0 - (uint64){0})", "f": "(-{0})"},
    "abs": {"b": "{0}", "i": "({0} < 0 ? ({t})(0 - (uint64){0}) : {0})", "f": "fabs({0})"},
    "sign": {"b": "{0}", **dict.fromkeys("if", "({t})(({0} > 0) - ({0} < 0))")},
    "reciprocal": {"f": "(({t})1 / {0})"},
    "rsqrt": {"f": "(({t})1 / sqrt({0}))"},
    "round": {"i": "{0}", "f": "rint({0})"},
    "bitwise_not": {"b": "(!{0})", "i": "({t})(~{0})"},
    "isfinite": {**dict.fromkeys("bi", "true"), "f": "({0} - {0} == 0)"},
    "where": dict.fromkeys("bif", "({0} ? {1} : {2})"),
    "clone": dict.fromkeys("bif", "{0}"),
    "relu": {"f": "({0} > 0 || {0} != {0} ? {0} : ({t})0)"},
    "sigmoid": {"f": "sigmoid_of({0})"},
    "silu": {"f": "({0} * sigmoid_of({0}))"},
    "gelu": {"f": "(({t})0.5 * {0} * (1 + erf({0} * ({t})0.7071067811865476)))"},
    "gelu_tanh": {"f": "(({t})0.5 * {0} * (1 + tanh(tanh_argument({0}))))"},
    "gelu_backward": {"f": "({0} * gelu_slope({1}))"},
    "gelu_tanh_backward": {"f": "({0} * gelu_tanh_slope({1}))"},
    "softplus": {"f": "({0} * {1} > {2} ? {0} : log1p(exp({0} * {1})) / {1})"},
    "leaky_relu": {"f": "({0} > 0 ? {0} : {0} * {1})"},
    "leaky_relu_backward": {"f": "({1} > 0 ? {0} : {0} * {2})"},
    "elu": {"f": "({0} > 0 ? {0} * {2} : expm1({0} * {3}) * {1} * {2})"},
    "threshold": {"f": "({0} <= {1} ? {2} : {0})"},
    # No product: a gradient that is not passed on may be infinite.
    "threshold_backward": {"f": "({1} <= {2} ? ({t})0 : {0})"},
}
STEPS |= {name: {"i": "{0}", "f": name + "({0})"} for name in ("floor", "ceil", "trunc")}
STEPS |= {
    name: {"f": function + "({0})"}
    for name, function in {
        **{n: n for n in "exp expm1 log log1p log2 log10 sin cos tan sinh cosh tanh".split()},
        **{n: n for n in "asin acos atan asinh acosh atanh sqrt erf".split()},
    }.items()
}
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
STEPS |= {n: dict.fromkeys("bif", f"({{0}} {sign} {{1}})") for n, sign in COMPARISONS.items()}
STEPS |= {
    f"bitwise_{name}": dict.fromkeys("bi", f"({{t}})({{0}} {sign} {{1}})")
    for name, sign in {"and": "&", "or": "|", "xor": "^"}.items()
}
NUMBERS = {
    "softplus": 2,
    "leaky_relu": 1,
    "leaky_relu_backward": 1,
    "elu": 3,
    "threshold": 2,
    "threshold_backward": 1,
}
"""How many of the last operands of a step are numbers."""

TO_BOOL = (*COMPARISONS, "isfinite")


def category(kind: str) -> str:
    """``"b"``, ``"i"`` or ``"f"``, as the tables have it."""
    return "b" if kind == "bool" else "f" if kind in _FLOATS else "i"


def supported(step: str, kind: np.dtype | None) -> bool:
    """Whether a step is defined where its operands are of a dtype."""
    name = TYPES.get(kind)  # type: ignore[arg-type]
    return name is not None and (step == "cast" or category(name) in STEPS[step])
