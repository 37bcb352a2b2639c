"""Names of ``torch.hub`` that only programs for PyTorch want."""

from __future__ import annotations

import importlib.util
import os
import re
from urllib.request import urlopen

import flambeau as fb
from flambeau.compat._torch.utils.model_zoo import tqdm

__all__ = ["HASH_REGEX", "_check_module_exists", "_get_torch_home", "tqdm", "urlopen"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
"""The start of a checksum in the name of a file."""


def _get_torch_home() -> str:
    """The folder of what PyTorch's programs download."""
    return os.path.dirname(fb.hub.get_dir())


def _check_module_exists(name: str) -> bool:
    """Whether a module can be imported."""
    return importlib.util.find_spec(name) is not None
