"""Matrix products on several threads that wait for each other once, at the end.

The threads of OpenBLAS meet many times within a product, and yield the processor while they wait.
Where another process or pool has work, every meeting costs a time slice: products of half a
millisecond take a hundred (docs/design/threading.md). So large products are cut here, each part is
computed by OpenBLAS with one thread, and a part whose thread has not started when the caller is
done with its own is computed by the caller.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np

from flambeau_numpy import threads
from flambeau_numpy.allocator import empty
from flambeau_numpy.pools import of_numpy

Array = np.ndarray[Any, Any]
Part = tuple[Array, Array, Array]
Run = Callable[[Array, Array, Array], object]

SERIAL = 1 << 18
"""Multiplications up to which OpenBLAS uses one thread by itself."""

SMALLEST = 1 << 22
"""Multiplications that a part must have, to be worth waking a thread for."""

Sgemm = Callable[..., object]
Linear = Callable[[Array, Array, Array | None], Array | None]
Primitives = Callable[..., object]
Few = Callable[[Array, Array], Array | None]
Pair = Callable[[Array, Array], Array | None]
Matrices = Callable[..., bool]
Convolve = Callable[..., Array | None]


class Offered:
    """What other packages offer for products; an attribute is None where nobody does.

    Attributes:
        sgemm: ``sgemm(library, get_threads, set_threads, out, a, b, line, rows, columns, depth,
            out_step, a_step, b_step, a_turned, b_turned, relu, alpha, beta)`` makes ``out``
            alpha·(a @ b) + beta·out of float32 matrices on threads of its own, which are woken
            sooner than Python's.  Matrices and functions are addresses, steps count the elements
            from one line to the next, a turned matrix is stored column by column.  ``line``, an
            array or None, is what each line of ``out`` becomes first; with ``relu`` numbers below 0
            become 0.  ``library`` has the arguments of BLAS's sgemm by value, as ``dnnl_sgemm``;
            it computes what `sgemm` does not do better, in one thread, which the other two
            functions see to (0 where there are none).
        linear: ``linear(x, weight, bias)`` is x @ weightᵀ + bias, or None where others do better.
        primitives: ``primitives(out, a, b, c, scratch, address, *sizes)`` runs a list of primitives
            of a library in the manner of oneDNN on arrays, of which `c` and `scratch` may be None.
            ``sizes`` are the bytes of each.  At the address are 64-bit numbers: the addresses of
            ``set_data(memory, address)``, ``execute(primitive, stream, count, arguments)`` and of
            the two functions that get and set the number of threads (0 where there are none); that
            number; for each array but `scratch` its memory (0: none) and the bytes before the first
            that is used; the number of places of `scratch`, and of runs; memory and first byte of
            each place; primitive, stream, count and arguments of each run.
        few: ``few(a, b)`` is a @ b of two arrays of matrices, whose terms are added in order, or
            None where others do better.
        pair: ``pair(a, b)`` is a @ b of two matrices of few numbers, or of two batches of as many
            such, or None where others do better.
        matrices: ``matrices(a, b, out, line=None, relu=False)`` writes a @ b of two matrices to
            ``out``, which shares no memory with them, plus ``line`` in each of its lines, and relu
            of the sum; False where others do better, and nothing is written.
        conv2d, conv2d_input_grad, conv2d_weight_grad: what the kernels of these names give for
            their arguments, or None where others do better.
    """

    __slots__ = (
        "conv2d",
        "conv2d_input_grad",
        "conv2d_weight_grad",
        "few",
        "linear",
        "matrices",
        "pair",
        "primitives",
        "sgemm",
    )

    def __init__(self) -> None:
        self.sgemm: Sgemm | None = None
        self.linear: Linear | None = None
        self.primitives: Primitives | None = None
        self.few: Few | None = None
        self.pair: Pair | None = None
        self.matrices: Matrices | None = None
        self.conv2d: Convolve | None = None
        self.conv2d_input_grad: Convolve | None = None
        self.conv2d_weight_grad: Convolve | None = None


offered = Offered()
"""What products ask for first: of each function that of the package that was asked first."""

_offers: dict[str, dict[str, Any]] = {}


def offer_products(
    provider: str,
    *,
    sgemm: Sgemm | None = None,
    linear: Linear | None = None,
    primitives: Primitives | None = None,
    few: Few | None = None,
    pair: Pair | None = None,
    matrices: Matrices | None = None,
    conv2d: Convolve | None = None,
    conv2d_input_grad: Convolve | None = None,
    conv2d_weight_grad: Convolve | None = None,
) -> None:
    """Let products ask a package first; `Offered` says what the functions are.

    A package calls it where it offers its kernels, with everything that it has: what it offered
    before is forgotten.  Of several packages the first one counts, as with kernels.
    """
    given = {
        "sgemm": sgemm,
        "linear": linear,
        "primitives": primitives,
        "few": few,
        "pair": pair,
        "matrices": matrices,
        "conv2d": conv2d,
        "conv2d_input_grad": conv2d_input_grad,
        "conv2d_weight_grad": conv2d_weight_grad,
    }
    _offers.pop(provider, None)
    if any(function is not None for function in given.values()):
        _offers[provider] = given
    for name in given:
        offers = (each[name] for each in _offers.values())
        setattr(offered, name, next((made for made in offers if made is not None), None))


def asking(name: str, otherwise: Callable[..., Array]) -> Callable[..., Array]:
    """A kernel that asks what is offered as `name` first, and else is `otherwise`."""

    def kernel(*args: Any) -> Array:
        ask = getattr(offered, name)
        if ask is not None and (found := ask(*args)) is not None:
            return found
        return otherwise(*args)

    return kernel


_ROWS = 16  # parts begin at multiples of this: kernels compute tiles of so many


class _OneThread:
    """How many products are being cut, during which NumPy's BLAS uses one thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.before = 1


