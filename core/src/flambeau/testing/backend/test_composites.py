"""Every composite with a kernel of the backend agrees with its decomposition, gradient included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import flambeau as fb
from flambeau._dispatch.bound import bind
from flambeau._dispatch.dispatch import wrap
from flambeau._memory.views import RETYPES
from flambeau._random.mt19937 import MT19937
from flambeau.ops import OPS
from flambeau.testing.backend import _support as kit
from flambeau.testing.samples import ANY_SHAPE, DTYPES, SAMPLES, SPECIAL, Sample, realise

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


LEVEL = "inference"

RTOL = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-10}
"""Relative to the element and to the largest one; complex dtypes as their real parts."""


def overridden(device: str) -> Iterator[Any]:
    for name in composites(device):
        for dtype in DTYPES[name]:
            for layout in kit.layouts_of(name):
                case = f"{name}-{dtype.name}-{layout}"
                yield kit.case(device, dtype, name, dtype, layout, id=case)


def cornered(device: str) -> Iterator[Any]:
    for name in composites(device):
        if name in SPECIAL:
            for dtype in DTYPES[name]:
                yield kit.case(device, dtype, name, dtype, id=f"{name}-{dtype.name}")


def overridden_with_gradient(device: str) -> Iterator[Any]:
    for name in composites(device):
        for dtype in DTYPES[name]:
            if OPS[name].gradient_state == "given" and dtype in (fb.float32, fb.float64):
                for layout in kit.gradient_layouts(device, name):
                    case = f"{name}-{dtype.name}-{layout}"
                    yield kit.case(device, dtype, name, dtype, layout, id=case)


def composites(device: str) -> list[str]:
    """The composites that the backend has kernels for and that are functions of arrays."""
    names = [name for name in sorted(bind(device).kernels) if name in OPS and name in SAMPLES]
    return [
        name
        for name in names
        if OPS[name].tier == "composite" and not name.endswith("_") and not kit.draws(name)
    ]


def noise(results: object) -> Any:
    """What was drawn, the last of several results."""
    return results[-1] if isinstance(results, tuple) else results


def random_ops(device: str) -> Iterator[Any]:
    for name in OPS:
        if name in SAMPLES and kit.draws(name):
            for dtype in DTYPES[name]:
                yield kit.case(device, dtype, name, dtype, id=f"{name}-{dtype.name}")


def fills(device: str) -> Iterator[Any]:
    for kernel in sorted(bind(device).kernels):
        name = kernel.removesuffix("_")
        if kernel != name and name in OPS and name in SAMPLES and kit.draws(name):
            for dtype in DTYPES[name]:
                yield kit.case(device, dtype, name, dtype, id=f"{kernel}-{dtype.name}")


def steps(device: str) -> Iterator[Any]:
    for name in sorted(bind(device).kernels):
        if name in OPS and name in SAMPLES and name.endswith("_"):
            for dtype in DTYPES[name]:
                for layout in ("contiguous", "transposed", "sliced", "offset"):
                    case = f"{name}-{dtype.name}-{layout}"
                    yield kit.case(device, dtype, name, dtype, layout, id=case)


def bound(device: str, name: str, dtype: fb.dtype) -> float:
    told = kit.promised(device).tolerances.get((name, dtype.name), 0.0)
    return max(RTOL.get(dtype.to_real().name, 0.0), told)


def results(value: object) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def disagreements(
    device: str, name: str, sample: Sample, dtype: fb.dtype, layout: str, exact: bool = False
) -> tuple[list[str], kit.Outcome]:
    """How a kernel's results differ from those of the decomposition; and the kernel's outcome."""
    be = bind(device)
    found = kit.observed(device, name, sample, dtype, layout)
    if found.error is not None:
        return [f"raised {found.error!r}"], found
    decomposed = OPS[name].decomposed(be)
    natives = [be.fresh(n) for n in results(decomposed(*kit.native(found.args)))]
    texts = [f"input {i} was changed" for i in found.changed]
    if [tuple(t._a.shape) for t in found.results] != [tuple(n.shape) for n in natives]:
        shapes = [[tuple(a.shape) for a in some] for some in (found.results, natives)]
        return [f"results of shapes {shapes[0]}, expected {shapes[1]}"], found
    alike = kit.comparable(name, lambda *tensors: tensors)
    expected = alike(*[wrap(be, n, be.dtype_of(n)) for n in natives])
    for i, (t, e) in enumerate(zip(alike(*found.results), expected, strict=True)):
        rtol = bound(device, name, e.dtype)
        slack = 0.0 if exact else rtol
        different = kit.differences(t, e, rtol, slack, operands=found.args)
        texts += [f"result {i}: {text}" for text in different]
    return texts, found


@kit.cases("name dtype layout", overridden)
def test_kernels_agree_with_their_decomposition(
    device: str, name: str, dtype: DType, layout: str
) -> None:
    wrong = []
    for sample in SAMPLES[name]:
        texts, found = disagreements(device, name, sample, dtype, layout)
        if not texts and name not in ("contiguous", *RETYPES):
            texts = kit.shared_memory(found.results, found.args)
        wrong += [f"{name} ({sample.name}): {text}" for text in texts]
    kit.fail_with(wrong)


@kit.cases("name dtype", cornered)
def test_composite_corners_agree(device: str, name: str, dtype: DType) -> None:
    wrong = []
    for sample in SPECIAL[name]:
        # Beside exp(30) the others would be nothing: elements that are not summed stand alone.
        alone = name in ANY_SHAPE
        texts, _ = disagreements(device, name, sample, dtype, "contiguous", exact=alone)
        wrong += [f"{name} ({sample.name}): {text}" for text in texts]
    kit.fail_with(wrong)


@kit.level("training")
@kit.cases("name dtype layout", steps)
def test_steps_write_what_their_bodies_write(
    device: str, name: str, dtype: DType, layout: str
) -> None:
    wrong = []
    for sample in SAMPLES[name]:
        written = []
        for function in (OPS[name], OPS[name].body):
            args = realise(sample.args, kit.maker(device), dtype, layout=layout)
            with fb.no_grad():
                function(*args)
            written.append(list(kit.tensors(args)))
        rtol = bound(device, name, dtype)
        for i, (t, e) in enumerate(zip(*written, strict=True)):
            texts = kit.differences(t, e, rtol, rtol)
            wrong += [f"{name} ({sample.name}), tensor {i}: {text}" for text in texts]
    kit.fail_with(wrong)


@kit.level("training")
@kit.cases("name dtype layout", overridden_with_gradient)
def test_gradients_agree_with_those_of_the_decomposition(
    device: str, name: str, dtype: DType, layout: str
) -> None:
    wrong = []
    for sample in SAMPLES[name]:
        if not sample.grad:
            continue
        gradients = [
            kit.gradients(device, *kit.as_function(device, function, sample, dtype, layout))
            for function in (kit.comparable(name), kit.comparable(name, OPS[name].body))
        ]
        if not gradients[1]:
            continue  # a decomposition that computes on the host
        floor = kit.cancelled(name, gradients[1])
        for i, (found, expected) in enumerate(zip(*gradients, strict=True)):
            if found is None or expected is None:
                absent = expected if found is None else found
                if absent is not None and absent.abs().sum().item() > 0:
                    wrong.append(f"{name} ({sample.name}): gradient {i} is {found}")
                continue
            rtol = 100 * bound(device, name, dtype)
            texts = kit.differences(found, expected, rtol, rtol, floor=floor)
            wrong += [f"{name} ({sample.name}), gradient {i}: {text}" for text in texts]
    kit.fail_with(wrong)


@kit.cases("name dtype", random_ops)
def test_random_numbers_repeat_with_the_seed(device: str, name: str, dtype: DType) -> None:
    be = bind(device)
    generator = fb.Generator(device=device)
    for sample in SAMPLES[name]:
        args = realise(sample.args, kit.maker(device), dtype, generator=generator)
        drawn = []
        for _ in range(2):
            generator.manual_seed(7)
            drawn += [noise(kit.call(device, name, args)) for _ in range(4)]
        first, *others, again = [kit.numbers(t) for t in drawn[:5]]
        assert first == again, "the same seed gave other numbers"
        if len(set(first)) > 1:  # not a distribution of one value
            assert any(other != first for other in others), "every draw gives the same numbers"
        for t in drawn:
            assert be.dtype_of(t._a) is t.dtype
        # The decomposition says shape and dtype; its numbers are compared elsewhere.
        native = be.fresh(noise(OPS[name].decomposed(be)(*kit.native(args))))
        assert tuple(drawn[0].shape) == tuple(native.shape)
        assert drawn[0].dtype is be.dtype_of(native)


@kit.cases("name dtype", random_ops)
def test_random_kernels_draw_the_stream_of_the_op(device: str, name: str, dtype: DType) -> None:
    be = bind(device)
    if not _core_stream(device):
        pytest.skip(f"device {device!r} has random bits of its own")
    for sample in SAMPLES[name]:
        drawn = []
        for function in (getattr(be, name), OPS[name].decomposed(be)):
            generator = fb.Generator(device=device)
            generator.manual_seed(11)
            args = realise(sample.args, kit.maker(device), dtype, generator=generator)
            native = be.fresh(noise(function(*kit.native(args))))
            drawn.append(wrap(be, native, be.dtype_of(native)))
        found, expected = drawn
        rtol = bound(device, name, found.dtype)
        texts = kit.differences(found, expected, rtol)
        kit.fail_with([f"{name} ({sample.name}): {text}" for text in texts])


@kit.cases("name dtype", fills)
def test_kernels_that_fill_draw_the_numbers_of_the_op(device: str, name: str, dtype: DType) -> None:
    be = bind(device)
    for sample in SAMPLES[name]:
        drawn, states = [], []
        for fill in (False, True):
            generator = fb.Generator(device=device).manual_seed(11)
            args = kit.native(realise(sample.args, kit.maker(device), dtype, generator=generator))
            native = be.fresh(getattr(be, name)(*args))
            if fill:
                generator.manual_seed(11)
                native = be.full(native.shape, 0, be.dtype_of(native))
                made = (tuple, fb.dtype, fb.Generator)
                given = [a for a in args if not isinstance(a, made)]
                returned = getattr(be, f"{name}_")(native, *given, generator)
                assert returned is None, f"{name}_ returned a value: it writes"
            drawn.append(wrap(be, native, be.dtype_of(native)))
            states.append(generator.get_state().tolist())
        texts = kit.differences(drawn[1], drawn[0], bound(device, name, dtype))
        kit.fail_with([f"{name}_ ({sample.name}): {text}" for text in texts])
        assert states[0] == states[1], f"{name}_ leaves the generator elsewhere than {name}"


def drawn(device: str, generator: fb.Generator | None = None) -> list[list[Any]]:
    """Two vectors of random numbers, uniform and normal."""
    options: dict[str, Any] = {"dtype": fb.float32, "device": device, "generator": generator}
    return [kit.numbers(draw(7, **options)) for draw in (fb.rand, fb.randn)]


def test_a_generator_continues_from_a_state_that_was_kept(device: str) -> None:
    generator = fb.Generator(device=device).manual_seed(5)
    drawn(device, generator)  # an odd count of normal numbers leaves one over
    state = generator.get_state()
    first = drawn(device, generator)
    assert drawn(device, generator) != first
    generator.set_state(state)
    assert drawn(device, generator) == first
    assert drawn(device, fb.Generator(device=device).set_state(state)) == first


def test_generators_do_not_disturb_each_other_and_the_seed_reaches_the_device(device: str) -> None:
    own = fb.Generator(device=device).manual_seed(3)
    alone = [drawn(device, own), drawn(device, own)]
    own.manual_seed(3)
    with fb.random.fork_rng(devices=[]):
        fb.manual_seed(11)
        first = drawn(device)
        mixed = [drawn(device, own), drawn(device), drawn(device, own)]
        fb.manual_seed(11)
        assert drawn(device) == first
        assert drawn(device) == mixed[1]
    assert mixed[::2] == alone


def _core_stream(device: str) -> bool:
    """Whether the generator of the device gives the bits of the core's own."""
    engine: Any = fb.Generator(device=device).manual_seed(3).engine
    if not hasattr(engine, "random_bits"):
        return False
    return list(engine.random_bits(4)) == list(MT19937(3).random_bits(4))
