"""Lets the tests of this folder import `torch_oracle`, which stands beside them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
