"""Warnings that point at the line of the user's program, however many of our calls lie between."""

from __future__ import annotations

import sys
import warnings


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the call by which the program entered flambeau.

    A fixed `stacklevel` would not do: the same function is called by methods, and through
    ``__torch_function__`` once there are subclasses of Tensor.

    Args:
        message: the text.
        category: the class of the warning.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     warn("deprecated", FutureWarning)
    >>> seen[0].category.__name__, str(seen[0].message)
    ('FutureWarning', 'deprecated')
    """
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def where() -> str:
    """The file and line of the program's call by which it entered flambeau."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _is_ours(module: str) -> bool:
    return module == "flambeau" or module.startswith("flambeau.")
