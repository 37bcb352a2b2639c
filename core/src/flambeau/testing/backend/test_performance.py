"""What a backend could gain: told in the summary of the run, demanded of nobody."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import flambeau as fb
from flambeau._dispatch.bound import bind
from flambeau.ops import OPS
from flambeau.plugin import Backend
from flambeau.testing.backend import HINTS
from flambeau.testing.backend import _support as kit
from flambeau.testing.backend._session import HINT
from flambeau.testing.backend.test_composites import composites
from flambeau.testing.samples import ANY_SHAPE, DTYPES, SAMPLES, Arr, realise

LEVEL = HINTS

SLOWER = 1.25
"""How many times slower than its decomposition a kernel is before it is named."""

LARGE = (256, 256)
_ROUNDS, _ENOUGH, _SHOWN = 9, 0.03, 12

Tell = Callable[[str], None]


@pytest.fixture
def tell(device: str, record_property: Callable[[str, object], None]) -> Tell:
    """Add a line to the hints in the summary."""
    return lambda text: record_property(HINT, f"{device} {text}")


def arguments(device: str, name: str, *, large: bool = False) -> tuple[Any, ...] | None:
    """Those of the first sample with elements, in float32 where the op has it."""
    dtypes = kit.supported(device, DTYPES[name])
    for sample in SAMPLES[name]:
        arrays = list(kit.descriptions(sample.args))
        if not dtypes or any(0 in a.shape for a in arrays):
            continue
        args = _enlarged(sample.args) if large else sample.args
        dtype = fb.float32 if fb.float32 in dtypes else dtypes[0]
        return realise(args, kit.maker(device), dtype)
    return None


def _enlarged(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([dataclasses.replace(a, shape=LARGE) if _grows(a) else a for a in args])


def _grows(value: object) -> bool:
    return isinstance(value, Arr) and bool(value.shape) and value.kind != "literal"


def seconds(device: str, functions: list[Callable[..., Any]], args: Any) -> list[float]:
    """The least time that each of `functions` took for `args`, taking turns."""
    be = bind(device)
    index = be.device.index or 0
    best = [float("inf")] * len(functions)
    for function in functions:  # what the first call imports or compiles is not its price
        function(*args)
    begun = time.perf_counter()
    for _ in range(_ROUNDS):
        for i, function in enumerate(functions):
            be.backend.synchronize(index)
            start = time.perf_counter()
            function(*args)
            be.backend.synchronize(index)
            best[i] = min(best[i], time.perf_counter() - start)
        if time.perf_counter() - begun > _ENOUGH:
            break
    return best


def listed(found: dict[str, float], form: str) -> str:
    """The largest first, as ``name figure``."""
    ranked = sorted(found.items(), key=lambda pair: -pair[1])
    shown = ", ".join(f"{name} {form.format(value)}" for name, value in ranked[:_SHOWN])
    return shown + (f" and {len(ranked) - _SHOWN} more" if len(ranked) > _SHOWN else "")


def test_hint_composites_that_run_decomposed(device: str, tell: Tell) -> None:
    be = bind(device)
    every = [n for n, op in OPS.items() if op.tier == "composite" and not n.endswith("_")]
    decomposed = [name for name in every if name not in be.kernels]
    took: dict[str, float] = {}
    for name in decomposed:
        if name not in SAMPLES or kit.draws(name) or not (args := arguments(device, name)):
            continue
        with told_instead(name, tell):
            (spent,) = seconds(device, [getattr(be, name)], kit.native(args))
            took[name] = 1e6 * spent
    if decomposed:
        form = "decomposed"
        if type(be.backend).compile is not Backend.compile:
            form = "decomposed, or as the backend compiles it"
        tell(
            f"{len(decomposed)} of {len(every)} composites run {form}; by microseconds "
            f"for small arguments: {listed(took, '{:.0f}')}"
        )


def test_hint_kernels_slower_than_their_decomposition(device: str, tell: Tell) -> None:
    be = bind(device)
    for large in (False, True):
        slow: dict[str, float] = {}
        for name in composites(device):
            if large and name not in ANY_SHAPE:
                continue
            if not (args := arguments(device, name, large=large)):
                continue
            with told_instead(name, tell):
                pair = [getattr(be, name), OPS[name].decomposed(be)]
                own, parts = seconds(device, pair, kit.native(args))
                if own > SLOWER * parts:
                    slow[name] = own / parts
        if slow:
            size = "of shape " + "x".join(map(str, LARGE)) if large else "small"
            tell(
                f"kernels slower than their decomposition, arguments {size}: "
                f"{listed(slow, '{:.1f}x')}"
            )


def test_hint_ops_that_read_from_the_device(device: str, tell: Tell) -> None:
    """Reading waits until the device has finished everything that was asked of it."""
    reads: dict[str, float] = {}
    for name in OPS:
        if name not in SAMPLES or kit.draws(name) or name.endswith("_"):
            continue
        if not (args := arguments(device, name)):
            continue
        with told_instead(name, tell), counted_reads(bind(device).backend) as count:
            kit.call(device, name, args)
        if count[0]:
            reads[name] = count[0]
    if reads:
        tell(f"ops that read values from the device, and how often: {listed(reads, '{:.0f}')}")


@contextmanager
def told_instead(name: str, tell: Tell) -> Iterator[None]:
    """What fails here is a failure of another level; here it is a line."""
    try:
        yield
    except Exception as error:
        tell(f"{name} could not be measured: {type(error).__name__}: {error}")


@contextmanager
def counted_reads(backend: object) -> Iterator[list[int]]:
    """How often elements go to the host; `item` may use `to_host`, which is one reading."""
    count, inside = [0], [False]

    def counting(method: Callable[..., Any]) -> Callable[..., Any]:
        def read(*args: object) -> object:
            count[0] += not inside[0]
            outermost, inside[0] = not inside[0], True
            try:
                return method(*args)
            finally:
                inside[0] = not outermost

        return read

    names = ("to_host", "item", "tolist")
    kept = {name: vars(backend)[name] for name in names if name in vars(backend)}
    for name in names:
        setattr(backend, name, counting(getattr(backend, name)))
    try:
        yield count
    finally:
        for name in names:
            delattr(backend, name)
        vars(backend).update(kept)
