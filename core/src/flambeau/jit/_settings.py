"""How graphs are written: `flambeau.compat._era` sets what PyTorch 1.2 had otherwise."""

from __future__ import annotations

INLINES = False
"""Whether what a program calls stands in its graph from the beginning, in the place of the call."""
RESAMPLES_WHOLE = False
"""Whether scripts have `interpolate` as one op; its parts are ops that are seen in traces."""
