"""Every composite that the backend has a kernel for agrees with its decomposition, gradient included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flambeau as fb
from flambeau._bound import bind
from flambeau._dispatch import wrap
from flambeau._mt19937 import MT19937
from flambeau.ops import OPS
from flambeau.ops.sampling import RandomOp
from flambeau.testing.backend import _support as kit
from flambeau.testing.samples import DTYPES, SAMPLES, realise

pytestmark = pytest.mark.level("inference")

RTOL = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-10}
"""Relative to the element and to the largest one; complex dtypes as their real parts."""


def overridden(device: str) -> Iterator[Any]:
    for name in composites(device):
        for dtype in DTYPES[name]:
            for layout in kit.layouts_of(name):
                case = f"{name}-{dtype.name}-{layout}"
                yield kit.case(device, dtype, name, dtype, layout, id=case)


def overridden_with_gradient(device: str) -> Iterator[Any]:
    for name in composites(device):
        for dtype in DTYPES[name]:
            if OPS[name].gradient_state == "given" and dtype in (fb.float32, fb.float64):
                for layout in kit.layouts_of(name):
                    case = f"{name}-{dtype.name}-{layout}"
                    yield kit.case(device, dtype, name, dtype, layout, id=case)


def composites(device: str) -> list[str]:
    return [
        name
        for name in bind(device).kernels
        if name in SAMPLES and name in OPS and OPS[name].tier == "composite"
        if not isinstance(OPS[name], RandomOp) and not name.endswith("_")
    ]


def random_ops(device: str) -> Iterator[Any]:
    for name, op in OPS.items():
        if isinstance(op, RandomOp):
            for dtype in DTYPES[name]:
                yield kit.case(device, dtype, name, dtype, id=f"{name}-{dtype.name}")


def bound(device: str, name: str, dtype: fb.dtype) -> float:
    told = kit.host.expectations(device).tolerances.get((name, dtype.name), 0.0)
    return max(RTOL.get(dtype.to_real().name, 0.0), told)


def results(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.cases("name dtype layout", overridden)
def test_kernels_agree_with_their_decomposition(
    device: str, name: str, dtype: Any, layout: str
) -> None:
    be = bind(device)
    decomposed = OPS[name].decomposed(be)
    wrong = []
    for sample in SAMPLES[name]:
        found = kit.observed(device, name, sample, dtype, layout)
        if found.error is not None:
            wrong.append(f"{name} ({sample.name}): raised {found.error!r}")
            continue
        expected = results(decomposed(*_natives(found.args)))
        texts = [f"input {i} was changed" for i in found.changed]
        for i, (t, native) in enumerate(zip(found.results, expected, strict=True)):
            native = be.fresh(native)
            e = wrap(be, native, be.dtype_of(native))
            rtol = bound(device, name, e.dtype)
            texts += [f"result {i}: {text}" for text in kit.differences(t, e, rtol, rtol)]
        if not texts and name != "contiguous":
            texts = kit.shared_memory(found.results, found.args)
        wrong += [f"{name} ({sample.name}): {text}" for text in texts]
    kit.fail_with(wrong)


def _natives(value: Any) -> Any:
    if isinstance(value, fb.Tensor):
        return value._a
    return type(value)(map(_natives, value)) if isinstance(value, (tuple, list)) else value


@pytest.mark.level("training")
@pytest.mark.cases("name dtype layout", overridden_with_gradient)
def test_gradients_agree_with_those_of_the_decomposition(
    device: str, name: str, dtype: Any, layout: str
) -> None:
    wrong = []
    for sample in SAMPLES[name]:
        if not sample.grad:
            continue
        gradients = [
            kit.gradients(device, *kit.as_function(device, function, sample, dtype, layout))
            for function in (OPS[name], OPS[name].body)
        ]
        for i, (found, expected) in enumerate(zip(*gradients, strict=True)):
            if found is None or expected is None:
                absent = expected if found is None else found
                if absent is not None and absent.abs().sum().item() > 0:
                    wrong.append(f"{name} ({sample.name}): gradient {i} is {found}")
                continue
            rtol = 100 * bound(device, name, dtype)
            texts = kit.differences(found, expected, rtol, rtol)
            wrong += [f"{name} ({sample.name}), gradient {i}: {text}" for text in texts]
    kit.fail_with(wrong)


@pytest.mark.cases("name dtype", random_ops)
def test_random_numbers_repeat_with_the_seed(device: str, name: str, dtype: Any) -> None:
    be = bind(device)
    generator = fb.Generator(device=device)
    for sample in SAMPLES[name]:
        args = realise(sample.args, kit.maker(device), dtype, generator=generator)
        drawn = []
        for _ in range(2):
            generator.manual_seed(7)
            drawn += [kit.call(device, name, args), kit.call(device, name, args)]
        first, second, again, _ = map(kit.numbers, drawn)
        assert first == again, "the same seed gave other numbers"
        if len(first) > 4 and name != "bernoulli_scalar":
            assert first != second, "two draws in a row gave the same numbers"
        native = drawn[0]._a
        wanted = dtype if any(a is dtype for a in args) else be.dtype_of(native)
        assert be.dtype_of(native) is wanted
        shape = next((tuple(a) for a in args if isinstance(a, tuple)), tuple(native.shape))
        assert tuple(native.shape) == shape


@pytest.mark.cases("name dtype", random_ops)
def test_random_kernels_draw_the_stream_of_the_op(device: str, name: str, dtype: Any) -> None:
    be = bind(device)
    if not _core_stream(device):
        pytest.skip(f"device {device!r} has random bits of its own")
    for sample in SAMPLES[name]:
        drawn = []
        for function in (getattr(be, name), OPS[name].decomposed(be)):
            generator = fb.Generator(device=device)
            generator.manual_seed(11)
            args = realise(sample.args, kit.maker(device), dtype, generator=generator)
            native = be.fresh(function(*args))
            drawn.append(wrap(be, native, be.dtype_of(native)))
        found, expected = drawn
        rtol = bound(device, name, found.dtype)
        kit.fail_with([f"{name} ({sample.name}): {t}" for t in kit.differences(found, expected, rtol)])


def _core_stream(device: str) -> bool:
    """Whether the generator of the device gives the bits of the core's own."""
    engine, own = fb.Generator(device=device).manual_seed(3).engine, MT19937(3)
    return hasattr(engine, "random_bits") and list(engine.random_bits(4)) == list(own.random_bits(4))
