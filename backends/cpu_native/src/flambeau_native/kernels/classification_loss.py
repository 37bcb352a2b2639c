"""Losses over classes, which are the last dimension or, of images, planes."""

from __future__ import annotations

from math import prod

from flambeau_native.kernels._common import (
    INT64,
    Array,
    Kernel,
    compiled,
    form,
    otherwise,
    prepared,
)
from flambeau_native.kernels.activation import KERNELS as ACTIVATIONS

KINDS = {"none": 0, "sum": 1, "mean": 2}  # settings of prepared kernels are numbers
NAMES = tuple(KINDS)


def _planes(a: Array) -> Array | None:
    """What has its last dimension behind the first in memory, as (images, classes, *)."""
    if a.ndim < 3 or a.flags.c_contiguous or not a.size:
        return None
    planes = _classes_second(a)
    return planes if planes.flags.c_contiguous else None


def _classes_second(a: Array) -> Array:
    return a.transpose(0, a.ndim - 1, *range(1, a.ndim - 1))


def _classes_last(planes: Array) -> Array:
    return planes.transpose(0, *range(2, planes.ndim), 1)


def _counts(target: Array, *others: Array | None) -> bool:
    """Whether targets are int64, and all others of one dtype or absent."""
    given = [a.dtype for a in others if a is not None]
    return target.dtype == INT64 and all(dtype == given[0] for dtype in given)


def _make_cross_entropy() -> Kernel:
    find, general = compiled("cross_entropy").get, otherwise("cross_entropy")
    log_softmax = ACTIVATIONS["log_softmax"]

    def prepare(x: Array, target: Array, ignore_index: int) -> object:
        run = find(x.dtype)
        if run is None or not x.size or target.dtype != INT64:
            return None
        number, columns = form((), x.dtype), x.shape[-1]
        sizes = x.size // columns, columns, ignore_index
        return run, (form(x.shape, x.dtype), number, number), sizes, (1, 0, 2)

    def of_planes(x: Array, target: Array, ignore_index: int) -> tuple[Array, Array, Array]:
        if (planes := _planes(x)) is None or find(x.dtype) is None:
            return general(x, target, ignore_index)
        log_probs = log_softmax(planes, 1)
        loss, count = _nll_of_planes(log_probs, target, None, 2, ignore_index)
        return loss, _classes_last(log_probs), count

    return prepared("cross_entropy", "aas", prepare, of_planes)


def _make_cross_entropy_backward() -> Kernel:
    general, find = otherwise("cross_entropy_backward"), compiled("cross_entropy_backward").get

    def prepare(
        grad: Array, log_probs: Array, target: Array, ignore_index: int, count: Array
    ) -> object:
        dtype, size = log_probs.dtype, log_probs.size
        run = find(dtype)
        if run is None or not size or not _counts(target, log_probs, grad, count):
            return None
        columns = log_probs.shape[-1]
        return run, (form(log_probs.shape, dtype),), (size // columns, columns, 1, ignore_index)

    def prepare_planes(
        grad: Array, planes: Array, target: Array, ignore_index: int, count: Array
    ) -> object:
        run = find(planes.dtype)
        if run is None or not _counts(target, planes, grad, count):
            return None
        sizes = *planes.shape[:2], prod(planes.shape[2:]), ignore_index
        return run, (form(planes.shape, planes.dtype),), sizes

    def turned_back(grad: Array, planes: Array, *rest: object) -> Array:
        return _classes_second(general(grad, _classes_last(planes), *rest))

    of_planes = prepared("cross_entropy_backward", "aaasa", prepare_planes, turned_back)

    def backward(grad: Array, log_probs: Array, *rest: object) -> Array:
        if (planes := _planes(log_probs)) is None:
            return general(grad, log_probs, *rest)
        return _classes_last(of_planes(grad, planes, *rest))

    return prepared("cross_entropy_backward", "aaasa", prepare, backward)


def _make_nll_loss(planes: bool) -> Kernel:
    """The loss of rows, or of (images, classes, *); by the number of a reduction."""
    general, find = otherwise("nll_loss"), compiled("nll_loss").get

    def prepare(
        log_probs: Array, target: Array, weight: Array | None, kind: int, ignore_index: int
    ) -> object:
        dtype, shape = log_probs.dtype, log_probs.shape
        run = find(dtype)
        if run is None or not log_probs.size or not _counts(target, log_probs, weight):
            return None
        if planes:
            sizes = *shape[:2], prod(shape[2:])
        else:
            sizes = log_probs.size // shape[-1], shape[-1], 1
        if target.size != sizes[0] * sizes[2]:
            return None
        kept = () if kind else target.shape
        how = prod(kept), kind, ignore_index
        return run, (form(kept, dtype), form((), dtype)), (*sizes, *how)

    def of_rows(
        log_probs: Array, target: Array, weight: Array | None, kind: int, ignore_index: int
    ) -> tuple[Array, Array]:
        if (found := None if planes else _planes(log_probs)) is not None:
            return _nll_of_planes(found, target, weight, kind, ignore_index)
        rows = _classes_last(log_probs) if planes else log_probs
        return general(rows, target, weight, NAMES[kind], ignore_index)

    return prepared("nll_loss", "aaass", prepare, of_rows)


def _make_nll_loss_backward() -> Kernel:
    general, find = otherwise("nll_loss_backward"), compiled("nll_loss_backward").get

    def prepare(
        grad: Array,
        shape: tuple[int, ...],
        target: Array,
        weight: Array | None,
        kind: int,
        ignore_index: int,
        total_weight: Array,
    ) -> object:
        run = find(grad.dtype)
        if run is None or not prod(shape) or not _counts(target, grad, weight, total_weight):
            return None
        rows, several = prod(shape[:-1]), len(shape) > 2
        if target.size != rows:
            return None
        images = shape[0] if several else rows
        out = (images, shape[-1], *shape[1:-1]) if several else shape
        sizes = images, shape[-1], rows // images
        return run, (form(out, grad.dtype),), (*sizes, grad.size, kind, ignore_index)

    def as_planes(
        grad: Array,
        shape: tuple[int, ...],
        target: Array,
        weight: Array | None,
        kind: int,
        *rest: object,
    ) -> Array:
        found = general(grad, shape, target, weight, NAMES[kind], *rest)
        return _classes_second(found) if len(shape) > 2 else found

    run = prepared("nll_loss_backward", "asaassa", prepare, as_planes)

    def backward(
        grad: Array,
        shape: tuple[int, ...],
        target: Array,
        weight: Array | None,
        reduction: str,
        ignore_index: int,
        total_weight: Array,
    ) -> Array:
        kind = KINDS[reduction]
        found = run(grad, shape, target, weight, kind, ignore_index, total_weight)
        return found if len(shape) < 3 else _classes_last(found)

    return backward


_nll_of_rows, _nll_of_planes = _make_nll_loss(False), _make_nll_loss(True)


def nll_loss(
    log_probs: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int
) -> tuple[Array, Array]:
    """The loss of what has classes last, in whatever order in memory."""
    return _nll_of_rows(log_probs, target, weight, KINDS[reduction], ignore_index)


KERNELS: dict[str, Kernel] = {
    "nll_loss": nll_loss,
    "nll_loss_backward": _make_nll_loss_backward(),
    "cross_entropy": _make_cross_entropy(),
    "cross_entropy_backward": _make_cross_entropy_backward(),
}
