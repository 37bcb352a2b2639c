"""Arguments that are not what a signature tells, found out after they have done harm."""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import os
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

from flambeau._dispatch.dispatch import is_tensor, out_of_memory, said_on_purpose

Params = ParamSpec("Params")
Result = TypeVar("Result")
_TELLS_NOTHING = (AttributeError, ArithmeticError, KeyError, MemoryError, TypeError, ValueError)
_OF_OURS = (KeyError, MemoryError, TypeError, ValueError)


def takes_as_annotated(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """A decorator: what is not of the kind that the signature tells ends in an error that says so.

    Arguments are looked at only after the function has failed in a way that tells its caller
    nothing: an attribute was missing, a number too large for a float, an error was not raised by
    flambeau but by the interpreter or an array library.  Where all are what they
    should be, that error goes on as it is, except that arithmetic of flambeau's own that fails is a
    ValueError, as is text that no file can have (lone surrogates) or be called (NUL), and that an
    attribute which an argument lacks, or a part of one, is a TypeError that names the argument.
    For functions that are not called in inner loops.

    >>> from flambeau._dispatch.annotated import takes_as_annotated
    >>> @takes_as_annotated
    ... def half(x: float) -> float: return x.__float__() / 2
    >>> half("x")
    Traceback (most recent call last):
    TypeError: half(): argument 'x' must be float, not str
    """

    @functools.wraps(function)
    def checked(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except _TELLS_NOTHING as error:
            if isinstance(error, _OF_OURS) and said_on_purpose(error):
                raise
            worded = misfit(function, args, kwargs)
            if worded is None and isinstance(error, (TypeError, ValueError)):
                worded = _foreign(function, args, kwargs)
            if worded is None and isinstance(error, MemoryError):
                worded = out_of_memory(_title(function), error, args)
            if worded is None and isinstance(error, ValueError):
                worded = _unwritable(function, args, kwargs, error)
            if worded is None and isinstance(error, ArithmeticError) and _is_ours(error):
                worded = ValueError(f"{_title(function)}(): no result for these numbers: {error}")
            if worded is None and isinstance(error, AttributeError) and _is_ours(error):
                worded = _lacking(function, args, kwargs, error)
            if worded is None:
                raise
            raise worded from error

    return checked


def _title(function: Callable[..., Any]) -> str:
    """The name of a function, or of the class whose constructor it is."""
    return function.__qualname__.removesuffix(".__init__").rpartition(".")[2].lstrip("_")


def _is_ours(error: Exception) -> bool:
    """Whether an error arose in flambeau and not in a function that it was given."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and at.tb_frame.f_globals.get("__name__", "").startswith("flambeau")


def _lacking(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    error: AttributeError,
) -> Exception | None:
    """What to raise for the argument that has not the attribute which was looked for.

    None if it is no argument, nor within one, if it is what the annotation asks for, or if a class
    says so itself.
    """
    lacks = error.obj
    if error.name is None or said_on_purpose(error):
        return None
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    names = inspect.unwrap(function).__globals__
    for argument, value in given.items():
        if lacks is value and _classes(signature.parameters[argument].annotation, names):
            continue
        if argument != "self" and _within(lacks, value):
            kind = f"type {lacks.__name__}" if isinstance(lacks, type) else type(lacks).__name__
            where = "" if lacks is value else "contain "
            return TypeError(
                f"{_title(function)}(): argument {argument!r} cannot {where or 'be '}{kind}, "
                f"which has no {error.name!r}"
            )
    return None


def _within(part: object, value: object, depth: int = 3) -> bool:
    """Whether something is a value, or in it where that is a container of Python."""
    if part is value:
        return True
    if not depth or not isinstance(value, list | tuple | dict | set):
        return False
    items = [*value, *value.values()] if isinstance(value, dict) else value
    return any(_within(part, item, depth - 1) for item in items)


def _unwritable(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: ValueError
) -> Exception | None:
    """What to raise for text that no file can have, or no name of one; None if it is not that."""
    if not isinstance(error, UnicodeEncodeError):
        if not re.search("embedded (null|NUL)", str(error)):
            return None
        texts = (text for value in [*args, *kwargs.values()] for text in _texts(value))
        path = next((text for text in texts if "\0" in text), None)
        if path is None:
            return None
        return ValueError(f"{_title(function)}(): no file can have the name {_short(path)}: a NUL")
    odd = error.object[error.start : error.end][:20]
    within = "" if error.object == odd else f" in {_short(error.object)}"
    return ValueError(f"{_title(function)}(): there is no UTF-8 of the text {odd!r}{within}")


def _texts(value: object) -> Iterator[str]:
    """The names of files among arguments."""
    for item in _items(value):
        with contextlib.suppress(Exception):  # a path of its own class is what that makes of it
            yield os.fsdecode(item)


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:60]}...{text[-17:]}")


def _foreign(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Exception | None:
    """What to raise for the first argument that is an array of another library, or has one in it,
    whose terms the error speaks in; None if there is none."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return None
    for argument, value in given.items():
        for item in _items(value):
            if isinstance(getattr(type(item), "__array__", None), Callable) and not is_tensor(item):
                shape = getattr(item, "shape", ())
                return TypeError(
                    f"{_title(function)}(): argument {argument!r} cannot be taken as an array of "
                    f"{type(item).__module__}.{type(item).__name__} of dtype "
                    f"{getattr(item, 'dtype', None)} and shape {tuple(shape)}"
                )
    return None


def _items(value: object, depth: int = 2) -> Iterator[Any]:
    """What is in lists and tuples, and in those in them."""
    if depth and isinstance(value, (list, tuple)):
        for item in value:
            yield from _items(item, depth - 1)
    else:
        yield value


def all_take_as_annotated(names: dict[str, Any]) -> None:
    """At the end of a module, with its ``globals()``: the same of all that is defined there.

    It concerns functions, and constructors and methods of classes, whose names have no underscore.
    """
    here = names["__name__"]
    for name, found in list(names.items()):
        if name.startswith("_") or getattr(found, "__module__", "") != here:
            continue
        if isinstance(found, types.FunctionType):
            names[name] = takes_as_annotated(found)
        elif isinstance(found, type):
            for method, function in list(vars(found).items()):
                named = method == "__init__" or not method.startswith("_")
                if named and isinstance(function, types.FunctionType):
                    setattr(found, method, takes_as_annotated(function))


def methods_take_as_annotated(cls: type, *names: str) -> None:
    """For ``__init_subclass__`` of a base class: the same of constructors and of these methods.

    It concerns the classes of flambeau: what annotations mean in those of others, they decide.
    """
    if cls.__module__.startswith("flambeau."):
        for name in ("__init__", *names):
            if (function := vars(cls).get(name)) is not None:
                setattr(cls, name, takes_as_annotated(function))


def misfit(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str = ""
) -> Exception | None:
    """What to raise for the first argument that is not what the annotations of a function tell.

    None if they all are, as far as can be told.  The error speaks of `name`, else of the function
    or of the class whose constructor it is.
    """
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    name = name or _title(function)
    for argument, value in given.items():
        parameter = signature.parameters[argument]
        several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if several or (value is None and parameter.default is None):
            continue
        names = inspect.unwrap(function).__globals__
        annotation = parameter.annotation
        if argument == "self" and annotation is parameter.empty:
            annotation = names.get(function.__qualname__.rpartition(".")[0], annotation)
        kinds = _classes(annotation, names)
        refusals = [_refusal(value, kind) for kind in kinds]
        if not kinds or None in refusals:
            continue
        if any(isinstance(refusal, OverflowError) for refusal in refusals):
            return RuntimeError(
                f"{name}(): argument {argument!r}: value cannot be converted to type double "
                "without overflow"
            )
        wanted = " or ".join(kind.__name__ for kind in kinds)
        return TypeError(
            f"{name}(): argument {argument!r} must be {wanted}, not {type(value).__name__}"
        )
    return None


def _classes(annotation: Any, names: dict[str, Any]) -> list[type]:
    """The classes that an annotation allows beside None; none if it is not known or allows all."""
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, names)
        except Exception:  # a name that is there for type checkers alone
            return []
    if isinstance(annotation, TypeVar):
        annotation = annotation.__bound__
    if annotation in (None, inspect.Parameter.empty):
        return []
    union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    parts = typing.get_args(annotation) if union else (annotation,)
    found = [typing.get_origin(part) or part for part in parts]
    if not all(isinstance(kind, type) and kind not in (Any, object) for kind in found):
        return []
    return [kind for kind in found if kind is not type(None)]


_OF_PARTS = (Sequence, Iterable, Collection)


def _refusal(value: object, kind: type) -> Exception | None:
    """Why a value is not of a class; what becomes a number counts as one."""
    become = {float: float, int: operator.index}.get(kind)
    try:
        if become is not None and not isinstance(value, str | bytes):
            become(value)
        elif issubclass(kind, typing.IO):  # which the files of Python do not derive from
            if not (hasattr(value, "read") or hasattr(value, "write")):
                return TypeError("no file")
        elif not isinstance(value, kind) or (
            kind in _OF_PARTS and isinstance(value, str | bytes)  # whose parts are strings again
        ):
            return TypeError(f"not {kind.__name__}")
    except Exception as error:
        return error
    return None
