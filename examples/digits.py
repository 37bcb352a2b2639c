"""A convolutional network that learns to read handwritten digits, in a few seconds on a CPU.

The data are the 1,797 images of 8 by 8 pixels that come with scikit-learn; one in five is held out.
It is an ordinary PyTorch program, and runs on PyTorch after changing one line, the import of
flambeau below.

    python digits.py --epochs 12 --seed 0 --output-dir digits-out
"""

import argparse
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path

import matplotlib
from sklearn.datasets import load_digits
from tqdm import tqdm

import flambeau as torch

nn = torch.nn

BATCH_SIZE = 32
LEARNING_RATE = 3e-3


class DigitNet(nn.Module):
    """Two rounds of convolution, batch normalisation and pooling, then two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),  # 8 by 8 becomes 4 by 4
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Dropout(0.25),
            nn.Linear(32 * 2 * 2, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )

    def forward(self, images):
        return self.classifier(self.features(images))


def load_data(dtype):
    """The images as (1, 8, 8) tensors with values from 0 to 1, split into training and held-out."""
    digits = load_digits()
    images = torch.tensor(digits.images / 16.0, dtype=dtype).unsqueeze(1)
    dataset = torch.utils.data.TensorDataset(images, torch.tensor(digits.target))
    # The split has its own seed: every run is measured on the same images.
    generator = torch.Generator().manual_seed(0)
    return torch.utils.data.random_split(dataset, [0.8, 0.2], generator=generator)


def setup(seed: int, device: str, dtype):
    """The untrained network, the loader of training batches, and the held-out images and labels."""
    training, held_out = load_data(dtype)
    torch.manual_seed(seed)
    model = DigitNet().to(device, dtype)
    loader = torch.utils.data.DataLoader(training, batch_size=BATCH_SIZE, shuffle=True)
    images, labels = torch.utils.data.default_collate([held_out[i] for i in range(len(held_out))])
    return model, loader, images.to(device), labels.to(device)


def train(model, loader, epochs: int) -> Iterator[float]:
    """Minimise the cross-entropy by Adam, its rate falling to zero; yield the loss of each step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    device = next(model.parameters()).device
    steps = epochs * len(loader)
    model.train()
    for step, (images, labels) in enumerate(chain.from_iterable(repeat(loader, epochs))):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * (1 - step / steps)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        yield loss.item()


def predict(model, images):
    """The most likely digit of every image."""
    model.eval()
    with torch.no_grad():
        return model(images).argmax(dim=1)


def draw(losses: list[float], images, labels, predictions, folder: Path) -> None:
    """Write the learning curve and a grid of held-out images with predictions, mistakes first."""
    matplotlib.use("Agg")  # files only: the program also runs where there is no display
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    axes.semilogy(losses, linewidth=0.8)
    axes.set(xlabel="step", ylabel="cross-entropy", title="Training loss")
    figure.savefig(folder / "learning_curve.png", dpi=150)

    wrong_first = (predictions == labels).long().argsort(stable=True).tolist()
    figure, grid = pyplot.subplots(4, 8, figsize=(8, 4.6), layout="constrained")
    for axes, i in zip(grid.flat, wrong_first, strict=False):
        truth, guess = labels[i].item(), predictions[i].item()
        axes.imshow(images[i, 0].tolist(), cmap="gray_r")
        axes.set_title(
            f"{guess}" if guess == truth else f"{guess}, not {truth}",
            color="black" if guess == truth else "red",
            fontsize=9,
        )
        axes.axis("off")
    figure.suptitle("Predictions on held-out images, mistakes first")
    figure.savefig(folder / "predictions.png", dpi=150)


def main() -> None:
    """Train, report the accuracy on the held-out images, and draw."""
    parser = argparse.ArgumentParser(description="Learn to read handwritten digits.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--output-dir", type=Path, default=Path("digits-out"))
    options = parser.parse_args()

    model, loader, images, labels = setup(
        options.seed, options.device, getattr(torch, options.dtype)
    )
    losses = []
    progress = tqdm(
        train(model, loader, options.epochs), total=options.epochs * len(loader), unit="step"
    )
    for loss in progress:
        losses.append(loss)
        progress.set_postfix_str(f"loss {loss:.4f}", refresh=False)

    predictions = predict(model, images)
    accuracy = (predictions == labels).double().mean().item()
    print(f"accuracy {100 * accuracy:.1f} %; drawing pictures ...", flush=True)
    options.output_dir.mkdir(parents=True, exist_ok=True)
    draw(losses, images.cpu(), labels.cpu(), predictions.cpu(), options.output_dir)
    print(f"the pictures are in {options.output_dir.resolve()}")


if __name__ == "__main__":
    main()
