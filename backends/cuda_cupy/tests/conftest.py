"""Lets the tests of this folder import what stands beside them, and marks what needs a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

pytest.importorskip("flambeau_cupy", reason="needs flambeau-cupy")
