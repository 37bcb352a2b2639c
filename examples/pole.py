"""A cart learns to balance the pole it carries: an actor that pushes and a critic that judges.

Sixteen carts run side by side, every quantity one tensor of sixteen numbers; the physics is below
(Barto, Sutton and Anderson, Neuronlike Adaptive Elements That Can Solve Difficult Learning Control
Problems, 1983).  It is an ordinary PyTorch program, and runs on PyTorch after changing one line,
the import of flambeau below.

    python pole.py --steps 400 --seed 0 --output-dir pole-out
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import matplotlib
from tqdm import tqdm

import flambeau as torch

nn = torch.nn

CARTS = 16
HORIZON = 32  # moments between two training steps
DISCOUNT = 0.99
LEARNING_RATE = 2e-3
ENTROPY = 0.01
LIMIT = 500  # moments after which the pole counts as balanced
STEPS = 400

GRAVITY, CART_MASS, POLE_MASS, HALF_LENGTH = 9.8, 1.0, 0.1, 0.5
FORCE, MOMENT = 10.0, 0.02
FARTHEST, STEEPEST = 2.4, 12 * math.pi / 180


def push(state, right):
    """The state a fiftieth of a second after pushing each cart right (True) or left.

    A state is position and speed of the cart, angle and angular speed of its pole; the equations
    are those of a pole on a hinge without friction, followed for one step of Euler's method.
    """
    _, speed, angle, spin = state.unbind(dim=1)
    mass = CART_MASS + POLE_MASS
    sine, cosine = angle.sin(), angle.cos()
    force = torch.where(right, FORCE, -FORCE).to(state.dtype)
    thrust = (force + POLE_MASS * HALF_LENGTH * spin.square() * sine) / mass
    inertia = HALF_LENGTH * (4 / 3 - POLE_MASS * cosine.square() / mass)
    turn = (GRAVITY * sine - cosine * thrust) / inertia
    acceleration = thrust - POLE_MASS * HALF_LENGTH * turn * cosine / mass
    changes = torch.stack([speed, acceleration, spin, turn], dim=1)
    return state + MOMENT * changes


def has_fallen(state):
    """Where the pole leans by more than twelve degrees or the cart has left its track."""
    return (state[:, 0].abs() > FARTHEST) | (state[:, 2].abs() > STEEPEST)


def start(count: int, like):
    """Carts near the middle with their poles nearly upright."""
    return 0.1 * torch.rand(count, 4, dtype=like.dtype, device=like.device) - 0.05


class ActorCritic(nn.Module):
    """One network for both: the logits of left and right, and what the state is worth."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.actor = nn.Linear(64, 2)
        self.critic = nn.Linear(64, 1)
        # A fresh actor has no preference, a fresh critic no opinion.
        for head in (self.actor, self.critic):
            nn.init.normal_(head.weight, 0.0, 0.001)
            nn.init.zeros_(head.bias)

    def forward(self, state):
        # Angles are small beside positions; in these units all four have about the same size.
        features = self.body(state * state.new_tensor([1.0, 1.0, 10.0, 1.0]))
        return self.actor(features), self.critic(features).squeeze(1)


def setup(seed: int, device: str, dtype):
    """The untrained network."""
    torch.manual_seed(seed)
    return (ActorCritic().to(device, dtype),)


def play(model, state, ages):
    """Let all carts run for `HORIZON` moments; fallen ones and finished ones start anew.

    Returns the state and ages afterwards, and what each moment gave: the logarithm of the
    probability of the action, the entropy of the choice, the value of the state, whether the pole
    fell, and the value after a cart was stopped for being old (which is no fault of the actor).
    """
    moments = []
    for _ in range(HORIZON):
        logits, value = model(state)
        scores = nn.functional.log_softmax(logits, dim=1)
        action = torch.multinomial(scores.detach().exp(), 1)
        entropy = -(scores * scores.exp()).sum(dim=1)
        state = push(state, action.squeeze(1) == 1)
        ages = ages + 1
        fell = has_fallen(state)
        old = (ages >= LIMIT) & ~fell
        with torch.no_grad():
            bonus = torch.where(old, model(state)[1], 0.0)
        moments.append((scores.gather(1, action).squeeze(1), entropy, value, fell, old, bonus))
        over = fell | old
        state = torch.where(over.unsqueeze(1), start(CARTS, state), state)
        ages = torch.where(over, 0, ages)
    return state, ages, moments


