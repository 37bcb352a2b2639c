"""The checksum of checkpoints, CRC-32: by ISA-L where the package `isal` is installed.

It sums tens of gigabytes a second, zlib of Python three, which is most of the time of a load.
"""

from __future__ import annotations

try:
    from isal.isal_zlib import crc32  # pyright: ignore[reportMissingImports] - optional
except ImportError:
    from zlib import crc32

__all__ = ["crc32"]
