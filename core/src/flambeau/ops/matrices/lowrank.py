"""Factors of large matrices of low rank, found by multiplying with random matrices."""

from __future__ import annotations

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.matrices.decompositions import qr, svd
from flambeau.ops.randomness.sampling import randn


@public(method=False)
@takes_as_annotated
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The greatest `q` singular values of A − M with their vectors, nearly: A − M ≈ U diag(S) Vᴴ.

    Halko, Martinsson and Tropp 2009, "Finding structure with randomness", algorithms 4.4 and 5.1:
    random matrices are drawn, so that `manual_seed` decides the last digits.

    Args:
        A: (..., m, n).
        q: how many, a little more than the rank that is expected.
        niter: how often A and Aᴴ are applied again.
        M: subtracted from A, and broadcast to it.

    Shapes: U (..., m, q), S (..., q), V (..., n, q).

    >>> import flambeau as fb
    >>> _ = fb.manual_seed(0)
    >>> A = fb.arange(6.0).reshape(3, 2)
    >>> U, S, V = fb.svd_lowrank(A, q=2)
    >>> fb.allclose(U * S @ V.mH, A, atol=1e-5)
    True
    """
    A = need_tensor(A, "svd_lowrank", "A")
    count, rounds = 6 if q is None else q, 2 if niter is None else niter
    if rounds >= 1 << 31:
        raise ValueError(f"niter(={niter}) iterations would not come to an end")
    if M is not None:
        A = A - M
    wide = A.shape[-2] < A.shape[-1]
    tall = A.mH if wide else A
    basis = qr(tall @ randn(tall.shape[-1], count, dtype=A.dtype, device=A.device))[0]
    for _ in range(rounds):
        basis = qr(tall.mH @ basis)[0]
        basis = qr(tall @ basis)[0]
    left, values, right = svd(basis.mH @ tall)
    left = basis @ left
    return (right, values, left) if wide else (left, values, right)


@public(method=False)
@takes_as_annotated
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """The greatest `q` principal components of rows: `svd_lowrank` of A without its mean row.

    Args:
        A: (..., m, n).
        q: how many; by default the least of 6, m and n.
        center: whether to subtract the mean row.
        niter: as for `svd_lowrank`.

    Raises:
        ValueError: q is not between 0 and min(m, n), or niter is negative.

    >>> import flambeau as fb
    >>> _ = fb.manual_seed(0)
    >>> U, S, V = fb.pca_lowrank(fb.tensor([[1.0, 1.0], [2.0, 2.0], [6.0, 6.0]]), q=1)
    >>> S, V.abs()
    (tensor([5.2915]), tensor([[0.7071],
            [0.7071]]))
    """
    A = need_tensor(A, "pca_lowrank", "A")
    m, n = A.shape[-2:]
    count = min(6, m, n) if q is None else q
    if not 0 <= count <= min(m, n):
        raise ValueError(
            f"q(={count}) must be non-negative integer and not greater than min(m, n)={min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, count, niter)
