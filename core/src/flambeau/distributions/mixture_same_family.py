"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.distribution import Distribution

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture Σ_k P(k)·p_k(x) of distributions that are one batch.

    Args:
        mixture_distribution: a `Categorical` over the components.
        component_distribution: the components, along the last dimension of its batch.

    Raises:
        ValueError: a type is wrong, or shapes do not fit.

    >>> from flambeau.distributions import Categorical, MixtureSameFamily, Normal
    >>> import flambeau as fb
    >>> weights, means = fb.tensor([0.5, 0.5]), fb.tensor([-1.0, 1.0])
    >>> d = MixtureSameFamily(Categorical(weights), Normal(means, 1.0))
    >>> d.mean, d.variance, d.log_prob(fb.tensor(0.0))
    (tensor(0.), tensor(2.), tensor(-1.4189))
    """

    arg_constraints: Any = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        mixtures = mixture_distribution.batch_shape
        components = component_distribution.batch_shape[:-1]
        for size1, size2 in zip(reversed(mixtures), reversed(components), strict=False):
            if size1 != 1 and size2 != 1 and size1 != size2:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixtures}) is not "
                    "compatible with `component_distribution."
                    f"batch_shape`({components})"
                )
        count = mixture_distribution.logits.shape[-1]
        given = component_distribution.batch_shape[-1]
        if count != given:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not"
                " equal `component_distribution.batch_shape[-1]`"
                f" ({given})"
            )
        self._num_component = count
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(components, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: object = None) -> Any:
        batch_shape = Size(batch_shape)
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        components = batch_shape + Size((self._num_component,))
        new._component_distribution = self._component_distribution.expand(components)
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution over the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    @property
    def mean(self) -> Tensor:
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return fb.sum(probs * self.component_distribution.mean, dim=-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        # The law of total variance: the mean of variances plus the variance of means.
        dim = -1 - self._event_ndims
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        within = fb.sum(probs * self.component_distribution.variance, dim=dim)
        from_mean = self.component_distribution.mean - self._pad(self.mean)
        return within + fb.sum(probs * from_mean.pow(2.0), dim=dim)

    def cdf(self, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        cdf = self.component_distribution.cdf(self._pad(x))
        return fb.sum(cdf * self.mixture_distribution.probs, dim=-1)

    def _mixed(self, name: str, x: Tensor) -> Tensor:
        """A logarithm of the mixture from those of the components."""
        parts = getattr(self.component_distribution, name)(self._pad(x))
        log_mixture = fb.log_softmax(self.mixture_distribution.logits, dim=-1)
        terms = parts + log_mixture
        if not terms.requires_grad:
            return fb.logsumexp(terms, dim=-1)
        # Where no component has the value, or one has a pole there, the mixture does not change.
        largest = terms.detach().amax(-1)
        ends = largest.isinf()
        inside = fb.where(ends.unsqueeze(-1), 0.0, terms)
        return fb.where(ends, largest, fb.logsumexp(inside, dim=-1))

    def log_cdf(self, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._mixed("log_cdf", x)

    def survival_function(self, x: Tensor) -> Tensor:  # pyright: ignore
        above = self.component_distribution.survival_function(self._pad(x))
        return fb.sum(above * self.mixture_distribution.probs, dim=-1)

    def log_survival_function(self, x: Tensor) -> Tensor:  # pyright: ignore
        return self._mixed("log_survival_function", x)

    def log_prob(self, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self._validate_args:
            self._validate_sample(x)
        return self._mixed("log_prob", x)

    @fb.no_grad()
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        dim = len(sample_shape) + len(self.batch_shape)
        chosen = self.mixture_distribution.sample(sample_shape)
        samples = self.component_distribution.sample(sample_shape)
        event = self.event_shape
        index = chosen.reshape((*chosen.shape, *(1 for _ in range(len(event) + 1))))
        index = index.repeat((*(1 for _ in chosen.shape), 1, *event))
        return fb.gather(samples, dim, index).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """Weights of the components with dimensions for the rest of the batch and the event."""
        mixture_ndims = len(self.mixture_distribution.batch_shape)
        pad = 0 if mixture_ndims == 1 else len(self.batch_shape) - mixture_ndims
        ones = (1 for _ in range(self._event_ndims))
        return x.reshape((*x.shape[:-1], *(1 for _ in range(pad)), x.shape[-1], *ones))

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )
