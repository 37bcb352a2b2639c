"""A variational autoencoder that lays handwritten digits out on a plane.

The encoder gives every image a normal distribution over two hidden variables, the decoder draws an
image from a point of that plane (Kingma and Welling, Auto-Encoding Variational Bayes, 2013).  The
data are the 1,797 images of 8 by 8 pixels that come with scikit-learn.  It is an ordinary PyTorch
program, and runs on PyTorch after changing one line, the import of flambeau below.

    python vae.py --steps 3000 --seed 0 --output-dir vae-out
"""

import argparse
from collections.abc import Iterator
from itertools import chain, islice, repeat
from pathlib import Path

import matplotlib
from sklearn.datasets import load_digits
from tqdm import tqdm

import flambeau as torch

nn = torch.nn

PIXELS = 64
BATCH_SIZE = 64
LEARNING_RATE = 3e-3
STEPS = 3000


class Autoencoder(nn.Module):
    """64 pixels, two layers of 128, two hidden variables, and the same way back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(PIXELS, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()
        )
        self.mean = nn.Linear(128, 2)
        self.log_variance = nn.Linear(128, 2)
        self.decoder = nn.Sequential(
            nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, PIXELS)
        )

    def encode(self, images):
        features = self.encoder(images)
        return self.mean(features), self.log_variance(features)

    def forward(self, images):
        mean, log_variance = self.encode(images)
        noise = torch.randn_like(mean)
        # The noise comes in from outside, so gradients reach the mean and the variance.
        return self.decoder(mean + noise * torch.exp(0.5 * log_variance)), mean, log_variance


def negative_bound(logits, images, mean, log_variance):
    """Minus the lower bound on the log-likelihood, in nats per image, averaged over the batch."""
    reconstruction = nn.functional.binary_cross_entropy_with_logits(logits, images, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum()
    return (reconstruction + divergence) / len(images)


def load_data(dtype):
    """The images as 64 values from 0 to 1 with their labels: for training, and held out."""
    digits = load_digits()
    images = torch.tensor(digits.data / 16.0, dtype=dtype)
    dataset = torch.utils.data.TensorDataset(images, torch.tensor(digits.target))
    # The split has its own seed: every run is measured on the same images.
    generator = torch.Generator().manual_seed(0)
    return torch.utils.data.random_split(dataset, [0.8, 0.2], generator=generator)


def setup(seed: int, device: str, dtype):
    """The untrained model and the loader of training batches."""
    training, _ = load_data(dtype)
    torch.manual_seed(seed)
    model = Autoencoder().to(device, dtype)
    loader = torch.utils.data.DataLoader(
        training, batch_size=BATCH_SIZE, shuffle=True, drop_last=True
    )
    return model, loader


def train(model, loader, steps: int = STEPS) -> Iterator[float]:
    """Maximise the bound by Adam with a cosine schedule; yield the loss of each step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    device = next(model.parameters()).device
    model.train()
    for images, _ in islice(chain.from_iterable(repeat(loader)), steps):
        images = images.to(device)
        optimizer.zero_grad()
        logits, mean, log_variance = model(images)
        loss = negative_bound(logits, images, mean, log_variance)
        loss.backward()
        optimizer.step()
        scheduler.step()
        yield loss.item()


def draw(losses: list[float], model, images, labels, folder: Path) -> None:
    """Write the learning curve, the images with their reconstructions, and the plane."""
    matplotlib.use("Agg")  # files only: the program also runs where there is no display
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    axes.plot(losses, linewidth=0.8)
    axes.set(xlabel="step", ylabel="nats per image", title="Minus the bound on the log-likelihood")
    figure.savefig(folder / "learning_curve.png", dpi=150)
    pyplot.close(figure)

    model.eval()
    with torch.no_grad():
        mean, _ = model.encode(images)
        copies = model.decoder(mean).sigmoid()
        line = torch.linspace(-2.5, 2.5, 16, dtype=images.dtype, device=images.device)
        rows, columns = torch.meshgrid(-line, line, indexing="ij")
        plane = model.decoder(torch.stack([columns, rows], dim=-1).reshape(-1, 2)).sigmoid()
    # 16 by 16 images of 8 by 8 pixels, with a margin, become one of 160 by 160.
    tiles = nn.functional.pad(plane.reshape(16, 16, 8, 8), (1, 1, 1, 1))
    plane = tiles.permute(0, 2, 1, 3).reshape(160, 160)

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 5.6), layout="constrained")
    points = left.scatter(*mean.T.tolist(), c=labels.tolist(), cmap="tab10", s=8)
    figure.colorbar(points, ax=left, ticks=range(10))
    left.set_title("Where the encoder puts held-out digits")
    right.imshow(plane.tolist(), cmap="gray_r", extent=(-2.5, 2.5, -2.5, 2.5))
    right.set_title("What the decoder draws at each point")
    figure.savefig(folder / "plane.png", dpi=150)
    pyplot.close(figure)

    figure, grid = pyplot.subplots(2, 12, figsize=(9, 1.8), layout="constrained")
    for column in range(12):
        for axes, image in zip(grid[:, column], (images, copies), strict=True):
            axes.imshow(image[column].reshape(8, 8).tolist(), cmap="gray_r", vmin=0, vmax=1)
            axes.axis("off")
    figure.suptitle("Held-out images, and what is left of them after two numbers")
    figure.savefig(folder / "reconstructions.png", dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Train, report the bound on held-out images, and draw."""
    parser = argparse.ArgumentParser(description="Lay handwritten digits out on a plane.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--output-dir", type=Path, default=Path("vae-out"))
    options = parser.parse_args()

    dtype = getattr(torch, options.dtype)
    model, loader = setup(options.seed, options.device, dtype)
    losses = []
    progress = tqdm(train(model, loader, options.steps), total=options.steps, unit="step")
    for loss in progress:
        losses.append(loss)
        progress.set_postfix_str(f"{loss:.2f} nats", refresh=False)

    _, held_out = load_data(dtype)
    images, labels = torch.utils.data.default_collate([held_out[i] for i in range(len(held_out))])
    images = images.to(options.device)
    model.eval()
    with torch.no_grad():
        logits, mean, log_variance = model(images)
        reached = negative_bound(logits, images, mean, log_variance).item()
    options.output_dir.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), options.output_dir / "model.pt")
    draw(losses, model, images, labels, options.output_dir)
    print(f"held-out images: {reached:.2f} nats per image")


if __name__ == "__main__":
    main()
