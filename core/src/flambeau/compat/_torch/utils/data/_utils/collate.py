"""Names of ``torch.utils.data._utils.collate`` that only programs for PyTorch want."""

from __future__ import annotations

import re

__all__ = ["np_str_obj_array_pattern"]

np_str_obj_array_pattern = re.compile(r"[SaUO]")
"""Which dtypes of NumPy are texts or objects."""
