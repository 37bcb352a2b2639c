"""Rows that measure the cost of dispatch: operations on tensors of sixteen elements."""

from __future__ import annotations

from typing import Any

import others
from harness import BARE, Row, Setup

CHAIN = """\
y = x
for _ in range(10):
    y = y * w
    y = y + b
    y = y.relu()
y.sum().backward()
x.grad = w.grad = b.grad = None
"""


def vectors(**options: Any) -> Setup:
    """Names x and y: vectors of sixteen float32 between 0 and 1."""

    def setup(library: Any) -> dict[str, Any]:
        values = [i / 16 for i in range(16)]
        return {name: library.tensor(values, **options) for name in ("x", "y")}

    return setup


def matrices(**options: Any) -> Setup:
    """Names x and y: 16 × 16 matrices of float32."""

    def setup(library: Any) -> dict[str, Any]:
        values = [[(i * 16 + j) / 256 for j in range(16)] for i in range(16)]
        return {name: library.tensor(values, **options) for name in ("x", "y")}

    return setup


def chain(library: Any) -> dict[str, Any]:
    values = [i / 16 for i in range(16)]
    return {name: library.tensor(values, requires_grad=True) for name in ("x", "w", "b")}


def restore(names: dict[str, Any]) -> None:
    """Undo what in-place rows have added up."""
    names["x"].zero_()


RECORDED = {"requires_grad": True}

ROWS = [
    Row("add", "x + y", vectors(), others.vectors("x + y")),
    Row("add recorded", "x + y", vectors(**RECORDED), others.vectors("x + y", True)),
    Row("chain of 30, forward and backward", CHAIN, chain, others.CHAIN),
    Row("x + 0.1", "x + 0.1", vectors(), others.vectors("x + 0.1")),
    Row("mul", "x * y", vectors(), others.vectors("x * y")),
    Row("mul recorded", "x * y", vectors(**RECORDED), others.vectors("x * y", True)),
    Row("exp", "x.exp()", vectors(), others.vectors("exp(x)")),
    Row("exp recorded", "x.exp()", vectors(**RECORDED), others.vectors("exp(x)", True)),
    Row("relu", "x.relu()", vectors(), others.vectors("maximum(x, 0)")),
    Row("matmul 16x16", "x @ y", matrices(), others.matrices("x @ y")),
    Row("matmul 16x16 recorded", "x @ y", matrices(**RECORDED), others.matrices("x @ y", True)),
    Row("x[1:3]", "x[1:3]", matrices(), others.matrices("x[1:3]")),
    Row("x[i]", "x[3]", matrices(), others.matrices("x[3]")),
    Row("view", "x.view(8, 32)", matrices(), others.matrices("x.reshape(8, 32)")),
    Row("transpose", "x.transpose(0, 1)", matrices(), others.matrices("x.transpose(1, 0)")),
    Row("x += y", "x += y", vectors(), others.vectors("x += y", only=(BARE,)), reset=restore),
    Row("sum", "x.sum()", vectors(), others.vectors("x.sum()")),
    Row("sum recorded", "x.sum()", vectors(**RECORDED), others.vectors("x.sum()", True)),
    Row("softmax", "x.softmax(0)", vectors(), others.vectors("softmax(x)")),
]
