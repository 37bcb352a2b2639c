"""A hundred operations at three sizes: the ratio to torch of each, and the worst ten per size.

    python benchmarks/op_sweep.py [--quick] [--ops softmax] [--sizes 8 10000 1000000] [--threads 1]
        [--writes]

Every operation makes fresh outputs; rows with "backward" time the forward and backward pass, and
with --writes those are timed that write into their tensor.  The clock and the interleaving are
those of run.py.
"""

from __future__ import annotations

import argparse
import math
import sys
from statistics import geometric_mean
from typing import Any

from harness import OURS, THEIRS, Result, Row, measure
from sides import environment, libraries, set_threads

# Name: the statement.  `x`, `y` are vectors, `m` a matrix with rows of up to 1024, `i` an index
# along them, `b` a batch of images, `p` a positive vector.
FORWARD = {
    **{name: f"x {op} y" for name, op in {"add": "+", "mul": "*", "sub": "-", "div": "/"}.items()},
    "add number": "x + 0.5",
    "mul broadcast": "m * row",
    "pow 2": "x ** 2",
    "pow 3": "x ** 3",
    "pow of integers": "k ** 3",
    "bmm 16x16": "c @ c",
    "convolution 1x1": "F.conv2d(b, one)",
    "adaptive_max_pool3d": "F.adaptive_max_pool3d(v, 2)",
    "maximum": "t.maximum(x, y)",
    "where": "t.where(x > 0, x, y)",
    "clamp": "x.clamp(-0.5, 0.5)",
    "compare": "x > y",
    **{
        name: f"x.{name}()"
        for name in (
            "abs neg exp tanh sigmoid relu sin cos erf floor round sign reciprocal square isnan"
        ).split()
    },
    **{name: f"p.{name}()" for name in "log sqrt rsqrt log1p lgamma".split()},
    "gelu": "F.gelu(x)",
    "silu": "F.silu(x)",
    "softplus": "F.softplus(x)",
    "leaky_relu": "F.leaky_relu(x)",
    "dropout": "F.dropout(x, 0.3, True)",
    **{name: f"x.{name}()" for name in "sum mean max argmax std norm prod all".split()},
    "cumsum": "x.cumsum(0)",
    "cumprod of columns": "s.cumprod(0)",
    "sum of integers": "k.sum()",
    "count of a mask": "mask.sum()",
    "count_nonzero": "t.count_nonzero(x)",
    "nansum": "t.nansum(x)",
    "equal": "t.equal(x, x2)",
    "nonzero": "s.nonzero()",
    "isin": "t.isin(k, 3)",
    "histc": "t.histc(x, 100, -3, 3)",
    "repeat_interleave": "x.repeat_interleave(counts)",
    "median of columns": "s.median(0)",
    "mode of rows": "s.mode(1)",
    "topk of columns": "s.topk(1, 0)",
    "sum rows": "m.sum(-1)",
    "sum columns": "m.sum(0)",
    "mean rows": "m.mean(-1)",
    "var rows": "m.var(-1)",
    "max rows": "m.max(-1)",
    "logsumexp": "m.logsumexp(-1)",
    "softmax": "m.softmax(-1)",
    "log_softmax": "m.log_softmax(-1)",
    "softmax of columns": "s.softmax(0)",
    "log_softmax of columns": "s.log_softmax(0)",
    "max of columns": "s.max(0)",
    "layer_norm": "F.layer_norm(m, (n,))",
    "batch_norm": "F.batch_norm(b, None, None, training=True)",
    "max_pool2d": "F.max_pool2d(b, 2)",
    "avg_pool2d": "F.avg_pool2d(b, 2)",
    "cross_entropy": "F.cross_entropy(m, target)",
    "mse_loss": "F.mse_loss(x, y)",
    "embedding": "F.embedding(i, m)",
    "index_select": "m.index_select(0, i)",
    "index": "m[i]",
    "index of a vector": "x[order]",
    "gather": "m.gather(1, columns)",
    "boolean mask": "x[mask]",
    "sort": "x.sort()",
    "topk": "x.topk(few)",
    "cat": "t.cat([x, y])",
    "stack": "t.stack([x, y])",
    "transposed copy": "m.t().contiguous()",
    "clone": "x.clone()",
    "to float64": "x.double()",
    "rand": "t.rand(size)",
    "randn": "t.randn(size)",
    "randperm": "t.randperm(size)",
    "zeros": "t.zeros(size)",
    "ones": "t.ones(size)",
    "full": "t.full((size,), 0.5)",
    "empty": "t.empty(size)",
    "arange": "t.arange(size)",
    "linspace": "t.linspace(0, 1, size)",
    "eye": "t.eye(side)",
}
BACKWARD = {
    "mul": "(gx * gy).backward(x)",
    "tanh": "gx.tanh().backward(x)",
    "gelu": "F.gelu(gx).backward(x)",
    "sum": "gx.sum().backward()",
    "two summed": "(gx + gy).sum().backward()",
    "softmax": "gm.softmax(-1).backward(m)",
    "layer_norm": "F.layer_norm(gm, (n,)).backward(m)",
    "batch_norm": "F.batch_norm(gb, None, None, training=True).backward(b)",
    "max_pool2d": "F.max_pool2d(gb, 2).sum().backward()",
    "cross_entropy": "F.cross_entropy(gm, target).backward()",
    "embedding": "F.embedding(i, gm).sum().backward()",
    "cumsum": "gx.cumsum(0).backward(x)",
}
INPLACE = {
    "add_": "x.add_(y)",
    "mul_": "x.mul_(1.0)",
    "copy_": "x.copy_(y)",
    "zero_": "x.zero_()",
    "fill_": "x.fill_(0.5)",
    "slice assignment": "x[2:5] = 1.0",
}
_SAME = "abs neg exp2 tanh sigmoid relu sin log1p floor frac sign nan_to_num logical_not erf"
_NUMBERED = {
    "fmod": "0.7",
    "remainder": "0.7",
    "floor_divide": "0.7",
    "pow": "2",
    "clamp": "-0.5, 0.5",
    "leaky_relu": "0.1",
    "threshold": "0.1, 0.0",
    "round": "decimals=1",
    "masked_fill": "mask, 1.0",
}
_PAIRED = "add sub mul div fmod remainder floor_divide nextafter copysign atan2 hypot eq lt"
WRITES = {
    **{f"{name}_": f"w.{name}_()" for name in _SAME.split()},
    **{
        f"{name}_ number": f"{'F' if name in ('leaky_relu', 'threshold') else 'w'}.{name}_("
        f"{'w, ' if name in ('leaky_relu', 'threshold') else ''}{given})"
        for name, given in _NUMBERED.items()
    },
    **{f"{name}_ tensor": f"w.{name}_(y)" for name in _PAIRED.split()},
    "add_ with alpha": "w.add_(y, alpha=0.5)",
    "lerp_": "w.lerp_(y, 0.5)",
    "addcmul_": "w.addcmul_(y, y, value=1e-9)",
    "addcdiv_": "w.addcdiv_(y, p, value=1e-9)",
    "clamp_ tensors": "w.clamp_(y, p)",
    "tril_": "s.tril_()",
    "triu_": "s.triu_()",
    "cumsum_": "w.cumsum_(0)",
    "fill_diagonal_": "s.fill_diagonal_(1.0)",
    "masked_scatter_": "w.masked_scatter_(mask, y)",
    "index_fill_": "w.index_fill_(0, order, 1.0)",
    "index_copy_": "w.index_copy_(0, order, y)",
    "index_add_": "w.index_add_(0, order, y, alpha=1e-9)",
    "index_put_": "w.index_put_((order,), y)",
    "index_reduce_ amax": "w.index_reduce_(0, order, y, 'amax')",
    "put_": "w.put_(order, y)",
    "scatter_": "w.scatter_(0, order, y)",
    "scatter_add_": "w.scatter_add_(0, order, z)",
    **{
        f"scatter_reduce_ {kind}": f"w.scatter_reduce_(0, order, o, '{kind}')"
        for kind in ("sum", "prod", "mean", "amax", "amin")
    },
    "x[i] = y": "w[order] = y",
    "x[mask] = number": "w[mask] = 1.0",
    "x[mask] = y": "w[mask] = kept",
    "bernoulli_": "w.bernoulli_(0.5)",
    "uniform_": "w.uniform_()",
    "normal_": "w.normal_()",
}


