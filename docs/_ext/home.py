"""What the first page shows: layers, a program with its picture, speed, devices; examples."""

from __future__ import annotations

import contextlib
import io
import json
import re
from functools import cache
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from reference import Reference

import flambeau as fb
from flambeau.plugin.host import host

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
QUADRANTS = PurePosixPath("quadrants.svg")
EXAMPLE = re.compile(r"^\| \[[^]]*\]\((examples/[\w/]+\.py)\) \| (.+) \|$", re.MULTILINE)
DRAWN = Path("guide/examples")

# From the program to the arrays: what a layer is, and what it is for.
LAYERS = (
    (
        "your program; nn, optim, distributions, utils.data",
        "PyTorch's names, and nothing of flambeau's own",
    ),
    (
        "public functions and methods of Tensor",
        "signatures, defaults, promotion, negative dimensions, errors",
    ),
    ("canonical ops", "each declared once: its shape rule or decomposition, and its gradient"),
    ("kernels", "native arrays and plain values: the whole business of a backend"),
)
# A row of benchmarks/recorded.json and what a reader calls it.
SPEED = (
    ("MLP step, Adam", "training step, MLP"),
    ("LeNet step, Adam", "LeNet"),
    ("ResNet-18 step, Adam", "ResNet-18"),
    ("LSTM step, Adam", "LSTM"),
    ("Transformer step, Adam", "Transformer"),
)
# Whose kernels run where, and what of it has been seen to run.
DEVICES = (
    (
        "`cpu`",
        "flambeau-numpy",
        "NumPy; with flambeau-native compiled kernels, with flambeau-onednn oneDNN",
        "the conformance kit, 22,000 tests beside PyTorch, benchmarks",
    ),
    (
        "`cuda`",
        "flambeau-cupy",
        "CuPy, cuDNN, cuBLASLt, kernels in CUDA C",
        "kernels compiled and run on the host; [no run on a GPU is recorded](gpu.md)",
    ),
    (
        "`ref`",
        "flambeau-core",
        "Python numbers",
        "it is the meaning of the primitives: all others are compared with it",
    ),
    ("`meta`", "flambeau-core", "shapes and dtypes alone", "every op's rule"),
    (
        "`jax`",
        "examples/backends/jax",
        "JAX; whole steps as one XLA program",
        "its tests and a sample of the kit, on the CPU",
    ),
    (
        "yours",
        "[a hundred lines](backends/tutorial.md)",
        "any array library",
        "`pytest --pyargs flambeau.testing.backend --device …`",
    ),
)


def _raw(html: str) -> str:
    return f"```{{raw}} html\n{html}\n```"


def layers(_: Reference) -> str:
    """The four layers, as a drawing that takes the page's colours and width."""
    height, width, parts = 56, 560, []
    for number, (title, text) in enumerate(LAYERS):
        y = 4 + number * (height + 20)
        parts.append(f'<rect x="4" y="{y}" width="{width - 8}" height="{height}" rx="8"/>')
        parts.append(f'<text x="20" y="{y + 24}">{escape(title)}</text>')
        parts.append(f'<text class="small" x="20" y="{y + 42}">{escape(text)}</text>')
        if number:
            middle = width // 2
            parts.append(f'<path d="M{middle} {y - 20}v16m-5-6l5 6l5-6"/>')
    total = len(LAYERS) * (height + 20) - 12
    label = "A call goes from the program through public functions and canonical ops to kernels"
    return _raw(
        f'<svg class="layers" viewBox="0 0 {width} {total}" role="img" aria-label="{label}">'
        + "".join(parts)
        + "</svg>"
    )


def speed(_: Reference) -> str:
    """flambeau's time for a training step over PyTorch's, from the recorded benchmarks."""
    record = json.loads((ROOT / "benchmarks" / "recorded.json").read_text("utf-8"))
    ratios = {
        row["name"]: row["ratio"]["torch"]
        for row in record["rows"]
        if row["threads"] == 1 and "torch" in row["ratio"]
    }
    shown = [(text, ratios[name]) for name, text in SPEED]
    shown.append(("91 calls on 10⁶ elements", record["sweep mean"]))
    cells = "".join(
        f"<div>{escape(text)}</div>"
        f'<div class="bar"><span style="width: {min(ratio, 1.0):.0%}"></span></div>'
        f'<div class="number">{ratio:.2f}</div>'
        for text, ratio in shown
    )
    return _raw(f'<div class="speed">{cells}</div>')


def devices(_: Reference) -> str:
    """The device types, who makes them, and what has been proven of each."""
    rows = ["| device | package | computes with | proven by |", "|---|---|---|---|"]
    rows += ["| " + " | ".join(row) + " |" for row in DEVICES]
    missing = set(host.device_types()) - {row[0].strip("`") for row in DEVICES}
    assert not missing, f"devices that the first page does not show: {sorted(missing)}"
    return "\n".join(rows)


def program(_: Reference) -> str:
    """The program of the README."""
    return f"```python\n{_program()}```"


def _program() -> str:
    found = PROGRAM.search((ROOT / "README.md").read_text("utf-8"))
    assert found, "the README has a program"
    return found[1]


@cache
def pictures() -> dict[PurePosixPath, str]:
    """What the README's network answers on the square that it learnt on."""
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(_program(), "README.md", "exec"), names)
    ticks = fb.linspace(-1, 1, 121)
    plane = fb.stack(fb.meshgrid(ticks, ticks, indexing="xy"), -1).reshape(-1, 2)
    with fb.no_grad():
        answers = names["model"](plane).softmax(1)[:, 1].reshape(121, 121)
    figure = Figure(figsize=(3.4, 3.4), layout="constrained")
    axes = figure.subplots()
    square = (-1, 1, -1, 1)
    axes.imshow(answers.tolist(), cmap="coolwarm", extent=square, origin="lower", alpha=0.8)
    x, y = names["x"], names["y"]
    for value, colour in ((0, "#2b6cb0"), (1, "#c92a2a")):
        points = x[y == value]
        axes.plot(points[:, 0].tolist(), points[:, 1].tolist(), ".", color=colour, markersize=4)
    axes.set_axis_off()
    out = io.StringIO()
    with rc_context({"svg.hashsalt": "flambeau"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return {QUADRANTS: out.getvalue()}


def quadrants(_: Reference) -> str:
    """The picture that `pictures` draws."""
    return f"![What the network answers on the square, and what it learnt from]({QUADRANTS})"


def examples(_: Reference) -> str:
    """Every example with what it drew; the pictures are kept, for drawing them takes minutes."""
    parts = []
    for path, text in EXAMPLE.findall((ROOT / "README.md").read_text("utf-8")):
        name = Path(path).stem
        parts.append(f"## {name.replace('_', ' ').capitalize()}\n\n[{path}](../../{path}): {text}.")
        picture = ROOT / "docs" / DRAWN / f"{name}.png"
        if picture.exists():
            parts[-1] += f"\n\n![What {name} drew](examples/{name}.png)"
    return "\n\n".join(parts)


HOME = {
    "devices": devices,
    "examples": examples,
    "layers": layers,
    "program": program,
    "quadrants": quadrants,
    "speed": speed,
}
