"""A small network fitted to a noisy sound by L-BFGS, a method that learns the curvature.

Three sines and some noise, sampled at 200 instants; a network with one number in and one out finds
the curve below the noise (Liu and Nocedal, On the Limited Memory BFGS Method, 1989).  It is an
ordinary PyTorch program, and runs on PyTorch after changing one line, the import of flambeau below.

    python sine.py --steps 600 --seed 0 --output-dir sine-out
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import matplotlib
from tqdm import tqdm

import flambeau as torch

nn = torch.nn

SAMPLES = 200
NOISE = 0.1
WEIGHT_DECAY = 1e-5
STEPS = 600


def curve(times):
    """The sound without noise: three sines, of which the second is louder than the first."""
    return (
        0.5 * torch.sin(2 * math.pi * times)
        + 0.8 * torch.sin(4 * math.pi * times + 1)
        + 0.3 * torch.sin(6 * math.pi * times + 2)
    )


def setup(seed: int, device: str, dtype):
    """The untrained network, and the instants and noisy values that it is to fit."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1)
    )
    model.to(device, dtype)
    times = torch.linspace(-1, 1, SAMPLES, dtype=dtype, device=device).unsqueeze(1)
    return model, times, curve(times) + NOISE * torch.randn_like(times)


def train(model, times, values, steps: int = STEPS) -> Iterator[float]:
    """Minimise the mean squared error; yield the loss before each step of two iterations."""
    optimizer = torch.optim.LBFGS(
        model.parameters(), max_iter=2, history_size=20, line_search_fn="strong_wolfe"
    )

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(times), values)
        # The penalty on large weights is what keeps the curve from following the noise.
        loss = loss + WEIGHT_DECAY * sum(p.square().sum() for p in model.parameters())
        loss.backward()
        return loss

    for _ in range(steps):
        yield optimizer.step(closure).item()


def draw(losses: list[float], model, times, values, folder: Path) -> None:
    """Write the learning curve, and the samples with the fitted and the true curve."""
    matplotlib.use("Agg")  # files only: the program also runs where there is no display
    from matplotlib import pyplot

    with torch.no_grad():
        fitted = model(times)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    left.semilogy(losses)
    left.set(xlabel="step of two iterations", ylabel="loss", title="Training loss")
    instants = times.flatten().tolist()
    right.plot(instants, values.flatten().tolist(), ".", color="lightgray", label="samples")
    right.plot(instants, curve(times).flatten().tolist(), "k--", linewidth=1, label="true curve")
    right.plot(instants, fitted.flatten().tolist(), color="tab:orange", label="network")
    right.legend()
    right.set(xlabel="time", title="The fit")
    figure.savefig(folder / "fit.png", dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Train, report the distance from the true curve, and draw."""
    parser = argparse.ArgumentParser(description="Fit three noisy sines by L-BFGS.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--dtype", default="float64", choices=("float32", "float64"))
    parser.add_argument("--output-dir", type=Path, default=Path("sine-out"))
    options = parser.parse_args()

    model, times, values = setup(options.seed, options.device, getattr(torch, options.dtype))
    losses = []
    progress = tqdm(train(model, times, values, options.steps), total=options.steps, unit="step")
    for loss in progress:
        losses.append(loss)
        progress.set_postfix_str(f"loss {loss:.6f}", refresh=False)

    with torch.no_grad():
        error = (model(times) - curve(times)).square().mean().sqrt().item()
    options.output_dir.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), options.output_dir / "model.pt")
    draw(losses, model, times, values, options.output_dir)
    print(f"distance from the true curve: {error:.4f}; the noise was {NOISE}")


if __name__ == "__main__":
    main()
