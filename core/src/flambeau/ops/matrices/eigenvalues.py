"""Singular values, eigenvalues and their vectors as canonical ops; `flambeau.linalg` is public.

Gradients follow Townsend, "Differentiating the singular value decomposition" (2016), and Boeddeker
et al., "On the computation of complex-valued gradients" (arXiv:1701.00392).  Where singular values
or eigenvalues coincide, the vectors have no derivative and their gradients are not finite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import tensor
from flambeau.ops.declaration.table import OPS, composite
from flambeau.ops.matrices import jacobi as _jacobi
from flambeau.ops.matrices import matrix_rules as _rules
from flambeau.ops.matrices.matrix_algebra import (
    across,
    adjoint,
    adjoint_of,
    columns,
    conj,
    conjugate,
    diagonal,
    down,
    embedded,
    hermitian_gradient,
    identity,
    on_meta,
    real_part,
    rows,
    with_adjoints,
)
from flambeau.ops.matrices.schur import eigensystem
from flambeau.ops.pointwise.elementwise import where

if TYPE_CHECKING:
    from flambeau._types.native import Array
    from flambeau.ops.declaration.formulas import Formulas


@composite(results=3, title="LinalgSvdBackward0")
def _svd(self: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and Vᴴ with U diag(S) Vᴴ = A, S falling; U and V square if `full`."""
    m, n = self.shape[-2:]
    if m < n:
        u, s, vh = _svd(adjoint_of(self), full)
        return adjoint_of(vh), s, adjoint_of(u)
    x, v = _jacobi.sorted_columns(*_jacobi.orthogonalised(self))
    # X = Q R with R diagonal up to rounding: Q completes the columns of length zero.
    q, r = OPS["qr"](x, full)
    corner = r[..., :n, :].diagonal(0, -2, -1)
    s = corner.abs()
    zero = s == 0
    turn = where(zero, corner.new_ones(()), corner / cast(where(zero, 1.0, s), self.dtype))
    u = q[..., :n] * turn.unsqueeze(-2)
    if full and m > n:
        u = OPS["cat"]((u, q[..., n:]), self.dim() - 1)
    return u, s, adjoint_of(v)


@_svd.gradient
@with_adjoints
def _(F, g, result0, result1, result2):
    gu, gs, gvh = g[:3]
    k = result1.shape[-1]
    u, vh = columns(F, result0, 0, k), rows(F, result2, 0, k)
    s = F.cast_like(result1, u)
    if gu is None and gvh is None:
        return F.matmul(F.mul(u, across(F, F.cast_like(gs, u))), vh)
    one = identity(F, k, s)
    squares = F.mul(s, s)
    gaps = F.add(F.sub(across(F, squares), down(F, squares)), one)
    inner = F.zeros((*s.shape, k), u)
    if gs is not None:
        inner = F.add(inner, embedded(F, F.cast_like(gs, u)))
    beside = None
    if gu is not None:
        gu = columns(F, gu, 0, k)
        skew = _skew(F, F.matmul(adjoint(F, u), gu))
        turned = F.mul(F.div(_hollow(F, skew), gaps), across(F, s))
        inner = F.add(inner, turned)
        if F.is_complex(u):  # the phases of U that are left to choose
            inner = F.add(inner, embedded(F, F.div(diagonal(F, skew), F.mul(F.scalar(2, s), s))))
        if u.shape[-2] > k:
            side = F.div(gu, across(F, s))
            side = F.sub(side, F.matmul(u, F.matmul(adjoint(F, u), side)))
            beside = F.matmul(side, vh)
    if gvh is not None:
        gvh = rows(F, gvh, 0, k)
        skew = _skew(F, F.matmul(vh, adjoint(F, gvh)))
        inner = F.add(inner, F.mul(F.div(_hollow(F, skew), gaps), down(F, s)))
    grad = F.matmul(F.matmul(u, inner), vh)
    if beside is not None:
        grad = F.add(grad, beside)
    if gvh is not None and vh.shape[-1] > k:
        side = F.div(gvh, down(F, s))
        side = F.sub(side, F.matmul(F.matmul(side, adjoint(F, vh)), vh))
        grad = F.add(grad, F.matmul(u, side))
    return grad


def _skew(F: Formulas, a: Array) -> Array:
    return F.sub(a, adjoint(F, a))


def _hollow(F: Formulas, a: Array) -> Array:
    """A matrix without its diagonal."""
    return F.sub(a, embedded(F, diagonal(F, a)))


