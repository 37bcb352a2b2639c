"""The former name of `flambeau.amp.GradScaler` for CUDA devices."""

from __future__ import annotations

from flambeau.amp._former import FormerGradScaler
from flambeau.amp.grad_scaler import OptState

__all__ = ["GradScaler", "OptState"]


class GradScaler(FormerGradScaler):
    """`flambeau.amp.GradScaler` of CUDA devices."""

    _former_device = "cuda"
