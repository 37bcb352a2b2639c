"""Event files for TensorBoard hold what PyTorch's hold."""

from __future__ import annotations

import re

import numpy as np
import pytest

import flambeau as fb

torch = pytest.importorskip("torch")
pytest.importorskip("tensorboard", reason="tensorboard is not installed")
pytest.importorskip("torch.utils.tensorboard")


def written(lib, writers, folder):
    """The events of every file, without times and pictures, and the other files' texts."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    with writers.SummaryWriter(str(folder), purge_step=1) as w:
        w.add_scalar("a", lib.tensor(1.5, requires_grad=True), 3)
        w.add_scalar("n", np.float64(0.1), 4, new_style=True)
        w.add_scalar("n2", 0.1, 4, new_style=True, double_precision=True)
        w.add_scalars("g/x", {"p": 1, "q": lib.ones(1)}, 2)
        w.add_histogram("h", lib.linspace(-2, 2, 50), 1)
        w.add_histogram("h2", np.arange(20.0), 1, bins="auto")
        w.add_histogram("h3", lib.arange(100.0).sin(), 1, bins=20, max_bins=5)
        w.add_histogram("h4", lib.arange(10), 1)
        w.add_histogram("h5", lib.arange(10.0), 1, bins=[0, 1, 5, 9])
        w.add_image("i", lib.arange(60.0).reshape(3, 4, 5) / 60, 1)
        w.add_image("i2", np.zeros((4, 5, 3), dtype=np.uint8), 1, dataformats="HWC")
        w.add_image("i3", lib.ones(4, 5), dataformats="HW")
        w.add_text("t", "hello", 1)
        w.add_audio("s", lib.sin(lib.arange(100.0) / 5), 1, 8000)
        labels, scores = lib.tensor([0, 1, 1, 0]), lib.tensor([0.1, 0.9, 0.4, 0.6])
        w.add_pr_curve("pr", labels, scores, 1, num_thresholds=11)
        w.add_hparams({"lr": 0.1, "n": None}, {"acc": 0.5}, run_name="hp")
        w.add_custom_scalars({"A": {"x": ["Multiline", ["a"]], "y": ["Margin", ["a", "b", "c"]]}})
        w.add_embedding(lib.eye(3), ["x", "y", "z"], global_step=2, tag="e")
    w.add_scalar("again", 1)
    w.close()
    found = {}
    for path in sorted(folder.rglob("*"), key=lambda p: (p.stat().st_mtime_ns, str(p))):
        where = str(path.relative_to(folder).parent)
        if "tfevents" in path.name:
            for event in EventFileLoader(str(path)).Load():
                event.wall_time = 0
                said = re.sub("encoded_image_string.*|source_metadata.*", "", str(event))
                found.setdefault(where, []).append(said)
        elif path.is_file():
            found[f"{where}/{path.name}"] = path.read_text()
    return found


def test_all_that_is_written_is_what_pytorch_writes(tmp_path):
    import torch.utils.tensorboard as theirs

    import flambeau.utils.tensorboard as ours

    said = []
    for lib, writers in ((fb, ours), (torch, theirs)):
        folder = tmp_path / lib.__name__
        folder.mkdir()
        said.append(written(lib, writers, folder))
    assert said[0].keys() == said[1].keys()
    for where, events in said[0].items():
        assert events == said[1][where], where
