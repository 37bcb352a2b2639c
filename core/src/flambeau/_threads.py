"""How many threads CPU kernels use."""

from __future__ import annotations

from flambeau._bound import bind
from flambeau._keywords import documented


@documented({"int": "num"})
def set_num_threads(num: int) -> None:
    """Let CPU kernels use `num` threads.

    Raises:
        RuntimeError: `num` is not positive.

    >>> import flambeau as fb
    >>> fb.set_num_threads(1); fb.get_num_threads()
    1
    """
    if num <= 0:
        raise RuntimeError(f"set_num_threads expects a positive integer, got {num}")
    setter = getattr(bind("cpu").backend, "set_num_threads", None)
    if setter is not None:
        setter(int(num))


def get_num_threads() -> int:
    """The number of threads that CPU kernels use.

    >>> import flambeau as fb
    >>> fb.get_num_threads() >= 1
    True
    """
    getter = getattr(bind("cpu").backend, "get_num_threads", None)
    return 1 if getter is None else getter()
