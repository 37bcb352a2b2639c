"""Factors of matrices: Cholesky, LU and QR as canonical ops; `flambeau.linalg` has the functions.

The decompositions are the textbook's, column by column on whole batches; backends with LAPACK
override them.  Gradients follow Giles, "Collected matrix derivative results" (2008), and Murray,
"Differentiation of the Cholesky decomposition" (arXiv:1602.07527).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.table import composite
from flambeau.ops.matrices import ldl as _ldl
from flambeau.ops.matrices import matrix_rules as _rules
from flambeau.ops.matrices.matrix_algebra import (
    adjoint,
    adjoint_of,
    columns,
    conj,
    conjugate,
    diagonal,
    embedded,
    eye_like,
    hermitian_gradient,
    identity,
    magnitude,
    on_meta,
    real_part,
    rows,
    with_adjoints,
)
from flambeau.ops.pointwise.elementwise import where
from flambeau.ops.shapes.movement import cat

if TYPE_CHECKING:
    from flambeau._types.native import Array
    from flambeau.ops.declaration.formulas import Formulas


@composite(results=2)
def _cholesky_ex(self: Tensor) -> tuple[Tensor, Tensor]:
    """Lower L with L Lᴴ = A from A's lower triangle; the order of the first minor not positive."""
    n = self.shape[-1]
    batch = tuple(self.shape[:-2])
    info = self.new_zeros(batch, dtype=D.int32)
    factor = self.new_zeros((*batch, n, 0))
    for j in range(n):
        column = self[..., j:, j : j + 1]
        if j:
            column = column - factor[..., j:, :] @ adjoint_of(factor[..., j : j + 1, :])
        pivot = real_part(column[..., :1, :])
        failed = (info == 0) & ~(pivot > 0).reshape(batch)
        info = where(failed, info.new_full((), j + 1), info)
        column = column / cast(pivot.sqrt(), self.dtype)
        factor = cat([factor, cat([self.new_zeros((*batch, j, 1)), column], -2)], -1)
    return factor, info


_cholesky_ex.demand(_rules.square)


@_cholesky_ex.gradient
@with_adjoints
def _(F, g, result0):
    # dL = L Φ(L⁻¹ dA L⁻ᴴ), where Φ takes the lower triangle and halves the diagonal.
    inner = F.tril(F.matmul(adjoint(F, result0), g[0]), 0)
    inner = F.sub(inner, F.div(embedded(F, diagonal(F, inner)), F.scalar(2, inner)))
    back = adjoint(F, result0)
    half = F.triangular_solve(back, inner, True, False)
    return hermitian_gradient(F, F.triangular_solve(back, adjoint(F, half), True, False), False)


