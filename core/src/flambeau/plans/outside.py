"""Random numbers that are not of this library, which no plan can draw."""

from __future__ import annotations

import pickle
import random
import sys

__all__ = ["drawn"]


def drawn() -> tuple[object, ...]:
    """How far the generators that Python and NumPy have for everybody have come."""
    found: list[object] = [random.getstate()]
    if (numpy := sys.modules.get("numpy.random")) is not None:
        found.append(pickle.dumps(numpy.get_state(legacy=False)))
    return tuple(found)
