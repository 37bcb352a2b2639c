"""What PyTorch 1.2 did by default, for programs that are told that it is here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_WHOLE_OBJECTS = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
_WEIGHTS = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"


@contextmanager
def era(version: str) -> Iterator[None]:
    """A block in which `flambeau.load` reads whole objects if the version is 1.2.

    It is the environment variable that PyTorch has for this, so processes that are started inherit
    it; if the environment already says something, that holds.
    """
    if version != "1.2" or {_WHOLE_OBJECTS, _WEIGHTS} & os.environ.keys():
        yield
        return
    os.environ[_WHOLE_OBJECTS] = "1"
    try:
        yield
    finally:
        os.environ.pop(_WHOLE_OBJECTS, None)
