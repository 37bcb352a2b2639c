"""Names that templates use in places which the generator fills; imports of them are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
RETURNS: TypeAlias = Any  # the type of a result

# What a template says of some of its expansions only: blocks of the others are left out.
METHOD: bool = True
RECORDS: bool = True

# Expressions, and arguments taken and passed.
DTYPE: Any = None
FITTING: Any = None
FLOATING: Any = None
GENERAL: Any = None
LISTED: Any = None
PASSED: Any = ()
SAVED: Any = None
SAVES: Any = None
SUMMABLE: Any = None
UNFIT: Any = None


def FIRST() -> None:
    """Stands for the first statements of a function."""


def FORMS() -> Callable[[F], F]:
    """Stands for the overloads of a method."""
    return lambda function: function
