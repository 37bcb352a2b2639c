"""The digits of `data` in the form of TensorFlow 1's tutorials, which old programs read."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np

_spec = importlib.util.spec_from_file_location(
    "programs_data", Path(__file__).parents[5] / "data.py"
)
_data = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_data)


class _Part:
    def __init__(self, count, seed, one_hot):
        images, labels = _data.digits(count, seed)
        self.images = (images.reshape(count, 784) / 255).astype(np.float32)
        self.labels = np.eye(10)[labels] if one_hot else labels
        self._at = 0

    def next_batch(self, size):
        chosen = np.arange(self._at, self._at + size) % len(self.images)
        self._at += size
        return self.images[chosen], self.labels[chosen]


def read_data_sets(folder, one_hot=False):
    """Parts named train and test."""
    return SimpleNamespace(
        train=_Part(640, 0, one_hot), test=_Part(320, 1, one_hot), validation=_Part(320, 1, one_hot)
    )
