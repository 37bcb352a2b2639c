"""Streams and events of an `Accelerator`: what was asked first is done first, and reading waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import flambeau as fb
from flambeau._dispatch.bound import bind
from flambeau.plugin import Accelerator
from flambeau.testing.backend import _support as kit

LEVEL = "inference"

SIZE, STEPS = 64, 8


def accelerators(device: str) -> Iterator[Any]:
    """One case for a device with streams, none for others."""
    backend = bind(device).backend
    if isinstance(backend, Accelerator):
        yield pytest.param(backend, backend.current_device(), id="streams")


def worked(device: str) -> fb.Tensor:
    """A matrix of ones, after products that take the device a while."""
    x = kit.maker(device)([1.0] * (SIZE * SIZE), (SIZE, SIZE), fb.float32)
    for _ in range(STEPS):
        x = x @ x / SIZE
    return x


@contextmanager
def current(backend: Accelerator, index: int, stream: object) -> Iterator[None]:
    before = backend.current_stream(index)
    backend.set_stream(index, stream)
    try:
        yield
    finally:
        backend.set_stream(index, before)


def same(backend: Accelerator, a: object, b: object) -> bool:
    return a == b or backend.stream_handle(a) == backend.stream_handle(b)


@kit.cases("backend index", accelerators)
def test_reading_waits_for_the_work(device: str, backend: Accelerator, index: int) -> None:
    with current(backend, index, backend.new_stream(index, 0)):
        x = worked(device)
        assert not kit.difference(kit.numbers(x), [1.0] * SIZE**2)
        assert worked(device)[0, 0].item() == 1.0
        assert not kit.difference(worked(device)[0].tolist(), [1.0] * SIZE)


@kit.cases("backend index", accelerators)
def test_a_stream_is_current_in_its_thread_only(
    device: str, backend: Accelerator, index: int
) -> None:
    default = backend.default_stream(index)
    assert same(backend, backend.current_stream(index), default)
    stream, seen = backend.new_stream(index, 0), []
    with current(backend, index, stream):
        assert same(backend, backend.current_stream(index), stream)
        thread = threading.Thread(target=lambda: seen.append(backend.current_stream(index)))
        thread.start()
        thread.join()
    assert same(backend, seen[0], default)
    assert same(backend, backend.current_stream(index), default)


@kit.cases("backend index", accelerators)
def test_a_stream_that_waits_for_an_event_sees_what_came_before(
    device: str, backend: Accelerator, index: int
) -> None:
    first, second = (backend.new_stream(index, 0) for _ in range(2))
    with current(backend, index, first):
        x = worked(device)
        event = backend.new_event(index, False, False, False)
        backend.record(event, first)
    backend.wait(second, event)
    with current(backend, index, second):
        y = x + 1
        assert not kit.difference(kit.numbers(y), [2.0] * SIZE**2)
    backend.stream_wait(first)
    backend.stream_wait(second)


@kit.cases("backend index", accelerators)
def test_waiting_means_done(device: str, backend: Accelerator, index: int) -> None:
    stream = backend.new_stream(index, 0)
    first, last = (backend.new_event(index, True, False, False) for _ in range(2))
    with current(backend, index, stream):
        backend.record(first, stream)
        x = worked(device)
        backend.record(last, stream)
    backend.event_wait(last)
    assert backend.event_done(first)
    assert backend.event_done(last)
    assert backend.elapsed_ms(first, last) >= 0
    with current(backend, index, stream):
        worked(device)
    backend.stream_wait(stream)
    assert backend.stream_done(stream)
    with current(backend, index, stream):
        worked(device)
    assert backend.synchronize(index) is None
    assert backend.stream_done(stream), "synchronize() left work of a stream"
    assert not kit.difference(kit.numbers(x), [1.0] * SIZE**2)


@kit.cases("backend index", accelerators)
def test_streams_that_never_meet_give_the_same_numbers(
    device: str, backend: Accelerator, index: int
) -> None:
    found = []
    for stream in [backend.new_stream(index, priority) for priority in (0, -1, 0)]:
        with current(backend, index, stream):
            found.append(worked(device) * 2)
    backend.synchronize(index)
    assert len(found) == 3
    for x in found:
        assert not kit.difference(kit.numbers(x), [2.0] * SIZE**2)
