"""Modules called at the same time, each in a thread and on a device of its own."""

from __future__ import annotations

import contextvars
import threading
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import flambeau as fb
from flambeau.nn.module import Module
from flambeau.nn.parallel._places import Device, device_type, placed, tensors_in

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Device | None] | None = None,
) -> list[Any]:
    """``modules[i](*inputs[i], **kwargs_tup[i])`` for every i, in threads; their results.

    An input that is no tuple or list is the single argument.  In each thread the device of the
    module's input, or ``devices[i]``, is the current one; its current stream, gradient recording,
    default device and the like are as in the caller.

    Raises:
        AssertionError: the sequences have different lengths.
        Exception: of the class that the first failing module raised, naming it.
        BaseException: what is no `Exception`, such as KeyboardInterrupt, as it was raised.

    >>> import flambeau as fb
    >>> layers = [fb.nn.Identity(), fb.nn.ReLU()]
    >>> fb.nn.parallel.parallel_apply(layers, [fb.tensor([-1]), fb.tensor([-1])])
    [tensor([-1]), tensor([0])]
    """
    count = len(modules)
    for what, given in (("inputs", inputs), ("kwargs_tup", kwargs_tup), ("devices", devices)):
        if given is not None and len(given) != count:
            raise AssertionError(
                f"The number of modules {count} is not equal to the number of {what} {len(given)}"
            )
    named = kwargs_tup if kwargs_tup is not None else [{}] * count
    where = devices if devices is not None else [None] * count
    results: list[Any] = [None] * count
    failures: list[BaseException | None] = [None] * count
    # Threads of the runtime begin on other streams, which would not wait for what made the inputs.
    places = [_current(*given) for given in zip(where, inputs, named, strict=True)]

    def work(i: int) -> None:
        given = inputs[i]
        args = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        try:
            with places[i]:
                results[i] = modules[i](*args, **named[i])
        except BaseException as error:  # raised below, in the thread of the caller
            failures[i] = error

    if count == 1:
        work(0)
    else:
        threads = [
            # A thread would begin with the default modes; it gets those of its caller.
            threading.Thread(target=contextvars.copy_context().run, args=(work, i))
            for i in range(count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for i, failure in enumerate(failures):
        if isinstance(failure, Exception):
            raise _told(failure, i, where[i])
        if failure is not None:
            raise failure
    return results


def _current(device: Device | None, *given: object) -> AbstractContextManager[Any]:
    """The context in which the device of one call, and its stream, are the current ones."""
    if device is None:
        tensor = next(tensors_in(given), None)
        if tensor is None:
            return nullcontext()
        place = tensor.device
    else:
        place = placed(device, device_type(given))
    if place.type in ("cpu", "meta") or place.index is None:
        return nullcontext()
    devices = fb.accelerator.namespace(place.type)
    return devices.stream(devices.current_stream(place.index))


def _told(failure: Exception, i: int, device: Device | None) -> Exception:
    """The failure of replica `i` as an exception of the same class that tells where it was."""
    trace = "".join(traceback.format_exception(failure))
    where = "" if device is None else f" on device {device}"
    message = f"Caught {type(failure).__name__} in replica {i}{where}.\nOriginal {trace}"
    try:
        told = type(failure)(message)
    except TypeError:  # a class with a constructor of its own
        told = RuntimeError(message)
    told.__cause__ = failure
    return told
