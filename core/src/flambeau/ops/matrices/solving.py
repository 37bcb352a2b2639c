"""Solutions of linear systems, inverses, determinants and exponentials as canonical ops."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.namespace import TENSORS
from flambeau.ops.declaration.table import OPS, composite
from flambeau.ops.matrices import ldl as _ldl
from flambeau.ops.matrices import matrix_rules as _rules
from flambeau.ops.matrices.matrix_algebra import (
    across,
    adjoint,
    adjoint_of,
    columns,
    conj,
    diagonal,
    down,
    embedded,
    eye_like,
    identity,
    on_meta,
    rows,
    with_adjoints,
)
from flambeau.ops.pointwise.elementwise import maximum, where
from flambeau.ops.shapes.movement import cat

if TYPE_CHECKING:
    from flambeau._types.native import Array
    from flambeau.ops.declaration.formulas import Formulas


@composite
def _triangular_solve(self: Tensor, other: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    """X with A X = B, by substitution; only one triangle of A is read, without a unit diagonal."""
    n = self.shape[-1]
    solved = other[..., :0, :]
    for i in reversed(range(n)) if upper else range(n):
        row = other[..., i : i + 1, :]
        known = self[..., i : i + 1, i + 1 :] if upper else self[..., i : i + 1, :i]
        if solved.shape[-2]:
            row = row - known @ solved
        if not unitriangular:
            row = row / self[..., i : i + 1, i : i + 1]
        solved = cat([row, solved] if upper else [solved, row], -2)
    return solved if n else other.clone()


_triangular_solve.demand(_rules.triangular_solve)


@_triangular_solve.gradient
@with_adjoints
def _(F, g, self, result, upper, unitriangular):
    other = F.triangular_solve(adjoint(F, self), g, not upper, unitriangular)
    grad = F.neg(F.matmul(other, adjoint(F, result)))
    skip = int(unitriangular)
    return (F.triu(grad, skip) if upper else F.tril(grad, -skip)), other


@composite(results=2, title="LinalgSolveExBackward0")
def _solve_ex(self: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """X with A X = B, and the place of the first zero pivot of A or 0."""
    packed, pivots, info = OPS["lu_factor_ex"](self, True)
    order = OPS["lu_permutation"](pivots, self.shape[-1])
    moved = other.gather(-2, order.unsqueeze(-1).expand(*other.shape))
    half = _triangular_solve(packed, moved, False, True)
    return _triangular_solve(packed, half, True, False), info


_solve_ex.demand(_rules.solve_ex)


@_solve_ex.gradient
@with_adjoints
def _(F, g, self, result0):
    other = F.solve_ex(adjoint(F, self), g[0])[0]
    return F.neg(F.matmul(other, adjoint(F, result0))), other


@composite
def _ldl_solve(self: Tensor, pivots: Tensor, other: Tensor, hermitian: bool) -> Tensor:
    """X with A X = B from what `ldl_factor_ex` leaves of A."""
    n, k = other.shape[-2:]
    if on_meta(self) or not other.numel():
        return other.clone()
    every = zip(
        self.detach().reshape(-1, n, n).tolist(),
        pivots.reshape(-1, n).tolist(),
        other.detach().reshape(-1, n, k).tolist(),
        strict=True,
    )
    found = [_ldl.solved(*each, hermitian) for each in every]
    return other.new_tensor(found).reshape(*other.shape)


_ldl_solve.demand(_rules.ldl_solve)
_ldl_solve.gradient_missing("the derivative for 'linalg_ldl_solve' is not implemented")


@composite(results=2, title="LinalgInvExBackward0")
def _inv_ex(self: Tensor) -> tuple[Tensor, Tensor]:
    """The inverse, and the place of the first zero pivot or 0."""
    return _solve_ex(self, eye_like(self, self.shape[-1]).expand(*self.shape))


_inv_ex.demand(_rules.square)


@_inv_ex.gradient
@with_adjoints
def _(F, g, result0):
    back = adjoint(F, result0)
    return F.neg(F.matmul(F.matmul(back, g[0]), back))


@composite(title="LinalgPinvBackward0")
def _pinv(self: Tensor, atol: Tensor, rtol: Tensor, hermitian: bool) -> Tensor:
    """The pseudo-inverse; singular values up to max(atol, rtol * the largest) count as zero."""
    if 0 in self.shape:
        return self.mT.clone()
    if hermitian:
        s, u = OPS["eigh"](self, False)
        vh = adjoint_of(u)
    else:
        u, s, vh = OPS["svd"](self, False)
    size = s.abs()
    # Those of complex matrices may be complex themselves: their real parts count.
    bound = maximum(atol.real, rtol.real * size.amax(-1)).unsqueeze(-1)
    kept = size > bound
    inverse = where(kept, 1 / where(kept, s, s.new_ones(())), s.new_zeros(()))
    return adjoint_of(vh) * cast(inverse, self.dtype).unsqueeze(-2) @ adjoint_of(u)


@_pinv.gradient("self")
@with_adjoints
def _(F, g, self, result):
    # Golub and Pereyra, "The differentiation of pseudo-inverses" (1973).
    gh, p, ph = adjoint(F, g), result, adjoint(F, result)
    k = F.matmul(gh, p)
    side = F.matmul(k, ph)
    grad = F.sub(side, adjoint(F, F.matmul(p, k)))
    grad = F.sub(grad, F.matmul(self, F.matmul(p, side)))
    rest = F.sub(gh, F.matmul(k, self))
    return F.add(grad, F.matmul(ph, F.matmul(p, rest)))


def _parity(pivots: Tensor) -> Tensor:
    """Whether the number of interchanges is odd."""
    moved = pivots != arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype, device=pivots.device)
    return moved.sum(-1) % 2 == 1


@composite(title="LinalgDetBackward0")
def _determinant(self: Tensor) -> Tensor:
    """The determinant."""
    packed, pivots, _ = OPS["lu_factor_ex"](self, True)
    product = packed.diagonal(0, -2, -1).prod(-1)
    return where(_parity(pivots), -product, product)


_determinant.demand(_rules.square)


@_determinant.gradient
@with_adjoints
def _(F, g, self):
    return F.mul(F.reshape(g, (*g.shape, 1, 1)), F.cofactor(self))


@composite
def _cofactor(self: Tensor) -> Tensor:
    """The conjugate cofactors: the gradient of the determinant, for singular matrices too."""
    F: Any = TENSORS  # which has the ops, as attributes that it looks up
    u, s, vh, turn = _basis(F, self)
    products: Any = _products_without(F, s, 1)
    others: Any = across(F, cast(products, self.dtype))
    return turn * ((u * others) @ vh)


@_cofactor.gradient
@with_adjoints
def _(F, g, self):
    # In the basis of the singular vectors, and without a division: exact at every rank.
    u, s, vh, turn = _basis(F, self)
    pairs = F.cast_like(_products_without(F, s, 2), u)
    inner = F.matmul(F.matmul(adjoint(F, u), g), adjoint(F, vh))
    inner = F.mul(conj(F, turn), inner)
    middle = F.matmul(pairs, down(F, diagonal(F, inner)))
    middle = embedded(F, F.reshape(middle, tuple(middle.shape[:-1])))
    inner = F.sub(conj(F, middle), adjoint(F, F.mul(pairs, inner)))
    return F.matmul(F.matmul(u, inner), vh)


def _basis(F: Formulas, a: Array) -> tuple[Any, Any, Any, Any]:
    """U, S, Vᴴ, and the conjugate determinant of U Vᴴ as a factor of matrices."""
    u, s, vh = F.svd(a, False)
    turn = conj(F, F.mul(F.determinant(u), F.determinant(vh)))
    return u, s, vh, F.reshape(turn, (*turn.shape, 1, 1))


def _products_without(F: Formulas, s: Array, count: int) -> Array:
    """The products of all but one element (n), or of all but two different ones (n, n)."""
    n = s.shape[-1]
    one = identity(F, n, s)
    left_out, entries = one, across(F, s)
    if count == 2:
        left_out = F.maximum(F.reshape(one, (n, 1, n)), one)
        entries = across(F, entries)
    kept = F.sub(F.scalar(1, s), left_out)
    d = len(entries.shape) - 1
    products = F.prod(F.add(F.mul(entries, kept), left_out), (d,), False)
    return products if count == 1 else F.mul(products, F.sub(F.scalar(1, s), one))


@composite(results=2, title="LinalgSlogdetBackward0")
def _slogdet(self: Tensor) -> tuple[Tensor, Tensor]:
    """The determinant's sign (of complex numbers: direction), and the logarithm of its size."""
    packed, pivots, _ = OPS["lu_factor_ex"](self, True)
    d = packed.diagonal(0, -2, -1)
    size = d.abs()
    sign = where(d == 0, d, d / cast(where(size == 0, 1.0, size), d.dtype)).prod(-1)
    return where(_parity(pivots), -sign, sign), size.log().sum(-1)


