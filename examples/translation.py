"""A Transformer that translates numbers from English to German words.

English says twenty-one, German one-and-twenty, so the order of the words has to be learnt as well.
The program spells the numbers itself; 4,000 of the first hundred thousand are for training, others
to measure by (Vaswani and others, Attention Is All You Need, 2017).  It is an ordinary PyTorch
program, and runs on PyTorch after changing one line, the import of flambeau below.

    python translation.py --steps 900 --seed 0 --output-dir translation-out
"""

import argparse
import math
from collections.abc import Iterator
from itertools import chain, islice, repeat
from pathlib import Path

import matplotlib
from tqdm import tqdm

import flambeau as torch

nn = torch.nn

NUMBERS, TRAINING, HELD_OUT = 100_000, 4_000, 500
BATCH_SIZE = 64
WIDTH = 64
HEADS = 4
LEARNING_RATE = 2e-3
SMOOTHING = 0.1
STEPS = 900
PAD, START, END = range(3)

ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
ENGLISH_TENS = ". . twenty thirty forty fifty sixty seventy eighty ninety".split()
GERMAN = (
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn "
    "sechzehn siebzehn achtzehn neunzehn"
).split()
GERMAN_TENS = ". . zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()


def english(number: int) -> list[str]:
    """The words of a number below a million: 4021 is four thousand and twenty one."""
    if number >= 1000:
        rest = english(number % 1000) if number % 1000 else []
        link = ["and"] if 0 < number % 1000 < 100 else []
        return [*english(number // 1000), "thousand", *link, *rest]
    if number >= 100:
        rest = ["and", *english(number % 100)] if number % 100 else []
        return [ENGLISH[number // 100], "hundred", *rest]
    if number >= 20:
        return [ENGLISH_TENS[number // 10], *([ENGLISH[number % 10]] if number % 10 else [])]
    return [ENGLISH[number]]


def german(number: int) -> list[str]:
    """The parts of the one long word: 4021 is vier tausend ein und zwanzig, 4001 ends in eins."""
    parts = german_parts(number)
    return [*parts[:-1], "eins"] if parts[-1] == "ein" else parts


def german_parts(number: int) -> list[str]:
    """The same as it is before another part, where one is ein."""
    if number >= 1000:
        rest = german_parts(number % 1000) if number % 1000 else []
        return [*german_parts(number // 1000), "tausend", *rest]
    if number >= 100:
        rest = german_parts(number % 100) if number % 100 else []
        return [GERMAN[number // 100], "hundert", *rest]
    if number >= 20:
        ones = [GERMAN[number % 10], "und"] if number % 10 else []
        return [*ones, GERMAN_TENS[number // 10]]
    return [GERMAN[number]]


SOURCE_WORDS = ["", "<", ">", *ENGLISH, *ENGLISH_TENS[2:], "hundred", "thousand", "and"]
TARGET_WORDS = ["", "<", ">", *GERMAN, *GERMAN_TENS[2:], "hundert", "tausend", "und", "eins"]


class Sentences(torch.utils.data.Dataset):
    """Numbers in both languages, as the places of their words in the two vocabularies."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int):
        number = self.numbers[index]
        source = [SOURCE_WORDS.index(word) for word in english(number)]
        target = [TARGET_WORDS.index(word) for word in german(number)]
        return torch.tensor([*source, END]), torch.tensor([START, *target, END])


def collate(sentences):
    """Sentences of different lengths become two tensors, the short ones padded."""
    return tuple(
        nn.utils.rnn.pad_sequence(side, batch_first=True, padding_value=PAD)
        for side in zip(*sentences, strict=True)
    )


class Translator(nn.Module):
    """Words with their places, a Transformer of two and two layers, and a guess at each word."""

    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__()
        self.source = nn.Embedding(len(SOURCE_WORDS), WIDTH, padding_idx=PAD)
        self.target = nn.Embedding(len(TARGET_WORDS), WIDTH, padding_idx=PAD)
        self.transformer = nn.Transformer(
            WIDTH, HEADS, 2, 2, dim_feedforward=2 * WIDTH, dropout=dropout, batch_first=True
        )
        self.output = nn.Linear(WIDTH, len(TARGET_WORDS))
        rate = 10_000 ** (-torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
        phase = torch.arange(32).unsqueeze(1) * rate
        waves = torch.stack([phase.sin(), phase.cos()], dim=2).flatten(1)
        self.register_buffer("places", waves.to(torch.float32))

    def embed(self, embedding, words):
        return math.sqrt(WIDTH) * embedding(words) + self.places[: words.shape[1]]

    def forward(self, source, target):
        length = target.shape[1]
        later = torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1)
        padding = source == PAD
        features = self.transformer(
            self.embed(self.source, source),
            self.embed(self.target, target),
            tgt_mask=later,
            src_key_padding_mask=padding,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=padding,
        )
        return self.output(features)


def load_data() -> tuple[list[int], list[int]]:
    """Numbers for training and others to measure by; every run has the same."""
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randperm(NUMBERS, generator=generator).tolist()
    return numbers[:TRAINING], numbers[TRAINING : TRAINING + HELD_OUT]


def setup(seed: int, device: str, dtype):
    """The untrained network and the loader of training sentences."""
    torch.manual_seed(seed)
    model = Translator().to(device, dtype)
    loader = torch.utils.data.DataLoader(
        Sentences(load_data()[0]), batch_size=BATCH_SIZE, shuffle=True, collate_fn=collate
    )
    return model, loader


def train(model, loader, steps: int = STEPS) -> Iterator[float]:
    """Adam, its rate rising and then falling, on smoothed labels; yield the loss of each step."""
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=SMOOTHING)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98))
    warm = max(1, steps // 10)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, math.sqrt(warm / (step + 1)))
    )
    device = next(model.parameters()).device
    model.train()
    for source, target in islice(chain.from_iterable(repeat(loader)), steps):
        source, target = source.to(device), target.to(device)
        optimizer.zero_grad()
        logits = model(source, target[:, :-1])
        loss = criterion(logits.flatten(0, 1), target[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        yield loss.item()


def translate(model, source):
    """The most likely word after the words so far, again and again, for all sentences together."""
    target = torch.full((len(source), 1), START, device=source.device)
    model.eval()
    with torch.no_grad():
        for _ in range(16):
            following = model(source, target)[:, -1].argmax(dim=1, keepdim=True)
            target = torch.cat([target, following], dim=1)
    return [spell(words) for words in target.tolist()]


def spell(words: list[int]) -> list[str]:
    """The German parts between start and end."""
    end = words.index(END) if END in words else len(words)
    return [TARGET_WORDS[word] for word in words[1:end]]


def attention(model, number: int):
    """How much each German part looks at each English word in the last layer."""
    layer = model.transformer.decoder.layers[-1].multihead_attn
    seen = []
    # The layer has no use for the weights and asks for none; the hooks ask, and keep them.
    asking = layer.register_forward_pre_hook(
        lambda module, args, options: (args, {**options, "need_weights": True}), with_kwargs=True
    )
    keeping = layer.register_forward_hook(lambda module, args, output: seen.append(output[1]))
    source, target = collate([Sentences([number])[0]])
    device = next(model.parameters()).device
    with torch.no_grad():
        model(source.to(device), target[:, :-1].to(device))
    asking.remove()
    keeping.remove()
    return seen[0][0]


def draw(losses: list[float], model, number: int, folder: Path) -> None:
    """Write the learning curve, and which words the network looks at."""
    matplotlib.use("Agg")  # files only: the program also runs where there is no display
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
    left.plot(losses, linewidth=0.8)
    left.set(xlabel="step", ylabel="cross-entropy, smoothed", title="Training loss")
    right.imshow(attention(model, number).tolist(), cmap="Blues", vmin=0)
    columns, rows = [*english(number), "(end)"], [*german(number), "(end)"]
    right.set_xticks(range(len(columns)), columns, rotation=45, ha="right")
    right.set_yticks(range(len(rows)), rows)
    right.set_title("Where the decoder looks before it writes each part")
    figure.savefig(folder / "translation.png", dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Train, translate held-out numbers, report how many are right, and draw."""
    parser = argparse.ArgumentParser(description="Translate numbers from English to German.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--output-dir", type=Path, default=Path("translation-out"))
    options = parser.parse_args()

    model, loader = setup(options.seed, options.device, getattr(torch, options.dtype))
    losses = []
    progress = tqdm(train(model, loader, options.steps), total=options.steps, unit="step")
    for loss in progress:
        losses.append(loss)
        progress.set_postfix_str(f"loss {loss:.3f}", refresh=False)

    numbers = load_data()[1]
    source, _ = collate([Sentences(numbers)[i] for i in range(len(numbers))])
    translations = translate(model, source.to(options.device))
    right = sum(german(n) == words for n, words in zip(numbers, translations, strict=True))
    options.output_dir.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), options.output_dir / "model.pt")
    draw(losses, model, 21_854, options.output_dir)
    for number, words in list(zip(numbers, translations, strict=True))[:4]:
        print(f"{' '.join(english(number))}: {''.join(words)}")
    print(f"{100 * right / len(numbers):.1f} % of {len(numbers)} held-out numbers are right")


if __name__ == "__main__":
    main()
