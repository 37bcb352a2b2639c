"""A photograph repainted in the manner of a stained-glass window.

Style is which features of a convolutional network occur together, the Gram matrices; content is
where they occur (Gatys, Ecker and Bethge, A Neural Algorithm of Artistic Style, 2015).  Random
filters are enough for such small images (Ustyuzhaninov and others, Texture Synthesis Using Shallow
Convolutional Networks with Random Filters, 2016), so there is nothing to download.  It is an
ordinary PyTorch program, and runs on PyTorch after changing one line, the import of flambeau below.

    python style.py --steps 200 --seed 0 --output-dir style-out
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import matplotlib
from sklearn.datasets import load_sample_image
from tqdm import tqdm

import flambeau as torch

nn = torch.nn
functional = nn.functional

HEIGHT, WIDTH = 96, 144
PANES = 70
STYLE_WEIGHT = 30.0
SMOOTHNESS = 1.0
LEARNING_RATE = 0.03
STEPS = 200


class Features(nn.Module):
    """Random filters at three scales; what they respond to at each scale."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [
                nn.Conv2d(3, 32, 5, padding=2, padding_mode="reflect"),
                nn.Conv2d(32, 32, 3, padding=1, padding_mode="reflect"),
                nn.Conv2d(32, 48, 3, padding=1, padding_mode="reflect"),
            ]
        )
        for layer in self.layers:
            nn.init.xavier_uniform_(layer.weight, gain=2.0)
            nn.init.zeros_(layer.bias)
        self.requires_grad_(False)

    def forward(self, image):
        responses = []
        features = 2 * image - 1
        for layer in self.layers:
            features = functional.leaky_relu(layer(features), 0.1)
            responses.append(features)
            features = functional.avg_pool2d(features, 2)
        return responses


def gram(features):
    """How strongly each pair of features occurs together, averaged over the places."""
    _, channels, height, width = features.shape
    flat = features.reshape(channels, height * width)
    return flat @ flat.T / (height * width)


def load_photograph(dtype):
    """The temple that comes with scikit-learn, at 96 by 144 pixels."""
    pixels = torch.tensor(load_sample_image("china.jpg")).to(dtype) / 255
    image = pixels.permute(2, 0, 1).unsqueeze(0)
    return functional.interpolate(image, size=(HEIGHT, WIDTH), mode="area")


def stained_glass(dtype):
    """Coloured panes between leaden lines: each pixel belongs to the nearest of random points."""
    generator = torch.Generator().manual_seed(3)
    points = torch.rand(PANES, 2, generator=generator, dtype=dtype)
    points = points * torch.tensor([HEIGHT, WIDTH], dtype=dtype)
    red, blue, yellow = (0.85, 0.1, 0.1), (0.05, 0.2, 0.75), (0.98, 0.75, 0.1)
    palette = torch.tensor([red, blue, yellow, (0.1, 0.55, 0.3), (0.9, 0.9, 0.85)], dtype=dtype)
    colours = palette[torch.randint(len(palette), (PANES,), generator=generator)]
    rows, columns = torch.meshgrid(torch.arange(HEIGHT), torch.arange(WIDTH), indexing="ij")
    pixels = torch.stack([rows, columns], dim=-1).to(dtype).reshape(-1, 1, 2)
    distances = (pixels - points).square().sum(dim=-1).sqrt()
    nearest, panes = distances.topk(2, dim=1, largest=False)
    lead = nearest[:, 1] - nearest[:, 0] < 1.5
    window = torch.where(lead.unsqueeze(1), 0.05, colours[panes[:, 0]])
    return window.reshape(HEIGHT, WIDTH, 3).permute(2, 0, 1).unsqueeze(0)


def setup(seed: int, device: str, dtype):
    """The random network, the photograph, the window, and the picture that is to be changed."""
    torch.manual_seed(seed)
    features = Features().to(device, dtype)
    content, style = load_photograph(dtype).to(device), stained_glass(dtype).to(device)
    return features, content, style, content.clone().requires_grad_()


def train(features, content, style, picture, steps: int = STEPS) -> Iterator[float]:
    """Change the pixels of the picture by Adam; yield the loss of each step."""
    with torch.no_grad():
        wanted_content = features(content)[-1]
        wanted_style = [gram(response) for response in features(style)]
    optimizer = torch.optim.Adam([picture], lr=LEARNING_RATE)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        responses = features(picture)
        loss = functional.mse_loss(responses[-1], wanted_content)
        for response, wanted in zip(responses, wanted_style, strict=True):
            loss = loss + STYLE_WEIGHT * functional.mse_loss(gram(response), wanted)
        # Differences of neighbouring pixels: what keeps the picture from turning into speckles.
        rows, columns = picture.diff(dim=2), picture.diff(dim=3)
        loss = loss + SMOOTHNESS * (rows.square().mean() + columns.square().mean())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        with torch.no_grad():
            picture.clamp_(0, 1)
        yield loss.item()


def style_distance(features, picture, style) -> float:
    """How far the Gram matrices of two images are apart, relative to the size of the second's."""
    with torch.no_grad():
        pairs = [
            (gram(ours), gram(theirs))
            for ours, theirs in zip(features(picture), features(style), strict=True)
        ]
    return sum(((a - b).norm() / b.norm()).item() for a, b in pairs) / len(pairs)


def draw(losses: list[float], images: dict, folder: Path) -> None:
    """Write the learning curve, and the photograph, the window and the picture."""
    matplotlib.use("Agg")  # files only: the program also runs where there is no display
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    axes.semilogy(losses, linewidth=0.8)
    axes.set(xlabel="step", ylabel="loss", title="Content and style")
    figure.savefig(folder / "learning_curve.png", dpi=150)
    pyplot.close(figure)

    figure, panels = pyplot.subplots(1, len(images), figsize=(15, 3.8), layout="constrained")
    for axes, (title, image) in zip(panels, images.items(), strict=True):
        axes.imshow(image[0].permute(1, 2, 0).tolist())
        axes.set_title(title)
        axes.axis("off")
    figure.savefig(folder / "style.png", dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Paint, report how much nearer the style has come, and draw."""
    parser = argparse.ArgumentParser(description="Repaint a photograph as a stained-glass window.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--output-dir", type=Path, default=Path("style-out"))
    options = parser.parse_args()

    features, content, style, picture = setup(
        options.seed, options.device, getattr(torch, options.dtype)
    )
    before = style_distance(features, content, style)
    losses = []
    steps = train(features, content, style, picture, options.steps)
    progress = tqdm(steps, total=options.steps, unit="step")
    for loss in progress:
        losses.append(loss)
        progress.set_postfix_str(f"loss {loss:.5f}", refresh=False)

    painted = picture.detach()
    after = style_distance(features, painted, style)
    options.output_dir.mkdir(parents=True, exist_ok=True)
    torch.save(painted.cpu(), options.output_dir / "picture.pt")
    images = {"the photograph": content, "the window": style, "the picture": painted}
    draw(losses, {title: image.cpu() for title, image in images.items()}, options.output_dir)
    print(f"distance from the style: {before:.3f} before, {after:.3f} after")


if __name__ == "__main__":
    main()
