"""Times on an accelerator: kernels by events, training steps with what Python adds, beside torch.

    python benchmarks/run.py --device cuda [--quick] [--rows softmax] [--json]

The sides take turns.  A kernel's time is that between two events around many launches; a step's is
measured with the clock, from an idle device to an idle device.  Ratios are flambeau's time by
torch's: below 1 is faster.  Steps marked *graph* are flambeau's as one graph against torch's as
they are.  On the CPU, which has no events, all rows are measured with the clock.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import training
from harness import OURS, THEIRS

Call = Callable[[], Any]
ROUNDS = 9


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes:
        name: what the table and the filter call it.
        make: the call that is measured, given a library, a device and whether it shall be small.
        bound: what the ratio shall not exceed.
        step: whether it is measured with the clock, as a whole.
        graph: whether flambeau's is recorded in a graph.
        bytes: what a call reads and writes at least, if that bounds it.
    """

    name: str
    make: Callable[[Any, str, bool], Call]
    bound: float
    step: bool = False
    graph: bool = False
    bytes: int = 0


def no_device(device: str) -> str:
    """Why nothing can be measured on a type of device; empty if it can."""
    import flambeau as fb

    try:
        fb.ones(1, device=device)
    except RuntimeError as error:
        return str(error)
    return ""


def _softmax(t: Any, device: str, small: bool) -> Call:
    x = t.randn(64 if small else 8192, 1024, device=device)
    return lambda: t.softmax(x, 1)


def _layer_norm(t: Any, device: str, small: bool) -> Call:
    x = t.randn(64 if small else 8192, 1024, device=device)
    w, b = t.ones(1024, device=device), t.zeros(1024, device=device)
    return lambda: t.nn.functional.layer_norm(x, (1024,), w, b)


def _matmul(kind: str) -> Callable[[Any, str, bool], Call]:
    def make(t: Any, device: str, small: bool) -> Call:
        n = 64 if small else 4096
        x = t.randn(n, n, device=device).to(getattr(t, kind))
        return lambda: x @ x

    return make


def _convolution(t: Any, device: str, small: bool) -> Call:
    n, size = (1, 14) if small else (64, 56)
    x = t.randn(n, 64, size, size, device=device).half()
    w = t.randn(64, 64, 3, 3, device=device).half()
    x, w = (a.contiguous(memory_format=t.channels_last) for a in (x, w))
    return lambda: t.nn.functional.conv2d(x, w, padding=1)


