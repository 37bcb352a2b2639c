"""The version of PyTorch that this process says it has."""

from __future__ import annotations

from flambeau.compat._versions import version as _version
from flambeau.version import cuda, debug, git_version, hip

__all__ = ["cuda", "debug", "git_version", "hip", "xpu"]

xpu: str | None = None


def __getattr__(name: str) -> str:
    if name == "__version__":
        return _version()
    raise AttributeError(f"flambeau has no torch.version.{name}")
