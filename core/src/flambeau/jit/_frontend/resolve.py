"""What the names in a source mean outside of it."""

from __future__ import annotations

import ast
import builtins
import contextlib
import math
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType

    from flambeau.jit._types import Type


class _Outside(threading.local):
    """The scopes of who compiles now, for names that a source does not close over."""

    scopes: tuple[Mapping[str, Any], ...] = ()


_outside = _Outside()


@contextlib.contextmanager
def seen_from(frame: FrameType, also: Mapping[str, Any]) -> Iterator[None]:
    """A block in which what a frame sees, and some names more, may be named in types and texts."""
    before = _outside.scopes
    _outside.scopes = (*before, also, frame.f_locals)
    try:
        yield
    finally:
        _outside.scopes = before


class Resolver:
    """Looks names up: in dictionaries, one after another, and among scripted functions.

    Attributes:
        scripted: functions and types that the source may name before Python's objects.
    """

    def __init__(
        self,
        *scopes: Mapping[str, Any],
        scripted: Callable[[str], Any] | None = None,
        types: Mapping[str, Type] | None = None,
        known: bool = True,
    ) -> None:
        self.scopes, self.scripted, self.types, self.known = scopes, scripted, types or {}, known

    def lookup(self, name: str) -> object:
        """The object of a name.

        Raises:
            KeyError: there is none.
        """
        if self.scripted is not None and (found := self.scripted(name)) is not None:
            return found
        for scope in self.scopes:
            if name in scope:
                return scope[name]
        for scope in _outside.scopes if self.known else ():
            if name in scope:
                return scope[name]
        if self.known and name in ("torch", "math"):
            return sys.modules["flambeau"] if name == "torch" else math
        return vars(builtins)[name]

    def type_of_name(self, written: str) -> Type | None:
        """The type of a dotted name that no object of Python stands for."""
        return self.types.get(written)

    def evaluate(self, node: ast.expr) -> Any:
        """The object that a dotted name, or a subscript of one, stands for."""
        if isinstance(node, ast.Name):
            return self.lookup(node.id)
        if isinstance(node, ast.Attribute):
            return getattr(self.evaluate(node.value), node.attr)
        if isinstance(node, ast.Subscript):
            return self.evaluate(node.value)[self.evaluate(node.slice)]
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Tuple):
            return tuple(map(self.evaluate, node.elts))
        raise KeyError(ast.unparse(node))


def of_function(fn: Callable[..., Any]) -> Resolver:
    """What a function sees: its closure and its globals."""
    closure: dict[str, Any] = {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
        try:
            closure[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return Resolver(closure, fn.__globals__)


class _Frames:
    """The names that are bound where a source is compiled: of the caller and who called it."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __contains__(self, name: object) -> bool:
        return self._find(name) is not None

    def __getitem__(self, name: str) -> Any:
        scope = self._find(name)
        if scope is None:
            raise KeyError(name)
        return scope[name]

    def _find(self, name: object) -> Any:
        frame = self.frame
        return next((s for s in (frame.f_locals, frame.f_globals) if name in s), None)


def of_caller(depth: int) -> Resolver:
    """What the caller sees, so many calls up.

    Raises:
        ValueError: there are not so many calls.
    """
    frames: Any = _Frames(frame_of(depth + 1))
    return Resolver(frames)


def frame_of(depth: int) -> FrameType:
    """The frame of the caller, or of who called it, so many calls up.

    Raises:
        ValueError: there are not so many calls.
    """
    left: int = depth + 1
    frame: FrameType | None = sys._getframe(0) if depth >= 0 else None
    while frame is not None and left:
        frame = frame.f_back
        # What checks arguments calls for the program, and is none of its frames.
        left -= frame is None or frame.f_globals.get("__name__") != "flambeau._dispatch.annotated"
    if frame is None:
        raise ValueError(f"_frames_up: there are no {depth} calls further up")
    return frame