def _attention(t: Any, device: str, small: bool) -> Call:
    shape = (1, 2, 64, 64) if small else (8, 12, 1024, 64)
    q, k, v = (t.randn(*shape, device=device).to(t.bfloat16) for _ in "qkv")
    return lambda: t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def _elementwise(function: Callable[[Any, Any, Any], Any]) -> Callable[[Any, str, bool], Call]:
    def make(t: Any, device: str, small: bool) -> Call:
        x, y = (t.randn(_ELEMENTS // (256 if small else 1), device=device) for _ in "xy")
        return lambda: function(t, x, y)

    return make


_ELEMENTS = 1 << 24


def _placed(library: Any, device: str, make: Callable[[Any], dict[str, Any]]) -> Call:
    """The step of a row of `training`, whose tensors are all made on a device."""
    before = library.get_default_device()
    library.set_default_device(device)
    try:
        return make(library)["step"]
    finally:
        library.set_default_device(before)


def _row(make: Callable[[Any], dict[str, Any]]) -> Callable[[Any, str, bool], Call]:
    return lambda t, device, small: _placed(t, device, make)


def _resnet50(t: Any, device: str, small: bool) -> Call:
    """ResNet-50, batch 64, half precision, the channels last, SGD with momentum."""
    nn = t.nn
    t.manual_seed(0)

    class Block(nn.Module):
        def __init__(self, channels: int, width: int, stride: int) -> None:
            super().__init__()
            self.branch = nn.Sequential(
                *(nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
                nn.Conv2d(width, width, 3, stride, 1, bias=False),
                *(nn.BatchNorm2d(width), nn.ReLU()),
                *(nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)),
            )
            self.shortcut = nn.Identity()
            if channels != 4 * width:
                project = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
                self.shortcut = nn.Sequential(project, nn.BatchNorm2d(4 * width))

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.branch(x) + self.shortcut(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    channels = 64
    for stage, count in enumerate((1, 1) if small else (3, 4, 6, 3)):
        width = 64 << stage
        for i in range(count):
            layers.append(Block(channels, width, 2 if stage and not i else 1))
            channels = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)]
    model = nn.Sequential(*layers).to(device=device, dtype=t.float16)
    model = model.to(memory_format=t.channels_last)
    optimizer = t.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    n, size = (2, 32) if small else (64, 224)
    x = t.randn(n, 3, size, size, device=device).half()
    x = x.contiguous(memory_format=t.channels_last)
    y = t.randint(0, 1000, (n,), device=device)
    return _step(t, model, x, y, optimizer)


def _gpt(t: Any, device: str, small: bool) -> Call:
    """Twelve blocks of width 768 on 8 × 1024 words, bfloat16, AdamW."""
    nn = t.nn
    t.manual_seed(0)
    width, heads, depth, batch, length = (64, 2, 2, 1, 32) if small else (768, 12, 12, 8, 1024)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.three, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            parts = self.three(self.first(x)).chunk(3, -1)
            q, k, v = (p.unflatten(-1, (heads, -1)).transpose(1, 2) for p in parts)
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).flatten(2))
            hidden = nn.functional.gelu(self.wide(self.second(x)), approximate="tanh")
            return x + self.narrow(hidden)

    layers = [*(Block() for _ in range(depth)), nn.LayerNorm(width), nn.Flatten(0, 1)]
    model = nn.Sequential(*layers).to(device=device, dtype=t.bfloat16)
    optimizer = t.optim.AdamW(model.parameters(), lr=1e-4)
    x = t.randn(batch, length, width, device=device).to(t.bfloat16)
    y = t.randint(0, width, (batch * length,), device=device)
    return _step(t, model, x, y, optimizer)


def _step(t: Any, model: Any, x: Any, y: Any, optimizer: Any) -> Call:
    def step() -> None:
        optimizer.zero_grad()
        t.nn.functional.cross_entropy(model(x).float(), y).backward()
        optimizer.step()

    return step


_SMALL = [
    ("MLP", training.mlp(True)),
    ("LeNet", training.lenet),
    ("LSTM", training.lstm(True)),
]
CASES = [
    Case("softmax 8192 × 1024", _softmax, 1.1),
    Case("layer norm 8192 × 1024", _layer_norm, 1.1),
    Case("matmul 4096, float32", _matmul("float32"), 1.1),
    Case("matmul 4096, bfloat16", _matmul("bfloat16"), 1.1),
    Case("convolution 3 × 3, float16, channels last", _convolution, 1.1),
    Case("attention 1024, bfloat16, causal", _attention, 1.1),
    Case("copy 2²⁴", _elementwise(lambda t, x, y: x.clone()), 1.1, bytes=8 * _ELEMENTS),
    Case("add 2²⁴", _elementwise(lambda t, x, y: x + y), 1.1, bytes=12 * _ELEMENTS),
    Case(
        "gelu 2²⁴", _elementwise(lambda t, x, y: t.nn.functional.gelu(x)), 1.1, bytes=8 * _ELEMENTS
    ),
    *(Case(f"{name} step", _row(make), 3.0, step=True) for name, make in _SMALL),
    *(Case(f"{name} step, graph", _row(make), 0.5, step=True, graph=True) for name, make in _SMALL),
    Case("ResNet-50 step, float16, channels last", _resnet50, 1.15, step=True),
    Case("GPT step, 12 blocks, bfloat16", _gpt, 1.15, step=True),
]