def train(model, steps: int = STEPS) -> Iterator[float]:
    """Actor and critic learn from the moments just played; yield the loss of each step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, total_iters=steps)
    state = start(CARTS, next(model.parameters()))
    ages = torch.zeros(CARTS, dtype=torch.int64, device=state.device)
    for _ in range(steps):
        state, ages, moments = play(model, state, ages)
        with torch.no_grad():
            future = model(state)[1]
        targets = []
        for _, _, _, fell, old, bonus in reversed(moments):
            # A moment of balance earns 1 - DISCOUNT, so balance for ever is worth one.
            future = (1 - DISCOUNT) + DISCOUNT * torch.where(fell | old, bonus, future)
            targets.append(future)
        target = torch.stack(targets[::-1])
        scores, entropies, values = (
            torch.stack(parts) for parts in list(zip(*moments, strict=True))[:3]
        )
        advantage = (target - values).detach()
        loss = nn.functional.mse_loss(values, target) - ENTROPY * entropies.mean()
        loss = loss - (scores * advantage / (advantage.std() + 1e-5)).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        yield loss.item()


def balance(model, count: int):
    """How long each of `count` carts balances without guessing, and the path of the first."""
    state = start(count, next(model.parameters()))
    standing = torch.ones(count, dtype=torch.bool, device=state.device)
    lengths = torch.zeros(count, dtype=torch.int64, device=state.device)
    path = []
    model.eval()
    with torch.no_grad():
        for _ in range(LIMIT):
            state = push(state, model(state)[0].argmax(dim=1) == 1)
            standing = standing & ~has_fallen(state)
            lengths += standing.long()
            path.append(state[0].tolist())
    return lengths, path


def draw(losses: list[float], lengths: list[int], path, folder: Path) -> None:
    """Write how the loss went, how long the poles stood, and the path of one of them."""
    matplotlib.use("Agg")  # files only: the program also runs where there is no display
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    panels[0].plot(losses, linewidth=0.6)
    panels[0].set(xlabel="step", ylabel="loss", title="Training loss")
    panels[1].hist(lengths, bins=25, range=(0, LIMIT))
    panels[1].set(xlabel="moments", ylabel="carts", title="How long the poles stood")
    positions, _, angles, _ = zip(*path, strict=True)
    panels[2].plot(positions, label="position in metres")
    panels[2].plot([angle * 180 / math.pi for angle in angles], label="angle in degrees")
    panels[2].legend()
    panels[2].set(xlabel="moment", title="One cart")
    figure.savefig(folder / "balance.png", dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Train, let a hundred carts balance their poles, and draw."""
    parser = argparse.ArgumentParser(description="Learn to balance a pole on a cart.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--output-dir", type=Path, default=Path("pole-out"))
    options = parser.parse_args()

    (model,) = setup(options.seed, options.device, getattr(torch, options.dtype))
    before, _ = balance(model, 100)
    losses = []
    progress = tqdm(train(model, options.steps), total=options.steps, unit="step")
    for loss in progress:
        losses.append(loss)
        progress.set_postfix_str(f"loss {loss:.3f}", refresh=False)

    lengths, path = balance(model, 100)
    options.output_dir.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), options.output_dir / "model.pt")
    draw(losses, lengths.tolist(), path, options.output_dir)
    times = [length.double().mean().item() * MOMENT for length in (before, lengths)]
    print(
        "the poles stood {:.1f} s before training and {:.1f} s of {:.0f} after".format(
            *times, LIMIT * MOMENT
        )
    )


if __name__ == "__main__":
    main()
