"""The compiled module, or None where the package was installed without a compiler.

Raises:
    ImportError: it is older than the sources beside it.
"""

from __future__ import annotations

import os
from typing import Any

native: Any
try:
    from flambeau_native import _native as native  # type: ignore[attr-defined] - compiled
except ImportError:
    native = None
else:
    from flambeau_native.sources import demand_those_of

    demand_those_of(native)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=native.after_fork)
