"""The checksum of checkpoints, CRC-32: by ISA-L where the package `isal` is installed.

It sums tens of gigabytes a second, zlib of Python three, which is most of the time of a load.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable

__all__ = ["crc32"]

crc32: Callable[..., int]
"""The checksum of bytes, going on from that of the bytes before them."""

try:
    crc32 = importlib.import_module("isal.isal_zlib").crc32
except ImportError:
    crc32 = zlib.crc32
