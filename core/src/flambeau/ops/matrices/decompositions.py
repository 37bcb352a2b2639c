"""Linear algebra under the names of `torch.*` and of tensor methods.

`flambeau.linalg` has the same under today's names; where both exist, results and errors are those
of `flambeau.linalg`, and what differs is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, overload

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.keywords import documented
from flambeau._dispatch.lazy import LazyModule
from flambeau._tensor.tensor import Tensor
from flambeau._types.memory_format import contiguous_format
from flambeau._writes.out import deliver, deliver_all
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS
from flambeau.ops.matrices import (
    eigenvalues,  # noqa: F401 - they declare ops
    factorization,  # noqa: F401 - they declare ops
    solving,  # noqa: F401 - they declare ops
)
from flambeau.ops.matrices.matrix_algebra import (
    adjoint_of,
    batched,
    check_info,
    eye_like,
    floating,
    matrices,
    one_dtype,
    planes,
    squares,
)
from flambeau.ops.pointwise.elementwise import where
from flambeau.ops.shapes.movement import cat

if TYPE_CHECKING:
    from flambeau import linalg
    from flambeau.linalg import _factors, _solutions
    from flambeau.linalg import _results as R
else:
    linalg = LazyModule("flambeau.linalg")
    _factors = LazyModule("flambeau.linalg._factors")
    _solutions = LazyModule("flambeau.linalg._solutions")
    R = LazyModule("flambeau.linalg._results")


@public
@documented({"A": "input"})
def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The lower L with L Lᴴ = A, or the upper U with Uᴴ U = A, of a positive-definite matrix.

    Raises:
        LinAlgError: a matrix is not positive-definite.

    >>> import flambeau as fb
    >>> fb.cholesky(fb.tensor([[4.0, 2.0], [2.0, 2.0]]), upper=True)
    tensor([[2., 1.],
            [0., 1.]])
    """
    factor, info = _factors.lower_factor(squares("cholesky", input), upper)
    check_info("cholesky", info, _factors.NOT_POSITIVE)
    factor = factor if out is None else factor.contiguous()
    return deliver(factor, out, input, share="anything")


