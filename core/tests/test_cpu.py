"""``flambeau.cpu``: PyTorch's names, and the memory and threads of whichever backend serves it."""

from __future__ import annotations

import importlib.util
import platform
import threading
from contextlib import suppress

import pytest

import flambeau as fb
from flambeau.cpu._capabilities import caches, described
from flambeau.plugin import Backend, MemoryStatistics

needs_numpy = pytest.mark.skipif(
    importlib.util.find_spec("flambeau_numpy") is None, reason="no backend of cpu is installed"
)
LARGE = (1000, 1000)


def test_the_names_of_pytorch_are_there() -> None:
    wanted = """is_available is_initialized synchronize current_device current_stream stream
    set_device device_count Stream StreamContext Event get_capabilities""".split()
    assert set(wanted) <= set(fb.cpu.__all__)
    assert all(hasattr(fb.cpu, name) for name in fb.cpu.__all__)


def test_a_program_for_all_devices_runs() -> None:
    assert fb.cpu.is_available() and fb.cpu.is_initialized()
    assert (fb.cpu.device_count(), fb.cpu.current_device()) == (1, "cpu")
    fb.cpu.set_device("cpu")
    fb.cpu.set_device(0)
    fb.cpu.synchronize()
    fb.cpu.synchronize("cpu")
    event, stream = fb.cpu.Event(), fb.cpu.Stream(priority=-1)
    event.record(stream)
    event.wait(stream)
    event.synchronize()
    assert event.query()
    stream.wait_event(event)
    stream.wait_stream(fb.cpu.current_stream())
    assert stream.record_event() is None


def test_streams_nest_and_are_restored_after_an_error_and_belong_to_a_thread() -> None:
    outer, inner, before = fb.cpu.Stream(), fb.cpu.Stream(), fb.cpu.current_stream()
    seen = []
    with fb.cpu.stream(outer):
        with suppress(KeyError), fb.cpu.StreamContext(inner):
            assert fb.cpu.current_stream("cpu") is inner
            raise KeyError
        assert fb.cpu.current_stream() is outer
        with fb.cpu.stream(None):
            assert fb.cpu.current_stream() is outer
        thread = threading.Thread(target=lambda: seen.append(fb.cpu.current_stream()))
        thread.start()
        thread.join()
    assert fb.cpu.current_stream() is before and seen == [before]


@needs_numpy
def test_large_tensors_are_counted_while_they_live() -> None:
    fb.cpu.reset_peak_memory_stats()
    before = fb.cpu.memory_allocated()
    x = fb.ones(LARGE)
    size = fb.cpu.memory_allocated() - before
    assert 4_000_000 <= size <= 4_500_000
    view = x[10:]
    del x
    assert fb.cpu.memory_allocated() == before + size
    del view
    assert fb.cpu.memory_allocated() == before
    assert fb.cpu.max_memory_allocated() >= before + size
    fb.cpu.reset_peak_memory_stats()
    assert fb.cpu.max_memory_allocated() == before


@needs_numpy
def test_empty_cache_returns_what_no_tensor_uses_and_leaves_tensors_alone() -> None:
    x = fb.ones(LARGE)
    y = x + 1
    del y
    assert fb.cpu.memory_reserved() > fb.cpu.memory_allocated()
    fb.cpu.empty_cache()
    assert fb.cpu.memory_reserved() == fb.cpu.memory_allocated()
    assert bool((x == 1).all())


@needs_numpy
def test_statistics_have_pytorchs_names_and_count_what_was_reused() -> None:
    before = fb.cpu.memory_stats()
    for _ in range(3):
        fb.ones(LARGE)
    after = fb.cpu.memory_stats()
    assert after["hits"] >= before["hits"] + 2
    for kind in ("allocated", "reserved"):
        peak, now = (after[f"{kind}_bytes.all.{when}"] for when in ("peak", "current"))
        assert peak >= now >= 0
    assert after["limit_bytes"] > 0
    assert "held by the pool" in fb.cpu.memory_summary()


@needs_numpy
def test_the_pool_can_be_switched_off_and_on() -> None:
    fb.ones(LARGE)
    try:
        fb.cpu.set_allocator_enabled(False)
        assert not fb.cpu.is_allocator_enabled()
        assert fb.cpu.memory_reserved() == fb.cpu.memory_allocated()
        before = fb.cpu.memory_allocated()
        x = fb.ones(LARGE) + 1
        assert fb.cpu.memory_allocated() == before and bool((x == 2).all())
    finally:
        fb.cpu.set_allocator_enabled(True)
    assert fb.cpu.is_allocator_enabled()


def test_a_backend_without_pool_and_threads_answers_with_zeros_and_one() -> None:
    ref = fb.accelerator.namespace("ref")
    assert ref.memory_allocated() == 0 and set(ref.memory_stats().values()) == {0}
    ref.empty_cache()
    backend = ref._runtime.backend()
    assert type(backend).memory_statistics is Backend.memory_statistics
    assert backend.memory_statistics(0) == MemoryStatistics()
    assert backend.caches_memory(True) is False
    backend.set_num_threads(7)
    assert backend.get_num_threads() == 1


@pytest.mark.parametrize("wrong", [0, -1])
def test_a_number_of_threads_must_be_positive(wrong) -> None:
    with pytest.raises(RuntimeError, match="expects a positive integer"):
        fb.set_num_threads(wrong)


def test_capabilities_cannot_be_changed_and_name_the_architecture() -> None:
    found = fb.cpu.get_capabilities()
    assert found["num_logical_cores"] >= 1 and isinstance(found["architecture"], str)
    if platform.machine() in ("x86_64", "AMD64"):
        assert found["architecture"] == "x86_64"
    with pytest.raises(TypeError):
        found["avx2"] = True  # type: ignore[index]


def test_capabilities_agree_with_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    theirs, ours = torch.cpu.get_capabilities(), fb.cpu.get_capabilities()
    common = (set(theirs) & set(ours)) - {"cpu_name"}
    assert len(common) > 5
    assert {k: ours[k] for k in common} == {k: theirs[k] for k in common}


def test_a_description_of_an_arm_processor_is_read() -> None:
    text = "processor : 0\nFeatures : fp asimd asimddp sve\n\nprocessor : 1\nFeatures : fp\n"
    found = described(text, "arm64")
    assert found["neon"] and found["dot"] and found["sve"] and not found["sve2"]
    assert "num_sockets" not in found
    assert described("", "riscv64") == {}


def test_cores_are_counted_once_per_socket(tmp_path) -> None:
    record = "physical id : {}\ncore id : {}\nflags : avx2"
    text = "\n\n".join(record.format(s, c) for s in (0, 1) for c in (0, 1, 1))
    found = described(text, "x86_64")
    assert (found["num_physical_cores"], found["num_sockets"]) == (4, 2) and found["avx2"]
    for i, (level, kind, size) in enumerate([(1, "Data", "48K"), (1, "Instruction", "32K")]):
        place = tmp_path / f"cpu0/cache/index{i}"
        place.mkdir(parents=True)
        for name, value in (("level", level), ("type", kind), ("size", size)):
            (place / name).write_text(f"{value}\n")
    assert caches(tmp_path) == {"l1d_cache_size": 48 << 10}
