"""The former name of `flambeau.amp.GradScaler` for CPUs."""

from __future__ import annotations

from flambeau.amp._former import FormerGradScaler

__all__ = ["GradScaler"]


class GradScaler(FormerGradScaler):
    """`flambeau.amp.GradScaler` of CPUs."""

    _former_device = "cpu"
