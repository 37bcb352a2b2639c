"""Divergences between multivariate normal distributions, full and of low rank."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor, linalg
from flambeau.distributions.kl._registry import register_kl
from flambeau.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from flambeau.distributions.multivariate_normal import (
    MultivariateNormal,
    _batch_mahalanobis,
    _log_diagonal,
)


def _squared_norm(matrix: Tensor) -> Tensor:
    """tr(X·Xᵀ) for each matrix of a batch."""
    return matrix.pow(2).sum((-2, -1))


def _same_event(p: Any, q: Any, kind: str) -> int:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {kind} with different event shapes cannot be computed"
        )
    return p.event_shape[0]


def _log_det(d: Any) -> Tensor:
    if isinstance(d, MultivariateNormal):
        return 2 * _log_diagonal(d._unbroadcasted_scale_tril)
    factor, diagonal = d._covariance()
    return _batch_lowrank_logdet(factor, diagonal, d._capacitance_tril)


def _projection(q: Any) -> Tensor:
    """A with Aᵀ·A = D⁻¹·W·(I + Wᵀ·D⁻¹·W)⁻¹·Wᵀ·D⁻¹: what the precision of q lacks to D⁻¹."""
    factor, diagonal = q._covariance()
    scaled = factor.mT / diagonal.unsqueeze(-2)
    return linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)


def _distance_from_low_rank(p: Any, q: Any) -> Tensor:
    factor, diagonal = q._covariance()
    return _batch_lowrank_mahalanobis(factor, diagonal, q.loc - p.loc, q._capacitance_tril)


@register_kl(MultivariateNormal, MultivariateNormal)
def _(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    n = _same_event(p, q, "Multivariate Normals")
    tril_p, tril_q = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    batch = fb.broadcast_shapes(tril_q.shape[:-2], tril_p.shape[:-2])
    trace = _squared_norm(
        linalg.solve_triangular(
            tril_q.expand((*batch, n, n)), tril_p.expand((*batch, n, n)), upper=False
        )
    )
    half_log_dets = _log_diagonal(tril_q) - _log_diagonal(tril_p)
    return half_log_dets + 0.5 * (trace + _batch_mahalanobis(tril_q, q.loc - p.loc) - n)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    n = _same_event(p, q, "Low Rank Multivariate Normals")
    (factor, diagonal), diagonal_q = p._covariance(), q._unbroadcasted_cov_diag
    a = _projection(q)
    trace = (
        (diagonal / diagonal_q).sum(-1)
        + _squared_norm(factor * diagonal_q.rsqrt().unsqueeze(-1))
        - _squared_norm(a * diagonal.sqrt().unsqueeze(-2))
        - _squared_norm(a.matmul(factor))
    )
    return 0.5 * (_log_det(q) - _log_det(p) + trace + _distance_from_low_rank(p, q) - n)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    n = _same_event(p, q, "(Low Rank) Multivariate Normals")
    tril, diagonal_q = p._unbroadcasted_scale_tril, q._unbroadcasted_cov_diag
    trace = _squared_norm(tril * diagonal_q.rsqrt().unsqueeze(-1)) - _squared_norm(
        _projection(q).matmul(tril)
    )
    return 0.5 * (_log_det(q) - _log_det(p) + trace + _distance_from_low_rank(p, q) - n)


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    n = _same_event(p, q, "(Low Rank) Multivariate Normals")
    (factor, diagonal), tril_q = p._covariance(), q._unbroadcasted_scale_tril
    batch = fb.broadcast_shapes(tril_q.shape[:-2], factor.shape[:-2])
    tril = tril_q.expand((*batch, n, n))
    factor = factor.expand((*batch, *factor.shape[-2:]))
    roots = fb.diag_embed(diagonal.sqrt()).expand((*batch, n, n))
    trace = _squared_norm(linalg.solve_triangular(tril, factor, upper=False)) + _squared_norm(
        linalg.solve_triangular(tril, roots, upper=False)
    )
    distance = _batch_mahalanobis(tril_q, q.loc - p.loc)
    return 0.5 * (_log_det(q) - _log_det(p) + trace + distance - n)
