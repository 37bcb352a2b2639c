"""Transforms of whole vectors and matrices: onto simplices, triangular and definite matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Size, Tensor, linalg
from flambeau.distributions import constraints
from flambeau.distributions.transforms._base import Transform
from flambeau.distributions.transforms._elementwise import _clipped_sigmoid
from flambeau.distributions.utils import _logsigmoid, tril_matrix_to_vec, vec_to_tril_matrix

if TYPE_CHECKING:
    from collections.abc import Sequence


def _shifted(x: Tensor) -> Tensor:
    """x without its last column and with a first one of ones."""
    return fb.constant_pad_nd(x[..., :-1], [1, 0], value=1)


def _need_ndim(shape: Sequence[int], ndim: int) -> None:
    if len(shape) < ndim:
        raise ValueError("Too few dimensions on input")


def _running_product(x: Tensor) -> Tensor:
    """The products of the first numbers of each row, rounded once each, as PyTorch's are."""
    return x.cumprod(-1, dtype=fb.float64).to(x.dtype)


class CorrCholeskyTransform(Transform):
    """Vectors of D(D−1)/2 numbers onto Cholesky factors of D×D correlation matrices.

    The numbers, through tanh, are canonical partial correlations: row by row, entry (i, j) takes
    the share tanh(x) of what is left of the row's length 1 (Stan reference manual, "Cholesky
    factors of correlation matrices").

    >>> from flambeau.distributions import CorrCholeskyTransform
    >>> import flambeau as fb
    >>> CorrCholeskyTransform()(fb.tensor([0.5]))
    tensor([[1.0000, 0.0000],
            [0.4621, 0.8868]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = fb.finfo(x.dtype).eps
        r = vec_to_tril_matrix(fb.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = _running_product((1 - r**2).sqrt())
        r = r + fb.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * _shifted(left)

    def _inverse(self, y: Tensor) -> Tensor:
        left = _shifted(1 - fb.cumsum(y * y, dim=-1))
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        # atanh, from its definition: both terms are exact near 0.
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        # The rows' determinants: the factors with which entries 2, … of each row are scaled.
        left = 1 - (y * y).cumsum(dim=-1)
        rows = 0.5 * tril_matrix_to_vec(left, diag=-2).log().sum(-1)
        tanh = -2 * (x + fb.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return rows + tanh

    def forward_shape(self, shape: Any) -> Any:
        _need_ndim(shape, 1)
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + Size((d, d))

    def inverse_shape(self, shape: Any) -> Any:
        _need_ndim(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        d = shape[-1]
        return shape[:-2] + Size((d * (d - 1) // 2,))


class SoftmaxTransform(Transform):
    """y = exp(x)/Σexp(x), onto the simplex; as inverse log(y).

    Not bijective (a constant added to x changes nothing), so it has no Jacobian determinant.

    >>> from flambeau.distributions import SoftmaxTransform
    >>> import flambeau as fb
    >>> SoftmaxTransform()(fb.zeros(4))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    def _call(self, x: Tensor) -> Tensor:
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        _need_ndim(shape, 1)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        _need_ndim(shape, 1)
        return shape


class StickBreakingTransform(Transform):
    """Vectors of K numbers onto the simplex of K + 1 probabilities.

    Number k, through the logistic function, is the share that is broken off what remains of a
    stick of length 1; it is shifted so that x = 0 gives equal probabilities.  Bijective, hence fit
    for Hamiltonian Monte Carlo (Stan reference manual, "Simplex transform").

    >>> from flambeau.distributions import StickBreakingTransform
    >>> import flambeau as fb
    >>> StickBreakingTransform()(fb.zeros(3))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    def _call(self, x: Tensor) -> Tensor:
        z = _clipped_sigmoid(x - self._pieces(x).log())
        remains = _running_product(1 - z)
        return fb.constant_pad_nd(z, [0, 1], value=1) * fb.constant_pad_nd(remains, [1, 0], value=1)

    @staticmethod
    def _pieces(x: Tensor) -> Tensor:
        """How many pieces are still to come after each: K, K − 1, …, 1."""
        return x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        broken = y[..., :-1]
        # Rounding may leave nothing, or less, of the stick.
        remains = fb.clamp(1 - broken.cumsum(-1), min=fb.finfo(y.dtype).tiny)
        return broken.log() - remains.log() + self._pieces(broken).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._pieces(x).log()
        return (-x + _logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _need_ndim(shape, 1)
        return shape[:-1] + Size((shape[-1] + 1,))

    def inverse_shape(self, shape: Any) -> Any:
        _need_ndim(shape, 1)
        return shape[:-1] + Size((shape[-1] - 1,))


class LowerCholeskyTransform(Transform):
    """Matrices onto lower triangular ones with a positive diagonal, by exp of the diagonal.

    >>> from flambeau.distributions import LowerCholeskyTransform
    >>> import flambeau as fb
    >>> LowerCholeskyTransform()(fb.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Matrices onto positive definite ones: L·Lᵀ with the L of `LowerCholeskyTransform`.

    >>> from flambeau.distributions import PositiveDefiniteTransform
    >>> import flambeau as fb
    >>> PositiveDefiniteTransform()(fb.tensor([[0.0, 9.0], [2.0, 0.0]]))
    tensor([[1., 2.],
            [2., 5.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    def _call(self, x: Tensor) -> Tensor:
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))
