"""Images at other sizes and places."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flambeau as fb
import flambeau.nn.functional as F
from flambeau import Tensor
from flambeau.onnx._operators.table import (
    Context,
    UnsupportedError,
    axis_of,
    integers,
    operator,
    shortest,
)


@operator("GridSample")
def _grid_sample(
    c: Context,
    x: Tensor,
    grid: Tensor,
    mode: str = "linear",
    padding_mode: str = "zeros",
    align_corners: int = 0,
) -> Tensor:
    name = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    return F.grid_sample(x, grid, name, padding_mode, bool(align_corners))


@operator("AffineGrid")
def _affine_grid(c: Context, theta: Tensor, size: Tensor, align_corners: int = 0) -> Tensor:
    return F.affine_grid(theta, integers(size), bool(align_corners))


@operator("Resize")
def _resize(
    c: Context,
    x: Tensor,
    *inputs: Tensor | None,
    antialias: int = 0,
    axes: list[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    if c.opset < 11:
        roi, scales, sizes = None, inputs[0], None
        coordinate_transformation_mode, nearest_mode = "asymmetric", "floor"
    else:
        roi, scales, sizes = (*inputs, None, None, None)[:3]
    dims = list(range(x.dim())) if axes is None else [axis_of(a, x.dim()) for a in axes]
    given = None if scales is None or not scales.numel() else scales.tolist()
    factors = None if given is None else [shortest(each) for each in given]
    wanted = None if sizes is None or not sizes.numel() else integers(sizes)
    whole = axes is None and keep_aspect_ratio_policy == "stretch"
    if (
        whole
        and mode == "nearest"
        and (coordinate_transformation_mode, nearest_mode) == ("asymmetric", "floor")
    ):
        made = interpolated(x, factors, wanted, "nearest", None)
        if made is not None:
            return made
    plain = coordinate_transformation_mode in ("half_pixel", "align_corners")
    if (
        plain
        and whole
        and not antialias
        and (mode == "linear" or (mode == "cubic" and cubic_coeff_a == -0.75))
        and not exclude_outside
    ):
        corners = coordinate_transformation_mode == "align_corners"
        made = interpolated(x, factors, wanted, mode, corners)
        if made is not None:
            return made
    return resized(
        x,
        dims,
        scales=factors,
        sizes=wanted,
        mode=mode,
        coordinates=coordinate_transformation_mode,
        nearest=nearest_mode,
        cubic=cubic_coeff_a,
        inside=bool(exclude_outside),
        antialias=bool(antialias),
        policy=keep_aspect_ratio_policy,
        region=None if roi is None or not roi.numel() else roi.tolist(),
        beyond=extrapolation_value,
    )


def interpolated(
    x: Tensor,
    factors: list[float] | None,
    sizes: list[int] | None,
    kind: str,
    corners: bool | None,
) -> Tensor | None:
    """An image as PyTorch resamples it, in one call; None for what is no such image."""
    names = MODES[kind]
    mode = names[x.dim()] if x.dim() < len(names) else ""
    if not mode or not x.dtype.is_floating_point or not x.numel():
        return None
    if sizes is not None:
        if sizes[:2] != list(x.shape[:2]) or not all(sizes):
            return None
        return F.interpolate(x, sizes[2:], mode=mode, align_corners=corners)
    # Where corners lie at corners, what is left of a size after it was made whole matters to ONNX.
    if factors is None or corners or factors[:2] != [1.0, 1.0]:
        return None
    if not all(int(f * n) for f, n in zip(factors, x.shape, strict=True)):
        return None
    return F.interpolate(x, scale_factor=factors[2:], mode=mode, align_corners=corners)


MODES = {
    "linear": ("", "", "", "linear", "bilinear", "trilinear"),
    "cubic": ("", "", "", "", "bicubic"),
    "nearest": ("", "", "", "nearest", "nearest", "nearest"),
}
"""PyTorch's names of kinds of resampling, by the number of dimensions."""


