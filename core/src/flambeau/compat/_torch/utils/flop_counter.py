"""Counting the multiplications and additions of products, convolutions and attention."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from flambeau.autograd import _recorder
from flambeau.compat._torch.utils.module_tracker import ModuleTracker
from flambeau.ops import OPS

__all__ = ["FlopCounterMode"]


def _size(array: Any) -> int:
    return math.prod(array.shape)


def _product(first: Any, second: Any) -> int:
    inner = first.shape[-1]
    rows = first.shape[-2] if len(first.shape) > 1 else 1
    columns = second.shape[-1] if len(second.shape) > 1 else 1
    batch = max(math.prod(first.shape[:-2]), math.prod(second.shape[:-2]))
    return 2 * batch * rows * inner * columns


def _added_product(base: object, first: object, second: object, *rest: object) -> int:
    return _product(first, second)


def _linear(x: object, weight: Any, *rest: object) -> int:
    return 2 * _size(x) * weight.shape[0]


def _convolution(
    x: Any,
    weight: Any,
    bias: object,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> int:
    sizes = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    places = math.prod((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes)
    return 2 * x.shape[0] * places * _size(weight)


def _convolution_input(grad: object, weight: Any, *rest: object) -> int:
    return 2 * _size(grad) * math.prod(weight.shape[1:])


def _convolution_weight(grad: object, x: object, weight_shape: Sequence[int], *rest: object) -> int:
    return 2 * _size(grad) * math.prod(weight_shape[1:])


def _attention(q: Any, k: Any, v: Any, *rest: object) -> int:
    return 2 * math.prod(q.shape[:-1]) * k.shape[-2] * (q.shape[-1] + v.shape[-1])


def _attention_backward(
    grad: object, total: object, q: Any, k: Any, v: object, *rest: object
) -> int:
    # The scores again, and two products for each of the two of forward.
    return 2 * _attention(q, k, v) + 2 * math.prod(q.shape[:-1]) * k.shape[-2] * q.shape[-1]


def _recurrence(name: str, factor: int) -> Callable[..., int]:
    params = OPS[name].params
    rows, weight = params.index("input" if factor == 1 else "grad_output"), params.index("weight")

    def count(*args: Any) -> int:
        return 2 * factor * math.prod(args[rows].shape[:-1]) * _size(args[weight])

    return count


_COUNTS: dict[str, Callable[..., int]] = {
    "addmm": _added_product,
    "attention": _attention,
    "conv2d": _convolution,
    "conv2d_input_grad": _convolution_input,
    "conv2d_weight_grad": _convolution_weight,
    "conv3d": _convolution,
    "conv3d_input_grad": _convolution_input,
    "conv3d_weight_grad": _convolution_weight,
    "fused_attention": _attention,
    "fused_attention_backward": _attention_backward,
    "linear": _linear,
    "linear_activation": _linear,
    "matmul": _product,
    **{f"{kind}_sequence": _recurrence(f"{kind}_sequence", 1) for kind in ("lstm", "gru", "rnn")},
    **{
        f"{kind}_sequence_backward": _recurrence(f"{kind}_sequence_backward", 2)
        for kind in ("lstm", "gru", "rnn")
    },
}


class _Open(threading.local):
    """How many counted kernels of this thread are running: what is in one is counted with it."""

    count = 0


class FlopCounterMode:
    """A block that counts floating-point operations, by module and op.

    A multiplication and its addition are two.  Counted are products of matrices, convolutions,
    attention and recurrent layers, forward and backward, under the names of flambeau's ops; other
    ops are not.

    Args:
        mods: ignored; all modules are seen.
        depth: how deep modules may lie that the table shows.
        display: whether to print the table at the end.
        custom_mapping: functions that count other ops: from the name of an op to a function of the
            shapes of its arguments.

    >>> import flambeau as fb
    >>> from flambeau.compat import torch_alias
    >>> with torch_alias():
    ...     from torch.utils.flop_counter import FlopCounterMode
    ...     with FlopCounterMode(display=False) as counter:
    ...         y = fb.nn.Linear(3, 4)(fb.ones(2, 3))
    >>> counter.get_total_flops()
    48
    """

    def __init__(
        self,
        mods: object = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[str, Callable[..., int]] | None = None,
    ) -> None:
        self.depth = depth
        self.display = display
        self.flop_counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.mod_tracker = ModuleTracker()
        self._custom = custom_mapping or {}
        self._open = _Open()

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        _recorder.listen(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _recorder.ignore(self)
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table())

    def begin(
        self, name: str, scope: int, sequence: int, args: tuple[Any, ...], be: object
    ) -> bool:
        """Count a kernel; called by the recorder."""
        if scope != _recorder.FORWARD or (name not in _COUNTS and name not in self._custom):
            return False
        if self._open.count == 0:
            if name in self._custom:
                found = self._custom[name](*[getattr(a, "shape", a) for a in args])
            else:
                found = _COUNTS[name](*args)
            for parent in self.mod_tracker.parents:
                self.flop_counts[parent][name] += found
        self._open.count += 1
        return True

    def end(self, token: bool) -> None:
        """Note that a kernel has ended; called by the recorder."""
        self._open.count -= token

    def get_total_flops(self) -> int:
        """How many operations were counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """The operations by module, and in each by op."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The operations by module and op, as text."""
        deepest = depth or self.depth or 999
        total = self.get_total_flops()
        lines = [f"{'Module':40} {'FLOP':>16} {'% Total':>8}"]
        for module in sorted(self.flop_counts, key=lambda name: (name != "Global", name)):
            level = module.count(".") + (module != "Global")
            if level > deepest:
                continue
            counts = self.flop_counts[module]
            rows = [(module, sum(counts.values()))]
            rows += [(f" - {op}", count) for op, count in counts.items()]
            for text, count in rows:
                share = count / total if total else 0.0
                lines.append(f"{'  ' * level + text:40} {count:16,} {share:8.2%}")
        return "\n".join(lines)
