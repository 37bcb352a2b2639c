"""Windows of images as columns, and their sum back into images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Ints
from flambeau.ops.creation.creation import tensor, zeros
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.indices.indexing import _index_put
from flambeau.ops.layers.activation import wide
from flambeau.ops.spatial.image_windows import Pair, Sizes, framed, places, windows
from flambeau.ops.spatial.pooling_arguments import per_dimension


def _counts(size: Sequence[int], kernel: Pair, dilation: Pair, padding: Pair, stride: Pair) -> Pair:
    """The number of windows per dimension."""
    dims = zip(size, kernel, dilation, padding, stride, strict=True)
    down, across = ((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in dims)
    return down, across


@composite(title="Im2ColBackward0")
def _im2col(
    input: Tensor, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair
) -> Tensor:
    """(N, C, H, W) as (N, C · KH · KW, windows)."""
    n, c, *size = input.shape
    counts = _counts(size, kernel_size, dilation, padding, stride)
    found = list(map(places, counts, kernel_size, stride, dilation))
    taken = windows(framed(input, padding, padding), found).permute((0, 1, 4, 5, 2, 3))
    return taken.reshape((n, c * kernel_size[0] * kernel_size[1], counts[0] * counts[1]))


@_im2col.gradient
def _(F, g, input_shape, kernel_size, dilation, padding, stride):
    return F.col2im(g, tuple(input_shape[2:]), kernel_size, dilation, padding, stride)


@composite(title="Col2ImBackward0")
def _col2im(
    input: Tensor,
    output_size: Pair,
    kernel_size: Pair,
    dilation: Pair,
    padding: Pair,
    stride: Pair,
) -> Tensor:
    """The adjoint of `im2col`: what falls on one pixel is added."""
    n, rows, _ = input.shape
    c = rows // (kernel_size[0] * kernel_size[1])
    counts = _counts(output_size, kernel_size, dilation, padding, stride)
    height, width = (m + 2 * p for m, p in zip(output_size, padding, strict=True))
    down, across = map(places, counts, kernel_size, stride, dilation)
    flat = [
        y[i] * width + x[j]
        for i in range(kernel_size[0])
        for j in range(kernel_size[1])
        for y in down
        for x in across
    ]
    columns = wide(input).reshape((n, c, len(flat)))
    padded = zeros((n, c, height * width), dtype=columns.dtype, device=input.device)
    index = tensor(flat, dtype=D.int64, device=input.device)
    total = _index_put(padded, (None, None, index), columns, True)
    inside = [-p for p in padding]
    return cast(framed(total.reshape((n, c, height, width)), inside, inside), input.dtype)


@_col2im.gradient
def _(F, g, kernel_size, dilation, padding, stride):
    return F.im2col(g, kernel_size, dilation, padding, stride)


@public(method=False)
def im2col(
    input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """The windows of an image as columns.

    Shapes: input (N, C, H, W) or (C, H, W); result (N, C · KH · KW, L) or without N, where L is
    the product of ⌊(H + 2p - d·(K - 1) - 1) / s⌋ + 1 over both dimensions.

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is an integral one.

    >>> import flambeau as fb
    >>> fb.im2col(fb.arange(6.0).reshape(1, 2, 3), (2, 2))
    tensor([[0., 1.],
            [1., 2.],
            [3., 4.],
            [4., 5.]])
    """
    x = need_tensor(input, "im2col", "input")
    how = _settings("im2col", kernel_size, dilation, padding, stride)
    shape = tuple(x.shape)
    if len(shape) not in (3, 4) or 0 in shape[-3:]:
        raise RuntimeError(
            "im2col: Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other "
            f"non-zero dimensions for input, but got: {list(shape)}"
        )
    _check_dtype("im2col", x)
    counts = _counts(shape[-2:], *how)
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {shape[-2:]}, {_named(how[:3])}, calculated shape of "
            f"the array of sliding blocks as {counts}, but its components must be at least one"
        )
    return _im2col.run(x, *how) if len(shape) == 4 else _im2col.run(x.unsqueeze(0), *how).squeeze(0)


@public(method=False)
def col2im(
    input: Tensor,
    output_size: int | Sequence[int | None] | None,
    kernel_size: Ints,
    dilation: Ints = 1,
    padding: Ints = 0,
    stride: Ints = 1,
) -> Tensor:
    """The sum of windows, given as columns, where they lie in an image: the adjoint of `im2col`.

    Shapes: input (N, C · KH · KW, L) or (C · KH · KW, L); result (N, C, *output_size) or without N.

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is an integral one.

    >>> import flambeau as fb
    >>> fb.col2im(fb.ones(2, 2), (1, 3), (1, 2))
    tensor([[[1., 2., 1.]]])
    """
    x = need_tensor(input, "col2im", "input")
    size = per_dimension("col2im", 2, output_size, "output_size")
    how = _settings("col2im", kernel_size, dilation, padding, stride)
    shape = tuple(x.shape)
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "col2im: Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size "
            f"and non-zero dimensions for input, but got: {list(shape)}"
        )
    _check_dtype("col2im", x)
    taps = how[0][0] * how[0][1]
    if min(size) < 1 or shape[-2] % taps:
        raise RuntimeError(
            f"Expected size of input's dimension {len(shape) - 2} to be divisible by the product "
            f"of kernel_size, and a positive output_size, but got input of size {list(shape)}, "
            f"kernel_size={how[0]} and output_size={size}"
        )
    down, across = _counts(size, *how)
    if down * across != shape[-1] or min(down, across) < 1:
        raise RuntimeError(
            f"Given output_size={size}, {_named(how)}, expected size of input's last dimension to "
            f"match the calculated number of sliding blocks {down} * {across} = {down * across}, "
            f"but got input of size {list(shape)}"
        )
    batch = x if len(shape) == 3 else x.unsqueeze(0)
    result = _col2im.run(batch, size, *how)
    return result if len(shape) == 3 else result.squeeze(0)


def _settings(
    where: str, kernel: object, dilation: object, padding: object, stride: object
) -> tuple[Any, ...]:
    given = {"kernel_size": kernel, "dilation": dilation, "padding": padding, "stride": stride}
    how = []
    for name, value in given.items():
        sizes = per_dimension(where, 2, value, name)
        least = 0 if name == "padding" else 1
        if min(sizes) < least:
            word = "non-negative" if name == "padding" else "greater than zero"
            raise RuntimeError(f"{where}: {name} should be {word}, but got {sizes}")
        how.append(sizes)
    return tuple(how)


def _named(how: Sequence[Sizes]) -> str:
    names = ("kernel_size", "dilation", "padding", "stride")
    return ", ".join(f"{name}={sizes}" for name, sizes in zip(names, how, strict=False))


def _check_dtype(where: str, x: Tensor) -> None:
    if not (x.dtype.is_floating_point or x.dtype.is_complex or x.dtype is D.bool_):
        raise NotImplementedError(f"{where}(): not implemented for {x.dtype}")