@public(names={"input2": "L"})
@documented({"b": "input", "u": "L"})
def cholesky_solve(
    input: Tensor, L: Tensor, upper: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """X with A X = B for a Cholesky factor of A: L with L Lᴴ = A, or upper U with Uᴴ U = A.

    Shapes: B (..., n, k), factor (..., n, n); leading dimensions broadcast.

    >>> import flambeau as fb
    >>> factor = fb.tensor([[2.0, 0.0], [1.0, 1.0]])
    >>> fb.cholesky_solve(fb.tensor([[6.0], [4.0]]), factor)
    tensor([[1.],
            [1.]])
    """
    name = "cholesky_solve"
    b, factor = planes(name, input, "B"), planes(name, L, "L")
    if b.shape[-2] != factor.shape[-1]:
        raise RuntimeError(
            "Incompatible matrix sizes for cholesky_solve: each A matrix is "
            f"{factor.shape[-1]} by {factor.shape[-1]} but each b matrix is {b.shape[-2]} by "
            f"{b.shape[-1]}"
        )
    b, factor = floating(name, b), squares(name, factor, "L")
    one_dtype(name, factor, b)
    factor, b = batched(factor, b)
    other = adjoint_of(factor)
    first, second = (other, factor) if upper else (factor, other)
    half = OPS["triangular_solve"](first, b, False, False)
    return deliver(
        OPS["triangular_solve"](second, half, True, False), out, input, L, share="anything"
    )


@public
def cholesky_inverse(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the matrix with this Cholesky factor.

    >>> import flambeau as fb
    >>> fb.cholesky_inverse(fb.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    factor = squares("cholesky_inverse", input)
    return deliver(
        cholesky_solve(eye_like(factor, factor.shape[-1]), factor, upper),
        out,
        input,
        share="anything",
    )


@public
@documented({"A": "input"})
def det(input: Tensor) -> Tensor:
    """The determinant of square matrices; its gradient is right for singular ones too.

    >>> import flambeau as fb
    >>> fb.det(fb.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(-2.)
    """
    return linalg.det(input)


@public(direct=False)
@documented({"A": "input"})
def slogdet(input: Tensor) -> R.slogdet:
    """The sign of the determinant and the logarithm of its absolute value; 0 and -inf of zero.

    >>> import flambeau as fb
    >>> fb.slogdet(-fb.eye(3)).sign
    tensor(-1.)
    """
    return R.slogdet(*linalg.slogdet(input))


@public
@documented({"A": "input"})
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: -inf if that is zero, nan if it is negative.

    >>> import flambeau as fb
    >>> fb.logdet(fb.eye(2)), fb.logdet(-fb.eye(1))
    (tensor(0.), tensor(nan))
    """
    sign, size = OPS["slogdet"](squares("logdet", input))
    if sign.dtype.is_complex:
        return sign.log() + size
    return where(sign.detach() < 0, size.new_full((), math.nan), size)


@public
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of square matrices.

    Raises:
        LinAlgError: a matrix is singular.

    >>> import flambeau as fb
    >>> fb.inverse(fb.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return linalg.inv(input, out=out)


@public
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse; singular values up to `rcond` times the largest count as zero.

    >>> import flambeau as fb
    >>> fb.pinverse(fb.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return _solutions.pseudo_inverse(input, None, rcond, False)


@overload
def lu(
    input: Tensor,
    pivot: bool = True,
    get_infos: Literal[False] = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def lu(
    input: Tensor,
    pivot: bool = True,
    *,
    get_infos: Literal[True],
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
@public
def lu(
    input: Tensor,
    pivot: bool = True,
    get_infos: bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """L and U in one matrix and the row interchanges, counted from 1; with `get_infos`, the infos.

    An info is the place of the first zero pivot, or 0; without `get_infos` such a pivot raises.

    >>> import flambeau as fb
    >>> fb.lu(fb.tensor([[0.0, 1.0], [2.0, 3.0]]))[1]
    tensor([2, 2], dtype=torch.int32)
    """
    if get_infos:
        return deliver_all(
            tuple(linalg.lu_factor_ex(input, pivot=pivot)), out, input, share="anything"
        )
    return deliver_all(tuple(linalg.lu_factor(input, pivot=pivot)), out, input, share="anything")


@public
def lu_solve(
    input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """X with A X = B for a decomposition of A from `lu`.

    >>> import flambeau as fb
    >>> fb.lu_solve(fb.tensor([[2.0], [4.0]]), *fb.lu(fb.tensor([[0.0, 2.0], [4.0, 0.0]])))
    tensor([[1.],
            [1.]])
    """
    return linalg.lu_solve(LU_data, LU_pivots, input, out=out)


@public(method=False)
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> R.lu_unpack:
    """P, L and U with P L U = A for a decomposition from `lu`; what is not wanted is empty.

    >>> import flambeau as fb
    >>> fb.lu_unpack(*fb.lu(fb.tensor([[0.0, 1.0], [2.0, 3.0]]))).P
    tensor([[0., 1.],
            [1., 0.]])
    """
    packed = matrices("torch.lu_unpack", LU_data, "LU_data")
    none = packed.new_empty((0,))
    p = lower = upper = none
    if unpack_pivots:
        _factors.check_factors("torch.lu_unpack", packed, LU_pivots)
        p = _factors.permutation(packed, LU_pivots)
    if unpack_data:
        _, lower, upper = _factors.unpacked(packed, None)
    return deliver_all(
        R.lu_unpack(p, lower, upper), out, LU_data, LU_pivots, exact=True, share="anything"
    )  # type: ignore[return-value]


@public
def qr(input: Tensor, some: bool = True, *, out: Sequence[Tensor] | None = None) -> R.qr:
    """Q with orthonormal columns and upper triangular R with Q R = A; Q square unless `some`.

    >>> import flambeau as fb
    >>> fb.qr(fb.tensor([[3.0], [4.0]]), some=False).Q.shape
    torch.Size([2, 2])
    """
    found = R.qr(*OPS["qr"](matrices("torch.qr", input, "input"), not some))
    return deliver_all(found, out, input, exact=True, share="anything")  # type: ignore[return-value]


@public(direct=False)
def geqrf(input: Tensor, *, out: Sequence[Tensor] | None = None) -> R.geqrf:
    """LAPACK's QR decomposition: R with reflectors below it, and their factors.

    It has no gradient; `torch.linalg.qr` has.

    >>> import flambeau as fb
    >>> fb.geqrf(fb.tensor([[3.0], [4.0]])).a
    tensor([[-5.0000],
            [ 0.5000]])
    """
    found = R.geqrf(*OPS["geqrf"](matrices("torch.geqrf", input, "input")))
    return deliver_all(found, out, input, share="anything")  # type: ignore[return-value]


@public(names={"input2": "tau"})
@documented({"a": "input"})
def orgqr(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first columns of Q of a decomposition from `geqrf`; `torch.linalg.householder_product`.

    >>> import flambeau as fb
    >>> fb.orgqr(*fb.geqrf(fb.tensor([[3.0], [4.0]])))
    tensor([[-0.6000],
            [-0.8000]])
    """
    need_tensor(input, "orgqr", "input")
    need_tensor(tau, "orgqr", "tau")
    return linalg.householder_product(input, tau, out=out)


@public(names={"input2": "tau", "input3": "other"})
@documented({"a": "input", "mat": "other"})
def ormqr(
    input: Tensor,
    tau: Tensor,
    other: Tensor,
    left: bool = True,
    transpose: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Q C, or C Q if not `left`, with the square Q of a decomposition from `geqrf`, or with Qᴴ.

    Shapes: input (..., m, k) and tau (..., k) of `geqrf`; C (..., m, n), or (..., n, m).

    >>> import flambeau as fb
    >>> fb.ormqr(*fb.geqrf(fb.tensor([[3.0], [4.0]])), fb.tensor([[5.0], [0.0]]))
    tensor([[-3.],
            [-4.]])
    """
    name = "torch.ormqr"
    a, c = matrices(name, input, "input"), matrices(name, other, "other")
    one_dtype(name, a, tau)
    one_dtype(name, a, c)
    if tau.dim() != a.dim() - 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal "
            f"to {tau.dim()} and input.ndim is equal to {a.dim()}"
        )
    m, k = a.shape[-2], tau.shape[-1]
    d = -2 if left else -1
    if c.shape[d] != m:
        raise RuntimeError(
            f"{name}: other.shape[{d}] must be equal to input.shape[-2], got {c.shape[d]} and {m}"
        )
    padded = cat([a[..., :k], a.new_zeros((*a.shape[:-1], max(m - k, 0)))], -1)[..., :m]
    q = OPS["householder_product"](padded, tau)
    q = adjoint_of(q) if transpose else q
    product = c.mT @ q.mT if left else q.mT @ c.mT  # column by column, as LAPACK's
    return deliver(product.mT, out, input, tau, other, exact=True, share="anything")


@public
def svd(
    input: Tensor,
    some: bool = True,
    compute_uv: bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> R.svd:
    """U, S and V with U diag(S) Vᴴ = A; U and V square unless `some`, zero unless `compute_uv`.

    `torch.linalg.svd` returns Vᴴ and has square factors by default.

    >>> import flambeau as fb
    >>> fb.svd(fb.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    a = matrices("svd", input, "input")
    if compute_uv:
        u, s, vh = linalg.svd(a, not some)
        return deliver_all(R.svd(u, s, adjoint_of(vh)), out, input, exact=True, share="anything")  # type: ignore[return-value]
    m, n = a.shape[-2:]
    batch = tuple(a.shape[:-2])
    found = R.svd(a.new_zeros((*batch, m, m)), linalg.svdvals(a), a.new_zeros((*batch, n, n)))
    return deliver_all(found, out, input, exact=True, share="anything")  # type: ignore[return-value]


@public
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> R.triangular_solve:
    """X with A X = B, or Aᵀ X = B, for triangular A, and a copy of A.

    >>> import flambeau as fb
    >>> a = fb.tensor([[2.0, 0.0], [1.0, 1.0]])
    >>> fb.triangular_solve(fb.tensor([[2.0], [3.0]]), a, upper=False).solution
    tensor([[1.],
            [2.]])
    """
    name = "triangular_solve"
    b, a = matrices(name, input, "b"), squares(name, A)
    one_dtype(name, a, b)
    if b.shape[-2] != a.shape[-1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {a.shape[-1]} by "
            f"{a.shape[-1]} but each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )
    a, b = batched(a, b)
    matrix, above = (a.mT, not upper) if transpose else (a, bool(upper))
    result = OPS["triangular_solve"](matrix, b, above, bool(unitriangular))
    copied = a.mT.clone(memory_format=contiguous_format).mT
    return deliver_all(
        R.triangular_solve(result, copied), out, input, A, exact=True, share="anything"
    )  # type: ignore[return-value]
