"""The number of threads of a BLAS library, written where no lock of the library is needed.

OpenBLAS ends its pool when the process forks, and its function that sets the number starts the pool
again, under a lock. A child of another fork meanwhile would find that lock taken for ever. Its
products read a variable, though, and that is all which a number not above the greatest needs.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

from flambeau.plugin import make_lock

if TYPE_CHECKING:
    from threadpoolctl import LibController

_growing = make_lock()
"""Held while a library starts threads: a fork waits for the end of that."""


class Pool:
    """The threads of a library, as threadpoolctl sets them; without a library one that stays one.

    >>> pool = Pool(None)
    >>> pool.put(4)
    >>> pool.get()
    1
    """

    __slots__ = ("_library",)

    def __init__(self, library: LibController | None) -> None:
        self._library = library

    def name(self) -> str:
        """Name and version of the library."""
        if self._library is None:
            return ""
        facts = self._library.info()
        return f"{facts['internal_api']} {facts['version']}"

    def get(self) -> int:
        """How many threads a call of the library uses at most."""
        return 1 if self._library is None else self._library.num_threads or 1

    def put(self, count: int) -> None:
        """Let calls use `count` threads."""
        if self._library is not None:
            self._library.set_num_threads(count)


class OpenBlas(Pool):
    """The threads of an OpenBLAS that makes its own.

    Raises:
        ValueError: this build keeps its variables to itself.
    """

    __slots__ = ("_greatest", "_number", "_start")

    def __init__(self, library: LibController) -> None:
        super().__init__(library)
        self._number = ctypes.c_int.in_dll(library.dynlib, "blas_cpu_number")
        self._greatest = ctypes.c_int.in_dll(library.dynlib, "blas_num_threads")
        names = (
            f"{prefix}openblas_set_num_threads{suffix}"
            for prefix in ("scipy_", "")
            for suffix in ("64_", "")
        )
        found = next((name for name in names if hasattr(library.dynlib, name)), None)
        if found is None:
            raise ValueError(f"{library.filepath} does not say how its threads are set")
        # Not threadpoolctl's method: of its version 3.8 the first thread alone may set the number.
        self._start = getattr(library.dynlib, found)

    def get(self) -> int:
        return self._number.value

    def put(self, count: int) -> None:
        if count <= self._greatest.value:
            self._number.value = count
        else:
            with _growing:
                self._start(count)


def _pool(library: LibController) -> Pool:
    facts = library.info()
    if facts["internal_api"] == "openblas" and facts.get("threading_layer") == "pthreads":
        try:
            return OpenBlas(library)
        except ValueError:
            pass
    return Pool(library)


def loaded() -> list[Pool]:
    """The pools of the BLAS libraries that are in the process, that of NumPy first."""
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return [_pool(x) for x in sorted(libraries, key=lambda x: "numpy" not in x.filepath)]


@cache
def pools() -> list[Pool]:
    """The pools of NumPy's and SciPy's BLAS.

    >>> all(pool.get() >= 1 for pool in pools())
    True
    """
    import scipy.linalg  # noqa: F401 - it brings a BLAS of its own, which must be found as well

    return loaded()


@cache
def of_numpy() -> Pool:
    """The pool of NumPy's OpenBLAS; one that stays one where NumPy has another BLAS."""
    return next((pool for pool in pools() if isinstance(pool, OpenBlas)), Pool(None))
