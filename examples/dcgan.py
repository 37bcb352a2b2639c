"""Two convolutional networks in competition: one draws digits, one tells them from real ones.

The generator starts from 32 random numbers; the discriminator sees its images and those that come
with scikit-learn (Radford, Metz and Chintala, Unsupervised Representation Learning with Deep
Convolutional Generative Adversarial Networks, 2015).  It is an ordinary PyTorch program, and runs
on PyTorch after changing one line, the import of flambeau below.

    python dcgan.py --steps 1500 --seed 0 --output-dir dcgan-out
"""

import argparse
from collections.abc import Iterator
from itertools import chain, islice, repeat
from pathlib import Path

import matplotlib
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from tqdm import tqdm

import flambeau as torch

nn = torch.nn

LATENT = 32
BATCH_SIZE = 64
LEARNING_RATE = 1e-3
BETAS = (0.5, 0.999)
REAL = 0.9  # the label of real images: below one, so the discriminator stays unsure
STEPS = 1500


def make_generator():
    """32 numbers become an image of 8 by 8 pixels with values from -1 to 1."""
    return nn.Sequential(
        nn.Unflatten(1, (LATENT, 1, 1)),
        nn.ConvTranspose2d(LATENT, 64, 2, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1),
        nn.Tanh(),
    )


def make_discriminator():
    """An image becomes one number: how real it looks, as a logit."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Dropout2d(0.25),
        nn.Conv2d(32, 64, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.LeakyReLU(0.2),
        nn.Conv2d(64, 1, 2),
        nn.Flatten(0),
    )


def initialise(module) -> None:
    """Weights as the article draws them: normal, with a deviation of 0.02."""
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)


def setup(seed: int, device: str, dtype):
    """The two untrained networks, and the loader of real images."""
    torch.manual_seed(seed)
    generator = make_generator().apply(initialise).to(device, dtype)
    discriminator = make_discriminator().apply(initialise).to(device, dtype)
    images = torch.tensor(load_digits().images / 8.0 - 1.0, dtype=dtype).unsqueeze(1)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(images), batch_size=BATCH_SIZE, shuffle=True, drop_last=True
    )
    return generator, discriminator, loader


def draw_noise(count: int, like):
    """`count` points for the generator to start from, on the device and of the type of `like`."""
    return torch.randn(count, LATENT, dtype=like.dtype, device=like.device)


def train(generator, discriminator, loader, steps: int = STEPS) -> Iterator[tuple[float, float]]:
    """One step of each network in turn; yield the losses of discriminator and generator."""
    criterion = nn.BCEWithLogitsLoss()
    judge = torch.optim.Adam(discriminator.parameters(), lr=LEARNING_RATE, betas=BETAS)
    artist = torch.optim.Adam(generator.parameters(), lr=LEARNING_RATE, betas=BETAS)
    weight = next(generator.parameters())
    generator.train()
    discriminator.train()
    for (images,) in islice(chain.from_iterable(repeat(loader)), steps):
        images = images.to(weight.device)
        ones, zeros = torch.ones_like(images[:, 0, 0, 0]), torch.zeros_like(images[:, 0, 0, 0])
        forgeries = generator(draw_noise(len(images), weight))

        judge.zero_grad()
        loss_judge = criterion(discriminator(images), REAL * ones)
        loss_judge = loss_judge + criterion(discriminator(forgeries.detach()), zeros)
        loss_judge.backward()
        judge.step()

        artist.zero_grad()
        loss_artist = criterion(discriminator(forgeries), ones)
        loss_artist.backward()
        artist.step()
        yield loss_judge.item(), loss_artist.item()


def measure(forgeries) -> tuple[float, int]:
    """How far each image is from the nearest real one, and how many of the ten digits are drawn.

    The distance is relative to that between a real image and its nearest neighbour; a digit counts
    when at least one image in fifty shows it, as read by the five nearest real images.
    """
    digits = load_digits()
    judge = KNeighborsClassifier(5).fit(digits.data, digits.target)
    drawn = ((forgeries.flatten(1) + 1) * 8).tolist()
    distance, _ = judge.kneighbors(drawn, n_neighbors=1)
    usual, _ = judge.kneighbors(digits.data, n_neighbors=2)  # the nearest is the image itself
    read = judge.predict(drawn).tolist()
    shown = sum(read.count(digit) * 50 >= len(read) for digit in range(10))
    return distance.mean() / usual[:, 1].mean(), shown


def draw(losses: list[tuple[float, float]], forgeries, folder: Path) -> None:
    """Write the two learning curves, and drawn digits beside real ones."""
    matplotlib.use("Agg")  # files only: the program also runs where there is no display
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for name, series in zip(("discriminator", "generator"), zip(*losses, strict=True), strict=True):
        axes.plot(series, linewidth=0.6, label=name)
    axes.legend()
    axes.set(xlabel="step", ylabel="cross-entropy", title="The competition")
    figure.savefig(folder / "learning_curve.png", dpi=150)
    pyplot.close(figure)

    real = torch.tensor(load_digits().images / 8.0 - 1.0).unsqueeze(1)
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 5.4), layout="constrained")
    for axes, images, title in zip(panels, (real, forgeries), ("real", "drawn"), strict=True):
        # 100 images of 8 by 8 pixels, with a margin, become one of 100 by 100.
        tiles = nn.functional.pad(images[:100], (1, 1, 1, 1), value=-1)
        sheet = tiles.reshape(10, 10, 10, 10).permute(0, 2, 1, 3).reshape(100, 100)
        axes.imshow(sheet.tolist(), cmap="gray_r", vmin=-1, vmax=1)
        axes.set_title(title)
        axes.axis("off")
    figure.savefig(folder / "digits.png", dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Train, measure a thousand drawn digits, and draw."""
    parser = argparse.ArgumentParser(description="Learn to draw handwritten digits.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--output-dir", type=Path, default=Path("dcgan-out"))
    options = parser.parse_args()

    generator, discriminator, loader = setup(
        options.seed, options.device, getattr(torch, options.dtype)
    )
    losses = []
    steps = train(generator, discriminator, loader, options.steps)
    progress = tqdm(steps, total=options.steps, unit="step")
    for pair in progress:
        losses.append(pair)
        progress.set_postfix_str("losses {:.3f} and {:.3f}".format(*pair), refresh=False)

    generator.eval()
    with torch.no_grad():
        forgeries = generator(draw_noise(1000, next(generator.parameters()))).cpu()
    distance, shown = measure(forgeries)
    options.output_dir.mkdir(parents=True, exist_ok=True)
    states = {"generator": generator.state_dict(), "discriminator": discriminator.state_dict()}
    torch.save(states, options.output_dir / "models.pt")
    draw(losses, forgeries, options.output_dir)
    print(f"{shown} of 10 digits drawn, {distance:.2f} times as far from real ones as those are")


if __name__ == "__main__":
    main()
