"""Each example runs to its end: a short run reports, draws its pictures and saves its weights."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"

# What each program prints last, the pictures and the tensors it writes.
PROGRAMS = {
    "characters": (r"held-out text: (\d\.\d+) bits per character", ["characters"], "model"),
    "dcgan": (
        r"(\d+) of 10 digits drawn, \d+\.\d\d times as far from real ones as those are",
        ["learning_curve", "digits"],
        "models",
    ),
    "flow": (r"unseen points: (-?\d+\.\d+) nats per point", ["moons"], "model"),
    "pole": (
        r"the poles stood \d+\.\d s before training and (\d+\.\d) s of 10 after",
        ["balance"],
        "model",
    ),
    "regression": (
        r"divergence from the exact posterior: (\d+\.\d+) nats",
        ["posterior"],
        "model",
    ),
    "sine": (r"distance from the true curve: (\d\.\d+); the noise was 0.1", ["fit"], "model"),
    "style": (
        r"distance from the style: \d\.\d+ before, (\d\.\d+) after",
        ["learning_curve", "style"],
        "picture",
    ),
    "super_resolution": (
        r"bicubic interpolation \d+\.\d\d dB, network (\d+\.\d\d) dB",
        ["learning_curve", "detail"],
        "model",
    ),
    "translation": (
        r"(\d+\.\d) % of 500 held-out numbers are right",
        ["translation"],
        "model",
    ),
    "vae": (
        r"held-out images: (\d+\.\d\d) nats per image",
        ["learning_curve", "plane", "reconstructions"],
        "model",
    ),
}


def run(name: str, folder: Path, *options: str) -> float:
    """Run an example, check what it left behind, and return the number that it reports."""
    program = [sys.executable, FOLDER / f"{name}.py", "--output-dir", folder, *options]
    done = subprocess.run(program, capture_output=True, check=True, timeout=600)
    output = done.stdout.decode()
    report, pictures, tensors = PROGRAMS[name]
    reached = re.search(report + r"\s*\Z", output)
    assert reached is not None, output
    for picture in pictures:
        assert (folder / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / f"{tensors}.pt").read_bytes().startswith(b"PK")
    return float(reached[1])


def test_every_example_is_tested():
    names = {path.stem for path in FOLDER.glob("*.py")}
    assert names == {*PROGRAMS, "digits"}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_short_run_reports_draws_and_saves(name, tmp_path):
    run(name, tmp_path, "--steps", "3")


@pytest.mark.slow
def test_the_encoder_and_decoder_reach_26_nats_in_600_steps(tmp_path):
    assert run("vae", tmp_path, "--steps", "600") < 26


@pytest.mark.slow
def test_the_fitted_curve_is_nearer_to_the_truth_than_the_samples(tmp_path):
    assert run("sine", tmp_path) < 0.06


@pytest.mark.slow
def test_the_flow_bends_a_cloud_of_points_towards_the_moons(tmp_path):
    assert run("flow", tmp_path, "--steps", "300") < 1.1  # 1.9 as one normal distribution


@pytest.mark.slow
def test_the_fitted_posterior_is_near_to_the_exact_one(tmp_path):
    assert run("regression", tmp_path) < 0.2


@pytest.mark.slow
def test_the_enlarged_photograph_is_better_than_by_interpolation(tmp_path):
    assert run("super_resolution", tmp_path, "--steps", "300") > 35.9
