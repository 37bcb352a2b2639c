"""Losses of classification that ask the right classes to win by a margin."""

from __future__ import annotations

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    INT32,
    INT64,
    Array,
    Kernel,
    compiled,
    form,
    otherwise,
    prepared,
)
from flambeau_native.kernels.classification_loss import KINDS, NAMES

_BYTE = np.dtype(np.uint8)


def _make_multi_margin_loss() -> Kernel:
    general, find = otherwise("multi_margin_loss"), compiled("multi_margin_loss").get

    def prepare(x: Array, target: Array, weight: Array | None, margin: float, kind: int) -> object:
        run, rows = find(x.dtype), x.shape[0]
        if run is None or not x.size or target.dtype != INT64:
            return None
        if weight is not None and weight.dtype != x.dtype:
            return None
        kept = () if kind else (rows,)
        numbers = rows, x.shape[1], 1 if kind else rows, kind, margin
        return run, (form(kept, x.dtype), form(x.shape, INT32)), numbers

    def otherwise_(
        x: Array, target: Array, weight: Array | None, margin: float, kind: int
    ) -> tuple[Array, Array]:
        return general(x, target, weight, margin, NAMES[kind])

    run = prepared("multi_margin_loss", "aaass", prepare, otherwise_, packs=True)

    def multi_margin_loss(
        x: Array, target: Array, weight: Array | None, margin: float, reduction: str
    ) -> tuple[Array, Array]:
        return run(x, target, weight, margin, KINDS[reduction])

    return multi_margin_loss


def _make_multilabel_margin_loss() -> Kernel:
    general, find = otherwise("multilabel_margin_loss"), compiled("multilabel_margin_loss").get

    def prepare(x: Array, target: Array, kind: int) -> object:
        run, (rows, classes) = find(x.dtype), x.shape
        if run is None or not x.size or target.dtype != INT64:
            return None
        forms = form(() if kind else (rows,), x.dtype), form(x.shape, INT32)
        numbers = rows, classes, 1 if kind else rows, kind
        return run, (*forms, form((classes,), _BYTE)), numbers, (0, 1)

    def otherwise_(x: Array, target: Array, kind: int) -> tuple[Array, Array]:
        return general(x, target, NAMES[kind])

    run = prepared("multilabel_margin_loss", "aas", prepare, otherwise_, packs=True)

    def multilabel_margin_loss(x: Array, target: Array, reduction: str) -> tuple[Array, Array]:
        return run(x, target, KINDS[reduction])

    return multilabel_margin_loss


KERNELS: dict[str, Kernel] = {}

if native is not None:
    KERNELS["multi_margin_loss"] = _make_multi_margin_loss()
    KERNELS["multilabel_margin_loss"] = _make_multilabel_margin_loss()
