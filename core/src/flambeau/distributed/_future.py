"""What will be there once an operation has finished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Future(Generic[T]):
    """A value that may not be there yet; PyTorch's communication hooks return one.

    Args:
        make: waits for the value and returns it; None for a future that `set_result` fills.

    >>> from flambeau.distributed import Future
    >>> Future(lambda: 3).then(lambda future: future.value() + 1).wait()
    4
    """

    def __init__(self, make: Callable[[], T] | None = None) -> None:
        self._make = make
        self._done = False
        self._value: Any = None

    def set_result(self, result: T) -> None:
        """Give the value.

        Raises:
            RuntimeError: it has one.
        """
        if self._done:
            raise RuntimeError("the future has a value already")
        self._value, self._done = result, True

    def done(self) -> bool:
        """Whether the value is there."""
        return self._done

    def wait(self) -> T:
        """The value, once it is there.

        Raises:
            RuntimeError: nobody is going to give one.
        """
        if not self._done:
            if self._make is None:
                raise RuntimeError("the future has no value, and nothing that makes one")
            self.set_result(self._make())
        return self._value

    value = wait

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """A future of what `callback` makes of this one, when it is asked for."""

        def make() -> Any:
            self.wait()
            return callback(self)

        return Future(make)
