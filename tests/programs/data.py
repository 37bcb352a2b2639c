"""Small data in the formats that programs read, drawn by us from fixed seeds."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import numpy as np
from PIL import Image


def digits(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of 28 × 28 bytes that differ by class, with noise; and their classes."""
    drawn = np.random.default_rng(seed)
    labels = drawn.integers(0, 10, count).astype(np.uint8)
    images = drawn.integers(0, 60, (count, 28, 28)).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[2 + 2 * label : 6 + 2 * label, 4:24] += np.uint8(180)
    return images, labels


def _idx(path: Path, array: np.ndarray, packed: bool = False) -> None:
    head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    text = head + array.tobytes()
    path.write_bytes(gzip.compress(text) if packed else text)


def _digits_in(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, count, seed in (("train", 640, 0), ("t10k", 320, 1)):
        images, labels = digits(count, seed)
        for packed, end in ((False, ""), (True, ".gz")):
            _idx(folder / f"{name}-images-idx3-ubyte{end}", images, packed)
            _idx(folder / f"{name}-labels-idx1-ubyte{end}", labels, packed)


def mnist(folder: Path) -> None:
    """MNIST below ``data`` in the folder and in those above it, up to the second."""
    for above in (".", "..", "../.."):
        for below in ("data", "data/mnist", "mnist", "mnist_data"):
            _digits_in(folder / above / below / "MNIST" / "raw")


def fashion(folder: Path) -> None:
    """Fashion-MNIST below ``../data``."""
    _digits_in(folder / "../data/FashionMNIST/raw")


def images(folder: Path) -> None:
    """Twelve colour pictures of 96 × 64 in two classes: ``images/train/a`` and so on."""
    drawn = np.random.default_rng(2)
    for part in ("train", "val", "test"):
        for name in ("a", "b"):
            inside = folder / "images" / part / name
            inside.mkdir(parents=True, exist_ok=True)
            for i in range(6):
                _picture(drawn, (64, 96)).save(inside / f"{i}.jpg")
    _picture(drawn, (64, 96)).save(folder / "images" / "style.jpg")
    _picture(drawn, (64, 96)).save(folder / "images" / "content.jpg")


def _picture(drawn: np.random.Generator, shape: tuple[int, int]) -> Image.Image:
    rough = Image.fromarray(drawn.integers(0, 255, (6, 8, 3)).astype(np.uint8))
    return rough.resize((shape[1], shape[0]), Image.Resampling.BILINEAR)


def paired_images(folder: Path) -> None:
    """Pictures in the folders that collections of image translation expect below ``../../data``."""
    drawn = np.random.default_rng(3)
    data = folder / "../../data"
    for part in ("train", "val", "test"):
        for name in ("A", "B"):
            inside = data / "monet2photo" / part / name
            inside.mkdir(parents=True, exist_ok=True)
            for i in range(4):
                _picture(drawn, (64, 64)).save(inside / f"{i}.jpg")
        for name in ("facades", "edges2shoes", "apple2orange"):
            inside = data / name / part
            inside.mkdir(parents=True, exist_ok=True)
            for i in range(4):
                _picture(drawn, (64, 128)).save(inside / f"{i}.jpg")
    faces = data / "img_align_celeba"
    faces.mkdir(parents=True, exist_ok=True)
    for i in range(24):
        _picture(drawn, (64, 64)).save(faces / f"{i:06}.jpg")


_WORDS = (
    "the a cat dog bird sees hears likes one two red old young small tree house and then".split()
)


def sentences(count: int, seed: int) -> list[str]:
    """Lines of words."""
    drawn = np.random.default_rng(seed)
    return [" ".join(drawn.choice(_WORDS, drawn.integers(4, 12))) for _ in range(count)]


def wikitext(folder: Path) -> None:
    """A text in three parts below ``data/wikitext-2`` and ``data/penn``, with other names."""
    for below in ("data/wikitext-2", "data/penn", "data"):
        inside = folder / below
        inside.mkdir(parents=True, exist_ok=True)
        for seed, (part, count) in enumerate((("train", 400), ("valid", 60), ("test", 60))):
            text = "".join(f" {line} \n" for line in sentences(count, seed))
            (inside / f"{part}.txt").write_text(text)


def names(folder: Path) -> None:
    """Names of people, one a line: ``names.txt``."""
    drawn = np.random.default_rng(4)
    parts = ["an", "bel", "ca", "do", "el", "fin", "ga", "ha", "li", "ma", "no", "ra", "sa", "ti"]
    made = ["".join(drawn.choice(parts, drawn.integers(1, 4))) for _ in range(400)]
    (folder / "names.txt").write_text("\n".join(made) + "\n")


def shakespeare(folder: Path) -> None:
    """Characters as nanoGPT stores them: ``data/shakespeare_char``."""
    text = "\n".join(sentences(600, 5))
    known = sorted(set(text))
    codes = np.array([known.index(c) for c in text], np.uint16)
    inside = folder / "data" / "shakespeare_char"
    inside.mkdir(parents=True, exist_ok=True)
    codes[: len(codes) * 9 // 10].tofile(inside / "train.bin")
    codes[len(codes) * 9 // 10 :].tofile(inside / "val.bin")
    (folder / "input.txt").write_text(text)


def sine_waves(folder: Path) -> None:
    """What generate_sine_wave.py writes, with fewer waves: ``traindata.pt``."""
    drawn = np.random.RandomState(2)
    shifts = drawn.randint(-80, 80, 10).reshape(10, 1)
    waves = np.sin((np.arange(200) + shifts) / 20.0).astype("float64")
    import torch  # of the process that runs the programs: a file as PyTorch itself writes it

    torch.save(waves, folder / "traindata.pt")


def citations(folder: Path) -> None:
    """A graph as the Cora files have it, of 200 papers: ``data/cora`` here and above."""
    drawn = np.random.default_rng(6)
    kinds = ["Theory", "Neural", "Rules", "Cases"]
    classes = drawn.integers(0, 4, 1800)
    rows = []
    for i, kind in enumerate(classes):
        words = (drawn.random(40) < 0.1 + 0.5 * (np.arange(40) % 4 == kind)).astype(int)
        rows.append(f"{i}\t" + "\t".join(map(str, words)) + f"\t{kinds[kind]}")
    links = drawn.integers(0, 1800, (4000, 2))
    for above in (".", ".."):
        inside = folder / above / "data" / "cora"
        inside.mkdir(parents=True, exist_ok=True)
        (inside / "cora.content").write_text("\n".join(rows) + "\n")
        (inside / "cora.cites").write_text("\n".join(f"{a}\t{b}" for a, b in links) + "\n")


def addition(folder: Path) -> None:
    """Pairs of sentences, ``data/eng-fra.txt`` and as JSON."""
    lines = [f"{a}\t{' '.join(reversed(a.split()))}" for a in sentences(200, 7)]
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "eng-fra.txt").write_text("\n".join(lines) + "\n")
    (folder / "data" / "pairs.json").write_text(json.dumps(lines))
