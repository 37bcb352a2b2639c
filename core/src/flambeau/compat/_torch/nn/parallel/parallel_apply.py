"""Names of ``torch.nn.parallel.parallel_apply`` that only programs for PyTorch want."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.utils import _pytree

__all__ = ["get_a_var"]


def get_a_var(obj: object) -> Tensor | None:
    """The first tensor in nested containers, None if there is none."""
    leaves = _pytree.tree_leaves(obj)
    return next((leaf for leaf in leaves if isinstance(leaf, Tensor)), None)
