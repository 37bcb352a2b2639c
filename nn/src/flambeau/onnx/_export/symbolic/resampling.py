"""Resampling of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.onnx._export.errors import UnsupportedOperatorError
from flambeau.onnx._export.graph import NUMBERS, Graph, Value
from flambeau.onnx._export.table import need_number, symbolic

if TYPE_CHECKING:
    from collections.abc import Sequence


MODES = {"nearest": "nearest", "nearest-exact": "nearest", "area": "area", "bicubic": "cubic"}
LINEAR = ("linear", "bilinear", "trilinear")


def resize(
    g: Graph, x: Value, size: Any, scales: Any, mode: str, align_corners: bool | None
) -> Value:
    """An image of other sizes.

    Args:
        size: of the result, without batch and channels; or None.
        scales: factors, or None.
    """
    kind = "linear" if mode in LINEAR else MODES[mode]
    if kind == "area":
        raise UnsupportedOperatorError("resampling by area")
    spatial = x.rank - 2
    if isinstance(size, (*NUMBERS, Value)):
        size = [size] * spatial
    if isinstance(scales, NUMBERS):
        scales = [scales] * spatial
    if scales is not None and any(s is None for s in scales):
        scales = None
    factors = None
    if scales is not None:
        factors = [1.0, 1.0, *(float(s) for s in need_number(scales, "a scale"))]
    elif g.opset < 11 or all(isinstance(n, int) for n in size):
        if g.opset < 11:
            factors = [1.0, 1.0]
            factors += [n / x.static(2 + d) for d, n in enumerate(need_number(size, "a size"))]
    if g.opset < 11:
        if kind == "cubic" or align_corners or mode == "nearest-exact":
            g.needs(11, f"resampling by {mode}")
        name = "Upsample" if g.opset == 9 else "Resize"
        if kind == "linear":
            g.needs(11, "linear resampling as PyTorch does it")
        return g.op(name, x, g.constant(fb.tensor(factors)), mode_s=kind)
    # Which pixel a new one comes from.
    places = "align_corners" if align_corners else "half_pixel"
    more: dict[str, Any] = {"coordinate_transformation_mode_s": places, "mode_s": kind}
    if kind == "nearest":
        more["coordinate_transformation_mode_s"] = "asymmetric"
        more["nearest_mode_s"] = "floor"
        if mode == "nearest-exact":
            more["coordinate_transformation_mode_s"] = "half_pixel"
            more["nearest_mode_s"] = "round_prefer_ceil"
    elif kind == "cubic":
        more["cubic_coeff_a_f"] = -0.75
    empty = None if g.opset >= 13 else g.constant(fb.empty(0))
    if factors is not None and align_corners and kind != "nearest":
        # Runtimes differ in whether the size that a factor gives is whole; PyTorch's is.
        size = [_enlarged(g, g.size(x, 2 + d), f) for d, f in enumerate(factors[2:])]
    elif factors is not None:
        return g.op("Resize", x, empty, g.constant(fb.tensor(factors)), **more)
    wanted = g.ints([g.size(x, 0), g.size(x, 1), *size])
    return g.op("Resize", x, empty, None if g.opset >= 13 else empty, wanted, **more)


def _enlarged(g: Graph, size: Value | int, factor: float) -> Value | int:
    """A size times a factor, made whole."""
    if isinstance(size, int):
        return int(size * factor)
    exact = g.op("Mul", g.cast(size, fb.float64), g.value(factor, fb.float64))
    return g.cast(g.op("Floor", exact), fb.int64)


def _upsample(name: str, mode: str) -> None:
    @symbolic(name)
    def write(
        g: Graph,
        self: Any = None,
        output_size: int | Sequence[int] | None = None,
        align_corners: bool | None = None,
        scales: object = None,
        scales_d: object = None,
        scales_h: object = None,
        scales_w: object = None,
        scale_factors: object = None,
        input: Any = None,
    ) -> Value:
        x = self if self is not None else input
        if scale_factors is None:
            parts = [scales_d, scales_h, scales_w if scales is None else scales]
            parts = parts[-(x.rank - 2) :]
            scale_factors = parts if all(p is not None for p in parts) else None
        return resize(g, x, output_size, scale_factors, mode, align_corners)


for _count, _mode in (("1d", "linear"), ("2d", "bilinear"), ("3d", "trilinear")):
    _upsample(f"upsample_{_mode}{_count}", _mode)
    _upsample(f"upsample_nearest{_count}", "nearest")
    _upsample(f"_upsample_nearest_exact{_count}", "nearest-exact")
_upsample("upsample_bicubic2d", "bicubic")


@symbolic("__interpolate")
def interpolate(
    g: Graph,
    input: Value,
    size: object = None,
    scale_factor: object = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Value:
    if antialias:
        raise UnsupportedOperatorError("resampling with antialias")
    if recompute_scale_factor:
        size, scale_factor = list(g.result.shape[2:]), None
    return resize(g, input, size, scale_factor, mode, align_corners)


@symbolic("affine_grid_generator", since=20)
def affine_grid(g: Graph, theta: Value, size: object, align_corners: bool) -> Value:
    sizes = g.ints(size) if isinstance(size, list | tuple) else size
    return g.op("AffineGrid", theta, sizes, align_corners_i=int(align_corners))


@symbolic("grid_sampler", since=16)
def grid_sampler(
    g: Graph,
    input: Value,
    grid: Value,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Value:
    if g.opset >= 20:
        mode = ("linear", "nearest", "cubic")[interpolation_mode]
    else:
        mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
    return g.op(
        "GridSample",
        input,
        grid,
        mode_s=mode,
        padding_mode_s=("zeros", "border", "reflection")[padding_mode],
        align_corners_i=int(align_corners),
    )
