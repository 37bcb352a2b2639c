"""A normalising flow bends a round cloud of points into two moons.

Coupling layers move one coordinate by an amount that a network computes from the other, so each is
inverted in closed form and the density of the result is known (Dinh, Sohl-Dickstein and Bengio,
Density estimation using Real NVP, 2017).  The flow is a distribution: of a normal variable,
transformed.  It is an ordinary PyTorch program, and runs on PyTorch after changing one line, the
import of flambeau below.

    python flow.py --steps 1000 --seed 0 --output-dir flow-out
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import matplotlib
from tqdm import tqdm

import flambeau as torch

nn, distributions = torch.nn, torch.distributions

LAYERS = 6
HIDDEN = 32
BATCH = 256
STEPS = 1000


def moons(count: int, device: str, dtype):
    """Points on two half circles that reach into each other, with some noise."""
    angle = math.pi * torch.rand(count, dtype=dtype, device=device)
    side = (torch.arange(count, device=device) % 2).to(dtype)
    x = torch.where(side == 0, torch.cos(angle), 1 - torch.cos(angle)) - 0.5
    y = torch.where(side == 0, torch.sin(angle), 0.5 - torch.sin(angle)) - 0.25
    points = torch.stack([x, y], -1)
    return points + 0.08 * torch.randn_like(points)


class Coupling(distributions.Transform):
    """Scales and shifts one coordinate by what a network makes of the other."""

    domain = distributions.constraints.real_vector
    codomain = distributions.constraints.real_vector
    bijective = True

    def __init__(self, network, moved: int):
        super().__init__()
        self.network, self.moved = network, moved

    def _amounts(self, points):
        kept = points[..., 1 - self.moved : 2 - self.moved]
        log_scale, shift = self.network(kept).unbind(-1)
        return torch.tanh(log_scale), shift

    def _with(self, points, value):
        parts = [points[..., 0], points[..., 1]]
        parts[self.moved] = value
        return torch.stack(parts, -1)

    def _call(self, x):
        log_scale, shift = self._amounts(x)
        return self._with(x, x[..., self.moved] * log_scale.exp() + shift)

    def _inverse(self, y):
        log_scale, shift = self._amounts(y)
        return self._with(y, (y[..., self.moved] - shift) * (-log_scale).exp())

    def log_abs_det_jacobian(self, x, y):
        """The logarithm of the scale."""
        return self._amounts(x)[0]


class Flow(nn.Module):
    """The networks of the couplings, and the distribution that they make."""

    def __init__(self):
        super().__init__()
        self.networks = nn.ModuleList(
            nn.Sequential(
                nn.Linear(1, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(),
                nn.Linear(HIDDEN, 2),
            )
            for _ in range(LAYERS)
        )  # fmt: skip

    def forward(self):
        """The distribution."""
        like = next(self.parameters())
        origin = torch.zeros(2, dtype=like.dtype, device=like.device)
        base = distributions.Independent(distributions.Normal(origin, torch.ones_like(origin)), 1)
        layers = [Coupling(network, i % 2) for i, network in enumerate(self.networks)]
        return distributions.TransformedDistribution(base, layers)


def setup(seed: int, device: str, dtype):
    """The untrained flow, and the points to learn from."""
    torch.manual_seed(seed)
    flow = Flow().to(device, dtype)
    return flow, moons(4096, device, dtype)


def train(flow, points, steps: int = STEPS) -> Iterator[float]:
    """Maximise the likelihood of the points; yield its negative per point at each step."""
    optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        batch = points[torch.randint(len(points), (BATCH,), device=points.device)]
        loss = -flow().log_prob(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        yield loss.item()


def draw(losses: list[float], flow, points, folder: Path) -> None:
    """Write the learning curve, the points, samples of the flow and its density."""
    matplotlib.use("Agg")  # files only: the program also runs where there is no display
    from matplotlib import pyplot

    fitted = flow()
    side = torch.linspace(-2, 2, 120, dtype=points.dtype, device=points.device)
    grid = torch.stack(torch.meshgrid(side, side, indexing="xy"), -1)
    density = fitted.log_prob(grid).exp().tolist()
    figure, panels = pyplot.subplots(1, 4, figsize=(18, 4.2), layout="constrained")
    panels[0].plot(losses)
    panels[0].set(xlabel="step", ylabel="nats per point", title="Training loss")
    for panel, cloud, title in (
        (panels[1], points[:2000], "Points to learn from"),
        (panels[2], fitted.sample((2000,)), "Samples of the flow"),
    ):
        panel.plot(cloud[:, 0].tolist(), cloud[:, 1].tolist(), ".", markersize=2)
        panel.set(xlim=(-2, 2), ylim=(-2, 2), aspect="equal", title=title)
    panels[3].imshow(density, extent=(-2, 2, -2, 2), origin="lower", cmap="magma")
    panels[3].set(title="Its density")
    figure.savefig(folder / "moons.png", dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Train, report the likelihood of unseen points, and draw."""
    parser = argparse.ArgumentParser(description="Learn two moons with a normalising flow.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--output-dir", type=Path, default=Path("flow-out"))
    options = parser.parse_args()

    dtype = getattr(torch, options.dtype)
    flow, points = setup(options.seed, options.device, dtype)
    losses = []
    progress = tqdm(train(flow, points, options.steps), total=options.steps, unit="step")
    for loss in progress:
        losses.append(loss)
        progress.set_postfix_str(f"loss {loss:.3f}", refresh=False)

    with torch.no_grad():
        unseen = -flow().log_prob(moons(4096, options.device, dtype)).mean().item()
        options.output_dir.mkdir(parents=True, exist_ok=True)
        torch.save(flow.state_dict(), options.output_dir / "model.pt")
        draw(losses, flow, points, options.output_dir)
    print(f"unseen points: {unseen:.3f} nats per point")


if __name__ == "__main__":
    main()