@composite(results=3)
def _lu_factor_ex(self: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    """L below and U on and above the diagonal, row interchanges from 1, place of a zero pivot."""
    m, n = self.shape[-2:]
    batch = tuple(self.shape[:-2])
    info = self.new_zeros(batch, dtype=D.int32)
    place = arange(m, device=self.device).reshape(m, 1)
    pivots = [place.new_zeros((*batch, 0), dtype=D.int32)]
    packed = self
    for j in range(min(m, n)):
        chosen = place[j].expand(*batch, 1)
        if pivot:
            chosen = packed[..., j:, j].detach().abs().argmax(-1, True) + j
            other = chosen.unsqueeze(-1)
            order = where(place == j, other, where(place == other, place.new_full((), j), place))
            packed = packed.gather(-2, order.expand(*batch, m, n))
        pivots.append(cast(chosen + 1, D.int32))
        top = packed[..., j : j + 1, j : j + 1]
        zero = top == 0
        failed = (info == 0) & zero.reshape(batch)
        info = where(failed, info.new_full((), j + 1), info)
        below = packed[..., j + 1 :, j : j + 1]
        below = where(zero, below, below / where(zero, top.new_ones(()), top))
        right = packed[..., j : j + 1, j + 1 :]
        rest = cat([below, packed[..., j + 1 :, j + 1 :] - below @ right], -1)
        lower = cat([packed[..., j + 1 :, :j], rest], -1)
        packed = cat([packed[..., : j + 1, :], lower], -2)
    return packed if packed is not self else self.clone(), cat(pivots, -1), info


@composite(differentiable=False, out=D.int64)
def _lu_permutation(pivots: Tensor, size: int) -> Tensor:
    """Which row of A stands in each row of L U, from the interchanges of an LU factorisation."""
    place = arange(size, device=pivots.device)
    order = place.expand(*pivots.shape[:-1], size)
    for i in range(pivots.shape[-1]):
        other = cast(pivots[..., i : i + 1], D.int64) - 1
        swapped = where(place == other, order[..., i : i + 1], order)
        order = where(place == i, order.gather(-1, other), swapped)
    return order.clone()


@_lu_factor_ex.gradient
@with_adjoints
def _(F, g, result0, result1):
    m, n = result0.shape[-2:]
    k = min(m, n)
    one = identity(F, k, result0)
    # The factors' square parts, and what is beside or below them.
    square = rows(F, columns(F, result0, 0, k), 0, k)
    lower, upper = F.add(F.tril(square, -1), one), F.triu(square, 0)
    g_square = rows(F, columns(F, g[0], 0, k), 0, k)
    from_lower = F.matmul(adjoint(F, lower), F.tril(g_square, -1))
    from_upper = F.matmul(F.triu(g_square, 0), adjoint(F, upper))
    g_beside, g_under = columns(F, g[0], k, n), rows(F, g[0], k, m)
    if n > k:
        beside = columns(F, result0, k, n)
        from_lower = F.sub(from_lower, F.matmul(g_beside, adjoint(F, beside)))
    if m > k:
        under = rows(F, result0, k, m)
        from_upper = F.sub(from_upper, F.matmul(adjoint(F, under), g_under))
    inner = F.add(F.tril(from_lower, -1), F.triu(from_upper, 0))
    inner = adjoint(F, F.triangular_solve(upper, adjoint(F, inner), True, False))
    grad = F.triangular_solve(adjoint(F, lower), inner, True, True)
    if n > k:
        side = F.triangular_solve(adjoint(F, lower), g_beside, True, True)
        grad = F.cat((grad, side), len(grad.shape) - 1)
    if m > k:
        below = adjoint(F, F.triangular_solve(upper, adjoint(F, g_under), True, False))
        grad = F.cat((grad, below), len(grad.shape) - 2)
    d = len(grad.shape) - 2
    inverse = F.sort(F.lu_permutation(result1, m), d, False, True)[1]
    index = F.expand(F.reshape(inverse, (*inverse.shape, 1)), tuple(grad.shape))
    return F.gather(grad, d, index)


@composite(results=3)
def _ldl_factor_ex(self: Tensor, hermitian: bool) -> tuple[Tensor, Tensor, Tensor]:
    """D and L below its blocks from A's lower triangle, interchanges, place of a zero pivot.

    A (with A = Aᴴ if `hermitian`, else A = Aᵀ) is packed as LAPACK's sytrf and hetrf leave it.
    """
    n, batch = self.shape[-1], tuple(self.shape[:-2])
    if on_meta(self) or not self.numel():
        packed = self.clone()
        return packed, packed.new_zeros((*batch, n), dtype=D.int32), _no_info(packed)
    found = [_ldl.factored(a, hermitian) for a in self.detach().reshape(-1, n, n).tolist()]
    packed, pivots, info = zip(*found, strict=True)
    return (
        self.new_tensor(packed).reshape(*self.shape),
        self.new_tensor(pivots, dtype=D.int32).reshape(*batch, n),
        self.new_tensor(info, dtype=D.int32).reshape(batch),
    )


def _no_info(x: Tensor) -> Tensor:
    return x.new_zeros(tuple(x.shape[:-2]), dtype=D.int32)


_ldl_factor_ex.demand(_rules.ldl_factor_ex)
_ldl_factor_ex.gradient_missing("the derivative for 'linalg_ldl_factor_ex' is not implemented")


@composite(results=2)
def _geqrf(self: Tensor) -> tuple[Tensor, Tensor]:
    """LAPACK's geqrf: R on and above the diagonal, reflectors below, and their factors tau."""
    m, n = self.shape[-2:]
    k = min(m, n)
    batch = tuple(self.shape[:-2])
    scale = magnitude(self)
    rest = self / scale
    done, vectors = [self.new_zeros((*batch, 0, n))], [self.new_zeros((*batch, m, 0))]
    taus = [self.new_zeros((*batch, 0))]
    for j in range(k):
        tail, tau, top = _reflector(rest[..., :1])
        v = cat([tail.new_ones((*batch, 1, 1)), tail], -2)
        rest = rest[..., 1:]
        rest = rest - conjugate(tau) * v @ (adjoint_of(v) @ rest)
        done.append(cat([self.new_zeros((*batch, 1, j)), top, rest[..., :1, :]], -1))
        vectors.append(cat([self.new_zeros((*batch, j + 1, 1)), tail], -2))
        taus.append(tau.reshape(*batch, 1))
        rest = rest[..., 1:, :]
    upper = cat([*done, self.new_zeros((*batch, m - k, n))], -2)
    lower = cat([*vectors, self.new_zeros((*batch, m, n - k))], -1)
    return upper * scale + lower, cat(taus, -1)


def _reflector(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """v, tau and beta with (1 - conj(tau) (1, v) (1, v)ᴴ) x = (beta, 0), beta real."""
    first, tail = x[..., :1, :], x[..., 1:, :]
    real = real_part(first)
    squares = tail.abs().square().sum(-2, True)
    trivial = (squares == 0) & (first == cast(real, x.dtype))
    one = squares.new_ones(())
    length = where(trivial, one, squares + first.abs().square()).sqrt()
    beta = cast(where(real < 0, length, -length), x.dtype)
    one = cast(one, x.dtype)
    none = x.new_zeros(())
    tau = where(trivial, none, (beta - first) / beta)
    tail = where(trivial, none, tail / where(trivial, one, first - beta))
    return tail, tau, where(trivial, first, beta)


_geqrf.gradient_missing(
    "the reflectors of a QR factorisation are not differentiated; use torch.linalg.qr"
)


@composite
def _householder_product(self: Tensor, tau: Tensor) -> Tensor:
    """The first columns of H₁ H₂ … with Hᵢ = 1 - tauᵢ vᵢ vᵢᴴ; vᵢ is 1 at i and stands below it."""
    m, n = self.shape[-2:]
    batch = tuple(self.shape[:-2])
    one = eye_like(self, m)
    result = one[:, :n].expand(*batch, m, n).clone()
    for i in reversed(range(tau.shape[-1])):
        v = self.tril(-1)[..., i : i + 1] + one[:, i : i + 1]
        result = result - tau[..., i : i + 1].unsqueeze(-1) * v @ (adjoint_of(v) @ result)
    return result


_householder_product.demand(_rules.householder_product)


@_householder_product.gradient
@with_adjoints
def _(F, g, self, tau):
    m, n = self.shape[-2:]
    k = tau.shape[-1]
    one = identity(F, m, self)
    below = F.tril(self, -1)
    vectors = [F.add(columns(F, below, i, i + 1), columns(F, one, i, i + 1)) for i in range(k)]
    factors = [F.reshape(columns(F, tau, i, i + 1), (*tau.shape[:-1], 1, 1)) for i in range(k)]
    partial = [F.add(F.zeros(tuple(self.shape), self), columns(F, one, 0, n))]
    for v, t in zip(reversed(vectors), reversed(factors), strict=True):
        later = partial[-1]
        step = F.mul(t, F.matmul(v, F.matmul(adjoint(F, v), later)))
        partial.append(F.sub(later, step))
    g_columns, g_factors = [], []
    for i, (v, t) in enumerate(zip(vectors, factors, strict=True)):
        later = partial[k - 1 - i]
        row = F.matmul(adjoint(F, v), later)
        side = F.matmul(g, adjoint(F, row))
        slope = F.neg(F.matmul(adjoint(F, v), side))
        g_factors.append(F.reshape(slope, (*tau.shape[:-1], 1)))
        other = F.matmul(later, F.matmul(adjoint(F, g), v))
        both = F.neg(F.add(F.mul(conj(F, t), side), F.mul(t, other)))
        g_columns.append(both)
        g = F.sub(g, F.mul(conj(F, t), F.matmul(v, F.matmul(adjoint(F, v), g))))
    g_columns.append(F.zeros((*self.shape[:-1], n - k), self))
    g_factors.append(F.zeros((*tau.shape[:-1], 0), tau))
    d = len(self.shape)
    return F.tril(F.cat(tuple(g_columns), d - 1), -1), F.cat(tuple(g_factors), d - 2)


@composite(results=2, title="LinalgQrBackward0")
def _qr(self: Tensor, complete: bool) -> tuple[Tensor, Tensor]:
    """Q with orthonormal columns and upper R with Q R = A; Q square if `complete`."""
    m, n = self.shape[-2:]
    k = min(m, n)
    packed, tau = _geqrf.body(self)  # the op itself has no gradient
    width = m if complete else k
    vectors = packed[..., :k]
    if width > k:
        vectors = cat([vectors, self.new_zeros((*self.shape[:-1], width - k))], -1)
    return _householder_product(vectors, tau), packed[..., :width, :].triu()


@_qr.gradient
@with_adjoints
def _(F, g, result0, result1):
    gq, gr = g[:2]
    m, k = result0.shape[-2:]
    n = result1.shape[-1]
    if m == k and n < k:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )
    gq = F.zeros(tuple(result0.shape), result0) if gq is None else gq
    gr = F.zeros(tuple(result1.shape), result1) if gr is None else gr
    q, r = result0, columns(F, result1, 0, k)
    g_beyond = columns(F, gr, k, n)
    if n > k:  # the columns beyond are Qᴴ times those of A
        beyond = columns(F, result1, k, n)
        gr = columns(F, gr, 0, k)
        gq = F.add(gq, F.matmul(F.matmul(q, beyond), adjoint(F, g_beyond)))
    inner = F.sub(F.matmul(gr, adjoint(F, r)), F.matmul(adjoint(F, q), gq))
    inner = hermitian_gradient(F, F.triu(inner, 0), True)
    inner = _mirrored(F, inner)
    grad = F.add(gq, F.matmul(q, inner))
    grad = adjoint(F, F.triangular_solve(r, adjoint(F, grad), True, False))
    if n > k:
        grad = F.cat((grad, F.matmul(q, g_beyond)), len(grad.shape) - 1)
    return grad


def _mirrored(F: Formulas, upper: Any) -> Array:
    """The Hermitian matrix with this upper triangle, whose diagonal is real."""
    return F.add(upper, adjoint(F, F.triu(upper, 1)))
