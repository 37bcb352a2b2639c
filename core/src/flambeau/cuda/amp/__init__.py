"""Mixed precision on CUDA devices, by its former names: see `flambeau.amp`."""

from __future__ import annotations

from flambeau.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from flambeau.cuda.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
