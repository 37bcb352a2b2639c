"""Rows that measure whole training steps: forward, backward and optimiser."""

from __future__ import annotations

import itertools
import math
from typing import Any

from harness import Row, Setup

BATCH, CLASSES = 64, 10
WIDTHS = (784, 512, 512, CLASSES)


def _step(library: Any, model: Any, inputs: Any, optimizer: Any) -> dict[str, Any]:
    targets = library.arange(BATCH) % CLASSES

    def step() -> None:
        optimizer.zero_grad()
        loss = library.nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()

    return {"step": step}


def mlp(fused: bool) -> Setup:
    """784-512-512-10 with Adam; `fused` asks torch for its fused optimiser."""

    def setup(library: Any) -> dict[str, Any]:
        library.manual_seed(0)
        nn = library.nn
        layers: list[Any] = []
        for size, width in itertools.pairwise(WIDTHS):
            layers += [nn.Linear(size, width), nn.ReLU()]
        model = nn.Sequential(*layers[:-1])
        options = {"fused": True} if fused and library.__name__ == "torch" else {}
        optimizer = library.optim.Adam(model.parameters(), lr=1e-3, **options)
        return _step(library, model, library.randn(BATCH, WIDTHS[0]), optimizer)

    return setup


def lenet(library: Any) -> dict[str, Any]:
    """LeNet-5 with max pooling on 28 × 28 images, with Adam."""
    library.manual_seed(0)
    nn = library.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, CLASSES),
    )
    optimizer = library.optim.Adam(model.parameters(), lr=1e-3)
    return _step(library, model, library.randn(BATCH, 1, 28, 28), optimizer)


def numpy_mlp(np: Any) -> dict[str, Any]:
    """The same step as `mlp` written out by hand, Adam included."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((BATCH, WIDTHS[0]), dtype=np.float32)
    targets = np.arange(BATCH) % CLASSES
    parameters = []
    for size, width in itertools.pairwise(WIDTHS):
        bound = 1 / math.sqrt(size)
        parameters.append(rng.uniform(-bound, bound, (size, width)).astype(np.float32))
        parameters.append(rng.uniform(-bound, bound, width).astype(np.float32))
    means = [np.zeros_like(p) for p in parameters]
    squares = [np.zeros_like(p) for p in parameters]
    count = 0

    def step() -> None:
        nonlocal count
        activations = [inputs]
        for k in range(0, len(parameters), 2):
            hidden = activations[-1] @ parameters[k] + parameters[k + 1]
            activations.append(np.maximum(hidden, 0) if k + 2 < len(parameters) else hidden)
        logits = activations.pop()
        grad = np.exp(logits - logits.max(1, keepdims=True))
        grad /= grad.sum(1, keepdims=True)
        grad[np.arange(BATCH), targets] -= 1
        grad /= BATCH
        gradients = []
        for k in range(len(parameters) - 2, -1, -2):
            activation = activations.pop()
            gradients += [grad.sum(0), activation.T @ grad]
            if k:
                grad = (grad @ parameters[k].T) * (activation > 0)
        count += 1
        scale = 1e-3 * math.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        for p, g, m, s in zip(parameters, reversed(gradients), means, squares, strict=True):
            m *= 0.9
            m += 0.1 * g
            s *= 0.999
            s += 0.001 * g * g
            p -= scale * m / (np.sqrt(s) + 1e-8)

    return {"step": step}


ROWS = [
    Row("MLP step, Adam", "step()", mlp(False), "step()", numpy_mlp, threads=(1, 2)),
    Row("MLP step, torch's fused Adam", "step()", mlp(True), threads=(1, 2)),
    Row("LeNet step, Adam", "step()", lenet, threads=(1, 2)),
]
