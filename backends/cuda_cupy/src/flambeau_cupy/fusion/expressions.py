"""Elementwise expressions, and the kernel in CUDA C that computes one in a single launch.

An `Expression` is a list of steps over its inputs.  Values of halves stay float32 between the steps
and are rounded where they are stored or cast.  `Elementwise` runs expressions on arrays of any
strides, broadcast.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib.resources import files
from math import prod
from typing import Any

import numpy as np

from flambeau_cupy.dtypes import BFLOAT16
from flambeau_cupy.launch import Program, Struct, blocks_for
from flambeau_cupy.layer import Array, Layer

DIMS = 12  # of a layout, once neighbouring dimensions are joined
MOST_STEPS = 400
MOST_OPERANDS = 24
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
_HALVES = ("float16", "bfloat16")
_FLOATS = (*_HALVES, "float32", "float64")

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


@dataclass(frozen=True, eq=False)
class Expression:
    """Steps over inputs; `expression` gives the same object for the same ones.

    Attributes:
        inputs: dtype of each, or `NUMBER`.
        steps: name, dtype of the result, and the values it takes: first the inputs are counted,
            then the steps.  A number becomes what the first operand is.  A step that takes none
            is a `literal`.
        outputs: values and the dtypes in which they are stored.
    """

    inputs: tuple[str, ...]
    steps: tuple[tuple[str, str, tuple[int, ...]], ...]
    outputs: tuple[tuple[int, str], ...]

    @cached_property
    def program(self) -> Program:
        """The kernel: a layout, then outputs, then inputs."""
        body = self._text("NAME")
        name = f"elementwise_{sha256(body.encode()).hexdigest()[:16]}"
        return Program(name, body.replace("NAME", name), prelude())

    def _text(self, name: str) -> str:
        arrays = [i for i, kind in enumerate(self.inputs) if kind != NUMBER]
        widest = max(
            _size(k) for k in (*(self.inputs[i] for i in arrays), *(k for _, k in self.outputs))
        )
        width = 16 // widest
        ins = {i: C_TYPES[self.inputs[i]] for i in arrays}
        outs = [C_TYPES[kind] for _, kind in self.outputs]
        count = len(outs) + len(ins)
        parameters = [f"Layout<{count}> layout"]
        parameters += [f"{t}* out{k}" for k, t in enumerate(outs)]
        parameters += [
            f"const {ins[i]}* in{i}" if i in ins else f"double in{i}"
            for i in range(len(self.inputs))
        ]
        result = [f"{t}& r{k}" for k, t in enumerate(outs)]
        given = [f"{ins[i]} x{i}" if i in ins else f"double v{i}" for i in range(len(self.inputs))]
        lines = [f"__device__ inline void {name}_of({', '.join([*result, *given])}) {{"]
        lines += [
            f"  {_computed(self.inputs[i])} v{i} = ({_computed(self.inputs[i])})x{i};" for i in ins
        ]
        lines += [f"  {line}" for line in self._lines()]
        lines += [
            f"  r{k} = {_stored(f'v{value}', self._kind(value), kind)};"
            for k, (value, kind) in enumerate(self.outputs)
        ]
        lines += ["}", f'extern "C" __global__ void {name}({", ".join(parameters)}) {{']

        def call(out: str, at: dict[int, str]) -> str:
            results = [out.format(k=k) for k in range(len(outs))]
            values = [at[i] if i in ins else f"in{i}" for i in range(len(self.inputs))]
            return f"{name}_of({', '.join([*results, *values])});"

        steps = {i: f"layout.step[{len(outs) + k}]" for k, i in enumerate(ins)}
        rows = [f"aligned_for<Row<{t}, {width}>>(out{k})" for k, t in enumerate(outs)]
        rows += [
            f"(!{steps[i]}[0] || aligned_for<Row<{t}, {width}>>(in{i}))" for i, t in ins.items()
        ]
        lines += [
            "  if (layout.dims == 0) {",
            f"    int64 packs = {' && '.join(rows)} ? layout.n / {width} : 0;",
            "    GRID_LOOP(p, packs) {",
            *[f"      Row<{t}, {width}> o{k};" for k, t in enumerate(outs)],
            *[f"      Row<{t}, {width}> a{i};" for i, t in ins.items()],
            *[
                f"      if ({steps[i]}[0]) a{i} = ((const Row<{t}, {width}>*)in{i})[p];"
                f" else for (int j = 0; j < {width}; j++) a{i}.of[j] = *in{i};"
                for i, t in ins.items()
            ],
            f"      for (int j = 0; j < {width}; j++) "
            + call("o{k}.of[j]", {i: f"a{i}.of[j]" for i in ins}),
            *[f"      ((Row<{t}, {width}>*)out{k})[p] = o{k};" for k, t in enumerate(outs)],
            "    }",
            f"    int64 first = packs * {width};",
            "    GRID_LOOP(i, layout.n - first) {",
            "      int64 j = first + i;",
            "      " + call("out{k}[j]", {i: f"in{i}[j * {steps[i]}[0]]" for i in ins}),
            "    }",
            "    return;",
            "  }",
            "  GRID_LOOP(i, layout.n) {",
            f"    int64 at[{count}];",
            "    layout.places(i, at);",
            "    "
            + call(
                "out{k}[at[{k}]]", {i: f"in{i}[at[{len(outs) + k}]]" for k, i in enumerate(ins)}
            ),
            "  }",
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _kind(self, value: int) -> str:
        n = len(self.inputs)
        return self.inputs[value] if value < n else self.steps[value - n][1]

    def _lines(self) -> list[str]:
        lines = []
        for number, (step, kind, operands) in enumerate(self.steps, len(self.inputs)):
            result = _computed(kind)
            if not operands:
                text = f"({result}){step}"
            elif step == "cast":
                text = _cast(f"v{operands[0]}", self._kind(operands[0]), kind)
            else:
                typed = operands[1] if step == "where" else operands[0]
                computed = _computed(self._kind(typed))
                names = [
                    f"({computed})v{o}" if self._kind(o) == NUMBER else f"v{o}" for o in operands
                ]
                form = STEPS[step][category(self._kind(typed))]
                text = form.format(*names, t=computed)
            lines.append(f"{result} v{number} = {text};")
        return lines


@lru_cache(maxsize=4096)
def expression(
    inputs: tuple[str, ...],
    steps: tuple[tuple[str, str, tuple[int, ...]], ...],
    outputs: tuple[tuple[int, str], ...],
) -> Expression:
    """The expression of these parts, one object for all who ask."""
    return Expression(inputs, steps, outputs)


def _size(kind: str) -> int:
    return 2 if kind in _HALVES else np.dtype(kind).itemsize


def _computed(kind: str) -> str:
    """The type in which is computed."""
    return "float" if kind in _HALVES else "double" if kind == NUMBER else C_TYPES[kind]


def _cast(value: str, source: str, target: str) -> str:
    if target == "bool":
        return f"({value} != 0)"
    if target in _HALVES:
        return f"(float)({C_TYPES[target]})(float){value}"
    if category(target) == "i" and category(source) == "f":
        return f"({C_TYPES[target]})(int64){value}"
    return f"({C_TYPES[target]}){value}"


def _stored(value: str, source: str, target: str) -> str:
    if target in _HALVES:
        return f"({C_TYPES[target]})(float){value}"
    return value if source == target else _cast(value, source, target)


def literal(array: Any) -> str:
    """The only element of an array as a number of C; empty if it is not finite."""
    value = array.item()
    if isinstance(value, (bool, int)):
        # The smallest number has no literal: C sees the negation of one that is too large.
        return f"{int(value)}LL" if value > -(1 << 63) else "(-9223372036854775807LL - 1)"
    value = float(value)
    return value.hex() if value - value == 0 else ""


def prelude() -> str:
    """What stands before the text of every expression."""
    folder = files("flambeau_cupy.source")
    parts = [folder.joinpath(name).read_text() for name in ("common.cuh", "elementwise.cuh")]
    return "\n".join(["#define T float", "#define A float", *parts])


@dataclass
class _Plan:
    """How an expression runs on arrays of given shapes and strides."""

    program: Program
    layout: Struct
    grid: tuple[int, int]
    n: int
    memory: tuple[int, ...]
    turn: tuple[int, ...] | None


class Elementwise:
    """Runs expressions.

    Args:
        layer: the array module, whose `launch` is there.
    """

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        assert layer.launch is not None
        self._launch = layer.launch
        self._plans: dict[Any, _Plan] = {}

    def run(
        self, expression: Expression, given: Sequence[Any], out: Array | None = None
    ) -> tuple[Array, ...]:
        """The outputs, fresh unless there is one and `out` is where it goes.

        Args:
            expression: what to compute.
            given: arrays, and floats where an input is `NUMBER`.
            out: an array of the broadcast shape.
        """
        xp, array = self.layer.xp, self.layer.array
        if out is not None:
            given = [a if type(a) is not array else self._apart(a, out) for a in given]
        key = (
            expression,
            *[(a.shape, a.strides) if type(a) is array else None for a in given],
            None if out is None else (out.shape, out.strides),
        )
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan(expression, given, out)
            if plan is None:  # too many dimensions of too many kinds: row-major copies have one
                shape = np.broadcast_shapes(*[a.shape for a in given if type(a) is array])
                dense = [
                    xp.broadcast_to(a, shape).copy("C") if type(a) is array else a for a in given
                ]
                results = self.run(expression, dense)
                if out is not None:
                    out[...] = results[0]
                return results
            if len(self._plans) >= 4096:
                self._plans.clear()
            self._plans[key] = plan
        if out is None:
            made = []
            for _, kind in expression.outputs:
                memory = xp.empty(plan.memory, _DTYPES[kind])
                made.append(memory if plan.turn is None else memory.transpose(plan.turn))
        else:
            made = [out]
        if plan.n:
            arguments = [a if type(a) is array else np.float64(a) for a in given]
            self._launch.program(plan.program, *plan.grid, plan.layout, *made, *arguments)
        return tuple(made)

    def _apart(self, a: Array, out: Array) -> Array:
        """`a`, or a copy where writing to `out` would change what is still to be read."""
        if a.strides == out.strides and a.shape == out.shape:
            if self.layer.address(a) == self.layer.address(out) and a.itemsize == out.itemsize:
                return a
        (low, high), (first, last) = self._reach(a), self._reach(out)
        return a.copy("K") if low < last and first < high else a

    def _reach(self, a: Array) -> tuple[int, int]:
        start = self.layer.address(a)
        if not a.size:
            return start, start
        steps = [s * (n - 1) for s, n in zip(a.strides, a.shape, strict=True)]
        low, high = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
        return start + low, start + high + a.itemsize

    def _plan(
        self, expression: Expression, given: Sequence[Any], out: Array | None
    ) -> _Plan | None:
        array = self.layer.array
        arrays = [a for a in given if type(a) is array]
        shape = np.broadcast_shapes(*[a.shape for a in arrays])
        if out is not None:
            if np.broadcast_shapes(shape, out.shape) != out.shape:
                raise ValueError(f"a result of shape {shape} does not fit into {out.shape}")
            shape = out.shape
        rank, n = len(shape), prod(shape)
        steps = [_steps(a, rank, shape) for a in arrays]
        fixed = [] if out is None else [_steps(out, rank, shape)]
        order = _order(shape, [*fixed, *steps])
        memory = tuple([shape[d] for d in order])
        dense = [0] * rank
        size = 1
        for d in reversed(order):
            dense[d] = size
            size *= shape[d]
        outputs = fixed or [dense] * len(expression.outputs)
        rows = [[row[d] for d in order if shape[d] != 1] for row in (*outputs, *steps)]
        sizes, rows = _joined([s for s in memory if s != 1], rows)
        layout = np.zeros((), _layout_type(len(rows)))
        layout["n"] = n
        per_thread = 8
        if len(sizes) <= 1 and all((row or [1])[0] in (0, 1) for row in rows):
            for k, row in enumerate(rows):
                layout["step"][k, 0] = row[0] if row else 1
        elif len(sizes) > DIMS:
            return None
        else:
            layout["dims"] = len(sizes)
            layout["size"][: len(sizes)] = sizes
            for k, row in enumerate(rows):
                layout["step"][k, : len(sizes)] = row
            per_thread = 2
        turn = None
        if out is None and order != list(range(rank)):
            turn = tuple(order.index(d) for d in range(rank))
        return _Plan(
            expression.program,
            Struct(layout),
            blocks_for(n, per_thread, 128 if n > 4096 else 32),
            n,
            memory,
            turn,
        )


_DTYPES = {name: kind for kind, name in TYPES.items()}
_LAYOUTS: dict[int, np.dtype] = {}


def _layout_type(operands: int) -> np.dtype:
    if operands not in _LAYOUTS:
        fields = [("n", np.int64), ("dims", np.int64), ("size", np.int64, DIMS)]
        _LAYOUTS[operands] = np.dtype([*fields, ("step", np.int64, (operands, DIMS))])
    return _LAYOUTS[operands]


def _steps(a: Array, rank: int, shape: tuple[int, ...]) -> list[int]:
    """The steps of `a`, broadcast, in elements."""
    lead = rank - a.ndim
    return [0] * lead + [
        0 if n == 1 else s // a.itemsize for s, n in zip(a.strides, a.shape, strict=True)
    ]


def _order(shape: tuple[int, ...], rows: list[list[int]]) -> list[int]:
    """The dimensions from the outermost in memory to the innermost, as most operands have them.

    Of two dimensions the first operand that tells them apart decides; one that repeats along
    either of them says nothing.
    """
    order = list(range(len(shape)))
    for i in range(1, len(order)):
        for j in range(i, 0, -1):
            outer, inner = order[j - 1], order[j]
            told = 0
            for row in rows:
                a, b = abs(row[outer]), abs(row[inner])
                if a and b and a != b:
                    told = 1 if a > b else -1
                    break
            if told >= 0:
                break
            order[j - 1], order[j] = inner, outer
    return order


def _joined(sizes: list[int], rows: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Neighbouring dimensions made one where all operands go on from one into the other."""
    if not sizes:
        return [], [[] for _ in rows]
    out, steps = [sizes[-1]], [[row[-1]] for row in rows]
    for d in range(len(sizes) - 2, -1, -1):
        if all(row[d] == made[0] * out[0] for row, made in zip(rows, steps, strict=True)):
            out[0] *= sizes[d]
        else:
            out.insert(0, sizes[d])
            for row, made in zip(rows, steps, strict=True):
                made.insert(0, row[d])
    return out, steps


def alone(step: str, kinds: Sequence[str], result: str, into: str | None = None) -> Expression:
    """The expression of a single step.

    Args:
        step: its name.
        kinds: dtypes of its operands, or `NUMBER`.
        result: dtype in which it results.
        into: dtype in which that is stored, if another.
    """
    n = len(kinds)
    return expression(tuple(kinds), ((step, result, tuple(range(n))),), ((n, into or result),))


def standard(kind: str) -> list[Expression]:
    """All steps on operands of one dtype, each alone, and the casts from it."""
    made = [alone("cast", (kind,), target) for target in C_TYPES]
    for step, forms in STEPS.items():
        if category(kind) in forms:
            numbers = NUMBERS.get(step, 0)
            found = re.findall(r"\{(\d)\}", forms[category(kind)])
            operands = 1 + int(max(found, default="0"))
            kinds = [kind] * (operands - numbers) + [NUMBER] * numbers
            if step == "where":
                kinds[0] = "bool"
            made.append(alone(step, kinds, "bool" if step in TO_BOOL else kind))
    return made
