"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor, linalg
from flambeau.distributions import constraints
from flambeau.distributions._scale_matrix import (
    ScaleMatrix,
    _precision_to_scale_tril,  # noqa: F401 - programs import it from here
    cholesky_factor,
    chosen_matrix,
)
from flambeau.distributions._symmetric import Located
from flambeau.distributions.utils import _standard_normal, lazy_property

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["MultivariateNormal"]


def _batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """Products of a batch of matrices with a batch of vectors, which may have more dimensions."""
    return fb.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _log_diagonal(matrix: Tensor) -> Tensor:
    """Σ log of the diagonal: half of log det(L·Lᵀ)."""
    return matrix.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _batch_mahalanobis(tril: Tensor, vector: Tensor) -> Tensor:
    """xᵀ·(L·Lᵀ)⁻¹·x for batches of L and x that broadcast, of which L has no more dimensions.

    Each L is used once, for all the vectors that meet it.
    """
    n = vector.size(-1)
    shape, batch = vector.shape[:-1], tril.shape[:-2]
    outer = len(shape) - len(batch)
    # Each dimension that L shares becomes two: how often L is repeated along it, and its own.
    split = list(shape[:outer])
    for size, own in zip(shape[outer:], batch, strict=True):
        split += [size // own, own]
    repeats = [*range(outer), *range(outer, len(split), 2)]
    shared = [*range(outer + 1, len(split), 2)]
    x = vector.reshape((*split, n)).permute((*repeats, *shared, len(split)))
    flat_tril = tril.reshape(-1, n, n)
    flat_x = x.reshape(-1, flat_tril.size(0), n).permute(1, 2, 0)
    squared = linalg.solve_triangular(flat_tril, flat_x, upper=False).pow(2).sum(-2)
    order = [*range(outer)]
    for i in range(len(batch)):
        order += [outer + i, len(shape) + i]
    return squared.t().reshape(x.shape[:-1]).permute(order).reshape(shape)


class MultivariateNormal(ScaleMatrix, Located):
    """The multivariate normal distribution with mean μ and covariance Σ.

    p(x) = exp(−½·(x − μ)ᵀ·Σ⁻¹·(x − μ)) / √det(2πΣ).

    Args:
        loc: the mean, of shape batch_shape + (n,).
        covariance_matrix: Σ, positive definite.
        precision_matrix: Σ⁻¹, instead of it.
        scale_tril: the Cholesky factor L of Σ = L·Lᵀ, instead of it: the cheapest, for the
            other two are turned into it.

    Raises:
        ValueError: not exactly one of the three is given, or one has too few dimensions.

    >>> from flambeau.distributions import MultivariateNormal
    >>> import flambeau as fb
    >>> d = MultivariateNormal(fb.zeros(2), fb.eye(2))
    >>> d.log_prob(fb.zeros(2)), d.entropy()
    (tensor(-1.8379), tensor(2.8379))
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _batch_parameters = ("loc", "covariance_matrix", "precision_matrix", "scale_tril")
    _shared_parameters = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = chosen_matrix(covariance_matrix, precision_matrix, scale_tril, ValueError)
        if matrix.dim() < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(
                f"{what} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch_shape = fb.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = cholesky_factor(name, matrix)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return fb.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape())

    @property
    def variance(self) -> Tensor:
        variance = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return variance.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - _log_diagonal(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        entropy = constant + _log_diagonal(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
