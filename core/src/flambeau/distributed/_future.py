"""What will be there once an operation has finished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flambeau import futures

T = TypeVar("T")


class Future(futures.Future[T]):
    """A result that is waited for when it is asked for; communication hooks get and return one.

    Args:
        make: waits for the value and returns it.

    >>> from flambeau.distributed import Future
    >>> Future(lambda: 3).then(lambda future: future.value() + 1).wait()
    4
    """

    def __init__(self, make: Callable[[], T]) -> None:
        super().__init__()
        self._make = make

    def wait(self) -> T:
        """The value, once it is there."""
        if not self.done():
            self.set_result(self._make())
        return super().wait()

    def value(self) -> T:
        """As `wait`."""
        return self.wait()

    def then(self, callback: Callable[[futures.Future[T]], Any]) -> futures.Future[Any]:
        """A future of what `callback` makes of this one, when it is asked for."""

        def make() -> object:
            self.wait()
            return callback(self)

        return Future(make)
