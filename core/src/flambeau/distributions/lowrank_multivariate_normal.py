"""Multivariate normal distributions with a covariance of low rank plus a diagonal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor, linalg
from flambeau.distributions import constraints
from flambeau.distributions._symmetric import Located
from flambeau.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv, _log_diagonal
from flambeau.distributions.utils import _standard_normal, lazy_property

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["LowRankMultivariateNormal"]


def _plus_identity(matrix: Tensor) -> Tensor:
    matrix = matrix.contiguous()
    n = matrix.size(-1)
    matrix.view(-1, n * n)[:, :: n + 1] += 1
    return matrix


def _batch_capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """The Cholesky factor of I + Wᵀ·D⁻¹·W, of the size of the rank."""
    return linalg.cholesky(_plus_identity(fb.matmul(factor.mT / diagonal.unsqueeze(-2), factor)))


def _batch_lowrank_logdet(factor: Tensor, diagonal: Tensor, capacitance_tril: Tensor) -> Tensor:
    """log det(W·Wᵀ + D), by the matrix determinant lemma."""
    return 2 * _log_diagonal(capacitance_tril) + diagonal.log().sum(-1)


def _batch_lowrank_mahalanobis(
    factor: Tensor, diagonal: Tensor, vector: Tensor, capacitance_tril: Tensor
) -> Tensor:
    """xᵀ·(W·Wᵀ + D)⁻¹·x, by the Woodbury identity."""
    projected = _batch_mv(factor.mT / diagonal.unsqueeze(-2), vector)
    whole = (vector.pow(2) / diagonal).sum(-1)
    return whole - _batch_mahalanobis(capacitance_tril, projected)


class LowRankMultivariateNormal(Located):
    """The multivariate normal distribution with covariance W·Wᵀ + D, D diagonal.

    Systems are solved in the size of the rank: by the Woodbury identity
    (W·Wᵀ + D)⁻¹ = D⁻¹ − D⁻¹·W·(I + Wᵀ·D⁻¹·W)⁻¹·Wᵀ·D⁻¹ and the matrix determinant lemma.

    Args:
        loc: the mean, of shape batch_shape + (n,).
        cov_factor: W, of shape batch_shape + (n, rank).
        cov_diag: the diagonal of D, positive, of shape batch_shape + (n,).

    Raises:
        ValueError: a parameter has too few dimensions, or shapes do not fit.

    >>> from flambeau.distributions import LowRankMultivariateNormal
    >>> import flambeau as fb
    >>> d = LowRankMultivariateNormal(fb.zeros(2), fb.tensor([[1.0], [0.0]]), fb.ones(2))
    >>> d.covariance_matrix, d.log_prob(fb.zeros(2))
    (tensor([[2., 0.],
            [0., 1.]]), tensor(-2.1845))
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _batch_parameters = ("loc", "cov_diag", "cov_factor")
    _shared_parameters = (
        "_unbroadcasted_cov_factor",
        "_unbroadcasted_cov_diag",
        "_capacitance_tril",
    )

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, "
                "with optional leading batch dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            loc_column, self.cov_factor, diag_column = fb.broadcast_tensors(
                loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc_column[..., 0]
        self.cov_diag = diag_column[..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    def _matrix_shape(self) -> Size:
        return self._batch_shape + self._event_shape + self._event_shape

    @lazy_property
    def variance(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        # W·Wᵀ + D = √D·(√D⁻¹·W·Wᵀ·√D⁻¹ + I)·√D, whose middle is well conditioned.
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        tril = root * linalg.cholesky(_plus_identity(fb.matmul(scaled, scaled.mT)))
        return tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance W·Wᵀ + D."""
        factor = self._unbroadcasted_cov_factor
        covariance = fb.matmul(factor, factor.mT) + fb.diag_embed(self._unbroadcasted_cov_diag)
        return covariance.expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        a = linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        precision = fb.diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - a.mT @ a
        return precision.expand(self._matrix_shape())

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        low_rank = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], **options)
        diagonal = _standard_normal(shape, **options)
        return (
            self.loc
            + _batch_mv(self._unbroadcasted_cov_factor, low_rank)
            + self._unbroadcasted_cov_diag.sqrt() * diagonal
        )

    def _covariance(self) -> tuple[Tensor, Tensor]:
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        factor, diagonal = self._covariance()
        tril = self._capacitance_tril
        distance = _batch_lowrank_mahalanobis(factor, diagonal, value - self.loc, tril)
        log_det = _batch_lowrank_logdet(factor, diagonal, tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> Tensor:
        log_det = _batch_lowrank_logdet(*self._covariance(), self._capacitance_tril)
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