def _recorded(library: Any, device: str, step: Call) -> Call:
    """A step as a graph; its optimiser's state and plans are there after some steps."""
    namespace = library.accelerator.namespace(device.partition(":")[0])
    side = namespace.Stream()
    side.wait_stream(namespace.current_stream())
    with namespace.stream(side):
        for _ in range(3):
            step()
    namespace.synchronize()
    graph = library.cuda.CUDAGraph()
    with library.cuda.graph(graph):
        step()
    return graph.replay


def measured(case: Case, sides: dict[str, Any], device: str, quick: bool) -> dict[str, Any]:
    """Microseconds of a call by side, or the reason why there are none."""
    calls: dict[str, tuple[Any, Call]] = {}
    found: dict[str, Any] = {}
    for name, library in sides.items():
        try:
            call = case.make(library, device, quick)
            if case.graph and name == OURS:
                call = _recorded(library, device, call)
            calls[name] = library, call
            _once(library, device, call, 2, case.step)
        except Exception as error:
            calls.pop(name, None)
            found[name] = f"{type(error).__name__}: {error}".split("\n")[0]
    runs = {
        name: max(1, int((0.005 if quick else 0.1) / _once(*parts[:1], device, parts[1], 1, True)))
        for name, parts in calls.items()
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(3 if quick else ROUNDS):
        for name, (library, call) in calls.items():
            times[name].append(_once(library, device, call, runs[name], case.step))
    return found | {name: 1e6 * statistics.median(some) for name, some in times.items()}


def _once(library: Any, device: str, call: Call, runs: int, by_clock: bool) -> float:
    """Seconds of one call in a row of `runs`."""
    kind = device.partition(":")[0]
    if kind == "cpu":
        events = wait = None
    else:
        events = getattr(library, kind)
        wait = events.synchronize
        wait()
    if by_clock or events is None:
        start = time.perf_counter()
        for _ in range(runs):
            call()
        if wait is not None:
            wait()
        return (time.perf_counter() - start) / runs
    first, last = (events.Event(enable_timing=True) for _ in "fl")
    first.record()
    for _ in range(runs):
        call()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1e3 / runs


def libraries(device: str) -> tuple[dict[str, Any], str]:
    """The sides that have the device, and why torch has not."""
    import flambeau

    sides: dict[str, Any] = {OURS: flambeau}
    try:
        import torch

        torch.ones(1, device=device)
    except Exception as error:  # not installed, without CUDA, without a driver, ...
        return sides, f"{type(error).__name__}: {error}".split("\n")[0]
    return {**sides, THEIRS: torch}, ""


def main(options: argparse.Namespace) -> int:
    """Print a line per row; 1 where a bound is missed and that is asked, 2 without a device."""
    if why := no_device(options.device):
        print(f"nothing is measured on {options.device!r}: {why}", file=sys.stderr)
        return 2
    sides, missing = libraries(options.device)
    if missing:
        print(f"without torch: {missing}", file=sys.stderr)
    missed, lines = 0, []
    for case in CASES:
        if options.rows not in case.name or (case.graph and options.device == "cpu"):
            continue
        found = measured(case, sides, options.device, options.quick)
        ours, theirs = found.get(OURS), found.get(THEIRS)
        line: dict[str, Any] = {"name": case.name, "bound": case.bound, **found}
        if isinstance(ours, float) and isinstance(theirs, float):
            line["ratio"] = round(ours / theirs, 3)
            missed += line["ratio"] > case.bound
        if case.bytes and isinstance(ours, float) and not options.quick:
            line["GB/s"] = round(case.bytes / ours / 1e3)
        lines.append(line)
        if not options.json:
            texts = [
                f"{name} {value:.1f} µs" if isinstance(value, float) else f"{name}: {value}"
                for name, value in found.items()
            ]
            extra = [f"{k} {line[k]}" for k in ("ratio", "GB/s") if k in line]
            print(f"{case.name:44} " + "  ".join([*texts, *extra, f"(bound {case.bound})"]))
    if options.json:
        print(json.dumps(lines, indent=1, ensure_ascii=False))
    return 1 if missed and options.strict else 0
