"""Elementwise expressions, and the kernel in CUDA C that computes one in a single launch.

An `Expression` is a list of steps over its inputs.  Values of halves stay float32 between the steps
and are rounded where they are stored or cast.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import numpy as np

from flambeau_cupy.device.launch import Program
from flambeau_cupy.fusion.steps import (
    C_TYPES,
    HALF_TYPES,
    NUMBER,
    NUMBERS,
    STEPS,
    TO_BOOL,
    category,
)

MOST_STEPS = 400
MOST_OPERANDS = 24


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
    return 2 if kind in HALF_TYPES else np.dtype(kind).itemsize


def _computed(kind: str) -> str:
    """The type in which is computed."""
    return "float" if kind in HALF_TYPES else "double" if kind == NUMBER else C_TYPES[kind]


def _cast(value: str, source: str, target: str) -> str:
    if target == "bool":
        return f"({value} != 0)"
    if target in HALF_TYPES:
        return f"(float)({C_TYPES[target]})(float){value}"
    if category(target) == "i" and category(source) == "f":
        return f"({C_TYPES[target]})(int64){value}"
    return f"({C_TYPES[target]}){value}"


def _stored(value: str, source: str, target: str) -> str:
    if target in HALF_TYPES:
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
