"""Parts of the text of a tensor, as classes of tensors put them together."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau._tensor import printing

__all__ = ["PRINT_OPTS", "_add_suffixes", "_str", "_str_intern", "_tensor_str"]

PRINT_OPTS = printing._options


def _tensor_str(self: fb.Tensor, indent: int) -> str:
    """The numbers in brackets."""
    return printing._contents(self.detach(), indent) if self.numel() else "[]"


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """A text that is closed by facts, each on a new line if the current one has no room."""
    if not force_newline or not suffixes:
        return printing._append(tensor_str, suffixes, indent)
    first = f"{tensor_str},\n{' ' * indent}{suffixes[0]}"
    return printing._append(first, suffixes[1:], indent)


def _str_intern(inp: Any, *, tensor_contents: str | None = None) -> str:
    """The whole text of a tensor, with another text in place of its numbers if one is given."""
    return printing.tensor_repr(inp, tensor_contents=tensor_contents)


_str = _str_intern
