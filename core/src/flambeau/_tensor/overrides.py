"""``__torch_function__``: subclasses of Tensor that see the calls made with them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, update_wrapper
from types import CodeType, FunctionType
from typing import Any

from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.codes import code_that_calls, twin
from flambeau._memory.record import state_of
from flambeau._tensor.tensor import Tensor
from flambeau.plugin.forks import make_lock

_disabled = 0

# Of classes with ``__torch_dispatch__``, once there is one; `flambeau.utils._wrapped` sets them:
# what programs get for the result of a function, and what is done instead of calling one.
delivered: Callable[[Any], Any] | None = None
instead: Callable[[str, tuple[Any, ...], dict[str, Any]], Any] | None = None


def run_plain(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function below ``__torch_function__``."""
    if delivered is None:
        return function(*args, **kwargs)
    if instead is not None and args:
        found = instead(getattr(function, "__name__", ""), args, kwargs)
        if found is not NotImplemented:
            return found
    return delivered(function(*args, **kwargs))


def run_disabled(
    func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
) -> Any:
    """A class's ``__torch_function__`` that treats its tensors as plain ones."""
    with DisableTorchFunctionSubclass():
        return run_plain(func, args, kwargs or {})


def wanted(args: Iterable[Any]) -> bool:
    """Whether an argument's class wants to see the call."""
    if _disabled:
        return False
    return any(
        type(a) not in _dispatch.PLAIN and hasattr(type(a), "__torch_function__") for a in args
    )


def call(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    seen: Iterable[Any] | None = None,
) -> Any:
    """Offer a call to the classes of its arguments (or of those `seen`), most derived first.

    Raises:
        TypeError: every class declines by returning NotImplemented.
    """
    types = _seeing([*args, *kwargs.values()] if seen is None else seen)
    result = _offer(func, types, args, kwargs)
    if result is not NotImplemented:
        return result
    names = ", ".join(t.__name__ for t in types)
    raise TypeError(
        f"no implementation found for {getattr(func, '__name__', func)!r} on types that implement "
        f"__torch_function__: [{names}]"
    )


def operate(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Offer a call of an operator; NotImplemented, after which Python asks the right operand."""
    return _offer(func, _seeing(args), args, kwargs)


def _seeing(values: Iterable[Any]) -> list[type]:
    types: list[type] = []
    for a in values:
        t = type(a)
        if t in _dispatch.PLAIN or t in types or not hasattr(t, "__torch_function__"):
            continue
        place = next((i for i, u in enumerate(types) if issubclass(t, u)), len(types))
        types.insert(place, t)
    return types


def _offer(
    func: Callable[..., Any], types: list[type], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    for t in types:
        result = t.__torch_function__(func, tuple(types), args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


class DisableTorchFunctionSubclass:
    """Context in which subclasses of Tensor are treated as Tensor."""

    def __enter__(self) -> None:
        global _disabled
        _disabled += 1

    def __exit__(self, *exc: object) -> None:
        global _disabled
        _disabled -= 1


def run_default(
    cls: type, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What `Tensor.__torch_function__` does: run, and give plain tensor results the subclass."""
    with DisableTorchFunctionSubclass():
        result = func(*args, **kwargs)
        return _converted(result, cls)


def _converted(result: Any, cls: type) -> Any:
    if type(result) in _dispatch.PLAIN and cls is not Tensor:
        result = _retyped(result, cls)
    elif type(result) in (tuple, list):
        return type(result)(_converted(r, cls) for r in result)
    return result


def _retyped(t: Tensor, cls: type) -> Any:
    # The result is fresh: moving its state over loses nothing.
    out = object.__new__(cls)
    state_of(out).update(state_of(t))
    return out


# What modes make of a call, while there are any; `function_modes` sets it.
in_modes: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any] | None = None