class _Share:
    """A part of a product, which whoever takes its lock first computes.

    The lock belongs to a thread, which may take it again: the caller of the product ends by taking
    all of them, also when that was interrupted before.
    """

    __slots__ = ("error", "lock", "work")

    def __init__(self, work: tuple[Run, Part]) -> None:
        self.lock = threading.RLock()
        self.work: tuple[Run, Part] | None = work
        self.error: BaseException | None = None

    def compute(self) -> None:
        """Do the work, if nobody did; by the holder of the lock."""
        if (work := self.work) is not None:
            self.work = None
            work[0](*work[1])


_one_thread = _OneThread()
_parts_to_do: SimpleQueue[_Share] = SimpleQueue()
_workers = 0


def multiply(a: Array, b: Array, out: Array) -> Array:
    """a @ b of matrices, or of batches of as many dimensions, written to `out` and returned.

    `out` shares no memory with the others.
    """
    if (compiled := offered.matrices) is not None and out.ndim == 2 and compiled(a, b, out):
        return out
    work = out.size * a.shape[-1]
    if work <= SERIAL or threads.count() == 1:
        return np.matmul(a, b, out)
    one, counted = _one_thread, False
    pool = of_numpy()
    # An interrupt may come after any call; a method that ends the block might not begin.
    try:
        with one.lock:
            if not one.depth:
                one.before = pool.get()
            one.depth, counted = one.depth + 1, True
        pool.put(1)
        spread(np.matmul, a, b, out, one.before)
    finally:
        if counted:
            with one.lock:
                one.depth, counted = one.depth - 1, False
                if not one.depth:
                    pool.put(one.before)
    return out


def product(a: Array, b: Array) -> Array:
    """a @ b of two matrices."""
    return multiply(a, b, empty((a.shape[0], b.shape[1]), a.dtype))


def spread(
    run: Run, a: Array, b: Array, out: Array, count: int, *, whole_rows: bool = False
) -> None:
    """Let `run`, called as ``run(a, b, out)``, put a @ b into `out`, in up to `count` threads.

    Each call makes a part of at least `SMALLEST` multiplications, and must use one thread.  With
    `whole_rows`, parts of `out` are contiguous where `out` is.
    """
    count = min(count, out.size * a.shape[-1] // SMALLEST)
    parts = _parts(a, b, out, count, whole_rows) if count > 1 else []
    if len(parts) > 1:
        _run(run, parts)
    else:
        run(a, b, out)


def _parts(a: Array, b: Array, out: Array, count: int, whole_rows: bool) -> list[Part]:
    """At most `count` products that together are the product."""
    if out.ndim > 2 and (len(out) >= count or whole_rows):

        def some(x: Array, i: int, j: int) -> Array:
            return x if x.ndim < out.ndim or len(x) == 1 else x[i:j]  # one for all

        return [(some(a, i, j), some(b, i, j), out[i:j]) for i, j in _cut(len(out), count, 1)]
    rows, columns = out.shape[-2:]
    if rows >= columns or whole_rows:
        return [(a[..., i:j, :], b, out[..., i:j, :]) for i, j in _cut(rows, count, _ROWS)]
    return [(a, b[..., i:j], out[..., i:j]) for i, j in _cut(columns, count, _ROWS)]


def _cut(length: int, count: int, unit: int) -> list[tuple[int, int]]:
    """Up to `count` ranges of nearly equal length that begin at multiples of `unit`.

    >>> _cut(100, 2, 16), _cut(10, 4, 16)
    ([(0, 64), (64, 100)], [(0, 10)])
    """
    step = -(-length // (count * unit)) * unit
    return [(i, min(i + step, length)) for i in range(0, length, step)]


def _run(run: Run, parts: list[Part]) -> None:
    """Compute the first part, and those of the others that no thread has begun.

    Whatever is raised meanwhile: nobody writes to a part any more when it leaves here.
    """
    _employ(max(threads.count(), len(parts)) - 1)
    others = [_Share((run, part)) for part in parts[1:]]
    try:
        for part in others:
            _parts_to_do.put(part)
        run(*parts[0])
        for part in reversed(others):
            part.lock.acquire()
            part.compute()
            if part.error is not None:
                raise part.error
    except BaseException:
        while True:
            try:
                for part in others:
                    part.work = None
                    part.lock.acquire()
                break
            except BaseException:  # another interrupt: the first is raised
                continue
        raise


def _employ(count: int) -> None:
    """Start threads until there are `count`.

    By the function below `threading.Thread`, whose `start` waits for the thread by a condition: an
    interrupt there would leave it locked.
    """
    global _workers
    while _workers < count:
        _workers += 1
        try:
            _thread.start_new_thread(_work, ())
        except RuntimeError:  # the interpreter is ending, or the system has no more
            return


def _work() -> None:
    np.seterr(all="ignore")  # warnings are the caller's business
    while True:
        part = _parts_to_do.get()
        if part.lock.acquire(blocking=False):
            try:
                part.compute()
            except BaseException as error:
                part.error = error
            finally:
                part.lock.release()
        del part  # and its arrays, before the next is waited for


def _after_fork() -> None:
    global _parts_to_do, _workers, _one_thread
    _parts_to_do, _workers, _one_thread = SimpleQueue(), 0, _OneThread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
