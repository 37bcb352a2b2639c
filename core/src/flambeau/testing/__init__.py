"""Tools for testing: `assert_close` and `make_tensor`, the samples, device ``ref`` and the kit.

The conformance kit for backends is run with ``pytest --pyargs flambeau.testing.backend --device
cpu``; see `flambeau.testing.backend`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from flambeau.absence import tell as _tell

if TYPE_CHECKING:
    from flambeau.testing._comparison import assert_close as assert_close
    from flambeau.testing._file_check import FileCheck as FileCheck
    from flambeau.testing._making import make_tensor as make_tensor

__all__ = ["FileCheck", "assert_close", "make_tensor"]

# Device ``ref`` and the pytest plugin live in this package and need neither of these names.
_HOMES = {
    "FileCheck": "_file_check",
    "assert_close": "_comparison",
    "make_tensor": "_making",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_tell(__name__)
