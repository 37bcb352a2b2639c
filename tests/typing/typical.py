"""Programs as people write them: both type checkers accept every line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import Tensor, nn
from flambeau.utils.data import DataLoader, TensorDataset
from flambeau.utils.data.distributed import DistributedSampler


class Block(nn.Module):
    """Two layers with a shortcut, and a buffer."""

    scale: Tensor

    def __init__(self, width: int, p: float = 0.1) -> None:
        super().__init__()
        self.first = nn.Linear(width, 4 * width)
        self.second = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(p)
        self.norm = nn.LayerNorm(width)
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.gelu(self.first(self.norm(x)))
        return x + self.scale * self.dropout(self.second(hidden))


class Classifier(nn.Module):
    """A stack of blocks with a head."""

    def __init__(self, width: int, classes: int, depth: int = 2) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(width, classes))

    def forward(self, x: Tensor, temperature: float = 1.0) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x) / temperature


def batches(count: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Random inputs and labels."""
    data = TensorDataset(torch.randn(count, 8), torch.randint(0, 3, (count,)))
    yield from DataLoader(data, batch_size=4, shuffle=True)


def train(model: nn.Module, epochs: int) -> list[float]:
    """The losses of some epochs."""
    device = torch.device("cpu")
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    losses = []
    for _ in range(epochs):
        total = 0.0
        for inputs, labels in batches(16):
            optimizer.zero_grad()
            loss = criterion(model(inputs.to(device)), labels.to(device))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        schedule.step()
        losses.append(total)
    return losses


def accuracy(model: Classifier, x: Tensor, y: Tensor) -> float:
    """The share of right answers."""
    model.eval()
    with torch.no_grad():
        scores = model(x, temperature=2.0)
        values, indices = scores.max(dim=1)
        best = scores.topk(2).indices[:, 0]
    assert torch.equal(indices, best)
    assert values.shape == (len(x),)
    return (indices == y).float().mean().item()


class Kept(Protocol):
    """What a function's passes leave to each other."""

    factor: float


class Scaled(torch.autograd.Function):
    """A function with a gradient of its own, whose context has a type."""

    @staticmethod
    def forward(ctx: Kept, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Kept, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0] * ctx.factor, None


def forms(x: Tensor) -> Tensor:
    """Functions of several forms, subscripts and arithmetic."""
    largest: Tensor = x.max()
    named: Tensor = torch.max(x, 0).values
    pairs: Tensor = torch.max(x, x)
    middle: Tensor = x.median()
    order: Tensor = torch.sort(x, dim=-1, descending=True).indices
    rows: int = x.shape[0]
    where: tuple[Tensor, ...] = torch.where(x > 0)
    kept: Tensor = torch.where(x > 0, x, 0.0)
    firsts, lasts = x.split([1, rows - 1])
    total: Tensor = x.sum(dim=(0, 1), keepdim=True) + x.sum() + x.sum(0)
    x[0] = 1.0
    x[x > 0] = torch.zeros(1)
    parts = [x[None], x[..., 0], x[0, 1:], x[[0, 1]], x[order[0] % rows], x[:, -1]]
    flat = x.view(-1).reshape(rows, -1).permute(1, 0).expand(2, -1, -1).tile(1, 2)
    made = torch.zeros(2, 3, dtype=torch.float64), torch.full((2,), 1), x.new_zeros((2, 3))
    numbers: list[float] = torch.linspace(0, 1, 3).tolist()
    scaled: Tensor = Scaled.apply(x, 2.0)
    grad = x.grad
    if grad is not None:
        grad.zero_()
    used = (largest, named, pairs, middle, where, kept, firsts, lasts, total, parts, made, numbers)
    return 2 - flat / len(used) ** 2 + scaled.sum()


class Pictures(nn.Module):
    """Layers called one by one, and their parameters set as programs do that know their layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 5)
        self.pool = nn.MaxPool2d(2)
        self.places = nn.AdaptiveMaxPool2d(1, return_indices=True)
        self.norm = nn.BatchNorm2d(6)
        self.out = nn.Linear(6, 10)
        for layer in self.modules():
            if isinstance(layer, nn.Linear | nn.Conv2d):
                nn.init.zeros_(layer.bias)
            elif isinstance(layer, nn.BatchNorm2d | nn.LayerNorm):
                nn.init.ones_(layer.weight)
                layer.bias.data.fill_(0.0)

    def forward(self, x: Tensor) -> Tensor:
        """A tensor from each layer, and a pair from one that gives places as well."""
        x = self.pool(F.relu(self.norm(self.conv(x))))
        x, places = self.places(x)
        return self.out(x.view(x.size(0), -1)) + places.sum()


class Language(nn.Module):
    """Results of several forms, of which a program knows which it asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 8)
        self.memory = nn.LSTM(8, 8)
        self.head = nn.Linear(8, 9)

    def forward(self, words: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The scores of the next word, and the loss where there is something to compare with."""
        seen, (_, cell) = self.memory(self.words(words))
        scores = self.head(seen) + cell.sum()
        if targets is None:
            return scores, None
        return scores, F.cross_entropy(scores.view(-1, 9), targets.view(-1))


def language(words: Tensor, kept: Tensor | None = None) -> Tensor:
    """A loss that is there, and an argument that is."""
    model = Language()
    scores, loss = model(words, words)
    loss.backward()
    model.requires_grad_(False)
    for rows, place in ((range(2), torch.tensor([0, 1])),):
        scores[rows, place] = scores[[0], 1:2].detach()
    if model.training:
        kept = scores.detach()
    model.head.weight *= 0.5
    return nn.Identity()(kept).sum() + loss.item()


def kinds(layer: nn.Module) -> bool:
    """Names by their paths, as older programs write them, and of modules that are loaded late."""
    known = (
        torch.nn.modules.conv.Conv2d,
        torch.nn.modules.activation.MultiheadAttention,
        torch.nn.modules.container.ParameterList,
        torch.nn.modules.linear.NonDynamicallyQuantizableLinear,
        torch.nn.modules.loss.CrossEntropyLoss,
        torch.nn.modules.pixelshuffle.PixelShuffle,
        torch.nn.modules.pooling.MaxUnpool2d,
        torch.nn.modules.rnn.LSTMCell,
    )
    normal = torch.distributions.normal.Normal(0.0, 1.0)
    half = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    made = torch.cuda.FloatTensor if half else torch.FloatTensor
    return isinstance(layer, known) or made is normal.mean


def as_tensor(x: str | Tensor) -> Tensor:
    """A tensor, or what a text says."""
    if not torch.is_tensor(x):
        return torch.tensor([float(word) for word in x.split()])
    return x.flatten()


def sampler(data: torch.utils.data.Dataset[tuple[Tensor, ...]]) -> DistributedSampler:
    """A sampler of a data set whose class need not say that it has a length."""
    return DistributedSampler(data, num_replicas=1, rank=0)


def set_up() -> None:
    """What many programs begin with."""
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = not torch.backends.cudnn.benchmark
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cuda.matmul.allow_tf32 = True


if __name__ == "__main__":
    set_up()
    print(Pictures()(torch.randn(2, 1, 12, 12)).shape)
    network = Classifier(8, 3)
    print(train(network, 2), accuracy(network, torch.randn(4, 8), torch.zeros(4)))
    print(language(torch.tensor([[1, 2, 3], [4, 5, 6]])), kinds(nn.Conv2d(1, 1, 1)))
    print(as_tensor("1 2").equal(as_tensor(torch.tensor([1.0, 2.0]))))
    print(len(sampler(TensorDataset(torch.ones(2)))))
    print(forms(torch.randn(3, 4)).shape)
