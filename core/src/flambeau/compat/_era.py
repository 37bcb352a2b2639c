"""What PyTorch 1.2 did otherwise, for programs that are told that it is here."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import flambeau.compat._earlier_distributed
import flambeau.compat._earlier_distributions
import flambeau.compat._earlier_warnings  # noqa: F401 - all add to what is earlier
from flambeau.compat._earlier import earlier

SETTINGS: dict[str, Any] = {
    "flambeau._tensor.attributes:ATTRIBUTES_TRAVEL": False,
    "flambeau._tensor.tensor:DATA_KEEPS_ITS_KIND": False,
    "flambeau.nn.functional.grid:ALIGNS_CORNERS": True,
    "flambeau.jit._settings:INLINES": True,
    "flambeau.jit._settings:RESAMPLES_WHOLE": True,
    "flambeau.ops.creation.creation:FULL_OF_DEFAULT_DTYPE": True,
    "flambeau.ops.layers.normalization:EPS_IS_POSITIVE": False,
    "flambeau.ops.randomness.random:BOUNDS_FIT_DTYPES": False,
    "flambeau.ops.randomness.sampling:STD_IS_POSITIVE": False,
    "flambeau._types.memory_format:KEEPS_ORDERS": False,
    "flambeau.optim.lr_scheduler._base:WARNS_OF_EPOCHS": False,
    "flambeau.serialization._save:AS_ARCHIVES": False,
    "flambeau.sparse._coo:COALESCED_BELOW": 0,
}
"""Names in modules, which say what they mean, and their values then."""

_WHOLE_OBJECTS = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
_WEIGHTS = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"


@contextmanager
def era(version: str) -> Iterator[None]:
    """A block in which defaults are those of a version.

    That `flambeau.load` reads whole objects is said by the environment variable that PyTorch has
    for it, so that processes that are started inherit it; what the environment says already holds.
    """
    if version != "1.2":
        yield
        return
    before: list[tuple[Any, str, Any]] = []
    asks = not {_WHOLE_OBJECTS, _WEIGHTS} & os.environ.keys()
    try:
        for place, value in SETTINGS.items():
            path, _, name = place.partition(":")
            try:
                module = importlib.import_module(path)
            except ModuleNotFoundError:
                continue  # flambeau.nn is a distribution of its own
            before.append((module, name, getattr(module, name)))
            setattr(module, name, value)
        if asks:
            os.environ[_WHOLE_OBJECTS] = "1"
        with earlier():
            yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
        if asks:
            os.environ.pop(_WHOLE_OBJECTS, None)
