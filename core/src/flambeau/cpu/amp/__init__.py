"""Mixed precision on CPUs, by its former names: see `flambeau.amp`."""

from __future__ import annotations

from flambeau.cpu.amp.autocast_mode import autocast
from flambeau.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
