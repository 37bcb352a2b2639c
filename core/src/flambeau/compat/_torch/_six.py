"""Names of Python 2 and 3, as PyTorch 1 exported them."""

from __future__ import annotations

import builtins
import collections.abc as container_abcs
import queue
from io import StringIO
from math import inf, nan

__all__ = [
    "PY2",
    "PY3",
    "PY37",
    "FileNotFoundError",
    "StringIO",
    "builtins",
    "container_abcs",
    "inf",
    "int_classes",
    "istuple",
    "nan",
    "queue",
    "string_classes",
    "with_metaclass",
]

PY2, PY3, PY37 = False, True, True
FileNotFoundError = builtins.FileNotFoundError
string_classes = (str, bytes)
int_classes = int


def istuple(obj: object) -> bool:
    """Whether it is a tuple."""
    return isinstance(obj, tuple)


def with_metaclass(meta: type, *bases: type) -> type:
    """A class with this metaclass and these bases."""
    return meta("temporary_class", bases, {})
