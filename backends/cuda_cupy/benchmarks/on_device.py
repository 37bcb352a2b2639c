"""Time on a device: kernels alone, and training steps with what Python adds; PyTorch beside it.

::

    python backends/cuda_cupy/benchmarks/on_device.py [--device cuda] [--seconds 0.5] [--rows NAME]

Each figure is the median of rounds in which both sides take turns; a round ends when the device is
idle.  Ratios are flambeau's time by PyTorch's: below 1 is faster.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import flambeau as fb

Row = Callable[[Any, str], Callable[[], Any]]


def softmax(t: Any, device: str) -> Callable[[], Any]:
    """Rows of 1024."""
    x = t.randn(4096, 1024, device=device)
    return lambda: t.softmax(x, 1)


def layer_norm(t: Any, device: str) -> Callable[[], Any]:
    """Rows of 1024."""
    x = t.randn(4096, 1024, device=device)
    return lambda: t.nn.functional.layer_norm(x, (1024,))


def add(t: Any, device: str) -> Callable[[], Any]:
    """Four million elements."""
    x, y = t.randn(1 << 22, device=device), t.randn(1 << 22, device=device)
    return lambda: x + y


def gelu(t: Any, device: str) -> Callable[[], Any]:
    """Four million elements."""
    x = t.randn(1 << 22, device=device)
    return lambda: t.nn.functional.gelu(x)


def matmul(t: Any, device: str) -> Callable[[], Any]:
    """Matrices of 1024 by 1024."""
    x = t.randn(1024, 1024, device=device)
    return lambda: x @ x


def convolution(t: Any, device: str) -> Callable[[], Any]:
    """A layer of 3 by 3 windows."""
    x, w = t.randn(16, 32, 56, 56, device=device), t.randn(64, 32, 3, 3, device=device)
    return lambda: t.nn.functional.conv2d(x, w, padding=1)


def perceptron_step(t: Any, device: str) -> Callable[[], Any]:
    """A training step of a small network, batch 64."""
    nn = t.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
    optimizer = t.optim.AdamW(model.parameters())
    x, y = t.randn(64, 784, device=device), t.randint(0, 10, (64,), device=device)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


ROWS: dict[str, Row] = {
    row.__name__: row
    for row in (add, gelu, softmax, layer_norm, matmul, convolution, perceptron_step)
}


def measured(
    sides: dict[str, Callable[[], Any]], wait: dict[str, Callable[[], Any]], seconds: float
):
    """Median seconds of one call of each side, in rounds by turns."""
    counts, times = {}, {name: [] for name in sides}
    for name, call in sides.items():
        call()
        wait[name]()
        start = time.perf_counter()
        call()
        wait[name]()
        counts[name] = max(1, int(seconds / 10 / (time.perf_counter() - start)))
    for _ in range(9):
        for name, call in sides.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                call()
            wait[name]()
            times[name].append((time.perf_counter() - start) / counts[name])
    return {name: statistics.median(found) for name, found in times.items()}


def main() -> None:
    """Print a line per row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=0.5, help="about so long per row and side")
    parser.add_argument("--rows", default="", help="only rows whose name contains this")
    options = parser.parse_args()
    fb.ones(1, device=options.device)  # or the reason why not
    modules: dict[str, Any] = {"flambeau": fb}
    try:
        import torch

        torch.ones(1, device=options.device)
        modules["torch"] = torch
    except (ImportError, RuntimeError, AssertionError) as error:
        print(f"without PyTorch: {error}")
    cpu = options.device == "cpu"
    wait = {name: (lambda: None) if cpu else t.cuda.synchronize for name, t in modules.items()}
    for name, row in ROWS.items():
        if options.rows not in name:
            continue
        sides = {side: row(t, options.device) for side, t in modules.items()}
        found = measured(sides, wait, options.seconds)
        text = "  ".join(f"{side} {1e6 * value:10.1f} µs" for side, value in found.items())
        ratio = f"  ratio {found['flambeau'] / found['torch']:.2f}" if "torch" in found else ""
        print(f"{name:16} {text}{ratio}")


if __name__ == "__main__":
    main()
