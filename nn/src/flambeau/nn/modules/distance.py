"""Distances of vectors as modules."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.module import Module


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along `dim`; see `functional.cosine_similarity`.

    >>> import flambeau as fb
    >>> fb.nn.CosineSimilarity()(fb.tensor([[1.0, 0.0]]), fb.tensor([[3.0, 4.0]]))
    tensor([0.6000])
    """

    dim: int
    eps: float

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The similarity of each pair."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The `p`-norm of differences of rows; see `functional.pairwise_distance`.

    >>> import flambeau as fb
    >>> fb.nn.PairwiseDistance(eps=0)(fb.tensor([[3.0, 4.0]]), fb.zeros(1, 2))
    tensor([5.])
    """

    norm: float
    eps: float
    keepdim: bool

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The distance of each pair."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
