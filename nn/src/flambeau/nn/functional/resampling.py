"""Signals, images and volumes in another size."""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from math import floor
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.overrides import warn

Size = int | Sequence[int]
Scale = float | Sequence[float]

# How each mode resamples, and the number of spatial dimensions that it takes.
_MODES: dict[str, tuple[str, tuple[int, ...]]] = {
    "nearest": ("nearest", (1, 2, 3)),
    "nearest-exact": ("nearest-exact", (1, 2, 3)),
    "area": ("area", (1, 2, 3)),
    "linear": ("linear", (1,)),
    "bilinear": ("linear", (2,)),
    "bicubic": ("cubic", (2,)),
    "trilinear": ("linear", (3,)),
}


def interpolate(
    input: Tensor,
    size: Size | None = None,
    scale_factor: Scale | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """`input` with other spatial sizes: `size`, or ⌊n · scale_factor⌋.

    Output i of O lies at (i + ½)·n/O - ½ in the input, with `align_corners` at
    i·(n - 1)/(O - 1).  A given factor takes the place of O/n, unless `recompute_scale_factor`.
    ``"area"`` takes means of windows; with `antialias`, ``"bilinear"`` and ``"bicubic"`` widen
    their kernels when they shrink.

    Shapes: input (N, C, L) for ``"linear"``, (N, C, H, W) for ``"bilinear"`` and ``"bicubic"``,
    (N, C, D, H, W) for ``"trilinear"``; all of them for ``"nearest"``, ``"nearest-exact"`` and
    ``"area"``.

    Raises:
        ValueError: not one of `size` and `scale_factor`, of another length than the spatial
            dimensions, or an option that the mode does not have.
        NotImplementedError: the mode is unknown or not for this number of dimensions, or not for
            this dtype.
        RuntimeError: a size is not positive.

    >>> import flambeau as fb
    >>> x = fb.arange(4.0).reshape(1, 1, 2, 2)
    >>> fb.nn.functional.interpolate(x, scale_factor=(1, 2))
    tensor([[[[0., 0., 1., 1.],
              [2., 2., 3., 3.]]]])
    >>> fb.nn.functional.interpolate(x, (2, 3), mode="bilinear", align_corners=True)
    tensor([[[[0.0000, 0.5000, 1.0000],
              [2.0000, 2.5000, 3.0000]]]])
    """
    require_tensors("interpolate", input=input)
    if align_corners is not None and mode in ("nearest", "area", "nearest-exact"):
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: "
            "linear | bilinear | bicubic | trilinear"
        )
    spatial = tuple(input.shape[2:])
    wanted, scales = _sizes(spatial, size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
            "tensor as input"
        )
    kind, ranks = _MODES.get(mode, ("", ()))
    if input.dim() - 2 not in ranks:
        if ranks and input.dim() in (3, 4, 5):
            raise NotImplementedError(
                f"Got {input.dim()}D input, but {mode} mode needs {ranks[0] + 2}D input"
            )
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the "
            f"modes: {' | '.join(_MODES)} (got {mode})"
        )
    if kind == "area":
        pools = fb.adaptive_avg_pool1d, fb.adaptive_avg_pool2d, fb.adaptive_avg_pool3d
        return pools[input.dim() - 3](input, wanted)
    return fb.resample(input, wanted, kind, bool(align_corners), scales, antialias)


def _sizes(
    spatial: tuple[int, ...], size: object, scale_factor: object, recompute: bool | None
) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
    """The sizes of the result, and the factors if positions follow them."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        sizes = _each(spatial, size, "output size")
        return tuple(operator.index(n) for n in sizes), None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = _each(spatial, scale_factor, "scale_factor")
    for factor in factors:
        if not isinstance(factor, (int, float)):
            raise TypeError(
                f"interpolate(): scale_factor must be numbers, not {type(factor).__name__}"
            )
        if abs(factor) > sys.float_info.max or factor != factor:
            raise RuntimeError(f"interpolate(): scale_factor must be finite, got {factor}")
    wanted = tuple(floor(float(n) * f) for n, f in zip(spatial, factors, strict=True))
    return wanted, None if recompute else tuple(map(float, factors))


def _each(spatial: tuple[int, ...], value: object, name: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        return (value,) * len(spatial)
    if len(value) != len(spatial):
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {list(spatial)} and {name} of {tuple(value)}"
        )
    return tuple(value)


def upsample(
    input: Tensor,
    size: Size | None = None,
    scale_factor: Scale | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` under its old name; warns.

    >>> import warnings, flambeau as fb
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     fb.nn.functional.upsample(fb.ones(1, 1, 2), 3)
    tensor([[[1., 1., 1.]]])
    """
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: Size | None = None, scale_factor: Scale | None = None
) -> Tensor:
    """`interpolate` to the nearest element, under an old name; warns.

    >>> import warnings, flambeau as fb
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     fb.nn.functional.upsample_nearest(fb.ones(1, 1, 2), 3)
    tensor([[[1., 1., 1.]]])
    """
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor, size: Size | None = None, scale_factor: Scale | None = None
) -> Tensor:
    """`interpolate` bilinearly with aligned corners, under an old name; warns.

    >>> import warnings, flambeau as fb
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     fb.nn.functional.upsample_bilinear(fb.tensor([[[[0.0, 1.0]]]]), (1, 3))
    tensor([[[[0.0000, 0.5000, 1.0000]]]])
    """
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _deprecated(name: str) -> None:
    warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
    )
