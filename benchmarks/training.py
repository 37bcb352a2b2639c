"""Rows that measure whole training steps: forward, backward and optimiser."""

from __future__ import annotations

import itertools
from typing import Any

import others
from harness import Row, Setup
from others import BATCH, CLASSES, WIDTHS

WORDS, WIDTH = 1000, 128  # of the models that read words


def _step(library: Any, model: Any, inputs: Any, optimizer: Any) -> dict[str, Any]:
    return _step_towards(library, model, inputs, library.arange(BATCH) % CLASSES, optimizer)


def _step_towards(
    library: Any, model: Any, inputs: Any, targets: Any, optimizer: Any
) -> dict[str, Any]:
    def step() -> None:
        optimizer.zero_grad()
        loss = library.nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()

    return {"step": step}


def _adam(library: Any, model: Any, fused: bool) -> Any:
    """Adam as each library does it by itself, or torch's fused one against ours."""
    options = {"fused": True} if fused and library.__name__ == "torch" else {}
    return library.optim.Adam(model.parameters(), lr=1e-3, **options)


def mlp(fused: bool) -> Setup:
    """784-512-512-10 with Adam; `fused` asks torch for its fused optimiser."""

    def setup(library: Any) -> dict[str, Any]:
        library.manual_seed(0)
        nn = library.nn
        layers: list[Any] = []
        for size, width in itertools.pairwise(WIDTHS):
            layers += [nn.Linear(size, width), nn.ReLU()]
        model = nn.Sequential(*layers[:-1])
        optimizer = _adam(library, model, fused)
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


def resnet18(fused: bool) -> Setup:
    """ResNet-18 on 32 × 32 colour images, the first layers as the article has them.

    Source: He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition, 2016.
    """

    def setup(library: Any) -> dict[str, Any]:
        library.manual_seed(0)
        nn = library.nn

        class Block(nn.Module):
            def __init__(self, channels: int, width: int, stride: int) -> None:
                super().__init__()
                self.branch = nn.Sequential(
                    nn.Conv2d(channels, width, 3, stride, 1, bias=False),
                    nn.BatchNorm2d(width),
                    nn.ReLU(),
                    nn.Conv2d(width, width, 3, 1, 1, bias=False),
                    nn.BatchNorm2d(width),
                )
                self.shortcut = nn.Identity()
                if stride != 1:
                    project = nn.Conv2d(channels, width, 1, stride, bias=False)
                    self.shortcut = nn.Sequential(project, nn.BatchNorm2d(width))

            def forward(self, images: Any) -> Any:
                return nn.functional.relu(self.branch(images) + self.shortcut(images))

        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
        layers.append(nn.MaxPool2d(3, 2, 1))
        for channels, width in ((64, 64), (64, 128), (128, 256), (256, 512)):
            layers.append(Block(channels, width, 1 if channels == width else 2))
            layers.append(Block(width, width, 1))
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES)]
        model = nn.Sequential(*layers)
        inputs = library.randn(BATCH, 3, 32, 32)
        return _step(library, model, inputs, _adam(library, model, fused))

    return setup


def lstm(fused: bool) -> Setup:
    """A language model: two layers of 256, 35 words, 20 sentences, a vocabulary of 1,000."""

    def setup(library: Any) -> dict[str, Any]:
        library.manual_seed(0)
        nn = library.nn

        class Model(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.embedding = nn.Embedding(WORDS, WIDTH)
                self.lstm = nn.LSTM(WIDTH, 256, 2)
                self.output = nn.Linear(256, WORDS)

            def forward(self, words: Any) -> Any:
                features, _ = self.lstm(self.embedding(words))
                return self.output(features).flatten(0, 1)

        model, words = Model(), library.randint(0, WORDS, (36, 20))
        optimizer = _adam(library, model, fused)
        return _step_towards(library, model, words[:-1], words[1:].flatten(), optimizer)

    return setup


def transformer(fused: bool) -> Setup:
    """An encoder of four layers of width 128 that guesses at 64 words of 16 sentences."""

    def setup(library: Any) -> dict[str, Any]:
        library.manual_seed(0)
        nn = library.nn
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True)
        model = nn.Sequential(
            nn.Embedding(WORDS, WIDTH),
            nn.TransformerEncoder(layer, 4),
            nn.Linear(WIDTH, WORDS),
            nn.Flatten(0, 1),
        )
        words = library.randint(0, WORDS, (16, 65))
        optimizer = _adam(library, model, fused)
        return _step_towards(library, model, words[:, :-1], words[:, 1:].flatten(), optimizer)

    return setup


ROWS = [
    Row("MLP step, Adam", "step()", mlp(False), others.MLP, threads=(1, 2)),
    Row("MLP step, torch's fused Adam", "step()", mlp(True), threads=(1, 2)),
    Row("LeNet step, Adam", "step()", lenet, threads=(1, 2)),
    *(
        Row(f"{name} step, {adam}", "step()", make(fused), threads=(1, 2), rounds=9)
        for name, make in (("ResNet-18", resnet18), ("LSTM", lstm), ("Transformer", transformer))
        for adam, fused in (("Adam", False), ("torch's fused Adam", True))
    ),
]
