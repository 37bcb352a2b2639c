"""Fractional max pooling: windows at pseudo-random places."""

from __future__ import annotations

from math import isfinite
from numbers import Integral, Real
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.nn.functional._arguments import Size, sizes


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: object = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """The maxima of an image over windows of one size at pseudo-random places.

    The size of the result is `output_size`, or the input's times `output_ratio`.  Without
    `_random_samples` of shape (N, C, 2) in [0, 1) they are drawn.  Source: Graham, *Fractional
    max-pooling*, arXiv:1412.6071.

    Shapes: input (N, C, H, W) or without N.

    Raises:
        TypeError: `output_ratio` is no number.
        ValueError: neither `output_size` nor `output_ratio` is given, or the latter is not finite.
        RuntimeError: the shapes or the sizes do not fit; says which.

    >>> import flambeau as fb
    >>> fb.nn.functional.fractional_max_pool2d(fb.ones(1, 3, 3), 2, output_size=2).shape
    torch.Size([1, 2, 2])
    """
    both = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return both if return_indices else both[0]


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: object = None,
    return_indices: bool = True,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool2d` with the indices, whatever `return_indices` says.

    >>> import flambeau as fb
    >>> x = fb.arange(4.0).reshape(1, 2, 2)
    >>> fb.nn.functional.fractional_max_pool2d_with_indices(x, 2, 1)[1].item()
    3
    """
    size = _output_size("fractional_max_pool2d", input, output_size, output_ratio, 2)
    if _random_samples is None:
        planes = (1, input.shape[0]) if input.dim() == 3 else tuple(input.shape[:2])
        _random_samples = fb.rand(*planes, 2, dtype=input.dtype, device=input.device)
    return fb.fractional_max_pool2d(input, kernel_size, size, _random_samples)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: object = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """The maxima of a volume over windows of one size at pseudo-random places.

    The size of the result is `output_size`, or the input's times `output_ratio`.  Without
    `_random_samples` of shape (N, C, 3) in [0, 1) they are drawn.  Source: Graham, *Fractional
    max-pooling*, arXiv:1412.6071.

    Shapes: input (N, C, D, H, W) or without N.

    Raises:
        TypeError: `output_ratio` is no number.
        ValueError: neither `output_size` nor `output_ratio` is given, or the latter is not finite.
        RuntimeError: the shapes or the sizes do not fit; says which.

    >>> import flambeau as fb
    >>> fb.nn.functional.fractional_max_pool3d(fb.ones(1, 3, 3, 3), 2, output_size=2).shape
    torch.Size([1, 2, 2, 2])
    """
    both = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return both if return_indices else both[0]


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: object = None,
    return_indices: bool = True,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool3d` with the indices, whatever `return_indices` says.

    >>> import flambeau as fb
    >>> x = fb.arange(8.0).reshape(1, 2, 2, 2)
    >>> fb.nn.functional.fractional_max_pool3d_with_indices(x, 2, 1)[1].item()
    7
    """
    size = _output_size("fractional_max_pool3d", input, output_size, output_ratio, 3)
    if _random_samples is None:
        planes = (1, input.shape[0]) if input.dim() == 4 else tuple(input.shape[:2])
        _random_samples = fb.rand(*planes, 3, dtype=input.dtype, device=input.device)
    return fb.fractional_max_pool3d(input, kernel_size, size, _random_samples)


def _output_size(
    where: str, input: Tensor, output_size: Size | None, output_ratio: Any, rank: int
) -> tuple[int, ...]:
    require_tensors(where, input=input)
    if output_size is not None:
        return sizes(output_size, rank, "output_size", where)
    if output_ratio is None:
        raise ValueError(f"{where} requires specifying either an output_size or an output_ratio")
    ratios = output_ratio
    if not isinstance(ratios, (tuple, list)):
        ratios = (ratios,) * rank
    if len(ratios) != rank:
        raise ValueError(
            f"{where} requires output_ratio to either be a single number or a tuple of {rank}, "
            f"got {list(ratios)}"
        )
    return tuple(_part(n, r, where) for n, r in zip(input.shape[-rank:], ratios, strict=True))


def _part(size: int, ratio: object, where: str) -> int:
    if isinstance(ratio, Tensor):
        ratio = ratio.item()
    if isinstance(ratio, Integral):  # of any size
        return size * int(ratio)
    if not isinstance(ratio, Real):
        raise TypeError(f"{where}: output_ratio must be numbers, not {type(ratio).__name__}")
    if not isfinite(factor := float(ratio)):
        raise ValueError(f"{where}: output_ratio must be finite, got {factor}")
    return int(size * factor)