@composite(out=None, title="LinalgSvdBackward0")
def _svdvals(self: Tensor) -> Tensor:
    """The singular values, falling."""
    return _svd(self, False)[1]


@_svdvals.gradient
@with_adjoints
def _(F, g, self):
    u, _, vh = F.svd(self, False)
    return F.matmul(F.mul(u, across(F, F.cast_like(g, u))), vh)


@composite(results=2, title="LinalgEighBackward0")
def _eigh(self: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    """Rising eigenvalues and the eigenvectors of the Hermitian matrix with this triangle."""
    triangle = self.triu(1) if upper else self.tril(-1)
    middle = cast(real_part(self.diagonal(0, -2, -1)), self.dtype).diag_embed()
    a = triangle + adjoint_of(triangle) + middle
    # Shifted far enough to be positive, A has its eigenvectors as right singular vectors.
    shift = 2 * a.abs().sum(-1).amax(-1, True) if self.shape[-1] else a.new_zeros((1,))
    shifts = cast(shift.detach(), self.dtype).expand(*self.shape[:-1]).diag_embed()
    v = _jacobi.sorted_columns(*_jacobi.orthogonalised(a + shifts))[1].flip(-1)
    return real_part((conjugate(v) * (a @ v)).sum(-2)), v


_eigh.demand(_rules.triangle)


@_eigh.gradient
@with_adjoints
def _(F, g, result0, result1, upper):
    gw, gv = g[:2]
    w, v = F.cast_like(result0, result1), result1
    n = w.shape[-1]
    inner = F.zeros((*w.shape, n), v)
    if gv is not None:
        gaps = F.add(F.sub(across(F, w), down(F, w)), identity(F, n, w))
        inner = F.div(_hollow(F, F.matmul(adjoint(F, v), gv)), gaps)
    if gw is not None:
        inner = F.add(inner, embedded(F, F.cast_like(gw, v)))
    return hermitian_gradient(F, F.matmul(F.matmul(v, inner), adjoint(F, v)), upper)


@composite(out=None, title="LinalgEighBackward0")
def _eigvalsh(self: Tensor, upper: bool) -> Tensor:
    """The rising eigenvalues of the Hermitian matrix with this triangle."""
    return _eigh(self, upper)[0]


_eigvalsh.demand(_rules.triangle)


@_eigvalsh.gradient
@with_adjoints
def _(F, g, self, upper):
    v = F.eigh(self, upper)[1]
    inner = F.matmul(F.mul(v, across(F, F.cast_like(g, v))), adjoint(F, v))
    return hermitian_gradient(F, inner, upper)


@composite(results=2, title="LinalgEigBackward0")
def _eig(self: Tensor) -> tuple[Tensor, Tensor]:
    """Complex eigenvalues and eigenvectors of length 1, computed on the host."""
    dtype = self.dtype if self.dtype.is_complex else D.promote_types(self.dtype, D.complex64)
    n = self.shape[-1]
    shape = tuple(self.shape)
    if on_meta(self) or self.numel() == 0:
        return self.new_zeros(shape[:-1], dtype=dtype), self.new_zeros(shape, dtype=dtype)
    found = [eigensystem(a) for a in self.detach().reshape(-1, n, n).tolist()]
    values = tensor([w for w, _ in found], dtype=dtype, device=self.device)
    vectors = tensor([v for _, v in found], dtype=dtype, device=self.device)
    return values.reshape(shape[:-1]), vectors.reshape(shape)


_eig.demand(_rules.square)


@_eig.gradient
@with_adjoints
def _(F, g, self, result0, result1):
    gw, gv = g[:2]
    n = result0.shape[-1]
    back = adjoint(F, result1)
    inner = F.zeros((*result0.shape, n), result1)
    if gv is not None:
        product = F.matmul(back, gv)
        real = F.cast_like(F.real(diagonal(F, product)), product)
        # The vectors keep their length: what would change it is taken out.
        product = F.sub(product, F.matmul(back, F.mul(result1, across(F, real))))
        w = conj(F, result0)
        gaps = F.add(F.sub(across(F, w), down(F, w)), identity(F, n, w))
        inner = F.div(_hollow(F, product), gaps)
    if gw is not None:
        inner = F.add(inner, embedded(F, gw))
    grad = F.solve_ex(back, F.matmul(inner, back))[0]
    return F.cast_like(grad, self)
