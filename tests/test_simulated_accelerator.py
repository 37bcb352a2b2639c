"""examples/backends/simulated: what is not in order goes wrong there, so these programs are."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau as fb
from flambeau._random.generator import default_generators
from flambeau.accelerator import _graphs
from flambeau.accelerator._namespace import namespace
from flambeau.plugin import hookimpl
from flambeau.plugin.host import host
from flambeau.testing.backend._support import Outcome

SOURCES = Path(__file__).resolve().parents[1] / "examples/backends/simulated/src"
MEMORY = 1 << 20


class Small:
    """The plugin with devices of one mebibyte."""

    def __init__(self) -> None:
        self.module = importlib.import_module("flambeau_simulated.plugin")
        self.flambeau_kernels = self.module.flambeau_kernels
        self.flambeau_copier = self.module.flambeau_copier
        driver = importlib.import_module("flambeau_simulated.driver").Driver(memory=MEMORY)
        make = importlib.import_module("flambeau_simulated.backend").SimulatedBackend
        self.backend = make(driver)

    @hookimpl
    def flambeau_backend(self, device_type: str) -> Any:
        return self.backend


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(SOURCES)
    monkeypatch.setattr(default_generators, "_others", {})
    plugin = Small()
    host.register(plugin, name="flambeau-simulated", device_types=["simulated"])
    monkeypatch.setattr(_graphs, "_runtime", namespace("simulated")._runtime)
    monkeypatch.setattr(_graphs.graph, "_streams", {})
    yield plugin.backend
    host.unregister("flambeau-simulated")


def dirty(device: str = "simulated:0") -> None:
    """Leave sevens in the memory that the pool gives out next."""
    fb.full((64,), 7.0, device=device)


def ones(stream: Any = None) -> fb.Tensor:
    """A vector that its stream is asked for, and has not made."""
    with fb.simulated.stream(stream):
        return fb.zeros(64, device="simulated") + 1


def from_pinned_memory(backend: Any) -> None:
    dirty()
    x = fb.ones(64).pin_memory()
    y = x.to("simulated", non_blocking=True) + 1
    x.fill_(2)  # too early: the stream has not come to the copy
    fb.simulated.synchronize()
    assert y.tolist() == [3.0] * 64


def to_pinned_memory(backend: Any) -> None:
    x = ones().to("cpu", non_blocking=True)
    assert x.is_pinned()
    x.fill_(5)
    fb.simulated.synchronize()
    assert x.tolist() == [1.0] * 64


def two_streams_and_an_event(backend: Any) -> None:
    first, second = fb.simulated.Stream(), fb.simulated.Stream(priority=-1)
    x = ones(first)
    second.wait_event(first.record_event())
    with fb.simulated.stream(second):
        y = x + 1
    fb.simulated.synchronize()
    assert y.tolist() == [2.0] * 64


def an_event_that_is_put_elsewhere_later(backend: Any) -> None:
    first, second = fb.simulated.Stream(), fb.simulated.Stream()
    event = fb.simulated.Event()
    x = ones(first)
    event.record(first)
    second.wait_event(event)
    event.record(second)  # `second` waits for where it was
    with fb.simulated.stream(second):
        assert (x + 1).tolist() == [2.0] * 64


def memory_that_another_stream_uses(backend: Any) -> None:
    side = fb.simulated.Stream()
    x = ones()
    side.wait_stream(fb.simulated.current_stream())
    with fb.simulated.stream(side):
        y = x * 3
    x.record_stream(side)
    del x
    fb.full((64,), 9.0, device="simulated")
    fb.simulated.current_stream().synchronize()
    with fb.simulated.stream(side):
        assert y.tolist() == [3.0] * 64


def memory_that_goes_back_to_the_driver(backend: Any) -> None:
    side = fb.simulated.Stream()
    x = ones(side)
    with fb.simulated.stream(side):
        y = fb.zeros(32, device="simulated") + x[:32]
        place = x.data_ptr()
        del x
    fb.simulated.empty_cache()
    taken = [fb.full((64,), 9.0, device="simulated") for _ in range(9)]
    assert place in [t.data_ptr() for t in taken]
    fb.simulated.current_stream().synchronize()
    with fb.simulated.stream(side):
        assert y.tolist() == [1.0] * 32
    for t in taken:
        assert t.tolist() == [9.0] * 64


def a_copy_to_the_other_device(backend: Any) -> None:
    dirty("simulated:1")
    x = ones()
    y = x.to("simulated:1")
    del x
    fb.full((64,), 9.0, device="simulated")
    fb.simulated.current_stream(0).query()  # the first device goes on, and not the second
    assert y.tolist() == [1.0] * 64
    assert (y * 2).to("simulated:0").tolist() == [2.0] * 64


def memory_of_a_graph(backend: Any) -> None:
    x, recorded = ones(), fb.cuda.CUDAGraph()
    with fb.cuda.graph(recorded):
        y = (x * 2 + 1) * 10
    kept = [fb.full((64,), float(i), device="simulated") for i in range(20)]
    with fb.simulated.stream(fb.cuda.graph._streams["simulated", 0]):
        kept += [fb.full((64,), float(i), device="simulated") for i in range(20, 40)]
    fb.simulated.synchronize()
    x.fill_(3)
    recorded.replay()
    assert y.tolist() == [70.0] * 64
    fb.simulated.synchronize()
    for i, t in enumerate(kept):
        assert t.tolist() == [float(i)] * 64


def a_number_that_two_streams_use(backend: Any) -> None:
    first, second = fb.simulated.Stream(), fb.simulated.Stream()
    for stream in (first, second):
        with fb.simulated.stream(stream):
            y = fb.zeros(64, device="simulated") + 0.8125
    with fb.simulated.stream(second):
        assert y.tolist() == [0.8125] * 64


def a_number_that_a_graph_uses_first(backend: Any) -> None:
    x = ones()
    with fb.cuda.graph(fb.cuda.CUDAGraph()):
        x + 0.8125
    assert (x + 0.8125).tolist() == [1.8125] * 64


def numbers_that_are_not_kept(backend: Any) -> None:
    x = fb.zeros(64, device="simulated")
    for sign in (-1.0, 1.0):
        x = fb.maximum(x - 1, fb.tensor(sign, device="simulated"))
        x = x * fb.tensor(2.0, device="simulated")
    assert x.tolist() == [2.0] * 64


def nothing(self: Any, *args: Any, **kwargs: Any) -> None:
    """Does nothing."""


def upload_on_a_stream_of_its_own(self: Any, address: Any, shape: Any, dtype: Any, *rest: Any):
    made = self._empty_on(rest[0], shape, dtype)
    window = made.window
    stream = self.new_stream(rest[0], 0)
    self.driver.launch(stream, lambda: self.driver.move(window, address, window.nbytes))
    return made


def download_at_once(self: Any, array: Any, address: int, keep: Any) -> bool:
    self.driver.move(address, array.window, array.window.nbytes)
    return True


def free_at_once(self: Any, address: int, size: int) -> None:
    self._room[0].insert(0, (address % (1 << 44), size))


def staged(self: Any, *args: Any) -> Any:
    return self._staged(*args)


def empty_of_the_device(self: Any, shape: Any, dtype: Any) -> Any:
    graphs, self._graphs = self._graphs, {}
    try:
        return type(self).whole(self, shape, dtype)
    finally:
        self._graphs = graphs


FAULTS: dict[str, tuple[Callable[[Any], None], str, str, Any]] = {
    "a copy to the device before its order": (
        *(from_pinned_memory, "backend.SimulatedBackend", "upload"),
        upload_on_a_stream_of_its_own,
    ),
    "a copy to the host before the work": (
        *(to_pinned_memory, "backend.SimulatedBackend", "download", download_at_once),
    ),
    "a wait that is none": (two_streams_and_an_event, "backend.SimulatedBackend", "wait", nothing),
    "a wait that is none, for a marker that moved on": (
        *(an_event_that_is_put_elsewhere_later, "backend.SimulatedBackend", "wait", nothing),
    ),
    "a use that is not recorded": (
        *(memory_that_another_stream_uses, "backend.SimulatedBackend", "record_use", nothing),
    ),
    "memory given back in use": (
        *(memory_that_goes_back_to_the_driver, "driver.Driver", "free", free_at_once),
    ),
    "a copy that waits for nobody": (
        *(a_copy_to_the_other_device, "backend.SimulatedBackend", "_in_order", nothing),
    ),
    "a number on one stream": (
        *(a_number_that_two_streams_use, "backend.SimulatedBackend", "from_host", staged),
    ),
    "a number in a graph": (
        *(a_number_that_a_graph_uses_first, "backend.SimulatedBackend", "from_host", staged),
    ),
    "a number that ends before its use": (
        *(numbers_that_are_not_kept, "backend.SimulatedBackend", "record_use", nothing),
    ),
    "a graph without memory of its own": (
        *(memory_of_a_graph, "backend.SimulatedBackend", "empty", empty_of_the_device),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_work_is_in_the_order_that_streams_and_events_give(fault: str, backend: Any) -> None:
    FAULTS[fault][0](backend)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_device_without_that_order_is_found_out(
    fault: str, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, where, name, broken = FAULTS[fault]
    module, _, kind = where.partition(".")
    owner = getattr(importlib.import_module(f"flambeau_simulated.{module}"), kind)
    monkeypatch.setattr(owner, "whole", getattr(owner, name), raising=False)
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(AssertionError):
        program(backend)


def test_nothing_is_done_before_somebody_waits_and_queries_get_there(backend: Any) -> None:
    x = ones()
    event = fb.simulated.current_stream().record_event()
    assert not fb.simulated.current_stream().query()
    polls = 0
    while not event.query():
        polls += 1
    assert 0 < polls < 9
    assert x.tolist() == [1.0] * 64


def test_a_full_queue_does_its_oldest_work_first(backend: Any) -> None:
    x = fb.zeros(4, device="simulated")
    for _ in range(3 * backend.driver.depth):
        x += 1
    assert len(backend.current_stream(0).tasks) == backend.driver.depth
    assert x.tolist() == [3.0 * backend.driver.depth] * 4


def test_events_measure_the_work_between_them(backend: Any) -> None:
    first, last = (fb.simulated.Event(enable_timing=True) for _ in range(2))
    first.record()
    x = fb.ones(128, 128, device="simulated")
    x @ x
    last.record()
    with pytest.raises(RuntimeError, match="not reached yet"):
        first.elapsed_time(last)
    last.synchronize()
    assert first.elapsed_time(last) > 0


def test_memory_of_the_dead_serves_the_same_stream_without_a_wait(backend: Any) -> None:
    def figures() -> tuple[int, int]:
        found = fb.simulated.memory_stats()
        return found["hits"], found["misses"]

    place = fb.empty(1000, device="simulated").data_ptr()
    before, reserved = figures(), fb.simulated.memory_reserved()
    y = fb.empty(1000, device="simulated")
    assert y.data_ptr() == place
    assert figures() == (before[0] + 1, before[1])
    with fb.simulated.stream(fb.simulated.Stream()):
        z = fb.empty(1000, device="simulated")
    assert z.data_ptr() != place
    assert figures() == (before[0] + 1, before[1] + 1)
    assert fb.simulated.memory_allocated() == 8192
    del y, z
    assert fb.simulated.memory_allocated() == 0
    assert fb.simulated.memory_reserved() == reserved + 4096
    assert fb.simulated.max_memory_allocated() == 8192
    fb.simulated.empty_cache()
    assert fb.simulated.memory_reserved() == 0
    assert fb.simulated.mem_get_info(0) == (MEMORY, MEMORY)
    fb.simulated.reset_peak_memory_stats()
    assert fb.simulated.max_memory_allocated() == 0


def test_memory_that_is_out_is_found_in_the_cache_or_named(backend: Any) -> None:
    count = MEMORY // 8
    for n in range(count // 2, count, 1024):  # sizes that the pool has not got, one after another
        fb.empty(n, dtype=fb.float64, device="simulated")
    held = fb.empty(count // 2, dtype=fb.float64, device="simulated")
    with pytest.raises(RuntimeError, match=r"simulated out of memory.*simulated:0 has 1\.00 MiB"):
        fb.empty(count, dtype=fb.float64, device="simulated")
    assert held.numel() == count // 2


def test_gaps_are_joined_in_whichever_order_they_come(backend: Any) -> None:
    driver, size = backend.driver, MEMORY // 4
    for order in ((0, 1, 2, 3), (3, 1, 0, 2), (2, 0, 3, 1)):
        places = [driver.malloc(1, size) for _ in range(4)]
        with pytest.raises(MemoryError):
            driver.malloc(1, 1)
        for i in order:
            driver.free(places[i], size)
        assert driver.free_bytes(1) == MEMORY
        driver.free(driver.malloc(1, MEMORY), MEMORY)


def test_the_memory_of_a_graph_that_is_gone_serves_others(backend: Any) -> None:
    x, recorded = fb.ones(MEMORY // 16, device="simulated"), fb.cuda.CUDAGraph()
    x + 1  # the 1 becomes a constant of the device, which is not to lie in the memory of a graph
    with fb.cuda.graph(recorded):
        y = x + 1
    free, _ = fb.simulated.mem_get_info(0)
    assert MEMORY // 4 < free <= MEMORY // 2
    assert MEMORY // 4 <= fb.simulated.memory_allocated() < MEMORY // 2
    recorded.replay()
    assert y.sum().item() == MEMORY // 8
    with pytest.raises(RuntimeError, match="out of memory"):
        fb.empty(MEMORY // 8, device="simulated")
    recorded.reset()
    del y
    assert fb.empty(MEMORY // 8, device="simulated").numel()


def test_a_graph_reads_what_its_inputs_hold_at_its_launch(backend: Any) -> None:
    x, recorded = fb.ones(3, device="simulated"), fb.cuda.CUDAGraph()
    with fb.cuda.graph(recorded):
        assert fb.cuda.is_current_stream_capturing()
        y = (x * 2).cumsum(0)
    for value in (5.0, -1.0):
        x.copy_(fb.full((3,), value))
        recorded.replay()
        assert y.tolist() == [2 * value, 4 * value, 6 * value]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: x.sum().item(), "cannot wait"),
        (lambda x: x.nonzero(), "cannot wait"),
        (lambda x: fb.rand(2, device="simulated"), "random numbers"),
        (lambda x: fb.simulated.current_stream().record_event(), "no events"),
    ],
)
def test_what_a_graph_cannot_hold_ends_its_recording(call: Any, said: str, backend: Any) -> None:
    x = fb.ones(3, device="simulated")
    with pytest.raises(RuntimeError, match=said), fb.cuda.graph(fb.cuda.CUDAGraph()):
        call(x)
    assert not fb.cuda.is_current_stream_capturing()
    assert x.sum().item() == 3
    assert fb.rand(2, device="simulated").shape == (2,)


def test_the_memory_of_a_device_is_not_the_host_s(backend: Any) -> None:
    x = fb.ones(3, device="simulated:1")
    base = importlib.import_module("flambeau_simulated.driver").BASE
    assert x.data_ptr() // base == 2
    for look in (np.asarray, np.frombuffer, memoryview):
        with pytest.raises((TypeError, ValueError), match=r"simulated:1|bytes-like"):
            look(x._a)
    with pytest.raises(RuntimeError, match=r"same device.*simulated:1, simulated:0"):
        x + fb.ones(3, device="simulated:0")
    kernel = host.activate("simulated").kernels["add"]
    with pytest.raises(ValueError, match=r"simulated:1 in the work of simulated:0.*\.to\(\)"):
        kernel(x._a, fb.ones(3, device="simulated:0")._a)


def test_what_the_device_finds_wrong_is_raised_at_the_next_wait_and_once(backend: Any) -> None:
    x = fb.arange(3.0, device="simulated")
    y = x[fb.tensor([0, 7], device="simulated")]
    z = x / 2
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        fb.simulated.synchronize()
    assert z.tolist() == [0.0, 0.5, 1.0]
    assert y[0].item() == 0
    with pytest.raises(RuntimeError, match="Expected p_in >= 0"):
        fb.bernoulli(x + 5).tolist()
    assert fb.bernoulli(x * 0).tolist() == [0.0] * 3
    with pytest.raises(RuntimeError, match="multinomial"):
        fb.multinomial(-x, 1)
    fb.simulated.synchronize()


def test_each_device_has_random_numbers_of_its_own_and_they_are_set_by_seed_and_offset(
    backend: Any,
) -> None:
    def draw(index: int) -> list[float]:
        return fb.rand(5, device=f"simulated:{index}").tolist()

    fb.simulated.manual_seed_all(3)
    first = draw(0)
    state = fb.simulated.get_rng_state(0)
    assert state.numel() == 16
    second = draw(0)
    assert draw(1) == first != second, "the second device has drawn nothing so far"
    fb.simulated.set_rng_state(state, 0)
    assert draw(0) == second
    fb.simulated.manual_seed_all(4)
    assert draw(1) not in (first, second)


def test_pinned_memory_is_forgotten_with_its_last_user(backend: Any) -> None:
    page = backend.pinned(4000)
    page[:] = 1
    place = page.__array_interface__["data"][0]
    assert backend.is_pinned(place) and backend.is_pinned(place + 3999)
    assert not backend.is_pinned(place + 4000)
    array = backend.upload(place, (4000,), fb.uint8, 0, page)
    del page
    assert backend.is_pinned(place), "the copy has still to read it"
    assert bytes(backend.to_host(array)) == b"\1" * 4000
    assert not backend.is_pinned(place)


def draws_of_normals(**options: Any) -> fb.Tensor:
    return fb.randn(7, **options)  # an odd count leaves the second of a pair over


def draws_by_rejection(generator: fb.Generator, device: str) -> fb.Tensor:
    concentration = fb.tensor([[0.5, 2.0, 7.0]] * 9, device=device)
    return fb._sample_dirichlet(concentration, generator=generator)


@pytest.mark.parametrize("draw", [draws_of_normals, draws_by_rejection])
def test_seed_and_offset_are_the_whole_state_of_a_counter_based_generator(
    backend: Any, draw: Callable[..., fb.Tensor]
) -> None:
    generator = fb.Generator(device="simulated").manual_seed(5)
    draw(generator=generator, device="simulated")
    state, offset = generator.get_state(), generator.get_offset()
    assert len(state) == 16
    first = draw(generator=generator, device="simulated").tolist()
    assert draw(generator=generator, device="simulated").tolist() != first
    others = (
        fb.Generator(device="simulated").set_state(state),
        fb.Generator(device="simulated").manual_seed(5).set_offset(offset),
        generator.set_offset(offset).clone_state(),
    )
    for other in others:
        assert draw(generator=other, device="simulated").tolist() == first
    again = (lambda: generator.set_state(state), lambda: generator.set_offset(offset))
    for go_back in again:
        assert draw(generator=go_back(), device="simulated").tolist() == first


def test_the_kit_takes_what_is_refused_late_for_the_outcome_of_the_op_it_was_asked_by(
    backend: Any,
) -> None:
    """Several things may be refused; none of them comes up in what is asked for next."""
    x, y = fb.zeros(2, 3, device="simulated"), fb.zeros(3, device="simulated")
    late = Outcome("simulated", "sum", (y, (0, 1), False))
    assert isinstance(late.error, (ValueError, IndexError, RuntimeError)), late.error
    assert Outcome("simulated", "sum", (x, (0, 1), False)).error is None
    assert x.sum().item() == 0
