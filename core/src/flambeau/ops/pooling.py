"""Pooling: the maximum or the mean of every window of an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau import _dtype as D
from flambeau._dispatch import cast
from flambeau._tensor import Tensor
from flambeau.ops._rules import need_tensor
from flambeau.ops._table import composite
from flambeau.ops._windows import Pair, Places, framed, places, windows
from flambeau.ops.activation import wide
from flambeau.ops.convolution import _conv2d, _conv2d_input_grad
from flambeau.ops.creation import ones, tensor, zeros
from flambeau.ops.elementwise import _where, div
from flambeau.ops.indexing import _gather, _scatter_add
from flambeau.ops.movement import cat
from flambeau.ops.reduction import _argmax

__all__ = ["adaptive_avg_pool2d", "avg_pool2d", "max_pool2d", "max_pool2d_with_indices"]


def _count(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool) -> int:
    # The last window must start inside the image or its left padding.
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    n = (-(-room // stride) if ceil else room // stride) + 1
    return n - 1 if ceil and (n - 1) * stride >= size + padding else n


# -- maximum ---------------------------------------------------------------------------------------


def _places_inside(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool
) -> Places:
    """The positions of each window, where one outside repeats the window's nearest inside.

    So the padding needs no value that compares as less than every other, and an index never falls
    into it.  The order stays ascending, hence the first of equals stays the first.
    """
    found = []
    count = _count(size, kernel, stride, padding, dilation, ceil)
    for window in places(count, kernel, stride, dilation):
        inside = [p - padding for p in window if 0 <= p - padding < size]
        if not inside:
            raise RuntimeError(
                f"max_pool2d: the window at {window[0] - padding} has no element of a dimension of "
                f"size {size} (kernel_size={kernel}, padding={padding}, dilation={dilation}); use "
                "less padding"
            )
        found.append([min(max(p - padding, inside[0]), inside[-1]) for p in window])
    return found


def _position_of_largest(x: Tensor) -> Tensor:
    """Along the last dimension: the first of equal elements, the last of nans."""
    best = _argmax(x, x.dim() - 1, True)
    if not x.dtype.is_floating_point:
        return best
    nan = x != x
    last = x.shape[-1] - 1 - _argmax(cast(nan.flip(-1), D.uint8), x.dim() - 1, True)
    return _where(nan.any(-1, True), last, best)


@composite(results=2, title="MaxPool2DWithIndicesBackward0")
def _max_pool2d(
    input: Tensor, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool
) -> tuple[Tensor, Tensor]:
    """The largest element of each window and its position in H·W."""
    n, c, height, width = input.shape
    geometry = zip(kernel_size, stride, padding, dilation, strict=True)
    rows, columns = (
        _places_inside(size, *how, ceil_mode)
        for size, how in zip((height, width), geometry, strict=True)
    )
    shape = (n, c, len(rows), len(columns))
    elements = windows(input, rows, columns).reshape((*shape, kernel_size[0] * kernel_size[1]))
    best = _position_of_largest(elements)
    down, right = (tensor(p, dtype=D.int64, device=input.device) for p in (rows, columns))
    flat = down.reshape((len(rows), 1, -1, 1)) * width + right.reshape((1, len(columns), 1, -1))
    flat = flat.reshape((*shape[2:], -1)).expand(elements.shape)
    values, indices = (_gather(a, 4, best).squeeze(4) for a in (elements, flat))
    return values, indices


@_max_pool2d.gradient
def _(F, g, input_shape, result1):
    return F.max_pool2d_backward(g[0], result1, input_shape)


@composite(title="MaxPool2DWithIndicesBackwardBackward0")
def _max_pool2d_backward(grad: Tensor, indices: Tensor, input_shape: tuple[int, ...]) -> Tensor:
    """The gradient of each window, added at the position of its maximum."""
    n, c, height, width = input_shape
    flat = (n, c, grad.shape[2] * grad.shape[3])
    empty = zeros((n, c, height * width), dtype=grad.dtype, device=grad.device)
    return _scatter_add(empty, 2, indices.reshape(flat), grad.reshape(flat)).reshape(input_shape)


@_max_pool2d_backward.gradient("grad")
def _(F, g, grad_shape, indices):
    n, c, height, width = grad_shape
    flat = F.reshape(indices, (n, c, height * width))
    planes = F.reshape(g, (n, c, g.shape[2] * g.shape[3]))
    return F.reshape(F.gather(planes, 2, flat), grad_shape)


@_max_pool2d_backward.gradient("indices")
def _(F, g):
    return None


# -- mean ------------------------------------------------------------------------------------------


def _divisors(
    like: Tensor,
    size: Sequence[int],
    count: Sequence[int],
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """How many elements each window averages over, (H', W'); windows end with the padding."""
    if divisor_override is not None:
        return divisor_override
    counts = []
    for n, o, k, s, p in zip(size, count, kernel_size, stride, padding, strict=True):
        starts = [i * s - p for i in range(o)]
        spans = [(y, min(y + k, n + p)) for y in starts]
        if not count_include_pad:
            spans = [(max(y, 0), min(z, n)) for y, z in spans]
        counts.append(tensor([z - y for y, z in spans], dtype=like.dtype, device=like.device))
    return counts[0].unsqueeze(1) * counts[1]


@composite(title="AvgPool2DBackward0")
def _avg_pool2d(
    input: Tensor,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """Sums of windows, a convolution with ones, divided by the windows' sizes."""
    n, c, *size = input.shape
    count, reach = _covered(size, kernel_size, stride, padding, ceil_mode)
    x = wide(input).reshape((n * c, 1, *size))
    after = [r - m - p for r, m, p in zip(reach, size, padding, strict=True)]
    kernel = ones((1, 1, *kernel_size), dtype=x.dtype, device=x.device)
    total = _conv2d(framed(x, padding, after), kernel, None, stride, (0, 0), (1, 1), 1)
    divisors = _divisors(
        total, size, count, kernel_size, stride, padding, count_include_pad, divisor_override
    )
    mean = div(total, divisors, rounding_mode=None if x.dtype.fp else "trunc")
    return cast(mean, input.dtype).reshape((n, c, *count))


