"""The gradient of every op is its derivative, and the gradient of the gradient, in every layout.

Small samples are checked by whole Jacobians, larger ones by a random projection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flambeau as fb
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.autograd._finite_differences import GradcheckError
from flambeau.ops import OPS
from flambeau.testing.backend import _support as kit
from flambeau.testing.samples import DTYPES, SAMPLES, Arr, Sample, arrange, realise

pytestmark = pytest.mark.level("training")

WHOLE_JACOBIAN = 16
"""Up to this many elements of all inputs, every entry of the Jacobian is compared."""


def differentiable(device: str) -> Iterator[Any]:
    for name, op in OPS.items():
        if op.gradient_state == "given" and fb.float64 in DTYPES.get(name, ()):
            for layout in kit.layouts_of(name):
                yield kit.case(device, fb.float64, name, layout, id=f"{name}-{layout}")


def compared(device: str) -> Iterator[Any]:
    for name, op in OPS.items():
        if op.gradient_state == "given" and fb.float32 in DTYPES.get(name, ()):
            for layout in kit.layouts_of(name):
                yield kit.case(device, fb.float32, name, layout, id=f"{name}-{layout}")


def without_formula(device: str) -> Iterator[Any]:
    for name, op in OPS.items():
        if op.missing_reason:
            yield kit.case(device, fb.float32, name, id=name)


def descriptions(value: Any) -> Iterator[Arr]:
    if isinstance(value, Arr):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from descriptions(item)


def smooth(name: str, layout: str) -> list[Sample]:
    """Samples whose gradients differences can check; with no elements, there is nothing to miss."""
    found = []
    for sample in SAMPLES[name]:
        arrays = list(descriptions(arrange(sample.args, layout)))
        floating = [a for a in arrays if a.dtype is None and not a.fixed]
        empty = any(math.prod(a.shape) == 0 for a in floating)
        if floating and (sample.grad or empty) and not (layout == "expanded" and _kinked(name)):
            found.append(sample)
    return found


def _kinked(name: str) -> bool:
    # Equal rows are ties, at which these have no derivative.
    return name in ("amax", "amin", "sort", "maximum", "minimum", "max_pool2d")


def as_function(
    device: str, name: str, sample: Sample, dtype: fb.dtype, layout: str
) -> tuple[Callable[..., Any], list[fb.Tensor]]:
    """The op as a function of contiguous leaves, which it views in the layout itself."""
    leaves: list[fb.Tensor] = []
    make = kit.maker(device)

    def leaf(values: list[Any], shape: tuple[int, ...], d: fb.dtype) -> fb.Tensor:
        leaves.append(make(values, shape, d))
        return leaves[-1]

    realise(sample.args, leaf, dtype, layout=layout)
    for array, made in zip(descriptions(sample.args), leaves, strict=True):
        if array.dtype is None and not array.fixed:
            made.requires_grad_()

    def function(*inputs: fb.Tensor) -> Any:
        rest = iter(inputs)
        return kit.call(
            device, name, realise(sample.args, lambda *_: next(rest), dtype, layout=layout)
        )

    return function, leaves


@pytest.mark.cases("name layout", differentiable)
def test_gradients_are_derivatives(device: str, name: str, layout: str) -> None:
    wrong = []
    for sample in smooth(name, layout):
        function, leaves = as_function(device, name, sample, fb.float64, layout)
        fast = sum(t.numel() for t in leaves) > WHOLE_JACOBIAN
        for check in (gradcheck, gradgradcheck):
            try:
                check(function, tuple(leaves), fast_mode=fast, check_grad_dtypes=True)
            except (GradcheckError, RuntimeError) as error:
                wrong.append(f"{name} ({sample.name}), {check.__name__}: {error}")
                break
    kit.fail_with(wrong)


@pytest.mark.cases("name layout", compared)
def test_gradients_agree_with_reference(device: str, name: str, layout: str) -> None:
    wrong = []
    for sample in SAMPLES[name]:
        gradients = []
        for where in (device, kit.REFERENCE):
            function, leaves = as_function(where, name, sample, fb.float32, layout)
            results = function(*leaves)
            results = results if isinstance(results, tuple) else (results,)
            wanted = [t for t in leaves if t.requires_grad]
            roots = [r for r in results if r.requires_grad]
            if not wanted or not roots:
                continue
            seeds = [
                kit.maker(where)(Arr(tuple(r.shape), seed=9).values(fb.float32), tuple(r.shape), r.dtype)
                for r in roots
            ]
            gradients.append(fb.autograd.grad(roots, wanted, seeds, allow_unused=True))
        if len(gradients) != 2:
            continue
        for i, (found, expected) in enumerate(zip(*gradients, strict=True)):
            if found is None or expected is None:
                texts = [] if found is expected else [f"{found}, expected {expected}"]
            else:
                texts = kit.differences(found, expected, 1e-4, 1e-4)
            wrong += [f"{name} ({sample.name}), gradient of input {i}: {text}" for text in texts]
    kit.fail_with(wrong)


@pytest.mark.cases("name", without_formula)
def test_missing_gradients_say_so(device: str, name: str) -> None:
    sample = next(s for s in SAMPLES[name] if s.grad)
    function, leaves = as_function(device, name, sample, fb.float32, "contiguous")
    result = function(*leaves)
    root = result[0] if isinstance(result, tuple) else result
    with pytest.raises(NotImplementedError) as caught:
        root.sum().backward()
    assert OPS[name].missing_reason in str(caught.value)
