"""Names of ``torch.nn.modules.utils`` that only programs for PyTorch want."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["_list_with_default"]


def _list_with_default(
    out_size: int | Sequence[int | None], defaults: Sequence[int]
) -> int | list[int | None]:
    """Sizes with those of the input where None stands.

    Raises:
        ValueError: the input has no more dimensions than there are sizes.
    """
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    pairs = zip(out_size, defaults[-len(out_size) :], strict=True)
    return [default if size is None else size for size, default in pairs]