def resized(
    x: Tensor,
    dims: list[int],
    *,
    scales: list[float] | None = None,
    sizes: list[int] | None = None,
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    nearest: str = "round_prefer_floor",
    cubic: float = -0.75,
    inside: bool = False,
    antialias: bool = False,
    policy: str = "stretch",
    region: list[float] | None = None,
    beyond: float = 0.0,
) -> Tensor:
    """A tensor with other sizes: one dimension after the other, each by a matrix of weights."""
    if sizes is not None:
        factors = [size / x.shape[d] for d, size in zip(dims, sizes, strict=True)]
        if policy != "stretch":
            one = (min if policy == "not_larger" else max)(factors)
            factors = [one] * len(dims)
            sizes = [int(one * x.shape[d] + 0.5) for d in dims]
    elif scales is not None:
        factors = scales
        sizes = [int(f * x.shape[d]) for d, f in zip(dims, factors, strict=True)]
    else:
        raise ValueError("Resize: neither scales nor sizes")
    kind = x.dtype
    for i, (dim, factor, size) in enumerate(zip(dims, factors, sizes, strict=True)):
        part = None if region is None else (region[i], region[len(dims) + i])
        count = x.shape[dim]
        if factor == 1 and size == count and part in (None, (0.0, 1.0)):
            continue
        places = _places(size, count, factor, coordinates, part)
        if mode == "nearest":
            x = x.index_select(dim, fb.tensor(_nearest(places, count, nearest)))
        else:
            kernel, reach = (_linear, 1) if mode == "linear" else (_cubic(cubic), 2)
            shrink = min(factor, 1.0) if antialias else 1.0
            weights = [_weights(p, count, kernel, reach, shrink, inside) for p in places]
            matrix = fb.tensor(weights, dtype=fb.float64).reshape(size, count)
            moved = x.movedim(dim, -1)
            moved = moved if moved.dtype.is_floating_point else moved.double()
            x = (moved @ matrix.t().to(moved.dtype)).movedim(-1, dim)
        if coordinates == "tf_crop_and_resize":
            outside = fb.tensor([not 0 <= p <= count - 1 for p in places])
            shape = [-1 if d == dim else 1 for d in range(x.dim())]
            x = x.masked_fill(outside.reshape(shape), beyond)
    if kind.is_floating_point or mode == "nearest":
        return x.to(kind)
    info = fb.iinfo(kind)
    return x.clamp(info.min, info.max).to(kind)


def _places(
    size: int, count: int, factor: float, coordinates: str, part: tuple[float, float] | None
) -> list[float]:
    """Where in the input each element of the output lies."""
    wide = factor * count  # the size before it was made whole
    if coordinates == "align_corners":
        return [0.0 if wide == 1 else i * (count - 1) / (wide - 1) for i in range(size)]
    if coordinates == "asymmetric":
        return [i / factor for i in range(size)]
    if coordinates == "tf_crop_and_resize":
        first, last = part or (0.0, 1.0)
        span = (last - first) * (count - 1)
        if wide == 1:
            return [first * (count - 1) + span / 2] * size
        return [first * (count - 1) + i * span / (wide - 1) for i in range(size)]
    if coordinates == "pytorch_half_pixel" and wide == 1:
        return [-0.5] * size
    if coordinates in ("half_pixel", "pytorch_half_pixel"):
        return [(i + 0.5) / factor - 0.5 for i in range(size)]
    if coordinates == "half_pixel_symmetric":
        offset = count / 2 * (1 - size / wide)
        return [offset + (i + 0.5) / factor - 0.5 for i in range(size)]
    raise UnsupportedError(f"Resize: coordinate_transformation_mode {coordinates!r}")


