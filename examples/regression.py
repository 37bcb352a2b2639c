"""A curve with its uncertainty: Bayesian regression by variational inference.

Noisy values are known on the left and on the right, and nothing in between.  A normal distribution
over the weights of eight bumps is fitted to their posterior by the gradient of the evidence lower
bound (Kingma and Welling, Auto-encoding variational Bayes, 2014).  The noise is known, so the exact
posterior is known, too, and the program says how far the fitted one is from it.  It is an ordinary
PyTorch program, and runs on PyTorch after changing one line, the import of flambeau below.

    python regression.py --steps 2000 --seed 0 --output-dir regression-out
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import matplotlib
from tqdm import tqdm

import flambeau as torch

nn, distributions = torch.nn, torch.distributions

BUMPS = 8
NOISE = 0.15
SAMPLES = 8
STEPS = 2000


def features(x):
    """How much of each bump is at each place."""
    centres = torch.linspace(-1, 1, BUMPS, dtype=x.dtype, device=x.device)
    return torch.exp(-0.5 * ((x.unsqueeze(-1) - centres) / 0.3) ** 2)


class Posterior(nn.Module):
    """A normal distribution of the weights; its parameters are unconstrained numbers."""

    def __init__(self):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(BUMPS))
        self.factor = nn.Parameter(torch.zeros(BUMPS, BUMPS))

    def forward(self):
        """The distribution."""
        onto = distributions.transform_to(distributions.constraints.lower_cholesky)
        return distributions.MultivariateNormal(self.loc, scale_tril=onto(self.factor))


def prior(like):
    """Of the weights before anything is known."""
    return distributions.MultivariateNormal(
        torch.zeros_like(like.loc), torch.eye(BUMPS, dtype=like.loc.dtype, device=like.loc.device)
    )


def setup(seed: int, device: str, dtype):
    """The distribution to fit, and the places and noisy values that are known."""
    torch.manual_seed(seed)
    posterior = Posterior().to(device, dtype)
    places = torch.cat([torch.linspace(-1, -0.35, 20), torch.linspace(0.3, 1, 20)])
    places = places.to(device, dtype)
    values = torch.sin(4 * places) + 0.3 * places + NOISE * torch.randn_like(places)
    return posterior, places, values


def train(posterior, places, values, steps: int = STEPS) -> Iterator[float]:
    """Maximise the evidence lower bound; yield its negative at each step."""
    optimizer = torch.optim.Adam(posterior.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    table = features(places)
    for _ in range(steps):
        fitted = posterior()
        weights = fitted.rsample((SAMPLES,))
        likelihood = distributions.Normal(weights @ table.T, NOISE).log_prob(values).sum(-1)
        loss = distributions.kl_divergence(fitted, prior(fitted)) - likelihood.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        yield loss.item()


def exact(places, values):
    """The posterior in closed form."""
    table = features(places)
    precision = torch.eye(BUMPS, dtype=table.dtype, device=table.device)
    precision = precision + table.T @ table / NOISE**2
    loc = torch.linalg.solve(precision, table.T @ values / NOISE**2)
    return distributions.MultivariateNormal(loc, precision_matrix=precision)


def draw(losses: list[float], fitted, truth, places, values, folder: Path) -> None:
    """Write the learning curve, curves of the posterior, and two of its weights."""
    matplotlib.use("Agg")  # files only: the program also runs where there is no display
    from matplotlib import pyplot

    x = torch.linspace(-1.2, 1.2, 200, dtype=places.dtype, device=places.device)
    curves = fitted.sample((400,)) @ features(x).T
    mean, deviation = curves.mean(0), curves.std(0)
    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(15, 4), layout="constrained")
    left.plot(losses)
    left.set(xlabel="step", ylabel="nats", title="Negative evidence bound", ylim=(-20, 200))
    for wide, shade in ((2, 0.2), (1, 0.3)):
        low, high = (mean - wide * deviation).tolist(), (mean + wide * deviation).tolist()
        middle.fill_between(x.tolist(), low, high, color="tab:orange", alpha=shade, linewidth=0)
    for curve in curves[:5].tolist():
        middle.plot(x.tolist(), curve, color="tab:orange", linewidth=0.7)
    middle.plot(places.tolist(), values.tolist(), "k.", markersize=4)
    middle.set(xlabel="place", title="The posterior: two deviations, five curves")
    for weights, colour, label in (
        (truth.sample((1000,)), "lightgray", "exact"),
        (fitted.sample((1000,)), "tab:orange", "fitted"),
    ):
        right.plot(weights[:, 3].tolist(), weights[:, 4].tolist(), ".", color=colour, label=label)
    right.legend()
    right.set(xlabel="weight 3", ylabel="weight 4", title="Two weights")
    figure.savefig(folder / "posterior.png", dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Fit, report the distance from the exact posterior, and draw."""
    parser = argparse.ArgumentParser(description="Bayesian regression by variational inference.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--dtype", default="float64", choices=("float32", "float64"))
    parser.add_argument("--output-dir", type=Path, default=Path("regression-out"))
    options = parser.parse_args()

    posterior, places, values = setup(options.seed, options.device, getattr(torch, options.dtype))
    losses = []
    progress = tqdm(train(posterior, places, values, options.steps), total=options.steps)
    for loss in progress:
        losses.append(loss)
        progress.set_postfix_str(f"loss {loss:.3f}", refresh=False)

    with torch.no_grad():
        fitted, truth = posterior(), exact(places, values)
        distance = distributions.kl_divergence(fitted, truth).item()
        options.output_dir.mkdir(parents=True, exist_ok=True)
        torch.save(posterior.state_dict(), options.output_dir / "model.pt")
        draw(losses, fitted, truth, places, values, options.output_dir)
    print(f"divergence from the exact posterior: {distance:.3f} nats")


if __name__ == "__main__":
    main()