@_avg_pool2d.gradient
def _(
    F, g, input_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    return F.avg_pool2d_backward(
        g, input_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@composite(title="AvgPool2DBackwardBackward0")
def _avg_pool2d_backward(
    grad: Tensor,
    input_shape: tuple[int, ...],
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """The gradient of each window, shared among its elements."""
    n, c, *size = input_shape
    count, reach = _covered(size, kernel_size, stride, padding, ceil_mode)
    g = wide(grad)
    share = g / _divisors(
        g, size, count, kernel_size, stride, padding, count_include_pad, divisor_override
    )
    kernel = ones((1, 1, *kernel_size), dtype=g.dtype, device=g.device)
    flat = share.reshape((n * c, 1, *count))
    whole = _conv2d_input_grad(flat, kernel, (n * c, 1, *reach), stride, (0, 0), (1, 1), 1)
    after = [m + p - r for r, m, p in zip(reach, size, padding, strict=True)]
    inside = framed(whole, [-p for p in padding], after)
    return cast(inside, grad.dtype).reshape(input_shape)


@_avg_pool2d_backward.gradient
def _(F, g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return F.avg_pool2d(
        g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _covered(
    size: Sequence[int], kernel: Pair, stride: Pair, padding: Pair, ceil: bool
) -> tuple[list[int], list[int]]:
    """Per dimension: the number of windows, and how far they reach from the padding's start."""
    dims = list(zip(size, kernel, stride, padding, strict=True))
    count = [_count(n, k, s, p, 1, ceil) for n, k, s, p in dims]
    return count, [(o - 1) * s + k for o, (_, k, s, _) in zip(count, dims, strict=True)]


# == public functions ==============================================================================


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The maximum of each window.

    `stride` is the kernel size by default; the border counts as -∞; `ceil_mode` keeps windows that
    reach past the end.

    Shapes: input (N, C, H, W) or (C, H, W); result the same with
    H' = ⌊(H + 2p - d·(K - 1) - 1) / s⌋ + 1.

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is bool or complex.

    >>> import flambeau as fb
    >>> fb.max_pool2d(fb.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    return max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)[0]


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool2d`, and where each maximum stands in H·W.

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is bool or complex.

    >>> import flambeau as fb
    >>> fb.max_pool2d_with_indices(fb.ones(1, 2, 2), 2)[1]
    tensor([[[0]]])
    """
    where = "max_pool2d"
    x = need_tensor(input, where, "input")
    if x.dtype is D.bool_ or x.dtype.is_complex:
        raise NotImplementedError(f"max_pool2d(): not implemented for {x.dtype}")
    batch, window = _window(where, x, kernel_size, stride, padding, dilation, ceil_mode)
    values, indices = _max_pool2d(batch, *window, bool(ceil_mode))
    return (values, indices) if batch is x else (values.squeeze(0), indices.squeeze(0))


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window.

    The border counts as zeros; `count_include_pad` says whether it counts in the divisor, which
    `divisor_override` replaces.

    Shapes: input (N, C, H, W) or (C, H, W); result the same with H' = ⌊(H + 2p - K) / s⌋ + 1.

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is neither floating nor int64.

    >>> import flambeau as fb
    >>> fb.avg_pool2d(fb.arange(4.0).reshape(1, 2, 2), 2)
    tensor([[[1.5000]]])
    """
    where = "avg_pool2d"
    x = need_tensor(input, where, "input")
    if not x.dtype.is_floating_point and x.dtype is not D.int64:
        raise NotImplementedError(f"avg_pool2d(): not implemented for {x.dtype}")
    if divisor_override == 0:
        raise RuntimeError("avg_pool2d: divisor must be not zero")
    batch, window = _window(where, x, kernel_size, stride, padding, 1, ceil_mode)
    result = _avg_pool2d(
        batch, *window[:3], bool(ceil_mode), bool(count_include_pad), divisor_override
    )
    return result if batch is x else result.squeeze(0)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of `output_size` windows that cover the image: from ⌊i·H/O⌋ to ⌈(i+1)·H/O⌉.

    A None in `output_size` keeps the input's size.

    Shapes: input (N, C, H, W) or (C, H, W); result the same with the output size.

    Raises:
        RuntimeError: shapes or sizes do not fit; says which.

    >>> import flambeau as fb
    >>> fb.adaptive_avg_pool2d(fb.arange(4.0).reshape(1, 2, 2), 1)
    tensor([[[1.5000]]])
    """
    where = "adaptive_avg_pool2d"
    x = need_tensor(input, where, "input")
    if x.dim() not in (3, 4):
        raise RuntimeError(f"{where}(): Expected 3D or 4D tensor, but got {list(x.shape)}")
    for dim in (-2, -1):
        if x.shape[dim] == 0:
            raise RuntimeError(
                f"{where}(): Expected input to have non-zero size for non-batch dimensions, but "
                f"input has sizes {list(x.shape)} with dimension {x.dim() + dim} being empty"
            )
    size = output_size if isinstance(output_size, (tuple, list)) else (output_size, output_size)
    if len(size) != 2:
        raise RuntimeError(f"{where}: output_size must be 2, got {list(size)}")
    for dim, wanted in zip((-2, -1), size, strict=True):
        if wanted is not None and wanted < 0:
            raise RuntimeError(
                f"{where}: elements of output_size must be greater than or equal to 0 but received "
                f"{list(size)}"
            )
        if wanted is not None and wanted != x.shape[dim]:
            x = _window_means(x, x.dim() + dim, wanted)
    return x


def _window_means(x: Tensor, dim: int, count: int) -> Tensor:
    """Means of windows along one dimension; of both in turn, as the windows are boxes."""
    size = x.shape[dim]
    if count and size % count == 0:
        return x.unflatten(dim, (count, size // count)).mean(dim + 1)
    starts = [i * size // count for i in range(count)]
    ends = [-(-(i + 1) * size // count) for i in range(count)]
    means = [x.narrow(dim, a, b - a).mean(dim, True) for a, b in zip(starts, ends, strict=True)]
    return cat(means, dim) if means else x.narrow(dim, 0, 0)


def _window(
    where: str,
    x: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> tuple[Tensor, tuple[Pair, Pair, Pair, Pair]]:
    """The input as a batch; kernel size, stride, padding and dilation as checked pairs."""
    kernel = _pair(where, kernel_size, "kernel_size")
    step = kernel if stride in (None, (), []) else _pair(where, stride, "stride")
    edge, spread = _pair(where, padding, "padding"), _pair(where, dilation, "dilation")
    shape = tuple(x._a.shape)
    if len(shape) not in (3, 4) or 0 in shape[-3:]:
        raise RuntimeError(
            f"{where}: Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for "
            f"input, but got: {list(shape)}"
        )
    if min(kernel) <= 0:
        raise RuntimeError(f"{where}: kernel size should be greater than zero, but got {kernel}")
    if min(step) <= 0:
        raise RuntimeError(f"{where}: stride should be greater than zero, but got {step}")
    if min(spread) <= 0:
        raise RuntimeError(f"{where}: dilation should be greater than zero, but got {spread}")
    if min(edge) < 0:
        raise RuntimeError(f"{where}: pad must be non-negative, but got pad: {min(edge)}")
    for k, p, d in zip(kernel, edge, spread, strict=True):
        if p > k // 2:
            size = "effective kernel size" if p > (d * (k - 1) + 1) // 2 else "kernel size"
            raise RuntimeError(
                f"{where}: pad should be at most half of {size}, but got pad={p}, "
                f"kernel_size={k} and dilation={d}"
            )
    output = [
        _count(*sizes, bool(ceil_mode))
        for sizes in zip(shape[-2:], kernel, step, edge, spread, strict=True)
    ]
    if min(output) < 1:
        raise RuntimeError(
            f"Given input size: ({shape[-3]}x{shape[-2]}x{shape[-1]}). Calculated output size: "
            f"({shape[-3]}x{output[0]}x{output[1]}). Output size is too small"
        )
    return x.unsqueeze(0) if len(shape) == 3 else x, (kernel, step, edge, spread)


def _pair(where: str, value: Any, name: str) -> Pair:
    values = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    values = values * 2 if len(values) == 1 else values
    if len(values) != 2:
        raise RuntimeError(
            f"{where}: {name} must either be a single int, or a tuple of two ints, "
            f"got {list(values)}"
        )
    return values
