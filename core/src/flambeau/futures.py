"""Results that will be there later.

>>> import flambeau as fb
>>> future = fb.futures.Future()
>>> doubled = future.then(lambda done: done.wait() * 2)
>>> future.set_result(21)
>>> doubled.wait()
42
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future as _Result
from typing import Any, Generic, TypeVar

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau.plugin.forks import make_lock

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
After = TypeVar("After")
_lock = make_lock()  # of all futures: it is held for a few steps


class Future(Generic[T]):
    """A value that somebody sets once, and others wait for, in any thread.

    Args:
        devices: accepted; results of devices are waited for where they are read.

    >>> import flambeau as fb
    >>> future = fb.futures.Future()
    >>> future.done()
    False
    >>> future.set_result(1)
    >>> future.value()
    1
    """

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        self._result: _Result[Any] = _Result()

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._result.done()

    def wait(self) -> T:
        """The result, when it is there.

        Raises:
            Exception: the error that was set.
        """
        return self._result.result()

    def value(self) -> T:
        """The result, which must be there.

        Raises:
            RuntimeError: it is not.
            Exception: the error that was set.
        """
        if not self.done():
            raise RuntimeError("Future.value(): there is no result yet; wait() waits for it")
        return self._result.result()

    def then(self, callback: Callable[[Future[T]], After]) -> Future[After]:
        """A future of what `callback` returns, which is called with this one when it is done."""
        after: Future[After] = Future()

        def run(_: object) -> None:
            try:
                value = callback(self)
            except Exception as error:
                after.set_exception(error)
            else:
                after.set_result(value)

        self._result.add_done_callback(run)
        return after

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call a function with this future when it is done; at once if it is."""
        self._result.add_done_callback(lambda _: callback(self))

    def set_result(self, result: T) -> None:
        """Set the result.

        Raises:
            RuntimeError: there is one, or an error.
        """
        self._set(lambda: self._result.set_result(result))

    def set_exception(self, result: BaseException) -> None:
        """Set an error, which whoever waits is given.

        Raises:
            AssertionError: it is no exception.
            RuntimeError: there is a result or an error.
        """
        assert isinstance(result, BaseException), f"{result} is of type {type(result)}, no error"
        self._set(lambda: self._result.set_exception(result))

    def _set(self, write: Callable[[], None]) -> None:
        with _lock:
            if self.done():
                raise RuntimeError("Future can only be marked completed once")
            claimed = self._result.set_running_or_notify_cancel()
        assert claimed
        write()


@takes_as_annotated
def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future that is done, with the list of these, when all of them are.

    >>> import flambeau as fb
    >>> parts = [fb.futures.Future(), fb.futures.Future()]
    >>> whole = fb.futures.collect_all(parts)
    >>> parts[0].set_result(1); parts[1].set_result(2)
    >>> [part.value() for part in whole.wait()]
    [1, 2]
    """
    whole: Future[list[Future[Any]]] = Future()
    waiting = len(futures)
    for future in futures:
        if not isinstance(future, Future):
            raise TypeError(f"collect_all(): futures must be Futures, not {type(future).__name__}")

    def one(_: Future[Any]) -> None:
        nonlocal waiting
        with _lock:
            waiting -= 1
            last = waiting == 0
        if last:
            whole.set_result(list(futures))

    if not futures:
        whole.set_result([])
    for future in futures:
        future.add_done_callback(one)
    return whole


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """The results of all futures, when all are done.

    Raises:
        Exception: the error of the first that has one.

    >>> import flambeau as fb
    >>> future = fb.futures.Future()
    >>> future.set_result("here")
    >>> fb.futures.wait_all([future])
    ['here']
    """
    return [future.wait() for future in collect_all(futures).wait()]
