"""The LKJ distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions.beta import Beta
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import _power_log, broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """The distribution of Cholesky factors L of correlation matrices with p(L·Lᵀ) ∝ det^(η−1).

    For η = 1 all correlation matrices are equally probable; larger η prefer weak correlations.

    Args:
        dim: the size of the matrices, at least 2.
        concentration: η, positive.

    Samples by the onion method of Lewandowski, Kurowicka and Joe, "Generating random correlation
    matrices based on vines and extended onion method" (2009), section 3.

    Raises:
        ValueError: `dim` is less than 2.

    >>> from flambeau.distributions import LKJCholesky
    >>> import flambeau as fb
    >>> d = LKJCholesky(2, 1.0)
    >>> d.event_shape, d.log_prob(fb.eye(2))
    (torch.Size([2, 2]), tensor(-0.6931))
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _batch_parameters = ("concentration", "_beta")
    _shared_parameters = ("dim",)

    def __init__(
        self, dim: int, concentration: object = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of row k without its diagonal is Beta((k−1)/2, η + (dim−k−1)/2),
        # shifted by one half: the first row has no such part.
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = fb.arange(dim - 1, dtype=marginal.dtype, device=marginal.device)
        offset = fb.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        batch_shape = self.concentration.size()
        super().__init__(batch_shape, Size((dim, dim)), validate_args=validate_args)

    @fb.no_grad()
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        normal = fb.randn(shape, dtype=y.dtype, device=y.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)  # 0/0 in the first row
        w = fb.sqrt(y) * direction
        tiny = fb.finfo(w.dtype).tiny
        return w + fb.diag_embed(fb.clamp(1 - fb.sum(w**2, dim=-1), min=tiny).sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # det of the correlation matrix is the product of squares of the diagonal; the Jacobian
        # of L·Lᵀ adds dim − k to the power of entry k.
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = fb.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = _power_log(order, diagonal).sum(-1)
        dm1 = self.dim - 1
        alpha = self.concentration + 0.5 * dm1
        denominator = fb.lgamma(alpha) * dm1
        numerator = fb.mvlgamma(alpha - 0.5, dm1)
        # mvlgamma has the constant π^(dm1·(dm1−1)/4), the normaliser π^(dm1/2) more.
        constant = 0.5 * dm1 * math.log(math.pi)
        return unnormalized - (constant + numerator - denominator)
