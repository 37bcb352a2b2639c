"""Singular values, eigenvalues, determinants."""

from __future__ import annotations

from flambeau._dispatch.dispatch import all_values
from flambeau._tensor.tensor import Tensor
from flambeau._writes.out import deliver, deliver_all
from flambeau.linalg import _results as R
from flambeau.linalg._factors import hermitian
from flambeau.ops.declaration.table import OPS
from flambeau.ops.matrices.matrix_algebra import (
    LinAlgError,
    first_nonzero,
    matrices,
    on_meta,
    squares,
)

_DRIVERS = (None, "gesvd", "gesvdj", "gesvda")


def _check_values(name: str, values: Tensor) -> None:
    """Refuse singular values that are NaN: the iteration has not converged."""
    if on_meta(values) or not values.numel():
        return
    failed = values.detach().isnan().any(-1)
    if (found := first_nonzero(failed)) is not None:
        batch = f"(Batch element {found[0]}): " if failed.dim() else ""
        raise LinAlgError(
            f"{name}: {batch}The algorithm failed to converge because the input matrix contained "
            "non-finite values."
        )


def _check_driver(name: str, driver: object, a: Tensor) -> None:
    if driver is not None and a.device.type != "cuda":
        raise RuntimeError(f"{name}: keyword argument `driver=` is only supported on CUDA inputs")
    if driver not in _DRIVERS:
        raise RuntimeError(f"{name}: unknown driver {driver!r}; known are gesvd, gesvdj, gesvda")


def svd(
    A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: object = None
) -> R.linalg_svd:
    """U, S and Vᴴ with U diag(S) Vᴴ = A; S is real and falling.

    Shapes: A (..., m, n), S (..., k) with k = min(m, n); U (..., m, m) and Vᴴ (..., n, n), or
    (..., m, k) and (..., k, n) without `full_matrices`.

    The gradient of U and Vᴴ is not finite where singular values coincide.

    Raises:
        LinAlgError: a matrix is not finite.

    >>> import flambeau as fb
    >>> fb.linalg.svd(fb.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    a = matrices("linalg.svd", A)
    _check_driver("linalg.svd", driver, a)
    found = R.linalg_svd(*OPS["svd"](a, full_matrices))
    _check_values("linalg.svd", found.S)
    return deliver_all(found, out, A, exact=True, share="anything")  # type: ignore[return-value]


def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values, falling.

    >>> import flambeau as fb
    >>> fb.linalg.svdvals(fb.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    a = matrices("linalg.svdvals", A)
    _check_driver("linalg.svdvals", driver, a)
    values = OPS["svdvals"](a)
    _check_values("linalg.svd", values)
    return deliver(values, out, A, exact=True, share="anything")


def _upper(UPLO: str) -> bool:
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "U"


def eigh(A: Tensor, UPLO: str = "L", *, out: object = None) -> R.linalg_eigh:
    """Rising real eigenvalues w and orthonormal eigenvectors V of a Hermitian matrix: A V = V w.

    Shapes: A (..., n, n), of which only the lower (or upper) triangle is read; its gradient is
    Hermitian.  The gradient of the vectors is not finite where eigenvalues coincide.

    >>> import flambeau as fb
    >>> fb.linalg.eigh(fb.tensor([[0.0, 1.0], [1.0, 0.0]])).eigenvalues
    tensor([-1.,  1.])
    """
    a = hermitian(squares("linalg.eigh", A))
    return deliver_all(
        R.linalg_eigh(*OPS["eigh"](a, _upper(UPLO))), out, A, exact=True, share="anything"
    )  # type: ignore[return-value]


def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """The rising eigenvalues of a Hermitian matrix.

    >>> import flambeau as fb
    >>> fb.linalg.eigvalsh(fb.tensor([[0.0, 1.0], [1.0, 0.0]]))
    tensor([-1.,  1.])
    """
    a = hermitian(squares("linalg.eigvalsh", A))
    return deliver(OPS["eigvalsh"](a, _upper(UPLO)), out, A, exact=True, share="anything")


def finite_squares(name: str, A: object) -> Tensor:
    """Square matrices without infinite elements and NaN.

    Raises:
        RuntimeError: there are some.
    """
    a = squares(name, A)
    if not on_meta(a) and not (all_values(a).detach().abs() < float("inf")).all().item():
        raise RuntimeError(f"torch.{name}: input tensor should not contain infs or NaNs.")
    return a


def eig(A: Tensor, *, out: object = None) -> R.linalg_eig:
    """Complex eigenvalues w and eigenvectors V of length 1 of any square matrix: A V = V w.

    Shapes: A (..., n, n), w (..., n), V (..., n, n).  The order is not specified.

    >>> import flambeau as fb
    >>> fb.linalg.eig(fb.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues.imag
    tensor([ 1., -1.])
    """
    return deliver_all(
        R.linalg_eig(*OPS["eig"](finite_squares("linalg.eig", A))), out, A, share="anything"
    )  # type: ignore[return-value]


def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex eigenvalues of any square matrix, in no specified order.

    >>> import flambeau as fb
    >>> fb.linalg.eigvals(fb.tensor([[2.0, 1.0], [0.0, 3.0]])).real
    tensor([2., 3.])
    """
    return deliver(OPS["eig"](finite_squares("linalg.eigvals", A))[0], out, A, share="anything")


def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant; its gradient is right for singular matrices too.

    >>> import flambeau as fb
    >>> fb.linalg.det(fb.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(-2.)
    """
    return deliver(
        OPS["determinant"](squares("linalg.det", A)), out, A, exact=True, share="anything"
    )


def slogdet(A: Tensor, *, out: object = None) -> R.linalg_slogdet:
    """The sign of the determinant and the logarithm of its absolute value; 0 and -inf of zero.

    >>> import flambeau as fb
    >>> fb.linalg.slogdet(-fb.eye(3))
    torch.return_types.linalg_slogdet(
    sign=tensor(-1.),
    logabsdet=tensor(0.))
    """
    return deliver_all(
        R.linalg_slogdet(*OPS["slogdet"](squares("linalg.slogdet", A))),
        out,
        A,
        exact=True,
        share="anything",
    )  # type: ignore[return-value]


__all__ = ["det", "eig", "eigh", "eigvals", "eigvalsh", "slogdet", "svd", "svdvals"]
