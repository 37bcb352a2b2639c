"""A convolutional network that doubles the resolution of photographs.

It computes four values for each pixel of the small image, which a shuffle then lays out as the
pixels of the large one (Shi and others, Real-Time Single Image and Video Super-Resolution Using an
Efficient Sub-Pixel Convolutional Neural Network, 2016).  It learns from the left half of the
photograph of a flower that comes with scikit-learn and is measured on the right half.  It is an
ordinary PyTorch program, and runs on PyTorch after changing one line, the import of flambeau below.

    python super_resolution.py --steps 800 --seed 0 --output-dir super-resolution-out
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import matplotlib
from sklearn.datasets import load_sample_image
from tqdm import tqdm

import flambeau as torch

nn = torch.nn
functional = nn.functional

SCALE = 2
PATCH = 32  # of the large image
PATCHES_PER_EPOCH = 1600
BATCH_SIZE = 16
LEARNING_RATE = 5e-3
STEPS = 800


class Enlarger(nn.Module):
    """Bicubic interpolation, and what three convolutions add to it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 24, 5, padding=2, padding_mode="replicate"),
            nn.ReLU(),
            nn.Conv2d(24, 16, 3, padding=1, padding_mode="replicate"),
            nn.ReLU(),
            nn.Conv2d(16, SCALE**2, 3, padding=1, padding_mode="replicate"),
            nn.PixelShuffle(SCALE),
        )

    def forward(self, small):
        return interpolate(small) + self.layers(small)


def interpolate(small):
    """Enlarge by bicubic interpolation, what the network has to beat."""
    return functional.interpolate(small, scale_factor=SCALE, mode="bicubic", align_corners=False)


def shrink(large):
    """Every pixel of the small image is the average of four."""
    return functional.avg_pool2d(large, SCALE)


def load_halves(dtype):
    """The luminance of the photograph, from 0 to 1, as two images of 426 by 320 pixels."""
    pixels = torch.tensor(load_sample_image("flower.jpg")).to(dtype) / 255
    weights = torch.tensor([0.299, 0.587, 0.114], dtype=dtype)
    return (pixels @ weights)[None, None, :426].chunk(2, dim=3)


class Patches(torch.utils.data.Dataset):
    """Square pieces of a photograph from random places, small and large."""

    def __init__(self, photograph, count: int) -> None:
        self.photograph = photograph
        _, _, height, width = photograph.shape
        self.tops = torch.randint(0, height - PATCH, (count,)).tolist()
        self.lefts = torch.randint(0, width - PATCH, (count,)).tolist()

    def __len__(self) -> int:
        return len(self.tops)

    def __getitem__(self, index: int):
        top, left = self.tops[index], self.lefts[index]
        large = self.photograph[0, :, top : top + PATCH, left : left + PATCH]
        return shrink(large), large


def setup(seed: int, device: str, dtype):
    """The untrained network and the loader of training patches."""
    torch.manual_seed(seed)
    model = Enlarger().to(device, dtype)
    # Without a last layer there is nothing to add: training starts from bicubic interpolation.
    nn.init.zeros_(model.layers[4].weight)
    nn.init.zeros_(model.layers[4].bias)
    patches = Patches(load_halves(dtype)[0], PATCHES_PER_EPOCH)
    return model, torch.utils.data.DataLoader(patches, batch_size=BATCH_SIZE, shuffle=True)


def train(model, loader, steps: int = STEPS) -> Iterator[float]:
    """Minimise the mean squared error by AdamW, its rate in one cycle; yield each step's loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=LEARNING_RATE, total_steps=steps
    )
    device = next(model.parameters()).device
    done = 0
    while done < steps:
        for small, large in loader:
            optimizer.zero_grad()
            loss = functional.mse_loss(model(small.to(device)), large.to(device))
            loss.backward()
            optimizer.step()
            scheduler.step()
            yield loss.item()
            done += 1
            if done == steps:
                break


def quality(image, truth) -> float:
    """The ratio of the largest possible signal to the error, in decibels."""
    return -10 * math.log10(functional.mse_loss(image, truth).item())


def draw(losses: list[float], images: dict, folder: Path) -> None:
    """Write the learning curve, and one detail in each version."""
    matplotlib.use("Agg")  # files only: the program also runs where there is no display
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    axes.semilogy(losses, linewidth=0.8)
    axes.set(xlabel="step", ylabel="mean squared error", title="Training loss")
    figure.savefig(folder / "learning_curve.png", dpi=150)
    pyplot.close(figure)

    figure, panels = pyplot.subplots(1, len(images), figsize=(15, 4.2), layout="constrained")
    for axes, (title, image) in zip(panels, images.items(), strict=True):
        shrunk = 320 // image.shape[-1]
        top, left, side = 190 // shrunk, 20 // shrunk, 96 // shrunk
        detail = image[0, 0, top : top + side, left : left + side]
        axes.imshow(detail.tolist(), cmap="gray", vmin=0, vmax=1)
        axes.set_title(title)
        axes.axis("off")
    figure.savefig(folder / "detail.png", dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Train on the left half, report the quality on the right one, and draw."""
    parser = argparse.ArgumentParser(description="Double the resolution of photographs.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--output-dir", type=Path, default=Path("super-resolution-out"))
    options = parser.parse_args()

    dtype = getattr(torch, options.dtype)
    model, loader = setup(options.seed, options.device, dtype)
    losses = []
    progress = tqdm(train(model, loader, options.steps), total=options.steps, unit="step")
    for loss in progress:
        losses.append(loss)
        progress.set_postfix_str(f"loss {loss:.5f}", refresh=False)

    truth = load_halves(dtype)[1].to(options.device)
    small = shrink(truth)
    model.eval()
    with torch.no_grad():
        bicubic, network = interpolate(small).clamp(0, 1), model(small).clamp(0, 1)
    before, after = quality(bicubic, truth), quality(network, truth)
    options.output_dir.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), options.output_dir / "model.pt")
    images = {
        "given": small,
        f"bicubic, {before:.2f} dB": bicubic,
        f"network, {after:.2f} dB": network,
        "the photograph": truth,
    }
    draw(losses, {title: image.cpu() for title, image in images.items()}, options.output_dir)
    print(f"bicubic interpolation {before:.2f} dB, network {after:.2f} dB")


if __name__ == "__main__":
    main()
