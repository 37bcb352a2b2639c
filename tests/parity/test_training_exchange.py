"""A training begun with one library goes on with the other, through a checkpoint."""

from __future__ import annotations

import io
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

STEPS = 3


def resnet(lib: Any) -> Any:
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self, inner: int, outer: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outer)
            self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outer)
            self.downsample = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
            )

        def forward(self, x: Any) -> Any:
            out = nn.functional.relu(self.bn1(self.conv1(x)))
            return nn.functional.relu(self.bn2(self.conv2(out)) + self.downsample(x))

    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3))
    return nn.Sequential(Block(2, 4, 1), nn.MaxPool2d(2), Block(4, 6, 2), *head)


class Shell:
    """What makes the call of a model and its targets one thing."""

    def __init__(self, lib: Any, module: Any, shape: tuple[int, ...], call: Any) -> None:
        self.module = module.double()
        count = lib.Size(shape).numel()
        self.x = lib.arange(count, dtype=lib.float64).mul(1.7).sin().reshape(shape)
        self.call = call

    def loss(self) -> Any:
        return self.call(self.module, self.x)


def transformer(lib: Any) -> Shell:
    module = lib.nn.Transformer(4, 2, 1, 1, 6, 0.0, batch_first=True)
    mask = lib.nn.Transformer.generate_square_subsequent_mask(5, dtype=lib.float64)
    return Shell(
        lib, module, (2, 5, 4), lambda m, x: m(x, x.flip(0), tgt_mask=mask).sub(x).pow(2).mean()
    )


def lstm(lib: Any) -> Shell:
    module = lib.nn.LSTM(3, 3, 2, batch_first=True, bidirectional=True)
    return Shell(lib, module, (2, 5, 3), lambda m, x: m(x)[0].sub(x.repeat(1, 1, 2)).pow(2).mean())


def images(lib: Any) -> Shell:
    return Shell(
        lib,
        resnet(lib),
        (4, 2, 8, 8),
        lambda m, x: lib.nn.functional.cross_entropy(m(x), lib.tensor([0, 1, 2, 1])),
    )


MODELS = {"Transformer": transformer, "LSTM": lstm, "ResNet": images}
OPTIMIZERS = {
    "Adam": lambda lib, p: lib.optim.Adam(p, lr=0.01, weight_decay=0.01, amsgrad=True),
    "SGD": lambda lib, p: lib.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "LBFGS": lambda lib, p: lib.optim.LBFGS(p, lr=0.1, max_iter=3, history_size=4),
}


def train(shell: Shell, optimizer: Any, steps: int) -> list[float]:
    losses: list[float] = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = shell.loss()
        loss.backward()
        losses.append(float(loss.detach()))
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    return losses


def begun(lib: Any, model: str, optimizer: str) -> tuple[Shell, Any]:
    lib.manual_seed(4)
    shell = MODELS[model](lib)
    return shell, OPTIMIZERS[optimizer](lib, list(shell.module.parameters()))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("first", "second"), [(fb, torch), (torch, fb)], ids=["to PyTorch", "from PyTorch"]
)
def test_training_goes_on_in_the_other_library(
    first: Any, second: Any, model: str, optimizer: str
) -> None:
    whole = train(*begun(first, model, optimizer), 2 * STEPS)
    shell, method = begun(first, model, optimizer)
    losses = train(shell, method, STEPS)
    file = io.BytesIO()
    first.save({"model": shell.module.state_dict(), "optimizer": method.state_dict()}, file)
    file.seek(0)
    found = second.load(file, weights_only=True)

    second.manual_seed(99)  # other weights, which the checkpoint replaces
    shell = MODELS[model](second)
    method = OPTIMIZERS[optimizer](second, list(shell.module.parameters()))
    shell.module.load_state_dict(found["model"])
    method.load_state_dict(found["optimizer"])
    losses += train(shell, method, STEPS)
    assert losses == pytest.approx(whole, rel=1e-9, abs=1e-9)
    assert losses[-1] < losses[0]
