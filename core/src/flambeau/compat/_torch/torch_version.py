"""Versions that compare with text and with tuples of numbers, as ``torch.__version__`` does."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = ["TorchVersion"]

_RELEASE = re.compile(r"\s*v?(\d+(?:\.\d+)*)((?:a|b|rc|\.?dev)\d*)?")


def _order(value: str | Iterable[Any]) -> tuple[tuple[int, ...], bool, str, str]:
    """What versions are ordered by: numbers without trailing zeros, final ones last, local part.

    Raises:
        ValueError: it is no version.
    """
    text = value if isinstance(value, str) else ".".join(str(part) for part in value)
    found = _RELEASE.match(text)
    if found is None:
        raise ValueError(f"Invalid version: {text!r}")
    numbers = [int(part) for part in found[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    before = found[2] or ""
    return tuple(numbers), not before, before, text.partition("+")[2]


class TorchVersion(str):
    """A version as text that orders as a version.

    >>> from flambeau.compat._torch.torch_version import TorchVersion
    >>> TorchVersion("2.13.0+flambeau0.1.0") >= (2, 4), TorchVersion("2.13.0") > "2.9"
    (True, True)
    """

    def _compare(self, other: object) -> int | None:
        if not isinstance(other, str | Iterable):
            return None
        try:
            mine, theirs = _order(self), _order(other)
        except ValueError:
            return (str(self) > str(other)) - (str(self) < str(other))
        return (mine > theirs) - (mine < theirs)

    def __lt__(self, other: object) -> bool:
        return NotImplemented if (found := self._compare(other)) is None else found < 0

    def __le__(self, other: object) -> bool:
        return NotImplemented if (found := self._compare(other)) is None else found <= 0

    def __gt__(self, other: object) -> bool:
        return NotImplemented if (found := self._compare(other)) is None else found > 0

    def __ge__(self, other: object) -> bool:
        return NotImplemented if (found := self._compare(other)) is None else found >= 0

    def __eq__(self, other: object) -> bool:
        return self._compare(other) == 0

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__
