"""What ops over matrices demand of their operands: LAPACK walks through memory unasked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor


def _refuse(what: str, *operands: Tensor) -> None:
    shapes = " and ".join(str(tuple(operand.shape)) for operand in operands)
    raise RuntimeError(f"linalg: expected {what}, got shapes {shapes}")


def _check_square(a: Any) -> None:
    if len(a.shape) < 2 or a.shape[-1] != a.shape[-2]:
        _refuse("square matrices or batches of them", a)


def _check_sides(a: Any, b: Any) -> None:
    _check_square(a)
    if tuple(b.shape[:-1]) != tuple(a.shape[:-1]):
        _refuse("as many rows on both sides, and the same batches", a, b)


def square(self: object) -> None:
    """What ops of one square matrix demand."""
    _check_square(self)


def ldl_factor_ex(self: object, hermitian: bool) -> None:
    """What `ldl_factor_ex` demands."""
    _check_square(self)


def triangle(self: object, upper: bool) -> None:
    """What ops demand that read one triangle of a matrix."""
    _check_square(self)


def solve_ex(self: object, other: object) -> None:
    """What `solve_ex` demands."""
    _check_sides(self, other)


def triangular_solve(self: object, other: object, upper: bool, unitriangular: bool) -> None:
    """What `triangular_solve` demands."""
    _check_sides(self, other)


def ldl_solve(self: Any, pivots: Tensor, other: object, hermitian: bool) -> None:
    """What `ldl_solve` demands."""
    _check_sides(self, other)
    if tuple(pivots.shape) != tuple(self.shape[:-1]):
        _refuse("a pivot for each row", self, pivots)


def householder_product(self: Tensor, tau: Tensor) -> None:
    """What `householder_product` demands."""
    tall = len(self.shape) > 1 and self.shape[-2] >= self.shape[-1]
    if not tall or len(tau.shape) != len(self.shape) - 1 or tau.shape[-1] > self.shape[-1]:
        _refuse("tall matrices and no more factors than columns", self, tau)
    if tuple(tau.shape[:-1]) != tuple(self.shape[:-2]):
        _refuse("the same batches of matrices and of factors", self, tau)
