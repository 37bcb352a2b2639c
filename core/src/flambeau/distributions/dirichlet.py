"""The Dirichlet distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.autograd import Function
from flambeau.autograd.function import once_differentiable
from flambeau.distributions import constraints
from flambeau.distributions._exact import is_exact
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.utils import _one_hot, _power_log

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution on the simplex, p(x) = Γ(Σa)/ΠΓ(a_i) · Π x_i^(a_i − 1).

    Args:
        concentration: the parameters a, positive, of shape batch_shape + (K,).

    Raises:
        ValueError: `concentration` has no dimension.

    Small concentrations are sampled well, and gradients of samples are exact, within
    `exact_sampling`.

    >>> from flambeau.distributions import Dirichlet
    >>> import flambeau as fb
    >>> d = Dirichlet(fb.tensor([1.0, 3.0]))
    >>> d.mean, d.log_prob(fb.tensor([0.5, 0.5])), d.event_shape
    (tensor([0.2500, 0.7500]), tensor(-0.2877), torch.Size([2]))
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _batch_parameters = ("concentration",)

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        concentration = self.concentration.expand(self._extended_shape(sample_shape))
        if is_exact():
            return _ExactDirichlet.apply(concentration)
        if not fb.is_grad_enabled():  # an op alone, which archives of traces can hold
            return fb._sample_dirichlet(concentration)
        return _Dirichlet.apply(concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (
            _power_log(self.concentration - 1.0, value).sum(-1)
            + fb.lgamma(self.concentration.sum(-1))
            - fb.lgamma(self.concentration).sum(-1)
        )

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        # Without a concentration above 1 the density is greatest in a corner: 0/0 so far.
        corners = (self.concentration < 1).all(dim=-1)
        mode[corners] = _one_hot(mode[corners].argmax(dim=-1), above.shape[-1], mode)
        return mode

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        k = self.concentration.size(-1)
        total = self.concentration.sum(-1)
        return (
            fb.lgamma(self.concentration).sum(-1)
            - fb.lgamma(total)
            - (k - total) * fb.digamma(total)
            - ((self.concentration - 1.0) * fb.digamma(self.concentration)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - fb.lgamma(x.sum(-1))


def _Dirichlet_backward(
    x: Tensor, concentration: Tensor, grad_output: Tensor, exact: bool = False
) -> Tensor:
    """What a gradient of samples x is for their concentrations."""
    total = concentration.sum(-1, True).expand_as(concentration)
    grad = fb._dirichlet_grad(x, concentration, total, exact=exact)
    return grad * (grad_output - (x * grad_output).sum(-1, True))


class _Dirichlet(Function):
    """A sample, whose gradient is that of the point with all cumulative probabilities fixed."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        x = fb._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        x, concentration = ctx.saved_tensors
        return _Dirichlet_backward(x, concentration, grad_output)


class _ExactDirichlet(Function):
    """The same in log space: log of a gamma variable of a + 1, plus log of a uniform one over a."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        finfo = fb.finfo(concentration.dtype)
        gammas = fb._standard_gamma(concentration + 1)
        uniforms = fb.rand_like(concentration).clamp(min=finfo.tiny)
        x = fb.softmax(gammas.log() + uniforms.log() / concentration, dim=-1)
        x = x.clamp(min=finfo.tiny, max=1 - finfo.eps / 2)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        x, concentration = ctx.saved_tensors
        return _Dirichlet_backward(x, concentration, grad_output, exact=True)
