"""Names of ``torch.nn.modules.transformer`` that only programs for PyTorch want."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn.modules.transformer import (
    generate_square_subsequent_mask as _generate_square_subsequent_mask,
)

__all__ = ["_detect_is_causal_mask", "_generate_square_subsequent_mask", "_get_seq_len"]


def _get_seq_len(src: Tensor, batch_first: bool) -> int:
    """How many positions sequences have: of one (S, E), or of a batch."""
    return src.shape[0 if src.dim() == 2 or not batch_first else 1]


def _detect_is_causal_mask(
    mask: Tensor | None, is_causal: bool | None = None, size: int | None = None
) -> bool:
    """Whether a mask hides exactly later positions: what was said, or else what it looks like."""
    if is_causal is not None or mask is None:
        return is_causal is True
    length = mask.shape[-2] if size is None else size
    causal = _generate_square_subsequent_mask(length, device=mask.device, dtype=mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())
