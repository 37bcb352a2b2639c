"""What distributions share that take a matrix, its inverse or its Cholesky factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Size, Tensor, linalg
from flambeau.distributions.utils import lazy_property


def chosen_matrix(
    covariance: Tensor | None,
    precision: Tensor | None,
    tril: Tensor | None,
    error: type[Exception],
) -> tuple[str, Tensor]:
    """The name and the value of the one that is given.

    Raises:
        error: none is given, or several are.
    """
    given = {
        "covariance_matrix": covariance,
        "precision_matrix": precision,
        "scale_tril": tril,
    }
    chosen = [(name, value) for name, value in given.items() if value is not None]
    if len(chosen) != 1:
        raise error(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        )
    return chosen[0]


def cholesky_factor(name: str, matrix: Tensor) -> Tensor:
    """The Cholesky factor of a matrix that is given by the name."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return linalg.cholesky(matrix)
    return _precision_to_scale_tril(matrix)


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse, from one Cholesky and one triangular system.

    With J the exchange of rows, P = J·F·Fᵀ·J for the factor F of J·P·J, so that the upper
    triangular J·F·J inverts to the transpose of what is wanted.
    """
    factor = linalg.cholesky(fb.flip(precision, (-2, -1)))
    inverse = fb.transpose(fb.flip(factor, (-2, -1)), -2, -1)
    identity = fb.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return linalg.solve_triangular(inverse, identity, upper=False)


class ScaleMatrix:
    """A matrix V = L·Lᵀ for each of a batch, by L; what else is asked for is made at first use."""

    _batch_shape: Size
    _unbroadcasted_scale_tril: Tensor

    def _matrix_shape(self) -> Size:
        return self._batch_shape + self._unbroadcasted_scale_tril.shape[-2:]

    if TYPE_CHECKING:  # properties that are replaced by what they made
        scale_tril: Any
        covariance_matrix: Any
    else:

        @lazy_property
        def scale_tril(self) -> Tensor:
            """The Cholesky factor L."""
            return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

        @lazy_property
        def covariance_matrix(self) -> Tensor:
            """The matrix V = L·Lᵀ."""
            tril = self._unbroadcasted_scale_tril
            return fb.matmul(tril, tril.mT).expand(self._matrix_shape())
