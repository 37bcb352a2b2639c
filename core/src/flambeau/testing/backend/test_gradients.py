"""The gradient of every op is its derivative, and the gradient of the gradient, in every layout.

Small samples are checked by whole Jacobians, larger ones by a random projection.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau as fb
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.autograd._finite_differences import GradcheckError
from flambeau.ops import OPS
from flambeau.testing.backend import _support as kit
from flambeau.testing.samples import DTYPES, SAMPLES, Sample, arrange

LEVEL = "training"

WHOLE_JACOBIAN = 16
"""Up to this many elements of all inputs, every entry of the Jacobian is compared."""


def functions() -> Iterator[tuple[str, Any]]:
    """The ops whose results are functions of their arguments, which numbers drawn are not."""
    return ((name, op) for name, op in OPS.items() if "generator" not in op.params)


def differentiable(device: str) -> Iterator[Any]:
    for name, op in functions():
        if kit.too_slow(device, name):
            continue
        if op.gradient_state == "given" and fb.float64 in DTYPES.get(name, ()):
            for layout in kit.gradient_layouts(device, name):
                yield kit.case(device, fb.float64, name, layout, id=f"{name}-{layout}")


def complex_differentiable(device: str) -> Iterator[Any]:
    for name, op in functions():
        if kit.too_slow(device, name):
            continue
        if op.gradient_state == "given" and fb.complex128 in DTYPES.get(name, ()):
            yield kit.case(device, fb.complex128, name, id=name)


def compared(device: str) -> Iterator[Any]:
    for name, op in functions():
        if op.gradient_state == "given" and fb.float32 in DTYPES.get(name, ()):
            for layout in kit.gradient_layouts(device, name):
                yield kit.case(device, fb.float32, name, layout, id=f"{name}-{layout}")


def without_formula(device: str) -> Iterator[Any]:
    for name, op in functions():
        if op.missing_reason:
            yield kit.case(device, fb.float32, name, id=name)


def smooth(name: str, layout: str) -> list[Sample]:
    """Samples whose gradients differences can check; with no elements, there is nothing to miss."""
    found = []
    for sample in SAMPLES[name]:
        if any(isinstance(a, fb.dtype) and a is not fb.float64 for a in sample.args):
            continue  # a cast to fewer digits: differences are too coarse
        arrays = list(kit.descriptions(arrange(sample.args, layout)))
        floating = [a for a in arrays if a.dtype is None and not a.fixed]
        empty = any(math.prod(a.shape) == 0 for a in floating)
        if floating and (sample.grad or empty) and not (layout == "expanded" and _kinked(name)):
            found.append(sample)
    return found


def _kinked(name: str) -> bool:
    # Equal rows are ties, at which these have no derivative.
    return name in ("amax", "amin", "sort", "maximum", "minimum", "max_pool2d")


@kit.cases("name layout", differentiable)
def test_gradients_are_derivatives(device: str, name: str, layout: str) -> None:
    wrong = []
    for sample in smooth(name, layout):
        function, leaves = kit.as_function(device, kit.comparable(name), sample, fb.float64, layout)
        fast = sum(t.numel() for t in leaves) > WHOLE_JACOBIAN
        for check in (gradcheck, gradgradcheck):
            try:
                check(function, tuple(leaves), fast_mode=fast, check_grad_dtypes=True)
            except (GradcheckError, RuntimeError) as error:
                wrong.append(f"{name} ({sample.name}), {check.__name__}: {error}")
                break
    kit.fail_with(wrong)


@kit.cases("name", complex_differentiable)
def test_complex_gradients_are_derivatives(device: str, name: str) -> None:
    wrong = []
    for sample in smooth(name, "contiguous"):
        function, leaves = kit.as_function(
            device, kit.comparable(name), sample, fb.complex128, "contiguous"
        )
        if sum(t.numel() for t in leaves) > WHOLE_JACOBIAN:
            continue  # there is no projection of complex Jacobians
        for check in (gradcheck, gradgradcheck):
            try:
                check(function, tuple(leaves), check_grad_dtypes=True)
            except (GradcheckError, RuntimeError) as error:
                wrong.append(f"{name} ({sample.name}), {check.__name__}: {error}")
                break
    kit.fail_with(wrong)


@kit.cases("name layout", compared)
def test_gradients_agree_with_reference(device: str, name: str, layout: str) -> None:
    wrong = []
    for sample in SAMPLES[name]:
        gradients = []
        for where in (device, kit.REFERENCE):
            function, leaves = kit.as_function(
                where, kit.comparable(name), sample, fb.float32, layout
            )
            gradients.append(kit.gradients(where, function, leaves))
        floor = kit.cancelled(name, gradients[1])
        for i, (found, expected) in enumerate(zip(*gradients, strict=True)):
            if found is None or expected is None:
                texts = [] if found is expected else [f"{found}, expected {expected}"]
            else:
                texts = kit.differences(found, expected, 1e-4, 1e-4, floor=floor)
            wrong += [f"{name} ({sample.name}), gradient of input {i}: {text}" for text in texts]
    kit.fail_with(wrong)


@kit.cases("name", without_formula)
def test_missing_gradients_say_so(device: str, name: str) -> None:
    sample = next(s for s in SAMPLES[name] if s.grad)
    function, leaves = kit.as_function(device, OPS[name], sample, fb.float32, "contiguous")
    result = function(*leaves)
    root = result[0] if isinstance(result, tuple) else result
    with pytest.raises(NotImplementedError) as caught:
        root.sum().backward()
    assert str(OPS[name].missing_reason) in str(caught.value)
