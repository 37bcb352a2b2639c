"""Ready-made parametrizations."""

from __future__ import annotations

from typing import Any, TypeVar

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.functional import normalize
from flambeau.nn.module import Module
from flambeau.nn.modules.transposed_convolution import _ConvTransposeNd
from flambeau.nn.utils._iteration import iterate
from flambeau.nn.utils.parametrize import register_parametrization
from flambeau.nn.utils.weight_norm import length_except

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """g·v/‖v‖."""
        return weight_v * (weight_g / length_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Length and direction of `weight`."""
        return length_except(weight, self.dim), weight


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Train the parameter `name` as g·v/‖v‖ (Salimans & Kingma, 2016).

    ``parametrizations.<name>.original0`` is the length g, over all dimensions but `dim` (over all
    for None), ``original1`` the direction v.

    >>> import flambeau as fb
    >>> layer = fb.nn.utils.parametrizations.weight_norm(fb.nn.Linear(20, 40))
    >>> layer.parametrizations.weight.original0.shape
    torch.Size([40, 1])
    """
    made: Any = register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    return made


class _SpectralNorm(Module):
    """Division by the largest singular value, which a power iteration approaches."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        if not -weight.dim() <= dim < weight.dim():
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{weight.dim()}, {weight.dim() - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % weight.dim()
        self.eps = eps
        self.n_power_iterations = n_power_iterations
        if weight.dim() > 1:  # the norm of a vector needs no iteration
            matrix = self._matrix(weight)
            for name, count in (("_u", matrix.shape[0]), ("_v", matrix.shape[1])):
                start = matrix.detach().new_empty((count,)).normal_(0, 1)
                self.register_buffer(name, normalize(start, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).flatten(1)

    @fb.no_grad()
    def _iterate(self, matrix: Tensor, times: int) -> None:
        def step() -> None:
            self._u.copy_(normalize(fb.mv(matrix, self._v), dim=0, eps=self.eps))
            self._v.copy_(normalize(fb.mv(matrix.mH, self._u), dim=0, eps=self.eps))

        iterate(step, self._v, times)

    def forward(self, weight: Tensor) -> Tensor:
        """The weight over its largest singular value."""
        if weight.dim() == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # The graph keeps the vectors of this forward while the next one writes into them.
        u, v = self._u.clone(), self._v.clone()
        return weight / fb.vdot(u, fb.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """`value` itself, which the next forward normalises."""
        return value


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Train the parameter `name` divided by its largest singular value (Miyato et al., 2018).

    The rows of the matrix are dimension `dim`: 1 for transposed convolutions, 0 otherwise, unless
    given.  Each access in training makes `n_power_iterations` steps; the vectors are
    ``parametrizations.<name>.0._u`` and ``._v``.

    Raises:
        ValueError: there is no such tensor, or `n_power_iterations` is not positive.
        IndexError: `dim` is no dimension.

    >>> import flambeau as fb
    >>> layer = fb.nn.utils.parametrizations.spectral_norm(fb.nn.Linear(20, 40))
    >>> bool(fb.linalg.matrix_norm(layer.weight, 2) < 1.5)
    True
    """
    weight = _tensor(module, name)
    if dim is None:
        dim = 1 if isinstance(module, _ConvTransposeNd) else 0
    made: Any = register_parametrization(
        module, name, _SpectralNorm(weight, n_power_iterations, dim, eps)
    )
    return made


def _tensor(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


class _Orthogonal(Module):
    """A matrix as an orthogonal one: `base` times a map of its lower triangle."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, weight: Tensor) -> Tensor:
        """The orthogonal matrix."""
        wide = weight.shape[-2] < weight.shape[-1]
        result = self._map(weight.mT if wide else weight)
        if self.use_trivialization and self.base is not None:
            result = self.base @ result
        return result.mT if wide else result

    def _map(self, weight: Tensor) -> Tensor:
        n, k = weight.shape[-2:]
        if self.orthogonal_map == "householder":
            vectors = weight.tril(-1)
            factors = 2 / (1 + (vectors * vectors).sum(-2))
            signs = weight.detach().diagonal(dim1=-2, dim2=-1).trunc()
            return fb.linalg.householder_product(vectors, factors) * signs.unsqueeze(-2)
        lower = weight.tril()
        if n != k:
            rest = lower.new_zeros((*lower.shape[:-2], n, n - k))
            lower = fb.cat([lower, rest], -1)
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            result = fb.linalg.matrix_exp(skew)
        else:
            one = fb.eye(n, dtype=skew.dtype, device=skew.device)
            result = fb.linalg.solve(one - 0.5 * skew, one + 0.5 * skew)
        return result[..., :k]

    def right_inverse(self, value: Tensor) -> Tensor:
        """A matrix that `forward` maps to `value`, or to an orthogonal matrix near it.

        Raises:
            ValueError: `value` has another shape.
            NotImplementedError: the map has no inverse without `use_trivialization`.
        """
        if value.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. "
                f"Got a tensor of shape {value.shape}."
            )
        wide = value.shape[-2] < value.shape[-1]
        tall = value.mT if wide else value
        n, k = tall.shape[-2:]
        if self.use_trivialization:
            if n != k:  # columns that complete the basis
                tall = fb.cat([tall, tall.new_empty((*tall.shape[:-2], n, n - k)).normal_()], -1)
            done = n == k and _is_orthogonal(tall)
            self.base = tall.clone() if done else _orthonormal(tall)
            # Every map sends minus the identity to the identity, up to signs that `base` takes.
            start = fb.zeros_like(value)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1)
            return start
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        vectors = fb.geqrf(tall)[0]
        diagonal = vectors.diagonal(dim1=-2, dim2=-1)
        diagonal.copy_(diagonal.sign().masked_fill(diagonal == 0, 1))
        return vectors.mT if wide else vectors


def _is_orthogonal(matrix: Tensor) -> bool:
    n = matrix.shape[-1]
    near = 10 * n * fb.finfo(matrix.dtype).eps
    one = fb.eye(n, dtype=matrix.dtype, device=matrix.device)
    return fb.allclose(matrix.mH @ matrix, one.expand_as(matrix), atol=near)


def _orthonormal(matrix: Tensor) -> Tensor:
    """The orthogonal factor of a QR decomposition whose triangle has a positive diagonal."""
    vectors, factors = fb.geqrf(matrix)
    signs = vectors.diagonal(dim1=-2, dim2=-1).sgn()
    return fb.linalg.householder_product(vectors, factors) * signs.unsqueeze(-2)


_MAPS = ("matrix_exp", "cayley", "householder")


def orthogonal(
    module: M,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> M:
    """Train the matrix `name` as an orthogonal (complex: unitary) one.

    A matrix that is not square has orthonormal columns or rows.  `orthogonal_map` makes it of a
    matrix: ``"matrix_exp"`` and ``"cayley"``, exp(A) and (1 - A/2)⁻¹(1 + A/2) of its skew part, or
    ``"householder"``, a product of reflections; the first by default for square and complex
    matrices, the last for others.  With `use_trivialization` the map is taken around the present
    value (Lezcano Casado, 2019), which is then an additional buffer.

    Raises:
        ValueError: there is no such tensor, it is no matrix, or an unknown or unfit map.

    >>> import flambeau as fb
    >>> layer = fb.nn.utils.parametrizations.orthogonal(fb.nn.Linear(20, 40))
    >>> q = layer.weight
    >>> fb.allclose(q.T @ q, fb.eye(20), atol=1e-5)
    True
    """
    weight = _tensor(module, name)
    if weight.dim() < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions."
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    if orthogonal_map == "householder" and weight.is_complex():
        raise ValueError("The householder parametrization does not support complex tensors.")
    made: Any = register_parametrization(
        module, name, _Orthogonal(weight, orthogonal_map, use_trivialization), unsafe=True
    )
    return made
