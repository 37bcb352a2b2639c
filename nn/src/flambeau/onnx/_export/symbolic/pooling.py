"""Pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.onnx._export.errors import OnnxExporterError
from flambeau.onnx._export.graph import Graph, Value
from flambeau.onnx._export.symbolic.convolution import tuple_of
from flambeau.onnx._export.symbolic.shapes import padded
from flambeau.onnx._export.table import need_number, symbolic

if TYPE_CHECKING:
    from collections.abc import Callable


def _ceiling(g: Graph, ceil_mode: bool, x: Value, window: tuple[list[int], ...]) -> dict[str, Any]:
    """The attribute for sizes that are rounded up, if that makes a difference."""
    if not ceil_mode:
        return {}
    kernel, stride, padding, dilation = window
    for d in range(len(kernel)):
        size = (x.shape or ())[2 + d] if x.shape else None
        if not isinstance(size, int):
            break
        room = size + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1
        if room % stride[d]:
            break
    else:
        return {}
    g.needs(10, "pooling with ceil_mode")
    return {"ceil_mode_i": 1}


def _max(spatial: int, indices: bool) -> Callable[..., Any]:
    def write(
        g: Graph,
        self: Value,
        kernel_size: object,
        stride: object = None,
        padding: object = 0,
        dilation: object = 1,
        ceil_mode: bool = False,
    ) -> Value | tuple[Value, ...]:
        kernel = tuple_of(kernel_size, spatial)
        steps = tuple_of(stride, spatial) if stride else kernel
        pads, apart = tuple_of(padding, spatial), tuple_of(dilation, spatial)
        if any(d != 1 for d in apart):
            g.needs(10, "pooling with dilation")
        single = self.rank == spatial + 1
        x = g.unsqueeze(self, [0]) if single else self
        more = {"dilations_i": apart} if g.opset >= 10 else {}
        more |= _ceiling(g, ceil_mode, x, (kernel, steps, pads, apart))
        made = g.op(
            "MaxPool",
            x,
            kernel_shape_i=kernel,
            pads_i=pads * 2,
            strides_i=steps,
            outputs=2 if indices else 1,
            **more,
        )
        if not indices:
            return g.squeeze(made, [0]) if single else made
        values, places = made
        # ONNX counts through all of the tensor, PyTorch within each image.
        places.dtype = fb.int64
        area = 1
        for d in range(spatial):
            area *= x.static(2 + d)
        g.needs(10, "the indices of pooling")
        places = g.op("Mod", places, g.constant(area))
        return tuple(g.squeeze(p, [0]) if single else p for p in (values, places))

    return write


def _average(spatial: int) -> Callable[..., Any]:
    def write(
        g: Graph,
        self: Value,
        kernel_size: object,
        stride: object = None,
        padding: object = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Value | tuple[Value, ...]:
        kernel = tuple_of(kernel_size, spatial)
        steps = tuple_of(stride, spatial) if stride else kernel
        pads = tuple_of(padding, spatial)
        single = self.rank == spatial + 1
        x = g.unsqueeze(self, [0]) if single else self
        count = 1
        for size in kernel:
            count *= size
        more = _ceiling(g, ceil_mode, x, (kernel, steps, pads, [1] * spatial))
        if any(pads) and (divisor_override or (more and count_include_pad)):
            # Whether the part beyond the padding counts differs between runtimes.
            x = padded(g, x, [p for p in reversed(pads) for _ in (0, 1)], "constant", 0.0)
            pads = [0] * spatial
            if more and not divisor_override:
                count_include_pad = False
        if divisor_override and more:
            raise OnnxExporterError("divisor_override together with ceil_mode")
        made = g.op(
            "AveragePool",
            x,
            kernel_shape_i=kernel,
            pads_i=pads * 2,
            strides_i=steps,
            count_include_pad_i=int(count_include_pad),
            **more,
        )
        if divisor_override:
            made = g.op("Mul", made, g.constant(count / divisor_override, self.dtype))
        return g.squeeze(made, [0]) if single else made

    return write


def _adaptive(kind: str, spatial: int, pair: bool) -> Callable[..., Any]:
    def write(g: Graph, self: Value, output_size: Any) -> Value | tuple[Value, ...]:
        wanted = output_size if isinstance(output_size, list | tuple) else [output_size]
        wanted = [
            self.static(self.rank - spatial + d) if n is None else need_number(n, "a size")
            for d, n in enumerate(wanted)
        ]
        single = self.rank == spatial + 1
        x = g.unsqueeze(self, [0]) if single else self
        if all(n == 1 for n in wanted) and not pair:
            made = g.op(f"Global{kind}Pool", x)
            return g.squeeze(made, [0]) if single else made
        kernel, steps = [], []
        for d, n in enumerate(wanted):
            size = x.static(2 + d)
            if size % n:
                return _uneven(g, kind, self, x, wanted, spatial, pair, single)
            kernel.append(size // n)
            steps.append(size // n)
        if pair:
            return _max(spatial, True)(g, self, kernel)
        made = g.op(f"{kind}Pool", x, kernel_shape_i=kernel, strides_i=steps)
        return g.squeeze(made, [0]) if single else made

    return write


def _uneven(
    g: Graph,
    kind: str,
    given: Value,
    x: Value,
    wanted: list[Any],
    spatial: int,
    pair: bool,
    single: bool,
) -> Value:
    """Windows of several sizes: one dimension at a time, by products with known matrices."""
    if kind != "Average" or pair:
        raise OnnxExporterError(
            "adaptive pooling of maxima needs sizes that the output size divides"
        )
    assert x.dtype is not None
    rank = spatial + 2
    for d, n in enumerate(wanted):
        axis = 2 + d
        size = given.static(given.rank - spatial + d)
        matrix = fb.zeros(size, n, dtype=fb.float64)
        for at in range(n):
            start, end = at * size // n, -((-(at + 1) * size) // n)
            matrix[start:end, at] = 1 / (end - start)
        moved = g.swap(x, axis, rank - 1)
        made = g.matmul(moved, g.constant(matrix.to(x.dtype)))
        made.shape = (None,) * rank
        x = g.swap(made, axis, rank - 1)
    return g.squeeze(x, [0]) if single else x


for _count in (1, 2, 3):
    symbolic(f"max_pool{_count}d")(_max(_count, False))
    symbolic(f"max_pool{_count}d_with_indices")(_max(_count, True))
    symbolic(f"avg_pool{_count}d")(_average(_count))
    symbolic(f"adaptive_avg_pool{_count}d")(_adaptive("Average", _count, False))
    symbolic(f"adaptive_max_pool{_count}d")(_adaptive("Max", _count, True))
