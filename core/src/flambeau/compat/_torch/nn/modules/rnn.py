"""Names of ``torch.nn.modules.rnn`` that only programs for PyTorch want."""

import warnings

from flambeau import Tensor

__all__ = ["_apply_permutation", "apply_permutation"]


def _apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The sequences of a batch in another order."""
    return tensor.index_select(dim, permutation)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The sequences of a batch in another order, by the older name."""
    warnings.warn(
        "apply_permutation is deprecated, please use tensor.index_select(dim, permutation) instead",
        FutureWarning,
        stacklevel=2,
    )
    return _apply_permutation(tensor, permutation, dim)
