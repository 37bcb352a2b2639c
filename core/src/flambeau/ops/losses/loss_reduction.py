"""Reductions of losses by name or by PyTorch's number."""

from __future__ import annotations

from flambeau._tensor.tensor import Tensor

_NAMES = ("none", "mean", "sum")


def reduction_name(reduction: object) -> str:
    """``"none"``, ``"mean"`` or ``"sum"``, given so or as 0, 1 or 2.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(reduction, int) and 0 <= reduction < len(_NAMES):
        return _NAMES[reduction]
    if reduction not in _NAMES:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced(loss: Tensor, reduction: object) -> Tensor:
    """`loss` itself, its mean or its sum.

    Raises:
        ValueError: an unknown `reduction`.
    """
    name = reduction_name(reduction)
    if name == "none":
        return loss
    return loss.mean() if name == "mean" else loss.sum()


def check_reduction(reduction: str) -> None:
    """Refuse what is not the name of a reduction.

    Raises:
        ValueError: an unknown `reduction`.
    """
    if reduction not in _NAMES:
        raise ValueError(f"{reduction} is not a valid value for reduction")
