"""How many threads CPU kernels use."""

from __future__ import annotations

from flambeau._dispatch.bound import bind
from flambeau._dispatch.keywords import documented


@documented({"int": "num"})
def set_num_threads(num: int) -> None:
    """Let CPU kernels use `num` threads.

    Raises:
        RuntimeError: `num` is no positive int.

    >>> import flambeau as fb
    >>> fb.set_num_threads(1); fb.get_num_threads()
    1
    """
    if not isinstance(num, int):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError(f"set_num_threads expects a positive integer, got {num}")
    bind("cpu").backend.set_num_threads(int(num))


def get_num_threads() -> int:
    """The number of threads that CPU kernels use.

    >>> import flambeau as fb
    >>> fb.get_num_threads() >= 1
    True
    """
    return bind("cpu").backend.get_num_threads()
