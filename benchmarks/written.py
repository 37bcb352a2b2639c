"""Rows of models as users write them, from plain functions of tensors, and of compiled steps."""

from __future__ import annotations

import math
from typing import Any

import training
from harness import Row, Setup
from others import CLASSES

WORDS = 512  # of the models that read words


def gpt(width: int, layers: int, batch: int, length: int) -> Setup:
    """A decoder as GPT-2 is written: (in, out) weights by addmm, GELU by tanh and pow, masks.

    Source: Radford et al., Language Models are Unsupervised Multitask Learners, 2019.
    """

    def setup(library: Any) -> dict[str, Any]:
        library.manual_seed(0)
        nn, heads = library.nn, 4

        class Conv1D(nn.Module):
            def __init__(self, outputs: int, inputs: int) -> None:
                super().__init__()
                self.weight = nn.Parameter(library.randn(inputs, outputs) * 0.02)
                self.bias = nn.Parameter(library.zeros(outputs))

            def forward(self, x: Any) -> Any:
                shape = (*x.size()[:-1], self.bias.size(0))
                return library.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(shape)

        def gelu(x: Any) -> Any:
            inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * library.pow(x, 3.0))
            return 0.5 * x * (1.0 + library.tanh(inner))

        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
                self.attend, self.project = Conv1D(3 * width, width), Conv1D(width, width)
                self.widen, self.narrow = Conv1D(4 * width, width), Conv1D(width, 4 * width)
                mask = library.tril(library.ones(length, length)).view(1, 1, length, length)
                self.register_buffer("mask", mask.bool())

            def split(self, x: Any) -> Any:
                return x.view(*x.size()[:-1], heads, -1).permute(0, 2, 1, 3)

            def forward(self, x: Any) -> Any:
                query, key, value = self.attend(self.first(x)).split(width, dim=2)
                query, key, value = self.split(query), self.split(key), self.split(value)
                scores = library.matmul(query, key.transpose(-1, -2)) / math.sqrt(value.size(-1))
                lowest = library.finfo(scores.dtype).min
                scores = library.where(self.mask, scores, library.full([], lowest))
                mixed = library.matmul(scores.softmax(-1), value).permute(0, 2, 1, 3).contiguous()
                x = x + self.project(mixed.view(*mixed.size()[:-2], width))
                return x + self.narrow(gelu(self.widen(self.second(x))))

        class Model(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(length, width)
                self.blocks = nn.ModuleList([Block() for _ in range(layers)])
                self.last = nn.LayerNorm(width)

            def forward(self, words: Any) -> Any:
                x = self.words(words) + self.places(library.arange(words.size(1)))
                for block in self.blocks:
                    x = block(x)
                return (self.last(x) @ self.words.weight.t()).view(-1, WORDS)

        words = library.randint(0, WORDS, (batch, length + 1))
        model = Model()
        optimizer = library.optim.Adam(model.parameters(), lr=1e-3)
        targets = words[:, 1:].reshape(-1)
        return training._step_towards(library, model, words[:, :-1], targets, optimizer)

    return setup


def lstm_loop(library: Any) -> dict[str, Any]:
    """A cell written out, over 20 words of width 32 in 8 sentences."""
    library.manual_seed(0)
    nn, width = library.nn, 32

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inputs, self.states = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)
            self.output = nn.Linear(width, CLASSES)

        def forward(self, x: Any) -> Any:
            h = c = library.zeros(x.size(1), width)
            for word in x:
                i, f, g, o = (self.inputs(word) + self.states(h)).chunk(4, 1)
                c = library.sigmoid(f) * c + library.sigmoid(i) * library.tanh(g)
                h = library.sigmoid(o) * library.tanh(c)
            return self.output(h)

    model, inputs = Model(), library.randn(20, 8, width)
    optimizer = library.optim.Adam(model.parameters(), lr=1e-3)
    targets = library.arange(8) % CLASSES
    return training._step_towards(library, model, inputs, targets, optimizer)


def graph_net(library: Any) -> dict[str, Any]:
    """Two rounds of messages along 2,000 edges between 500 nodes, by gather and index_add."""
    library.manual_seed(0)
    nn, nodes, width = library.nn, 500, 32
    sources, targets = (library.randint(0, nodes, (2000,)) for _ in range(2))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.messages = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
            self.output = nn.Linear(width, CLASSES)

        def forward(self, x: Any) -> Any:
            for message in self.messages:
                sent = library.relu(message(x[sources]))
                x = x + library.zeros_like(x).index_add(0, targets, sent)
            return self.output(x)

    model, inputs = Model(), library.randn(nodes, width)
    optimizer = library.optim.Adam(model.parameters(), lr=1e-3)
    classes = library.arange(nodes) % CLASSES
    return training._step_towards(library, model, inputs, classes, optimizer)


