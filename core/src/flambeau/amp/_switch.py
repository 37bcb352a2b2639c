"""Where mixed precision is switched in: functions run other code while it is on somewhere.

A test in every function would cost those who never use mixed precision, and other functions under
the same names would not be seen by who holds one already (``from flambeau import matmul``). So a
listed function stays the object that it is, and while at least one block is open its ``__code__``
is one that asks for the setting of its thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import flambeau
from flambeau._api import functions as _functions
from flambeau._api import inplace_functions as _inplace_functions
from flambeau._dispatch.codes import code_that_calls, stand_ins, twin
from flambeau._tensor import overrides as _overrides
from flambeau._tensor.methods import TensorMethods
from flambeau._tensor.tensor import Tensor
from flambeau.amp._casts import Call, apart
from flambeau.amp._lists import IN_PLACE, ON_ACCELERATORS, ON_CPU
from flambeau.ops.declaration.table import Op
from flambeau.plugin.forks import make_lock

_lock = make_lock()
_open = 0  # blocks in all threads
_switches: dict[FunctionType, tuple[CodeType, CodeType]] = {}  # as it is, and what asks
_libraries = -1  # how many had been looked at


def count_in() -> None:
    """Note that a block has begun."""
    global _open
    with _lock:
        if not _open:
            _install()
        _open += 1


def count_out() -> None:
    """Note that a block has ended; with the last one, functions are what they were."""
    global _open
    with _lock:
        _open -= 1
        if not _open:
            for function, (plain, _) in _switches.items():
                function.__code__ = plain


def moved(function: FunctionType, to: FunctionType) -> None:
    """Note that another function does from now on what a function did, in blocks too."""
    with _lock:
        if function in _switches:
            _switches[to] = _switches.pop(function)


class _Held(threading.local):
    on = False


_held = _Held()  # whether this thread has switched functions on without a block


def hold(on: bool) -> None:
    """Let functions ask, or no longer, for settings of this thread that no block ends."""
    if on is not _held.on:
        _held.on = on
        (count_in if on else count_out)()


def _install() -> None:
    global _libraries
    if _libraries != len(_overrides.libraries):
        _libraries = len(_overrides.libraries)
        for name, function in _listed():
            if function not in _switches:
                _switches[function] = function.__code__, _asking(function, name)
    for function, (_, asking) in _switches.items():
        function.__code__ = asking


def _library_came(namespace: dict[str, Any]) -> None:
    """See to the functions of a library that is imported within a block."""
    with _lock:
        if _open:
            _install()


_overrides.on_library.append(_library_came)


def _listed() -> Iterator[tuple[str, FunctionType]]:
    """The functions that have a name of the lists."""
    for name in dict.fromkeys([*ON_CPU, *ON_ACCELERATORS]):
        above, _, last = name.rpartition(".")
        if name == IN_PLACE:
            continue
        if above:
            found = [getattr(getattr(flambeau, above), last)]
        else:
            found = [vars(place).get(last) for place in (_functions, TensorMethods, Tensor)]
            found += [namespace.get(last) for namespace in _overrides.libraries]
        yield from ((name, function) for function in _plain(found))
        places = (_functions, _inplace_functions, TensorMethods, Tensor)
        found = [] if above else [vars(place).get(f"{last}_") for place in places]
        yield from ((IN_PLACE, function) for function in _plain(found))
    yield "", Op.chooser  # type: ignore[misc] - a function of a class


def _plain(found: list[Any]) -> Iterator[FunctionType]:
    for function in found:
        if isinstance(function, _overrides.Overridable):
            function = function._function
        if isinstance(function, FunctionType):
            yield stand_ins.get(function, function)


def _asking(function: FunctionType, name: str) -> CodeType:
    """Code with the parameters of a function that leaves the rest to `Call`."""
    code = function.__code__
    plain = twin(function)
    by_place = code.co_varnames[: code.co_argcount]
    by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    rest = list(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :])
    parameters, given = [*by_place], [*by_place]
    if code.co_posonlyargcount:
        parameters.insert(code.co_posonlyargcount, "/")
    if code.co_flags & 0x04:  # *args
        parameters.append(f"*{rest[0]}")
        given.append(f"*{rest.pop(0)}")
    elif by_name:
        parameters.append("*")
    parameters += by_name
    given += [f"{n}={n}" for n in by_name]
    if code.co_flags & 0x08:  # **kwargs
        parameters.append(f"**{rest[0]}")
        given.append(f"**{rest[0]}")
    asks: Callable[..., Any] = Call(name, plain, by_place) if name else apart(plain)
    return code_that_calls(code, ", ".join(parameters), ", ".join(given), asks)
