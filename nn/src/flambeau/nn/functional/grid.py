"""Images and volumes sampled at the points of grids."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau as fb
from flambeau import Tensor
from flambeau.overrides import takes_as_annotated, warn

_INTERPOLATIONS = {"bilinear": 0, "nearest": 1, "bicubic": 2}


_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


@takes_as_annotated
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The values of `input` at the points of `grid`.

    A point has its last coordinate first (x, y or x, y, z); -1 and 1 are the borders of the image,
    with `align_corners` the centres of its outermost elements.  `mode` is ``"bilinear"``,
    ``"nearest"`` or, for images, ``"bicubic"``; outside are ``"zeros"``, the ``"border"`` repeated
    or the ``"reflection"`` of the image.

    Shapes: input (N, C, H, W) and grid (N, H', W', 2), result (N, C, H', W'); or
    (N, C, D, H, W), (N, D', H', W', 3) and (N, C, D', H', W').

    Raises:
        ValueError: an unknown mode or padding mode.
        RuntimeError: shapes or dtypes do not fit; says which.

    >>> import flambeau as fb
    >>> x = fb.arange(4.0).reshape(1, 1, 2, 2)
    >>> fb.nn.functional.grid_sample(x, fb.zeros(1, 1, 1, 2), align_corners=False)
    tensor([[[[1.5000]]]])
    """
    if mode not in _INTERPOLATIONS:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: {mode!r}"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: {padding_mode!r}"
        )
    align = _aligned(align_corners)
    return fb.grid_sampler(input, grid, _INTERPOLATIONS[mode], _PADDINGS[padding_mode], align)


@takes_as_annotated
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The points of a regular grid after the affine maps `theta`, for `grid_sample`.

    Shapes: theta (N, 2, 3) and size (N, C, H, W), result (N, H, W, 2); or (N, 3, 4),
    (N, C, D, H, W) and (N, D, H, W, 3).

    Raises:
        ValueError: `theta` is not floating or does not fit `size`, or a size is not positive.
        NotImplementedError: `size` has neither 4 nor 5 entries.
        RuntimeError: `theta` has another batch size.

    >>> import flambeau as fb
    >>> identity = fb.eye(2, 3).unsqueeze(0)
    >>> fb.nn.functional.affine_grid(identity, (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {tuple(size)}."
        )
    rank = len(size) - 2
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (rank, rank + 1):
        raise ValueError(
            f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size "
            f"{tuple(size)}. Got {tuple(theta.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    align = _aligned(align_corners)
    if align and min(size[2:]) == 1:
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
            "align_corners=True. This is not an intended use case of affine_grid. See the "
            "documentation of affine_grid for details.",
        )
    return fb.affine_grid_generator(theta, size, align)


ALIGNS_CORNERS = False
"""What `align_corners` is unless it is given: True in PyTorch 1.2, which had no such argument."""


def _aligned(align_corners: bool | None) -> bool:
    if align_corners is None and ALIGNS_CORNERS:
        return True
    if align_corners is None:
        warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since "
            "1.3.0. Please specify align_corners=True if the old behavior is desired. See the "
            "documentation of grid_sample for details.",
        )
    return bool(align_corners)
