"""Checks of functions, and files, of data pipes."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from io import IOBase
from typing import Any, ClassVar

from flambeau.compat._torch.utils._import_utils import dill_available

__all__ = [
    "StreamWrapper",
    "_check_unpickable_fn",
    "get_file_binaries_from_pathnames",
    "get_file_pathnames_from_root",
    "match_masks",
    "validate_input_col",
    "validate_pathname_binary_tuple",
]


def validate_input_col(fn: Callable[..., Any], input_col: object) -> None:
    """Refuse a function that cannot be called with so many columns.

    Raises:
        ValueError: it takes fewer, or wants more.
    """
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except ValueError:  # written in C
        return
    given = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    name = getattr(fn.func if isinstance(fn, functools.partial) else fn, "__name__", repr(fn))
    kinds = inspect.Parameter
    by_name = [p for p in parameters if p.kind is kinds.KEYWORD_ONLY and p.default is p.empty]
    if by_name:
        raise ValueError(
            f"The function {name} takes {len(by_name)} non-default keyword-only parameters, which "
            "is not allowed."
        )
    places = [
        p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    many = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    wanted = any(p.default is p.empty for p in places[given:])
    if wanted or (len(places) < given and not many):
        raise ValueError(
            f"The function {name} takes {len(places)} parameters, but {given} are required."
        )


def _check_unpickable_fn(fn: object) -> None:
    """Warn of a function that cannot be sent to a process.

    Raises:
        TypeError: it is no function.
    """
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    inner: Any = fn.func if isinstance(fn, functools.partial) else fn
    code = getattr(inner, "__code__", None)
    if code is not None:
        local = bool(code.co_flags & inspect.CO_NESTED)
    else:
        local = "<locals>" in getattr(inner, "__qualname__", type(inner).__qualname__)
    kind = "Local" if local else "Lambda"
    if (local or getattr(inner, "__name__", "") == "<lambda>") and not dill_available():
        warnings.warn(
            f"{kind} function is not supported by pickle, please use regular python function or "
            "functools.partial instead.",
            stacklevel=2,
        )


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a name is as one of the patterns says; without patterns any is."""
    several = [masks] if isinstance(masks, str) else masks
    return not masks or any(fnmatch.fnmatch(name, mask) for mask in several)


def get_file_pathnames_from_root(
    root: str,
    masks: str | list[str],
    recursive: bool = False,
    abspath: bool = False,
    non_deterministic: bool = False,
) -> Iterator[str]:
    """The paths of the files in a folder, sorted, or of one file."""

    def refuse(error: OSError) -> None:
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
        raise error

    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield os.path.abspath(root) if abspath else root
        return
    for path, folders, files in os.walk(root, onerror=refuse):
        here = os.path.abspath(path) if abspath else path
        for name in files if non_deterministic else sorted(files):
            if match_masks(name, masks):
                yield os.path.join(here, name)
        if not recursive:
            break
        if not non_deterministic:
            folders.sort()


def get_file_binaries_from_pathnames(
    pathnames: Iterable[str], mode: str, encoding: str | None = None
) -> Iterator[tuple[str, StreamWrapper]]:
    """Pairs of a path and its file."""
    mode = f"r{mode}" if mode in ("b", "t") else mode
    for path in pathnames:
        if not isinstance(path, str):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        yield path, StreamWrapper(open(path, mode, encoding=encoding))  # noqa: SIM115


def validate_pathname_binary_tuple(data: object) -> None:
    """Refuse what is no pair of a path and a file.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(
            "pathname within the tuple should have string type pathname, but it is type "
            f"{type(data[0])}"
        )
    if not isinstance(data[1], (IOBase, StreamWrapper)):
        raise TypeError(
            "binary stream within the tuple should have IOBase or its subclasses as type, but it "
            f"is type {type(data[1])}"
        )


class StreamWrapper:
    """A file that is closed with this object, and with the last of those that are read from it."""

    session_streams: ClassVar[dict[Any, int]] = {}
    debug_unclosed_streams = False

    def __init__(
        self, file_obj: Any, parent_stream: StreamWrapper | None = None, name: str | None = None
    ) -> None:
        self.file_obj = file_obj
        self.child_counter = 0
        self.parent_stream = parent_stream
        self.close_on_last_child = False
        self.name = name
        self.closed = False
        if parent_stream is not None:
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v: object, depth: int = 0) -> None:
        """Close the files in nested lists, tuples and dicts."""
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, (dict, list, tuple)) and depth < 10:
            for each in v.values() if isinstance(v, dict) else v:
                cls.close_streams(each, depth + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["file_obj"], name)

    def close(self) -> None:
        """Close the file, once."""
        if self.closed:
            return
        self.closed = True
        StreamWrapper.session_streams.pop(self, None)
        parent = self.parent_stream
        if parent is not None:
            parent.child_counter -= 1
            if not parent.child_counter and parent.close_on_last_child:
                parent.close()
        if hasattr(self.file_obj, "close"):
            self.file_obj.close()

    def autoclose(self) -> None:
        """Close the file with the last that is read from it; now if there is none."""
        self.close_on_last_child = True
        if not self.child_counter:
            self.close()

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name},"
        return f"StreamWrapper<{name}{self.file_obj!r}>"
