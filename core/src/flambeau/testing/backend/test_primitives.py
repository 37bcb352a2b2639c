"""Every primitive agrees with the reference, in all dtypes and layouts and at the corners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import flambeau as fb
from flambeau._dispatch.bound import bind
from flambeau.ops import OPS
from flambeau.plugin.validation import STRIDED_KERNELS
from flambeau.testing.backend import _support as kit
from flambeau.testing.samples import DTYPES, SAMPLES, SPECIAL, Sample

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


LEVEL = "primitives"

PRIMITIVES = tuple(name for name, op in OPS.items() if op.tier == "primitive")
VIEWS = frozenset({"slice", "permute", "view", "expand", "diagonal"})


def required(device: str) -> Iterator[Any]:
    names = {*PRIMITIVES, *(STRIDED_KERNELS if bind(device).strided else ())}
    yield from (pytest.param(name, id=name) for name in sorted(names))


def sampled(device: str) -> Iterator[Any]:
    for name in PRIMITIVES:
        for dtype in DTYPES[name]:
            for layout in kit.layouts_of(name):
                case = f"{name}-{dtype.name}-{layout}"
                yield kit.case(device, dtype, name, dtype, layout, id=case)


def cornered(device: str) -> Iterator[Any]:
    for name in PRIMITIVES:
        if name in SPECIAL:
            for dtype in DTYPES[name]:
                yield kit.case(device, dtype, name, dtype, id=f"{name}-{dtype.name}")


def written(device: str) -> Iterator[Any]:
    for kernel in sorted(bind(device).kernels):
        name = kernel.removesuffix("_")
        if kernel != name and name in OPS and name in SAMPLES and not kit.draws(name):
            for dtype in DTYPES[name]:
                yield kit.case(device, dtype, name, dtype, id=f"{kernel}-{dtype.name}")


def promoted(device: str) -> Iterator[Any]:
    for name in ("add", "mul", "div", "pow", "eq", "where", "maximum"):
        for dtype in DTYPES[name]:
            yield kit.case(device, dtype, name, dtype, id=f"{name}-{dtype.name}")


def wants_dtype(device: str, sample: Sample) -> bool:
    """Whether the backend has the dtypes that a sample names itself."""
    have = kit.supported(device)
    return all(d in have for d in sample.args if isinstance(d, fb.dtype))


@kit.cases("name", required)
def test_every_primitive_has_a_kernel(device: str, name: str) -> None:
    assert name in bind(device).kernels, f"device {device!r} offers no kernel for {name!r}"


@kit.cases("name dtype layout", sampled)
def test_samples_agree(device: str, name: str, dtype: DType, layout: str) -> None:
    wrong = []
    for sample in SAMPLES[name]:
        if not wants_dtype(device, sample):
            continue
        found = kit.observed(device, name, sample, dtype, layout)
        wanted = kit.expected(name, sample, dtype, layout)
        texts = kit.complaints(device, name, found, wanted, dtype)
        if not texts and name not in VIEWS:
            texts = kit.shared_memory(found.results, found.args)
        wrong += [f"{name} ({sample.name}): {text}" for text in texts]
    kit.fail_with(wrong)


@kit.cases("name dtype", cornered)
def test_corners_agree(device: str, name: str, dtype: DType) -> None:
    wrong = []
    for sample in SPECIAL[name]:
        if not wants_dtype(device, sample):
            continue
        found = kit.observed(device, name, sample, dtype, "contiguous")
        wanted = kit.expected(name, sample, dtype, "contiguous")
        texts = kit.complaints(device, name, found, wanted, dtype, strict=True)
        wrong += [f"{name} ({sample.name}): {text}" for text in texts]
    kit.fail_with(wrong)


def _native(args: Any) -> list[Any]:
    """Arguments with native arrays for tensors, also for those in lists and tuples."""
    return [
        a._a
        if isinstance(a, fb.Tensor)
        else type(a)(_native(a))
        if isinstance(a, (list, tuple))
        else a
        for a in args
    ]


@kit.cases("name dtype", written)
def test_in_place_kernels_write_what_the_op_returns(device: str, name: str, dtype: DType) -> None:
    be = bind(device)
    kernel = getattr(be, f"{name}_")
    wrong = []
    for sample in SAMPLES[name]:
        for layout in ("contiguous", "transposed", "sliced", "offset"):
            found = kit.observed(device, name, sample, dtype, layout)
            wanted = kit.expected(name, sample, dtype, layout)
            target, *rest = found.args
            (result,) = wanted.results
            if result.shape != target.shape or result.dtype is not target.dtype:
                continue
            others = [kit.memory(t) for t in kit.tensors(rest)]
            returned = kernel(target._a, *_native(rest))
            found.results = (target,)
            texts = kit.complaints(device, name, found, wanted, dtype)
            if returned is not None:
                texts.append("returned a value; kernels that write return nothing")
            if others != [kit.memory(t) for t in kit.tensors(rest)]:
                texts.append("changed an argument other than the first")
            wrong += [f"{name}_ ({sample.name}, {layout}): {text}" for text in texts]
    kit.fail_with(wrong)


@kit.cases("name dtype", promoted)
def test_mixed_dtypes_promote(device: str, name: str, dtype: DType) -> None:
    function = getattr(fb, name)
    wrong = []
    for other in kit.supported(device, DTYPES[name]):
        if not kit.supported(device, (fb.promote_types(dtype, other),)):
            continue  # neither operand has it, and the result would
        made = []
        for where in (device, kit.REFERENCE):
            make = kit.maker(where)
            x, y = make([1, 2, 3], (3,), dtype), make([1, 1, 2], (3,), other)
            condition = [make([1, 0, 1], (3,), fb.bool)] if name == "where" else []
            made.append(function(*condition, x, y))
        found, wanted = made
        rtol = kit.tolerance(device, name, wanted.dtype)
        texts = kit.differences(found, wanted, rtol)
        wrong += [f"{name} of {dtype} and {other}: {text}" for text in texts]
    kit.fail_with(wrong)
