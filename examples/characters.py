"""An LSTM that learns to write Python's reference manual, letter by letter.

The text is the one behind Python's help() about the language, which comes with every Python.  The
network reads 64 characters, is asked at each for the next, and finally writes on its own.  It is an
ordinary PyTorch program, and runs on PyTorch after changing one line, the import of flambeau below.

    python characters.py --steps 600 --seed 0 --output-dir characters-out
"""

import argparse
import math
import textwrap
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice, repeat
from pathlib import Path
from pydoc_data.topics import topics

import matplotlib
from tqdm import tqdm

import flambeau as torch

nn = torch.nn

LENGTH = 64
BATCH_SIZE = 32
HIDDEN = 192
LEARNING_RATE = 5e-3
CLIP = 1.0
STEPS = 600

# Short pages only: the long ones are tables of methods.
PAGES = sorted(name for name, page in topics.items() if len(page) < 12_000)
TEXT = "\n\n".join(topics[name] for name in PAGES).encode("ascii", "ignore").decode()
ALPHABET = sorted(set(TEXT))


class Writer(nn.Module):
    """Characters become vectors, an LSTM reads them, a linear layer guesses the next."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(ALPHABET), 48)
        self.lstm = nn.LSTM(48, HIDDEN, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        self.output = nn.Linear(HIDDEN, len(ALPHABET))

    def forward(self, characters, state=None):
        features, state = self.lstm(self.embedding(characters), state)
        return self.output(self.dropout(features)), state


class Pieces(torch.utils.data.Dataset):
    """A text cut into pieces of `LENGTH` characters, each with the characters that follow."""

    def __init__(self, text: str) -> None:
        places = {character: place for place, character in enumerate(ALPHABET)}
        self.places = torch.tensor([places[character] for character in text])

    def __len__(self) -> int:
        return (len(self.places) - 1) // LENGTH

    def __getitem__(self, index: int):
        piece = self.places[index * LENGTH : (index + 1) * LENGTH + 1]
        return piece[:-1], piece[1:]


def split() -> tuple[str, str]:
    """Nine tenths of the text for training, the rest to measure by."""
    border = len(TEXT) * 9 // 10
    return TEXT[:border], TEXT[border:]


def setup(seed: int, device: str, dtype):
    """The untrained network and the loader of training pieces."""
    torch.manual_seed(seed)
    model = Writer().to(device, dtype)
    loader = torch.utils.data.DataLoader(
        Pieces(split()[0]), batch_size=BATCH_SIZE, shuffle=True, drop_last=True
    )
    return model, loader


def nats(model, characters, following):
    """The mean cross-entropy of the guesses."""
    logits, _ = model(characters)
    return nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten())


def train(model, loader, steps: int = STEPS) -> Iterator[float]:
    """Adam with clipped gradients, its rate in one cycle; yield the loss of each step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=LEARNING_RATE, total_steps=steps, pct_start=0.1
    )
    device = next(model.parameters()).device
    model.train()
    for characters, following in islice(chain.from_iterable(repeat(loader)), steps):
        optimizer.zero_grad()
        loss = nats(model, characters.to(device), following.to(device))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        scheduler.step()
        yield loss.item()


def bits_per_character(model) -> float:
    """How many bits each held-out character costs."""
    loader = torch.utils.data.DataLoader(Pieces(split()[1]), batch_size=BATCH_SIZE, drop_last=True)
    device = next(model.parameters()).device
    model.eval()
    with torch.no_grad():
        losses = [nats(model, x.to(device), y.to(device)).item() for x, y in loader]
    return sum(losses) / len(losses) / math.log(2)


def write(model, opening: str, length: int, temperature: float = 0.5) -> str:
    """Let the network continue a text; a low temperature makes it prefer likely characters."""
    device = next(model.parameters()).device
    places = torch.tensor([[ALPHABET.index(character) for character in opening]], device=device)
    written, state = opening, None
    model.eval()
    with torch.no_grad():
        for _ in range(length):
            logits, state = model(places, state)
            chances = torch.softmax(logits[:, -1] / temperature, dim=-1)
            places = torch.multinomial(chances, 1)
            written += ALPHABET[places.item()]
    return written


def draw(losses: list[float], text: str, folder: Path) -> None:
    """Write the learning curve beside what the network wrote."""
    matplotlib.use("Agg")  # files only: the program also runs where there is no display
    from matplotlib import pyplot

    counts = Counter(TEXT).values()
    entropy = -sum(count / len(TEXT) * math.log2(count / len(TEXT)) for count in counts)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 5), layout="constrained")
    left.plot([loss / math.log(2) for loss in losses], linewidth=0.8)
    left.axhline(entropy, color="gray", linestyle="--", label="letters drawn by frequency")
    left.legend()
    left.set(xlabel="step", ylabel="bits per character", title="Training loss")
    lines = [piece for line in text.splitlines() for piece in textwrap.wrap(line, 76) or [""]]
    page = "\n".join(lines[:36]).replace("$", r"\$")  # dollars would begin a formula
    right.text(0, 1, page, family="monospace", fontsize=7, va="top")
    right.axis("off")
    right.set_title("Written by the network")
    figure.savefig(folder / "characters.png", dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Train, save, load what was saved, report what it costs to guess, and write."""
    parser = argparse.ArgumentParser(description="Learn to write Python's reference manual.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--output-dir", type=Path, default=Path("characters-out"))
    options = parser.parse_args()

    dtype = getattr(torch, options.dtype)
    model, loader = setup(options.seed, options.device, dtype)
    losses = []
    progress = tqdm(train(model, loader, options.steps), total=options.steps, unit="step")
    for loss in progress:
        losses.append(loss)
        progress.set_postfix_str(f"{loss / math.log(2):.3f} bits", refresh=False)

    options.output_dir.mkdir(parents=True, exist_ok=True)
    checkpoint = options.output_dir / "model.pt"
    torch.save(model.state_dict(), checkpoint)
    writer = Writer().to(options.device, dtype)
    writer.load_state_dict(torch.load(checkpoint, map_location=options.device))

    reached = bits_per_character(writer)
    text = write(writer, "The ", 1200)
    (options.output_dir / "text.txt").write_text(text)
    draw(losses, text, options.output_dir)
    print(text[:400].rpartition(" ")[0], "...")
    print(f"held-out text: {reached:.3f} bits per character")


if __name__ == "__main__":
    main()
