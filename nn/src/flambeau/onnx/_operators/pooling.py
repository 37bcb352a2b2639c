"""Pooling."""

from __future__ import annotations

import math

import flambeau as fb
import flambeau.nn.functional as F
from flambeau import Tensor
from flambeau.onnx._operators.convolution import convolution, padded, paddings, spatial
from flambeau.onnx._operators.table import Context, UnsupportedError, operator

_MAX = (F.max_pool1d, F.max_pool2d, F.max_pool3d)


def _dims(x: Tensor) -> tuple[int, ...]:
    return tuple(range(2, x.dim()))


@operator("GlobalAveragePool")
def _global_average_pool(c: Context, x: Tensor) -> Tensor:
    pools = {3: F.adaptive_avg_pool1d, 4: F.adaptive_avg_pool2d, 5: F.adaptive_avg_pool3d}
    pool = pools.get(x.dim())
    return x.mean(_dims(x), keepdim=True) if pool is None else pool(x, 1)


@operator("GlobalMaxPool")
def _global_max_pool(c: Context, x: Tensor) -> Tensor:
    return x.amax(_dims(x), keepdim=True)


@operator("GlobalLpPool")
def _global_lp_pool(c: Context, x: Tensor, p: float = 2) -> Tensor:
    return (x.abs() ** p).sum(_dims(x), keepdim=True) ** (1 / p)


class _Windows:
    """Where the windows of a pooling lie: strides, dilations, paddings with those of ceil_mode."""

    def __init__(
        self,
        x: Tensor,
        kernel: list[int],
        strides: list[int] | None,
        dilations: list[int] | None,
        auto_pad: str,
        pads: list[int] | None,
        ceil_mode: int,
    ) -> None:
        n = spatial(x)
        self.kernel = tuple(kernel)
        self.strides = tuple(strides or [1] * n)
        self.dilations = tuple(dilations or [1] * n)
        sizes = list(x.shape[2:])
        self.before, self.after = paddings(
            auto_pad, pads, sizes, kernel, list(self.strides), list(self.dilations)
        )
        self.extra = [0] * n  # behind the paddings, for a last window that begins within them
        if ceil_mode:
            for i, size in enumerate(sizes):
                reach = (self.kernel[i] - 1) * self.dilations[i] + 1
                whole = size + self.before[i] + self.after[i]
                count = -(-(whole - reach) // self.strides[i]) + 1
                if (count - 1) * self.strides[i] >= size + self.before[i]:
                    count -= 1
                self.extra[i] = max(0, (count - 1) * self.strides[i] + reach - whole)

    def around(self, x: Tensor, value: float, beyond: float | None = None) -> Tensor:
        """The input with a number in the paddings, and another one beyond them."""
        x = padded(x, self.before, self.after, value)
        return padded(x, [0] * len(self.extra), self.extra, value if beyond is None else beyond)


@operator("MaxPool")
def _max_pool(
    c: Context,
    x: Tensor,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    storage_order: int = 0,
    strides: list[int] | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    windows = _Windows(x, kernel_shape, strides, dilations, auto_pad, pads, ceil_mode)
    pool = _MAX[spatial(x) - 1]
    if not x.dtype.is_floating_point:
        if fb.iinfo(x.dtype).bits > 32:
            raise UnsupportedError(f"MaxPool of {x.dtype}")
        low = float(fb.iinfo(x.dtype).min)
        wide = windows.around(x.double(), low)
        return pool(wide, windows.kernel, windows.strides, 0, windows.dilations).to(x.dtype)
    wide = windows.around(x, -math.inf)
    if c.outputs == 1:
        return pool(wide, windows.kernel, windows.strides, 0, windows.dilations)
    values, places = pool(
        wide, windows.kernel, windows.strides, 0, windows.dilations, return_indices=True
    )
    return values, _places(places, x, wide, windows.before, bool(storage_order))


def _places(flat: Tensor, x: Tensor, wide: Tensor, before: list[int], by_columns: bool) -> Tensor:
    """Places within a padded image as ONNX counts them: in the whole of the tensor."""
    at = []
    for i in reversed(range(2, wide.dim())):
        at.insert(0, flat % wide.shape[i] - before[i - 2])
        flat = flat // wide.shape[i]
    sizes = list(x.shape[2:])
    if by_columns:
        at, sizes = at[::-1], sizes[::-1]
    place = fb.zeros_like(flat)
    for where, size in zip(at, sizes, strict=True):
        place = place * size + where
    images = fb.arange(x.shape[0] * x.shape[1]).reshape(x.shape[0], x.shape[1], *[1] * len(sizes))
    return place + images * math.prod(sizes)


@operator("MaxUnpool")
def _max_unpool(
    c: Context,
    x: Tensor,
    places: Tensor,
    shape: Tensor | None = None,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    n = spatial(x)
    kernel, steps, around = kernel_shape or [1] * n, strides or [1] * n, pads or [0] * 2 * n
    inner = [
        (x.shape[2 + i] - 1) * steps[i] - around[i] - around[n + i] + kernel[i] for i in range(n)
    ]
    natural = [*x.shape[:2], *inner]
    sizes = natural if shape is None else [int(v) for v in shape.tolist()]
    flat = fb.zeros(math.prod(natural), dtype=x.dtype)
    made = flat.scatter(0, places.reshape(-1), x.reshape(-1)).reshape(natural)
    for dim, (size, wanted) in enumerate(zip(natural, sizes, strict=True)):
        made = padded(made.movedim(dim, -1), [0], [wanted - size]).movedim(-1, dim)
    return made


@operator("AveragePool")
def _average_pool(
    c: Context,
    x: Tensor,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    windows = _Windows(x, kernel_shape, strides, dilations, auto_pad, pads, ceil_mode)
    counted = windows.around(fb.ones_like(x[:1, :1]), float(count_include_pad), 0.0)
    return _sums(windows.around(x, 0.0), windows) / _sums(counted, windows)


def _sums(x: Tensor, windows: _Windows) -> Tensor:
    ones = fb.ones(1, 1, *windows.kernel, dtype=x.dtype, device=x.device)
    single = x.reshape(-1, 1, *x.shape[2:])
    y = convolution(len(windows.kernel))(single, ones, None, windows.strides, 0, windows.dilations)
    return y.reshape(*x.shape[:2], *y.shape[2:])


@operator("LpPool")
def _lp_pool(
    c: Context,
    x: Tensor,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: list[int] | None = None,
    p: float = 2,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    windows = _Windows(x, kernel_shape, strides, dilations, auto_pad, pads, ceil_mode)
    return _sums(windows.around(x.abs() ** p, 0.0), windows) ** (1 / p)


@operator("MaxRoiPool")
def _max_roi_pool(
    c: Context, x: Tensor, rois: Tensor, pooled_shape: list[int], spatial_scale: float = 1.0
) -> Tensor:
    results = []
    for batch, left, top, right, bottom in rois.tolist():
        x0, y0, x1, y1 = (round(v * spatial_scale) for v in (left, top, right, bottom))
        part = x[int(batch), :, y0 : y1 + 1, x0 : x1 + 1]
        results.append(F.adaptive_max_pool2d(part, tuple(pooled_shape)))
    return fb.stack(results)
