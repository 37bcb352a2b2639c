"""Transforms and windows of signals, and random numbers."""

from __future__ import annotations

import math

import flambeau as fb
from flambeau import Tensor
from flambeau.onnx._operators.table import Context, axis_of, dtype_of, integers, number, operator


@operator("DFT")
def _dft(
    c: Context,
    x: Tensor,
    length: Tensor | None = None,
    axis_input: Tensor | None = None,
    axis: int | None = None,
    inverse: int = 0,
    onesided: int = 0,
) -> Tensor:
    if axis is None:
        axis = -2 if c.opset >= 20 else 1
    axis = int(axis_input) if axis_input is not None else axis
    axis = axis_of(axis, x.dim())
    count = x.shape[axis] if length is None else int(number(length))
    if inverse and onesided and length is None:
        count = 2 * (count - 1)
    kind, x = x.dtype, x.double()  # float32 is not exact to the digits that are asked for
    z = fb.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x.squeeze(-1)
    if inverse and onesided:
        return fb.fft.irfft(z, count, axis).unsqueeze(-1).to(kind)
    if onesided:
        y = fb.fft.rfft(z.real if z.is_complex() else z, count, axis)
    else:
        y = (fb.fft.ifft if inverse else fb.fft.fft)(z, count, axis)
    return fb.view_as_real(y).to(kind)


@operator("STFT")
def _stft(
    c: Context,
    x: Tensor,
    step: Tensor,
    window: Tensor | None = None,
    length: Tensor | None = None,
    onesided: int = 1,
) -> Tensor:
    size = int(number(length)) if length is not None else window.shape[0]  # type: ignore[union-attr]
    z = fb.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x.squeeze(-1)
    frames = z.unfold(1, size, int(number(step)))
    if window is not None:
        frames = frames * window
    one = onesided and not z.is_complex()
    return fb.view_as_real(fb.fft.rfft(frames, size, -1) if one else fb.fft.fft(frames, size, -1))


def _window(size: Tensor, periodic: int, dtype: int, terms: tuple[float, ...]) -> Tensor:
    count = int(size)
    angle = 2 * math.pi * fb.arange(count, dtype=fb.float64)
    angle = angle / (count if periodic else count - 1)
    total = fb.zeros(count, dtype=fb.float64)
    for k, factor in enumerate(terms):
        total = total + factor * fb.cos(k * angle)
    return total.to(dtype_of(dtype))


@operator("HannWindow")
def _hann(c: Context, size: Tensor, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    return _window(size, periodic, output_datatype, (0.5, -0.5))


@operator("HammingWindow")
def _hamming(c: Context, size: Tensor, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    return _window(size, periodic, output_datatype, (25 / 46, -21 / 46))


@operator("BlackmanWindow")
def _blackman(c: Context, size: Tensor, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    return _window(size, periodic, output_datatype, (0.42, -0.5, 0.08))


@operator("MelWeightMatrix")
def _mel_weight_matrix(
    c: Context,
    bins: Tensor,
    length: Tensor,
    rate: Tensor,
    lower: Tensor,
    upper: Tensor,
    output_datatype: int = 1,
) -> Tensor:
    count, rows = int(bins), int(length) // 2 + 1

    def mel(hertz: float) -> float:
        return 2595 * math.log10(1 + hertz / 700)

    low, high = mel(float(lower)), mel(float(upper))
    width = (high - low) / (count + 2)
    edges = [700 * (10 ** ((low + i * width) / 2595) - 1) for i in range(count + 2)]
    places = [math.floor((int(length) + 1) * e / int(rate)) for e in edges]
    table = [[0.0] * count for _ in range(rows)]
    for i in range(count):
        first, middle, last = places[i : i + 3]
        if middle == first:
            table[middle][i] = 1.0
        for j in range(first, middle + 1) if middle > first else ():
            table[j][i] = (j - first) / (middle - first)
        for j in range(middle, last) if last > middle else ():
            table[j][i] = (last - j) / (last - middle)
    return fb.tensor(table, dtype=dtype_of(output_datatype))


def _generator(seed: float | None) -> fb.Generator | None:
    return None if seed is None else fb.Generator().manual_seed(int(seed))


@operator("RandomUniform")
def _random_uniform(
    c: Context,
    shape: list[int],
    dtype: int = 1,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> Tensor:
    drawn = fb.rand(list(shape), generator=_generator(seed), dtype=dtype_of(dtype))
    return low + (high - low) * drawn


@operator("RandomNormal")
def _random_normal(
    c: Context,
    shape: list[int],
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Tensor:
    return mean + scale * fb.randn(list(shape), generator=_generator(seed), dtype=dtype_of(dtype))


@operator("RandomUniformLike")
def _random_uniform_like(
    c: Context, x: Tensor, dtype: int | None = None, **options: object
) -> Tensor:
    number_of = _code(x) if dtype is None else dtype
    return _random_uniform(c, list(x.shape), number_of, **options)


@operator("RandomNormalLike")
def _random_normal_like(
    c: Context, x: Tensor, dtype: int | None = None, **options: object
) -> Tensor:
    number_of = _code(x) if dtype is None else dtype
    return _random_normal(c, list(x.shape), number_of, **options)


def _code(x: Tensor) -> int:
    from flambeau.onnx._operators.table import DTYPES

    return next((code for code, dtype in DTYPES.items() if dtype is x.dtype), 1)


@operator("Multinomial")
def _multinomial(
    c: Context, x: Tensor, dtype: int = 6, sample_size: int = 1, seed: float | None = None
) -> Tensor:
    shares = fb.softmax(x, -1)
    drawn = fb.multinomial(shares, sample_size, True, generator=_generator(seed))
    return drawn.to(dtype_of(dtype))


@operator("Col2Im")
def _col2im(
    c: Context,
    x: Tensor,
    image_shape: Tensor,
    block_shape: Tensor,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    image, block = integers(image_shape), integers(block_shape)
    n = len(image)
    steps, gaps, around = strides or [1] * n, dilations or [1] * n, pads or [0] * 2 * n
    wide = [image[i] + around[i] + around[n + i] for i in range(n)]
    counts = [(wide[i] - gaps[i] * (block[i] - 1) - 1) // steps[i] + 1 for i in range(n)]
    batch, channels = x.shape[0], x.shape[1] // math.prod(block)
    flat = fb.zeros(1, dtype=fb.int64)
    for i in range(n):  # where each element of each block lies
        inner = fb.arange(block[i]).unsqueeze(1) * gaps[i] + fb.arange(counts[i]) * steps[i]
        shape = [1] * (2 * i) + [block[i], counts[i]]
        flat = flat.reshape(*flat.shape[: 2 * i], 1, 1) * wide[i] + inner.reshape(shape)
    order = [*range(0, 2 * n, 2), *range(1, 2 * n, 2)]
    places = flat.permute(*order).reshape(-1)
    parts = x.reshape(batch, channels, -1)
    made = fb.zeros(batch, channels, math.prod(wide), dtype=x.dtype)
    made = made.index_add(2, places, parts).reshape(batch, channels, *wide)
    for i in range(n):
        made = made.narrow(2 + i, around[i], image[i])
    return made