_slogdet.demand(_rules.square)


@_slogdet.gradient
@with_adjoints
def _(F, g, self, result0):
    g_sign, g_log = g[:2]
    inverse = adjoint(F, F.inv_ex(self)[0])
    slope = None if g_log is None else F.cast_like(g_log, inverse)
    if g_sign is not None and F.is_complex(self):
        turned = F.mul(conj(F, g_sign), result0)
        imaginary = F.div(F.sub(turned, conj(F, turned)), F.scalar(2, turned))
        slope = F.neg(imaginary) if slope is None else F.sub(slope, imaginary)
    if slope is None:  # the sign of a real determinant is constant
        return F.zeros(tuple(self.shape), self)
    return F.mul(F.reshape(slope, (*slope.shape, 1, 1)), inverse)


_TERMS = 18  # of the series, for norms up to 1/2


@composite(title="LinalgMatrixExpBackward0")
def _matrix_exponential(self: Tensor) -> Tensor:
    """The exponential series of A / 2**k, squared k times; k brings the norm below 1/2."""
    n = self.shape[-1]
    one = eye_like(self, n)
    times = 0
    if not on_meta(self) and self.numel():
        norm = self.detach().abs().sum(-2).amax().item()
        times = max(0, math.frexp(norm)[1] + 1) if math.isfinite(norm) else 0
    scaled = self / 2**times
    result = (one + scaled / _TERMS).expand(*self.shape)
    for i in reversed(range(1, _TERMS)):
        result = one + scaled @ result / i
    for _ in range(times):
        result = result @ result
    return result


_matrix_exponential.demand(_rules.square)


@_matrix_exponential.gradient
@with_adjoints
def _(F, g, self):
    # exp of [[Aᴴ, G], [0, Aᴴ]] has the gradient beside its diagonal (Mathias 1996).
    back = adjoint(F, self)
    n = self.shape[-1]
    d = len(self.shape)
    top = F.cat((back, g), d - 1)
    bottom = F.cat((F.zeros(tuple(self.shape), self), back), d - 1)
    both = F.matrix_exponential(F.cat((top, bottom), d - 2))
    return rows(F, columns(F, both, n, 2 * n), 0, n)
