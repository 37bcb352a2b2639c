"""Which PyTorch the name ``torch`` says it is."""

from __future__ import annotations

import flambeau
from flambeau.compat._torch.torch_version import TorchVersion

VERSIONS = {"1.2": "1.2.0", "2.13": "2.13.0"}
"""What programs can be told: a version of their time, and the one whose behaviour this is."""
DEFAULT = "2.13"

_current = DEFAULT


def choose(name: str) -> str:
    """Set the version that is told from now on, and return the one before.

    Raises:
        ValueError: it is none of `VERSIONS`.
    """
    global _current
    if name not in VERSIONS:
        raise ValueError(f"torch can be {' or '.join(VERSIONS)}, not {name!r}")
    before, _current = _current, name
    return before


def version() -> TorchVersion:
    """What ``torch.__version__`` is, such as ``2.13.0+flambeau0.1.0``."""
    return TorchVersion(f"{VERSIONS[_current]}+flambeau{flambeau.__version__}")