def names_of(size: int) -> Any:
    """The setup of every row: the same tensors, made of the same numbers, for both libraries."""

    def setup(t: Any) -> dict[str, Any]:
        import importlib

        t.manual_seed(0)
        x, y = t.randn(size), t.randn(size)
        n = min(size, 1024)
        m = t.randn(max(1, size // n), n)
        channels = max(1, min(32, size // 64))
        side = max(2, math.isqrt(max(4, size // (8 * channels))))
        b = t.randn(8, channels, side, side)
        rows = m.shape[0]
        deep = max(2, round((size / 8) ** (1 / 3)))
        names = {
            "t": t,
            "F": importlib.import_module(f"{t.__name__}.nn.functional"),
            "size": size,
            "few": min(4, size),
            "n": n,
            "x": x,
            "y": y,
            "p": x.abs() + 0.1,
            "m": m,
            "b": b,
            "one": t.randn(channels, channels, 1, 1),
            "c": t.randn(max(1, size // 256), 16, 16),
            "v": t.randn(2, 4, deep, deep, deep),
            "k": t.randint(-9, 9, (size,)),
            "x2": x.clone(),
            "counts": t.arange(size) % 4,
            "side": max(1, math.isqrt(size)),
            "row": t.randn(n),
            "i": t.randint(0, rows, (rows,)),
            "columns": t.randint(0, n, (rows, n)),
            "target": t.randint(0, n, (rows,)),
            "mask": x > 0,
            "kept": x[x > 0],
            "w": x.clone(),
            "s": t.randn(max(1, math.isqrt(size)), max(1, math.isqrt(size))),
            "o": t.ones(size),
            "z": t.zeros(size),
            "order": t.randperm(size),
        }
        grads = {f"g{name}": names[name].clone().requires_grad_() for name in ("x", "y", "m", "b")}
        return names | grads

    return setup


def forget(names: dict[str, Any]) -> None:
    """Drop the gradients that the backward rows add up."""
    for name in ("gx", "gy", "gm", "gb"):
        names[name].grad = None


def rows(sizes: list[int], wanted: str, writes: bool = False) -> list[Row]:
    """One row per operation and size; of the operations, or of those that write."""
    statements = WRITES if writes else dict(FORWARD) | INPLACE
    if not writes:
        statements |= {f"{name} backward": statement for name, statement in BACKWARD.items()}
    return [
        Row(f"{name} {size}", statement, names_of(size), reset=forget)
        for name, statement in statements.items()
        for size in sizes
        if wanted in name
    ]


def table(results: dict[str, dict[int, Result]], sizes: list[int]) -> str:
    """Ratios by operation and size; microseconds of flambeau in brackets."""
    width = max(map(len, results))
    lines = [f"{'':{width}}" + "".join(f"{size:>20}" for size in sizes)]
    for name, by_size in results.items():
        cells = []
        for size in sizes:
            result = by_size[size]
            ratio, time = result.ratio(THEIRS), result.microseconds(OURS)
            error = next((side.error for side in result.sides.values() if side.error), None)
            cells.append(
                (error or "–")[:18] if error or not ratio else f"{ratio[0]:.2f} ({time:.1f})"
            )
        lines.append(f"{name:{width}}" + "".join(f"{cell:>20}" for cell in cells))
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--ops", default="", help="only operations whose name contains this")
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 10_000, 1_000_000])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--writes", action="store_true", help="operations that write")
    options = parser.parse_args(arguments)

    sides, _ = libraries([THEIRS])
    set_threads(sides, options.threads)
    rounds, batch = (5, 0.001) if options.quick else (21, 0.004)
    results: dict[str, dict[int, Result]] = {}
    for row in rows(options.sizes, options.ops, options.writes):
        print(f"{row.name} ...", file=sys.stderr, end="\033[K\r")
        name, _, size = row.name.rpartition(" ")
        result = measure(row, sides, options.threads, rounds, batch)
        results.setdefault(name, {})[int(size)] = result
    print(file=sys.stderr, end="\033[K")
    print(", ".join(f"{name} {value}" for name, value in environment(sides).items()))
    print("\nours / torch, and our microseconds\n")
    print(table(results, options.sizes))
    for size in options.sizes:
        ratios = {
            name: ratio[0]
            for name, by_size in results.items()
            if (ratio := by_size[size].ratio(THEIRS))
        }
        if ratios:
            print(f"\ngeometric mean at {size}: {geometric_mean(ratios.values()):.2f}; worst ten")
        for name in sorted(ratios, key=ratios.__getitem__, reverse=True)[:10]:
            print(f"  {name}: {ratios[name]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
