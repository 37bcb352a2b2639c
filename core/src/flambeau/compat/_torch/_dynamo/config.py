"""Settings of the compiler: they can be set and read, and have no effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

cache_size_limit = recompile_limit = 8
suppress_errors = False
verbose = False
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
automatic_dynamic_shapes = True
optimize_ddp: bool | str = True


@contextmanager
def patch(**settings: object) -> Iterator[None]:
    """A block with these settings."""
    before = {name: globals()[name] for name in settings if name in globals()}
    globals().update(settings)
    try:
        yield
    finally:
        for name in settings:
            del globals()[name]
        globals().update(before)