def gradient_penalty(library: Any) -> dict[str, Any]:
    """A critic whose gradient is to have norm 1: a backward pass through a backward pass.

    Source: Gulrajani et al., Improved Training of Wasserstein GANs, 2017.
    """
    library.manual_seed(0)
    nn = library.nn
    critic = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
    critic.append(nn.Linear(64, 1))
    optimizer = library.optim.Adam(critic.parameters(), lr=1e-3)
    inputs = library.randn(64, 64)

    def step() -> None:
        optimizer.zero_grad()
        x = inputs.detach().requires_grad_()
        scores = critic(x)
        (slope,) = library.autograd.grad(scores.sum(), x, create_graph=True)
        loss = scores.mean() + 10 * ((slope.norm(2, dim=1) - 1) ** 2).mean()
        loss.backward()
        optimizer.step()

    return {"step": step}


def digits(library: Any) -> dict[str, Any]:
    """Two convolutions with batch norm on 8 × 8 images."""
    library.manual_seed(0)
    nn = library.nn
    layers: list[Any] = []
    for before, after in ((1, 16), (16, 32)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, CLASSES)]
    model = nn.Sequential(*layers)
    optimizer = library.optim.Adam(model.parameters(), lr=1e-3)
    targets = library.arange(32) % CLASSES
    inputs = library.randn(32, 1, 8, 8)
    return training._step_towards(library, model, inputs, targets, optimizer)


def small_lstm(library: Any) -> dict[str, Any]:
    """A language model of one layer of 64 over 100 words, 8 sentences of 20."""
    library.manual_seed(0)
    nn, words = library.nn, 100

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.lstm = nn.Embedding(words, 32), nn.LSTM(32, 64)
            self.output = nn.Linear(64, words)

        def forward(self, x: Any) -> Any:
            return self.output(self.lstm(self.embedding(x))[0]).view(-1, words)

    model, inputs = Model(), library.randint(0, words, (20, 8))
    optimizer = library.optim.Adam(model.parameters(), lr=3e-3)
    targets = library.randint(0, words, (160,))
    return training._step_towards(library, model, inputs, targets, optimizer)


def small_encoder(library: Any) -> dict[str, Any]:
    """Two layers of width 32 with dropout, over 12 words of 8 sentences."""
    library.manual_seed(0)
    nn, width = library.nn, 32
    layers = [nn.TransformerEncoderLayer(width, 4, 64, activation="gelu") for _ in range(2)]
    model = nn.Sequential(*layers, nn.Linear(width, CLASSES), nn.Flatten(0, 1))
    optimizer = library.optim.Adam(model.parameters(), lr=3e-3)
    inputs, targets = library.randn(12, 8, width), library.randint(0, CLASSES, (96,))
    return training._step_towards(library, model, inputs, targets, optimizer)


def compiled(setup: Setup) -> Setup:
    """Our step as a plan, against torch's as it is."""

    def made(library: Any) -> dict[str, Any]:
        names = setup(library)
        if library.__name__ == "flambeau":
            names["step"] = step = library.compile(names["step"])
            for _ in range(3):
                step()
            if not step.explain().replays:
                raise RuntimeError(str(step.explain()))
        return names

    return made


SMALL, LARGE = gpt(64, 2, 4, 32), gpt(192, 4, 8, 64)
WRITTEN: list[tuple[str, Setup]] = [
    ("GPT 64x2", SMALL),
    ("GPT 192x4", LARGE),
    ("LSTM loop", lstm_loop),
    ("graph net", graph_net),
    ("gradient penalty", gradient_penalty),
]
LIBRARY: list[tuple[str, Setup]] = [
    ("digits", digits),
    ("LSTM 64", small_lstm),
    ("encoder 32", small_encoder),
    ("LSTM", training.lstm(False)),
    ("Transformer", training.transformer(False)),
    ("MLP", training.mlp(False)),
    ("LeNet", training.lenet),
    ("ResNet-18", training.resnet18(False)),
]
TENTHS = {"LSTM", "Transformer", "ResNet-18", "GPT 192x4"}
"""Models of which one step is a round; of the others a round is some, as in all rows."""


def _row(name: str, kind: str, make: Setup) -> Row:
    rounds = 9 if name in TENTHS else None
    return Row(f"{name} {kind}", "step()", make, threads=(1, 2), rounds=rounds)


ROWS = [
    *(_row(name, "as written", make) for name, make in WRITTEN),
    *(_row(name, "step, compiled", compiled(make)) for name, make in (*LIBRARY, *WRITTEN)),
]
