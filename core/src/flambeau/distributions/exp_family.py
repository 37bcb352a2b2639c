"""Exponential families: distributions whose entropy follows from their log normaliser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau import Tensor
from flambeau.autograd import grad
from flambeau.distributions.distribution import Distribution
from flambeau.overrides import takes_as_annotated

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities of the form p(x; θ) = exp(⟨t(x), θ⟩ − F(θ) + k(x)).

    θ are the natural parameters (`_natural_params`), t the sufficient statistic, F the log
    normaliser (`_log_normalizer`) and k the carrier measure, whose mean is
    `_mean_carrier_measure`.  A subclass that defines these three has its entropy and the
    Kullback-Leibler divergence between two of its members from derivatives of F (Bregman
    divergences; Nielsen and Nock, "Entropies and cross-entropies of exponential families", 2010).

    >>> from flambeau.distributions import ExponentialFamily, Normal
    >>> ExponentialFamily.entropy(Normal(0.0, 1.0)).item()
    1.418938...
    """

    if TYPE_CHECKING:  # subclasses have properties or plain attributes of these names
        _natural_params: Any
        _log_normalizer: Any
        _mean_carrier_measure: Any
    else:

        @property
        def _natural_params(self) -> tuple[Tensor, ...]:
            raise NotImplementedError

        def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
            raise NotImplementedError

        @property
        def _mean_carrier_measure(self) -> Any:
            raise NotImplementedError

    @takes_as_annotated
    def entropy(self) -> Tensor:
        """F(θ) − ⟨θ, ∇F(θ)⟩ − E[k(x)], per batch."""
        result = -self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        gradients = grad(normalizer.sum(), params, create_graph=True)
        result = result + normalizer
        for param, gradient in zip(params, gradients, strict=True):
            result = result - (param * gradient).reshape((*self._batch_shape, -1)).sum(-1)
        return result
