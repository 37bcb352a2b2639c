"""Rows that measure the cost of dispatch: operations on tensors of sixteen elements."""

from __future__ import annotations

from typing import Any

from harness import Row, Setup

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


def numpy_vectors(numpy: Any) -> dict[str, Any]:
    return {name: numpy.arange(16, dtype=numpy.float32) / 16 for name in ("x", "y")} | {"np": numpy}


def numpy_matrices(numpy: Any) -> dict[str, Any]:
    values = numpy.arange(256, dtype=numpy.float32).reshape(16, 16) / 256
    return {"x": values, "y": values.copy(), "np": numpy}


def restore(names: dict[str, Any]) -> None:
    """Undo what in-place rows have added up."""
    names["x"].zero_()


def _vector_row(name: str, statement: str, numpy: str | None = None) -> Row:
    return Row(name, statement, vectors(), numpy or statement, numpy_vectors)


def _matrix_row(name: str, statement: str, numpy: str | None = None) -> Row:
    return Row(name, statement, matrices(), numpy or statement, numpy_matrices)


RECORDED = {"requires_grad": True}

ROWS = [
    _vector_row("add", "x + y"),
    Row("add recorded", "x + y", vectors(**RECORDED), "x + y", numpy_vectors),
    Row("chain of 30, forward and backward", CHAIN, chain),
    _vector_row("x + 0.1", "x + 0.1"),
    _vector_row("mul", "x * y"),
    Row("mul recorded", "x * y", vectors(**RECORDED), "x * y", numpy_vectors),
    _vector_row("exp", "x.exp()", "np.exp(x)"),
    Row("exp recorded", "x.exp()", vectors(**RECORDED), "np.exp(x)", numpy_vectors),
    _vector_row("relu", "x.relu()", "np.maximum(x, 0)"),
    _matrix_row("matmul 16x16", "x @ y"),
    Row("matmul 16x16 recorded", "x @ y", matrices(**RECORDED), "x @ y", numpy_matrices),
    _matrix_row("x[1:3]", "x[1:3]"),
    _matrix_row("x[i]", "x[3]"),
    _matrix_row("view", "x.view(8, 32)", "x.reshape(8, 32)"),
    _matrix_row("transpose", "x.transpose(0, 1)", "x.transpose(1, 0)"),
    Row("x += y", "x += y", vectors(), "x += y", numpy_vectors, reset=restore),
    _vector_row("sum", "x.sum()"),
    Row("sum recorded", "x.sum()", vectors(**RECORDED), "x.sum()", numpy_vectors),
]
