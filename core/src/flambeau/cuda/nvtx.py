"""Ranges and marks for NVIDIA's profilers."""

from __future__ import annotations

from flambeau.accelerator._namespace import namespace as _namespace

_ranges = _namespace("cuda").nvtx

mark = _ranges.mark
range = _ranges.range
range_pop = _ranges.range_pop
range_push = _ranges.range_push

__all__ = ["mark", "range", "range_pop", "range_push"]
