"""What a trace does not see: arrays that kernels made of those of the trace without a node.

While any thread traces, the kernels of each device follow which arrays come from inputs. A tensor
that no node made, and whose array does, is no constant: keeping it as one would be wrong for
every other input.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from flambeau._dispatch import bound
from flambeau._dispatch.dispatch import OPS
from flambeau.jit._tracing.state import active, current, user_frame


class Arrays:
    """Arrays that come from the inputs of a trace, by identity.

    Attributes:
        fault: what was written to without a node, or None.
    """

    def __init__(self) -> None:
        self._alive: dict[int, Any] = {}
        self._origins: dict[int, str] = {}
        self.fault: str | None = None

    def add(self, array: object, origin: str = "") -> None:
        """Take an array in, with what made it if no node did."""
        key = id(array)
        self._origins[key] = origin
        try:  # without a callback, of which an interrupt would be printed and gone
            self._alive[key] = weakref.ref(array)
        except TypeError:
            self._alive[key] = lambda: array

    def origin(self, array: object) -> str | None:
        """What made an array, or None if it does not come from the inputs."""
        found = self._alive.get(id(array))
        if found is None or found() is not array:
            return None
        return self._origins[id(array)]

    def holds(self, values: Any) -> bool:
        """Whether one of these is an array of the trace."""
        for each in values:
            if type(each) in (tuple, list):
                if self.holds(each):
                    return True
            elif id(each) in self._alive and self.origin(each) is not None:
                return True
        return False

    def follow(self, name: str, args: tuple[Any, ...], result: Any, seen: bool) -> None:
        """Take in what a kernel made of arrays of the trace, and what it wrote to."""
        if not self.holds(args):
            return
        origin = "" if seen else f"{name}{line()}"
        writes = name.endswith("_") or name == "assign"
        if writes and not seen and self.fault is None and self.holds(args[:1]):
            self.fault = origin
        for each in (args[0], result) if writes else (result,):
            for array in each if type(each) in (tuple, list) else (each,):
                if hasattr(array, "shape") and self.origin(array) is None:
                    self.add(array, origin)


def line() -> str:
    """Which line of the program is running."""
    frame = user_frame()
    return "" if frame is None else f" at {frame.f_code.co_filename}:{frame.f_lineno}"


def followed() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """For each kernel of each device: whose attribute it is, its name, and one that is followed."""
    for device in set(bound._bound.values()):
        for name in {*OPS, *device.kernels, "part"}:
            if (kernel := vars(device).get(name)) is not None:
                yield device, name, _followed(name, kernel, device.to_array)


def _followed(
    name: str, kernel: Callable[..., Any], to_array: Callable[..., Any]
) -> Callable[..., Any]:
    def run(*args: object, **named: object) -> Any:
        result = kernel(*args, **named)
        recorder = active.recorder
        if recorder is not None:
            if result is not None and type(result) not in (tuple, list):
                result = to_array(result)
            given = (*args, *named.values())
            recorder.arrays.follow(name, given, result, current() is not recorder)
        return result

    run.__dict__.update(bound.facts_of(kernel))
    return run