def _nearest(places: list[float], count: int, how: str) -> list[int]:
    rounds: dict[str, Callable[[float], int]] = {
        "floor": math.floor,
        "ceil": math.ceil,
        "round_prefer_floor": lambda p: math.ceil(p - 0.5),
        "round_prefer_ceil": lambda p: math.floor(p + 0.5),
    }
    return [min(max(rounds[how](p), 0), count - 1) for p in places]


def _linear(distance: float) -> float:
    return max(1 - abs(distance), 0.0)


def _cubic(a: float) -> Callable[[float], float]:
    """Keys' cubic convolution with the coefficient `a`."""

    def kernel(distance: float) -> float:
        d = abs(distance)
        if d <= 1:
            return ((a + 2) * d - (a + 3)) * d * d + 1
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else 0.0

    return kernel


def _weights(
    place: float,
    count: int,
    kernel: Callable[[float], float],
    reach: int,
    shrink: float,
    inside: bool,
) -> list[float]:
    """A row of the matrix: the weights of the inputs around a place, those at the edge repeated."""
    width = math.ceil(reach / shrink)
    row = [0.0] * count
    total = 0.0
    for i in range(math.floor(place) - width, math.floor(place) + width + 2):
        weight = kernel((i - place) * shrink)
        if inside and not 0 <= i < count:
            continue
        row[min(max(i, 0), count - 1)] += weight
        total += weight
    if inside or shrink < 1:
        return [w / total for w in row] if total else row
    return row


@operator("RoiAlign")
def _roi_align(
    c: Context,
    x: Tensor,
    rois: Tensor,
    batches: Tensor,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    half = coordinate_transformation_mode == "half_pixel" and c.opset >= 16
    results = []
    for (x0, y0, x1, y1), batch in zip(rois.tolist(), integers(batches), strict=True):
        shift = 0.5 if half else 0.0
        left, top = x0 * spatial_scale - shift, y0 * spatial_scale - shift
        width, height = (x1 - x0) * spatial_scale, (y1 - y0) * spatial_scale
        if not half:
            width, height = max(width, 1.0), max(height, 1.0)
        rows = sampling_ratio or math.ceil(height / output_height)
        columns = sampling_ratio or math.ceil(width / output_width)
        down = _samples(top, height, output_height, rows, x.shape[2])
        across = _samples(left, width, output_width, columns, x.shape[3])
        results.append(_pooled(x[batch], down, across, (rows, columns), mode))
    return fb.stack(results) if results else x.new_zeros(0, x.shape[1], output_height, output_width)


def _samples(
    first: float, extent: float, bins: int, each: int, count: int
) -> list[list[tuple[int, float]]]:
    """For every sample of every bin the two elements around it, with their weights."""
    found = []
    for i in range(bins * each):
        place = first + (i + 0.5) * extent / (bins * each)
        if place < -1 or place > count:
            found.append([(0, 0.0), (0, 0.0)])
            continue
        place = min(max(place, 0.0), count - 1)
        low = min(int(place), count - 1)
        high = min(low + 1, count - 1)
        found.append([(low, 1 - (place - low)), (high, place - low)])
    return found


def _pooled(image: Tensor, down: Any, across: Any, each: tuple[int, int], mode: str) -> Tensor:
    def line(samples: Any, which: int) -> tuple[Tensor, Tensor]:
        places = fb.tensor([s[which][0] for s in samples])
        return places, fb.tensor([s[which][1] for s in samples], dtype=image.dtype)

    corners = []
    for a in (0, 1):
        rows, row_weights = line(down, a)
        for b in (0, 1):
            columns, column_weights = line(across, b)
            weights = row_weights.unsqueeze(1) * column_weights
            corners.append(image[:, rows][:, :, columns] * weights)
    (m, n), channels = each, image.shape[0]
    bins = (channels, len(down) // m, m, len(across) // n, n)
    if mode == "max":  # ONNX takes the largest of the weighted corners
        largest = fb.stack(corners).amax(0)
        return largest.reshape(bins).amax((2, 4))
    return sum(corners[1:], corners[0]).reshape(bins).mean((2, 4))
