"""What this library was built with: nothing, so it says what it runs on."""

from __future__ import annotations

import flambeau as fb
from flambeau._cli.overview import overview
from flambeau.plugin.host import host

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Devices, packages and versions, as ``python -m flambeau`` prints them."""
    return overview(host)


def parallel_info() -> str:
    """How many threads compute."""
    return f"flambeau parallel settings:\n\tthreads : {fb.get_num_threads()}\n"