class Overridable:
    """A public function that offers its calls to the classes of its arguments.

    Equal to the function that it stands for, also as a key of a dictionary.
    """

    def __init__(self, function: Any) -> None:
        update_wrapper(self, function)
        self._function = self._plain = function
        self._code: CodeType = function.__code__
        self._noticed: CodeType | None = None

    def notice(self, on: bool) -> None:
        """Let modes see calls of the function itself, or no longer, whoever has kept it."""
        function = self._function
        if not on:
            if function.__code__ is self._noticed:
                function.__code__ = self._code
            self._plain = function
        elif function.__code__ is not self._noticed:
            code = self._code = function.__code__
            self._plain = twin(function)
            if self._noticed is None:
                self._noticed = code_that_calls(
                    code, "*args, **kwargs", "*args, **kwargs", self._called
                )
            function.__code__ = self._noticed

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        if in_modes is not None:
            found = in_modes(self, args, kwargs)
            if found is not NotImplemented:
                return found
        return self._plain(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if in_modes is not None:
            found = in_modes(self, args, kwargs)
            if found is not NotImplemented:
                return found
        if not _disabled:
            seen = [a for a in (*args, *kwargs.values()) if looks_at(type(a))]
            for a in args[:1]:
                if type(a) in (tuple, list):
                    seen += [x for x in a if looks_at(type(x))]
            if seen:
                return call(self, args, kwargs, seen)
        return run_plain(self._plain, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_function":  # not there yet
            raise AttributeError(name)
        try:
            return getattr(self._function, name)  # what only functions have: `__kwdefaults__`
        except AttributeError:
            of = getattr(self._function, "__name__", "a function")
            raise AttributeError(
                f"function {of!r} has no attribute {name!r}", name=name, obj=self
            ) from None

    def __eq__(self, other: object) -> bool:
        return self is other or other == self._function

    def __hash__(self) -> int:
        return hash(self._function)

    def __repr__(self) -> str:
        return repr(self._function)

    def __reduce__(self) -> str:
        return self.__qualname__  # type: ignore[attr-defined] - `update_wrapper` sets it


@cache
def looks_at(t: type) -> bool:
    """Whether a class of tensors, or of look-alikes, sees the calls made with its objects."""
    return t not in _dispatch.PLAIN and hasattr(t, "__torch_function__")


_intercepted = False
_offering = 0  # blocks of `offering_calls` in all threads
_lock = make_lock()
_overridables: dict[Callable[..., Any], Overridable] = {}
libraries: list[dict[str, Any]] = []
"""The namespaces of libraries, such as `flambeau.nn.functional`."""
on_library: list[Callable[[dict[str, Any]], None]] = []
"""Who is told of a new one."""

_Change = tuple[dict[str, Any], str, FunctionType]


def intercept_functions() -> None:
    """Let the public functions look for ``__torch_function__``: from the first subclass on.

    Until there is one, the check would be a cost on every call and find nothing.
    """
    global _intercepted
    if not _intercepted:
        _intercepted = True
        _intercept_own()


def offer_calls(namespace: dict[str, Any]) -> None:
    """Treat the functions that a library's module lists in ``__all__`` like those of flambeau."""
    if "__all__" not in namespace:
        raise ValueError("offer_calls(): the namespace of a module has '__all__'; this has not")
    libraries.append(namespace)
    with _lock:
        if _intercepted or _offering:
            changes = _intercept(namespace, namespace["__all__"])
            if not _intercepted:
                _own_changes.extend(changes)
        if _offering:
            _notice(True)
    for tell in on_library:
        tell(namespace)


@contextmanager
def offering_calls(namespace: dict[str, Any]) -> Iterator[None]:
    """A block in which the public functions look for ``__torch_function__`` in any case.

    Args:
        namespace: of a module whose functions make calls; what it has imported from flambeau
            looks too. Functions that were kept elsewhere, as in a dict, look for modes.
    """
    global _offering, _own_changes
    with _lock:
        if not _offering:
            _own_changes = [] if _intercepted else _intercept_own()
            _notice(True)
        _offering += 1
        users, changes = _offered.get(id(namespace), (0, []))
        if not users:
            known = [name for name, value in namespace.items() if _hashed(value) in _overridables]
            changes = _intercept(namespace, known)
        _offered[id(namespace)] = (users + 1, changes)
    try:
        yield
    finally:
        with _lock:
            users, changes = _offered.pop(id(namespace))
            if users > 1:
                _offered[id(namespace)] = (users - 1, changes)
            else:
                _undo(changes)
            _offering -= 1
            if not _offering:
                _notice(False)
                if not _intercepted:
                    _undo(_own_changes)


_own_changes: list[_Change] = []
_offered: dict[int, tuple[int, list[_Change]]] = {}
"""How many blocks offer the calls of a namespace, and what the first of them has changed there."""


def offered(function: Callable[..., Any]) -> Callable[..., Any]:
    """What looks for ``__torch_function__`` in the place of a public function; others as they are.

    A block of `offering_calls` has come before.
    """
    return _overridables.get(_hashed(function), function)


def original(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function under whose name another one looks for ``__torch_function__`` for a while."""
    if isinstance(function, Overridable) and not _intercepted:
        return function._function
    return function


_OF_LIBRARIES = (
    "_pack_padded_sequence",
    "_pad_packed_sequence",
    "_sample_dirichlet",
    "_standard_gamma",
)
"""Functions that libraries call and programs do not."""

_OF_TENSORS = (
    "allclose",
    "detach",
    "equal",
    "get_device",
    "is_complex",
    "is_distributed",
    "is_floating_point",
    "is_inference",
    "is_nonzero",
    "is_signed",
    "isclose",
)
"""Functions that are no ops, and that classes of the program see called all the same."""


_INPLACE = "flambeau._api.inplace_functions"


def _intercept_own() -> list[_Change]:
    import flambeau
    from flambeau._api import functions as _functions

    names = (*_functions.__all__, *_functions.METHODS)
    raw = {name: _functions.__dict__[name] for name in names}
    changes = _intercept(_functions.__dict__, names)
    public = flambeau.__dict__
    changes += _intercept(public, [n for n in names if n in public and public[n] is raw[n]])
    changes += _intercept(public, (*_OF_LIBRARIES, *_OF_TENSORS))
    changes += _intercept(public, sys.modules[_INPLACE].__all__)
    for namespace in libraries:
        changes += _intercept(namespace, namespace["__all__"])
    return changes


def _intercept(namespace: dict[str, Any], names: Iterable[str]) -> list[_Change]:
    changes: list[_Change] = []
    for name in names:
        function = namespace[name]
        if not isinstance(function, FunctionType):
            continue  # one of flambeau's own, seen already
        overridable = _overridables.get(function)
        if overridable is None:
            overridable = _overridables[function] = Overridable(function)
            overridable.__module__ = namespace["__name__"]  # pickle looks for it where it stands
        namespace[name] = overridable
        changes.append((namespace, name, function))
    return changes


def _notice(on: bool) -> None:
    for each in _overridables.values():
        each.notice(on)


def _undo(changes: list[_Change]) -> None:
    for namespace, name, function in changes:
        namespace[name] = function


def _hashed(value: object) -> Any:
    return value if isinstance(value, FunctionType) else None
