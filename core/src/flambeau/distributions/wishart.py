"""The Wishart distribution of positive definite matrices."""

from __future__ import annotations

import math
import warnings
from numbers import Number
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Size, Tensor, linalg
from flambeau.distributions import constraints
from flambeau.distributions._scale_matrix import ScaleMatrix, cholesky_factor, chosen_matrix
from flambeau.distributions.chi2 import Chi2
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.multivariate_normal import _log_diagonal
from flambeau.distributions.utils import lazy_property

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Wishart"]


_LOG_2 = math.log(2)


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of `mvlgamma`."""
    if not x.gt((p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    halves = fb.arange(p, dtype=x.dtype, device=x.device).div(2)
    return fb.digamma(x.unsqueeze(-1) - halves.expand((*x.shape, -1))).sum(-1)


class Wishart(ScaleMatrix, ExponentialFamily):
    """The distribution of Σ x·xᵀ over df normal vectors x with mean 0 and covariance V.

    p(S) ∝ det(S)^((df−p−1)/2) · exp(−½·tr(V⁻¹·S)) for positive definite p×p matrices S.

    Args:
        df: degrees of freedom, greater than p − 1; need not be whole.
        covariance_matrix: V, positive definite.
        precision_matrix: its inverse, instead.
        scale_tril: its Cholesky factor, instead.

    Samples by the decomposition of Bartlett, "On the theory of statistical regression" (1933).
    `rsample` draws singular matrices anew, at most `max_try_correction` times.

    Raises:
        AssertionError: not exactly one of the three matrices is given.
        ValueError: the matrix has too few dimensions, or `df` is too small.

    >>> from flambeau.distributions import Wishart
    >>> import flambeau as fb
    >>> d = Wishart(fb.tensor(3.0), fb.eye(2))
    >>> d.mean, d.log_prob(fb.eye(2))
    (tensor([[3., 0.],
            [0., 3.]]), tensor(-3.5310))
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = chosen_matrix(
            covariance_matrix, precision_matrix, scale_tril, AssertionError
        )
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if isinstance(df, Number):
            batch_shape = matrix.shape[:-2]
            self.df = fb.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = fb.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        event_shape = matrix.shape[-2:]
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}."
            )
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        if self.df.lt(event_shape[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_scale_tril = cholesky_factor(name, matrix)
        self._set_batch()

    def _set_batch(self) -> None:
        """What follows from `df` and the shape of the batch."""
        tril = self._unbroadcasted_scale_tril
        self._batch_dims = [-(i + 1) for i in range(len(self._batch_shape))]
        lost = fb.arange(self._event_shape[-1], dtype=tril.dtype, device=tril.device)
        df = self.df.unsqueeze(-1) - lost.expand((*self._batch_shape, -1))
        self._dist_chi2 = Chi2(df=df)

    def expand(self, batch_shape: Sequence[int], _instance: object = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = Size(batch_shape)
        shape = batch_shape + self.event_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(shape)
        new.df = self.df.expand(batch_shape)
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(shape))
        ExponentialFamily.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._set_batch()
        new._validate_args = self._validate_args
        return new

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of V."""
        tril = self._unbroadcasted_scale_tril
        identity = fb.eye(self._event_shape[-1], device=tril.device, dtype=tril.dtype)
        inverse = fb.cholesky_solve(identity, tril)
        return inverse.expand(self._batch_shape + self._event_shape)

    @property
    def mean(self) -> Tensor:
        return self.df.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, math.nan)
        return factor.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view((*self._batch_shape, 1, 1)) * (v.pow(2) + products)

    def _bartlett_sampling(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        p = self._event_shape[-1]
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = roots.clamp(min=fb.finfo(roots.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        rows, columns = fb.tril_indices(p, p, offset=-1)
        shape = Size(sample_shape) + self._batch_shape + (p * (p - 1) // 2,)
        noise[..., rows, columns] = fb.randn(shape, dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.transpose(-2, -1)

    def _any_of_batch(self, singular: Tensor) -> Tensor:
        return singular.amax(self._batch_dims) if self._batch_shape else singular

    def rsample(
        self, sample_shape: Sequence[int] = Size(), max_try_correction: int | None = None
    ) -> Tensor:
        tries = 10 if max_try_correction is None else max_try_correction
        sample_shape = Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        sound = self._any_of_batch(self.support.check(sample))
        # PyTorch 2.13 takes sound matrices for singular ones and draws them once more: streams of
        # random numbers agree only if that is done here, too.
        left = self._draw_anew(sample, sound.clone(), tries) | ~sound
        if left.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            self._draw_anew(sample, left, tries)
        return sample

    def _draw_anew(self, sample: Tensor, wanted: Tensor, tries: int) -> Tensor:
        """Replace the wanted samples until none is singular; return which are still."""
        for _ in range(tries):
            if not wanted.any():
                break
            anew = self._bartlett_sampling(wanted[wanted].shape)
            sample[wanted] = anew
            wanted[wanted.clone()] = self._any_of_batch(~self.support.check(anew))
        return wanted

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        tril = self._unbroadcasted_scale_tril
        trace = fb.cholesky_solve(value, tril).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        return (
            -nu * (p * _LOG_2 / 2 + _log_diagonal(tril))
            - fb.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * linalg.slogdet(value).logabsdet
            - trace / 2
        )

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * (p * _LOG_2 / 2 + _log_diagonal(self._unbroadcasted_scale_tril))
            + fb.mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        shape = y + (p + 1) / 2
        log_det = linalg.slogdet(-2 * x).logabsdet
        return shape * (-log_det + _LOG_2 * p) + fb.mvlgamma(shape, p=p)
