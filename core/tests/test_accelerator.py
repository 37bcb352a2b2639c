"""``flambeau.<device type>`` and `flambeau.accelerator`, on a device type made for the purpose."""

from __future__ import annotations

import ast
import gc
import importlib.util
import re
import weakref
from pathlib import Path

import fake_accelerator
import pytest

import flambeau as fb
from flambeau._autograd import engine
from flambeau._types.dtype import pack
from flambeau.plugin.host import host


@pytest.fixture
def fake():
    """The backend of the device type ``fake``, which exists during the test."""
    plugin = fake_accelerator.Plugin()
    host.register(plugin, name="fake", device_types=["fake"])
    yield plugin.backend
    host.unregister("fake")


@pytest.fixture
def name(fake):
    return fb.accelerator.namespace("fake")


def test_any_registered_device_type_is_an_attribute_of_flambeau(fake):
    assert fb.fake is fb.accelerator.namespace("fake")
    assert fb.fake.is_available() and fb.fake.device_count() == 2


def test_an_unknown_name_is_no_device_type():
    with pytest.raises(AttributeError, match="no attribute 'nowhere'"):
        _ = fb.nowhere


def test_the_bare_name_means_the_current_device(name):
    assert fb.ones(1, device="fake").device == fb.device("fake:0")
    name.set_device(1)
    assert fb.ones(1, device="fake").device == fb.device("fake:1")
    assert name.current_device() == 1
    name.set_device(-1)
    assert name.current_device() == 1
    name.set_device("fake:0")
    assert fb.ones(1, device="fake").device == fb.device("fake:0")


def test_device_blocks_nest_and_restore_after_an_error(name):
    with name.device(1):
        with name.device(fb.device("fake:0")):
            assert name.current_device() == 0
        assert name.current_device() == 1
        with name.device(-1), name.device(None):
            assert name.current_device() == 1
        with pytest.raises(KeyError), name.device(0):
            raise KeyError
        assert name.current_device() == 1
    assert name.current_device() == 0


def test_device_of_follows_a_tensor_of_its_type_only(name):
    with name.device_of(fb.ones(1, device="fake:1")):
        assert name.current_device() == 1
    with name.device_of(fb.ones(1, device="ref")):
        assert name.current_device() == 0


@pytest.mark.parametrize("wrong", [2, "fake:2", fb.device("fake", 7)])
def test_a_device_that_does_not_exist_is_refused(name, wrong):
    for ask in (name.set_device, name.synchronize, name.get_device_name, name.Stream):
        with pytest.raises(RuntimeError, match="does not exist"):
            ask(wrong)


def test_a_negative_index_is_no_device_but_where_it_is_documented_to_change_nothing(name):
    for ask in (name.synchronize, name.get_device_name, name.current_stream, name.memory_reserved):
        with pytest.raises(RuntimeError, match="device fake:-1 does not exist"):
            ask(-1)
    with name.device(1), name.device(-1):
        name.set_device(-1)
        assert name.current_device() == 1
        assert name.Stream(-1).device == fb.device("fake:1")


def test_a_device_of_another_type_is_refused(name):
    with pytest.raises(ValueError, match="Expected a fake device, but got: ref"):
        name.set_device("ref")


def test_properties_come_from_the_backend(name):
    assert name.get_device_name(1) == "Fake 1"
    assert name.get_device_capability(1) == (9, 1)
    assert name.get_device_properties().total_memory == 1 << 20


def test_operands_on_two_devices_are_refused(name):
    with pytest.raises(RuntimeError, match=r"same device.*fake:0, fake:1"):
        fb.ones(2, device="fake:0") + fb.ones(2, device="fake:1")


def test_ops_run_on_the_device_of_their_operands_not_on_the_current_one(name, fake):
    x = fb.ones(2, device="fake:1", requires_grad=True)
    y = (x * 3.0 + 1.5).sum()
    y.backward()
    assert y.device.index == x.grad.device.index == 1
    assert fake.index_of(x.grad._a) == 1 and x.grad.tolist() == [3.0, 3.0]


def test_gradients_travel_back_through_copies_between_devices(name):
    x = fb.ones(2, device="fake:0", requires_grad=True)
    (x.to("fake:1") * 2).sum().to("ref").backward()
    assert x.grad.device == x.device and x.grad.tolist() == [2.0, 2.0]


class Mixed(fb.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a + b.to(a.device)

    @staticmethod
    def backward(ctx, grad):
        return grad, (2 * grad).to("ref")


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("leaves", [True, False])
def test_a_function_of_tensors_on_two_devices_gives_each_its_gradient(
    name, leaves, times, monkeypatch
):
    monkeypatch.setattr(engine, "several_devices", False)
    a = fb.ones(2, device="fake:0", requires_grad=True)
    b = fb.ones(2, device="ref", requires_grad=True)
    operands = (a, b) if leaves else (3 * a, b * b + b)
    factors = (1, 2) if leaves else (3, 6)
    y = sum(Mixed.apply(*operands) for _ in range(times))
    grads = fb.autograd.grad(y.sum(), [a, b], retain_graph=True)
    y.sum().backward()
    for x, grad, factor in zip((a, b), grads, factors, strict=True):
        assert x.grad.tolist() == grad.tolist() == [factor * times] * 2
        assert x.grad.device == grad.device == x.device


def test_without_a_device_the_reason_is_said_and_questions_have_answers(name, fake):
    fake.count = 0
    assert not name.is_available() and name.device_count() == 0
    assert name.memory_allocated() == 0 and name.max_memory_cached() == 0
    name.empty_cache()
    name.manual_seed(1)
    name.manual_seed_all(1)
    for ask in (name.init, name.current_device, name.Stream, name.synchronize):
        with pytest.raises(RuntimeError, match="fake driver is not loaded; pip install"):
            ask()
    assert not name.is_initialized()


def test_a_backend_that_is_no_accelerator_says_so():
    with pytest.raises(RuntimeError, match="is no accelerator"):
        fb.accelerator.namespace("ref").Stream()


def test_the_accelerator_is_the_type_that_has_streams(fake):
    assert fb.accelerator.current_accelerator() == fb.device("fake")
    assert fb.accelerator.is_available() and fb.accelerator.device_count() == 2
    fb.accelerator.set_device_index(1)
    assert fb.accelerator.current_device_index() == 1
    assert fb.accelerator.current_stream().device == fb.device("fake:1")
    fb.accelerator.synchronize()
    with fb.accelerator.device_index(0), fb.accelerator.device_index(None):
        assert fb.accelerator.current_device_index() == 0
    assert fb.accelerator.current_device_index() == 1
    fb.accelerator.set_device_index(0)


def test_the_memory_of_the_accelerator_is_that_of_its_type(name):
    ask = fb.accelerator
    ask.reset_peak_memory_stats()
    before = ask.memory_allocated()
    x = fb.zeros(100, device="fake")
    assert ask.memory_allocated() == before + 400 == ask.max_memory_allocated()
    assert ask.max_memory_reserved() == name.max_memory_reserved() >= ask.memory_reserved() > 0
    assert ask.get_memory_info(0) == name.mem_get_info(0)
    assert ask.memory_stats() == name.memory_stats()
    del x
    ask.reset_peak_memory_stats("fake:0")
    assert ask.max_memory_allocated() == before


def test_without_an_accelerator_devices_are_none_and_streams_an_error():
    assert fb.accelerator.current_accelerator() is None
    assert fb.accelerator.device_count() == 0
    assert fb.accelerator.max_memory_allocated() == fb.accelerator.max_memory_reserved() == 0
    assert fb.accelerator.memory_stats() == {}
    fb.accelerator.reset_peak_memory_stats()
    with pytest.raises(RuntimeError, match="accelerator"):
        fb.accelerator.get_memory_info()
    with pytest.raises(RuntimeError, match="accelerator"):
        fb.accelerator.current_stream()


def test_a_stream_block_selects_stream_and_device_and_restores_both(name):
    s = name.Stream(1)
    with name.stream(s):
        assert name.current_device() == 1 and name.current_stream() == s
        with name.stream(None):
            assert name.current_stream() == s
    assert name.current_device() == 0
    assert name.current_stream(1) == name.default_stream(1)
    with s:
        assert name.current_stream() == s
    assert name.current_stream(1) == name.default_stream(1)


def test_a_stream_block_leaves_the_streams_of_other_devices_alone(name):
    with name.stream(name.Stream(0)) as _, name.stream(name.Stream(1)):
        assert name.current_stream(0) != name.default_stream(0)
    assert name.current_stream(0) == name.default_stream(0)


def test_streams_are_equal_by_address_and_device(name):
    assert name.default_stream(0) == name.default_stream(0)
    assert name.default_stream(0) != name.default_stream(1)
    assert name.Stream() != name.Stream()
    assert len({name.default_stream(0), name.default_stream(0), name.Stream()}) == 2


def test_priorities_are_what_the_device_has(name):
    assert name.Stream(priority=-5).priority == -1
    assert name.Stream(priority=3).priority == 0


def test_a_stream_waits_for_an_event_of_another(name, fake):
    x = fb.ones(1, device="fake")
    name.synchronize()
    fake.log.clear()
    first, second = name.Stream(), name.Stream()
    with name.stream(first):
        _ = x.exp()
        done = first.record_event()
        _ = x.sin()
    with name.stream(second):
        second.wait_event(done)
        _ = x.cos()
    assert not first.query() and not second.query() and not done.query()
    second.synchronize()
    assert fake.log == ["exp@0", "cos@0"]
    assert done.query() and second.query() and not first.query()
    name.synchronize()
    assert fake.log == ["exp@0", "cos@0"]  # of streams, the device knows the current ones
    first.synchronize()
    assert fake.log == ["exp@0", "cos@0", "sin@0"] and first.query()


def test_wait_stream_waits_for_everything_asked_so_far(name, fake):
    x = fb.ones(1, device="fake")
    name.synchronize()
    fake.log.clear()
    first, second = name.Stream(), name.Stream()
    with first:
        _ = x.exp().sin()
    second.wait_stream(first)
    with second:
        _ = x.cos()
    second.synchronize()
    assert fake.log == ["exp@0", "sin@0", "cos@0"]


def test_an_event_is_made_when_it_is_first_recorded(name):
    e = name.Event()
    assert e.device is None and e.query()
    e.synchronize()
    e.wait()
    e.record(name.Stream(1))
    assert e.device == fb.device("fake:1")
    with pytest.raises(RuntimeError, match="does not match"):
        e.record(name.Stream(0))


def test_events_measure_time_once_they_are_reached(name):
    first, last = name.Event(enable_timing=True), name.Event(enable_timing=True)
    with pytest.raises(ValueError, match="must be recorded"):
        first.elapsed_time(last)
    first.record()
    _ = fb.ones(1, device="fake").exp()
    last.record()
    with pytest.raises(RuntimeError, match="not reached yet"):
        first.elapsed_time(last)
    last.synchronize()
    assert first.elapsed_time(last) >= 2.0


def test_events_that_note_no_time_measure_none(name):
    with pytest.raises(ValueError, match="enable_timing=True"):
        name.Event().elapsed_time(name.Event(enable_timing=True))


def test_an_event_for_other_processes_measures_no_time(name):
    with pytest.raises(RuntimeError, match="choose one"):
        name.Event(enable_timing=True, interprocess=True)
    with pytest.raises(RuntimeError, match="interprocess=True"):
        name.Event().ipc_handle()


def test_a_device_may_have_no_events_for_other_processes(name, monkeypatch):
    monkeypatch.delattr(fake_accelerator.Fake, "event_to_ipc")
    with pytest.raises(NotImplementedError, match="other processes"):
        name.Event(interprocess=True).ipc_handle()


def test_an_event_is_opened_by_its_handle_and_orders_streams(name, fake):
    event = name.Event(interprocess=True)
    opened = name.Event.from_ipc_handle("fake:0", event.ipc_handle())
    assert opened.device == event.device == fb.device("fake:0")
    event.record()
    assert not opened.query()
    side = name.Stream()
    side.wait_event(opened)
    side.synchronize()
    assert opened.query() and event.query()


def test_record_stream_tells_the_backend_which_stream_uses_the_memory(name, fake):
    x, s = fb.ones(2, device="fake"), name.Stream()
    x.record_stream(s)
    assert fake.held == [(x._a, s._native)]
    with pytest.raises(RuntimeError, match="the tensor is on ref"):
        fb.ones(1, device="ref").record_stream(s)


def test_memory_figures_follow_tensors(name):
    before = name.memory_allocated()
    x = fb.zeros(1000, device="fake")
    assert name.memory_allocated() == before + 4000
    assert name.memory_allocated(1) == 0
    assert name.memory_cached() >= name.memory_allocated()
    del x
    assert name.memory_allocated() == before
    assert name.max_memory_allocated() >= before + 4000
    name.reset_max_memory_allocated()
    assert name.max_memory_allocated() == before
    name.empty_cache()
    assert name.memory_cached() == before
    assert name.max_memory_cached() > before
    name.reset_max_memory_cached()
    assert name.max_memory_cached() == before
    assert name.memory_stats()["reserved_bytes.all.current"] == before
    assert name.mem_get_info() == ((1 << 20) - before, 1 << 20)
    keep = fb.zeros(1024, device="fake")
    whole, short = name.memory_summary().splitlines(), name.memory_summary(abbreviated=True)
    assert whole[0] == "fake:0 Fake 0"
    assert short.splitlines()[1].split()[:4] == ["in", "tensors", *_amount(before + 4096)]
    assert [line.split("  ")[0] for line in whole[2:]] == [
        *("in tensors", "held by the pool", "held and unused"),
        *("free on the device", "of it in all"),
    ]
    assert all(line in whole for line in short.splitlines())
    del keep


def _amount(size):
    return f"{size / 1024:.2f} KiB".split()


def test_a_type_is_initialised_by_its_first_use(name, fake):
    from flambeau._dispatch import bound as _bound

    _bound.forget("fake")
    assert not name.is_initialized()
    assert name.is_available() and not name.is_initialized()  # a question is no use
    fb.zeros(1, device="fake:1")
    assert name.is_initialized()
    _bound.forget("fake")
    name.init()
    assert name.is_initialized()


def test_out_of_memory_empties_the_cache_and_tries_once_more(name, fake):
    fake.limit = 10_000
    x = fb.zeros(2000, device="fake")
    y = fb.zeros(200, device="fake")
    del x
    before = fake.emptied
    z = fb.zeros(2100, device="fake")  # does not fit beside the cached 8000 bytes
    assert fake.emptied == before + 1 and z.numel() == 2100
    assert name.memory_reserved() == 4 * (len(y) + len(z))


def test_out_of_memory_says_what_was_tried_used_reserved_and_free(name, fake):
    fake.limit = 8192
    x = fb.zeros(1024, device="fake")
    with pytest.raises(fb.OutOfMemoryError) as caught:
        fb.zeros(2048, device="fake")
    text = str(caught.value)
    for part in ("Tried to allocate 8.00 KiB", "fake:0 has 8.00 KiB", "of which 4.00 KiB are free"):
        assert part in text, text
    assert "4.00 KiB used by tensors" in text and "0 bytes reserved" in text
    assert isinstance(caught.value, RuntimeError) and fb.cuda.OutOfMemoryError is type(caught.value)
    assert isinstance(caught.value.__cause__, fake_accelerator.FullError)
    del caught
    assert fb.ones(2, device="fake").sum().item() == 2 and x.numel() == 1024


def test_seeds_and_states_are_per_device(name):
    name.manual_seed_all(3)
    first = fb.rand(3, device="fake:0")
    second = fb.rand(3, device="fake:1")
    assert first.tolist() == second.tolist() and name.initial_seed() == 3
    with name.device(1):
        name.manual_seed(4)
    assert fb.rand(1, device="fake:0").tolist() != fb.rand(1, device="fake:1").tolist()
    states = name.get_rng_state_all()
    assert len(states) == 2
    drawn = [fb.rand(2, device=f"fake:{i}").tolist() for i in range(2)]
    name.set_rng_state_all(states)
    assert [fb.rand(2, device=f"fake:{i}").tolist() for i in range(2)] == drawn
    name.set_rng_state(states[0], "fake:1")
    assert fb.rand(2, device="fake:1").tolist() == drawn[0]
    name.seed_all()
    assert name.initial_seed() != 3
    name.seed()


class Counting:
    """A counter-based engine whose words are the places they come from."""

    def __init__(self):
        self.offset = 0

    def seed(self, seed):
        self.base, self.offset = seed, 0

    def random_bits(self, n):
        found = fb.arange(self.offset, self.offset + n)
        self.offset += 4 * -(-n // 4)
        return found


def test_the_state_of_a_counter_based_generator_is_seed_and_offset(fake, monkeypatch):
    monkeypatch.setattr(fake, "generator", lambda index: Counting())
    g = fb.Generator("fake").manual_seed(11)
    assert g.get_offset() == 0
    first = fb.rand(6, device="fake", generator=g)
    assert g.get_offset() == 8
    state = g.get_state()
    assert bytes(state.tolist()) == (11).to_bytes(8, "little") + (8).to_bytes(8, "little")
    g.set_offset(0)
    assert fb.rand(6, device="fake", generator=g).tolist() == first.tolist()
    other = g.clone_state()
    assert other.get_offset() == 8 and other.initial_seed() == 11
    g.manual_seed(1)
    assert g.get_offset() == 0
    g.set_state(state)
    assert g.get_offset() == 8 and g.initial_seed() == 11
    with pytest.raises(RuntimeError, match="multiple of 4"):
        g.set_offset(3)
    with pytest.raises(RuntimeError, match="16 bytes"):
        g.set_state(fb.Generator().get_state())


def test_broadcast_copies_to_each_device(name):
    x = fb.arange(3, device="fake:0")
    copies = name.comm.broadcast(x, [0, 1])
    assert copies[0] is x and copies[1].device.index == 1 and copies[1].tolist() == [0, 1, 2]


@pytest.mark.parametrize("buffer_size", [1, 12, 10485760])
def test_coalesced_broadcast_keeps_shapes_dtypes_and_order(name, buffer_size):
    tensors = [
        fb.ones(2, 3, device="fake"),
        fb.arange(4, device="fake"),
        fb.zeros(0, device="fake"),
        fb.tensor(5.0, device="fake"),
    ]
    here, there = name.comm.broadcast_coalesced(tensors, (0, 1), buffer_size)
    assert all(a is b for a, b in zip(here, tensors, strict=True))
    for a, b in zip(there, tensors, strict=True):
        assert a.device.index == 1 and a.dtype is b.dtype
        assert a.shape == b.shape and a.tolist() == b.tolist()


def test_reduce_add_sums_on_the_destination(name):
    parts = [fb.ones(2, device=f"fake:{i}") for i in (0, 1)]
    assert name.comm.reduce_add(parts, 1).tolist() == [2.0, 2.0]
    assert name.comm.reduce_add(parts, 1).device.index == 1
    assert name.comm.reduce_add(parts).device.index == 0
    with pytest.raises(ValueError, match="input 1 has invalid size"):
        name.comm.reduce_add([parts[0], fb.ones(3, device="fake:1")])
    with pytest.raises(ValueError, match="input 0 is on ref"):
        name.comm.reduce_add([fb.ones(2, device="ref")])
    with pytest.raises(ValueError, match="at least one"):
        name.comm.reduce_add([])


def test_scatter_cuts_and_gather_joins(name):
    x = fb.arange(10, device="fake").reshape(2, 5)
    a, b = name.comm.scatter(x, [0, 1], dim=1)
    assert (a.device.index, b.device.index) == (0, 1) and [a.size(1), b.size(1)] == [3, 2]
    joined = name.comm.gather([a, b], dim=1, destination=1)
    assert joined.device.index == 1 and joined.tolist() == x.tolist()
    streams = [None, name.Stream(1)]
    c, d = name.comm.scatter(x, [0, 1], chunk_sizes=[1, 4], dim=1, streams=streams)
    assert [c.size(1), d.size(1)] == [1, 4]
    with pytest.raises(ValueError, match="chunk_sizes"):
        name.comm.scatter(x, [0, 1], chunk_sizes=[1, 3], dim=1)
    with pytest.raises(ValueError, match="at least one"):
        name.comm.gather([])


def test_tensors_devices_and_sizes_may_come_one_by_one(name):
    parts = [fb.arange(2.0, device=f"fake:{i}") for i in (0, 1)]
    assert name.comm.reduce_add(iter(parts)).tolist() == [0.0, 2.0]
    assert name.comm.gather(iter(parts), destination=-1).tolist() == [0.0, 1.0, 0.0, 1.0]
    pieces = name.comm.scatter(parts[0], iter((0, 1)), iter((2, 0)), streams=iter((None, None)))
    assert [p.tolist() for p in pieces] == [[0.0, 1.0], []]
    copies = name.comm.broadcast_coalesced(iter(parts[:1]), iter((0, 1)))
    assert [c.device.index for (c,) in copies] == [0, 1]


class Elsewhere:
    """An array of another library on device 1 of DLPack's type 2."""

    def __init__(self, values):
        self.values, self.stream = values, "not asked"

    def __dlpack_device__(self):
        return 2, 1

    def __dlpack__(self, *, stream=None, max_version=None):
        self.stream = stream
        return self

    @property
    def __cuda_array_interface__(self):
        return {"shape": (len(self.values),)}


@pytest.fixture
def cuda(monkeypatch):
    """The fake device under the name ``cuda``, which takes memory of other libraries."""
    plugin = fake_accelerator.Plugin()
    backend = plugin.backend
    backend.device_type = "cuda"
    made = lambda source: pack(source.values, fb.float32)  # noqa: E731
    backend.from_dlpack = lambda source, index: backend.from_host(
        made(source), (len(source.values),), fb.float32, index
    )
    backend.from_cuda_array = lambda source: backend.from_dlpack(source, 1)
    monkeypatch.setattr(fake_accelerator, "DEVICE", "cuda")
    host.block("flambeau-cupy")
    host.register(plugin, name="fake cuda", device_types=["cuda"])
    yield backend
    host.unregister("fake cuda")
    host.unblock("flambeau-cupy")


def test_memory_of_another_library_is_where_it_is(cuda):
    source = Elsewhere([1.0, 2.0])
    x = fb.from_dlpack(source)
    assert x.device == fb.device("cuda:1") and x.tolist() == [1, 2]
    assert fb.from_dlpack(source, device="cpu").device.type == "cpu"


@pytest.mark.parametrize("function", ["as_tensor", "tensor", "asarray"])
def test_arrays_with_the_cuda_array_interface_become_tensors_of_their_device(function, cuda):
    make = getattr(fb, function)
    x = make(Elsewhere([1.0, 2.0]))
    assert x.device == fb.device("cuda:1") and x.tolist() == [1, 2]
    assert make(Elsewhere([1.0]), device="cpu").device.type == "cpu"
    assert make(Elsewhere([1.0]), dtype=fb.float64).dtype is fb.float64


def test_the_cuda_array_interface_is_that_of_the_array(cuda, monkeypatch):
    found = {"version": 3}
    kind = fake_accelerator.Array
    monkeypatch.setattr(kind, "__cuda_array_interface__", found, raising=False)
    x = fb.ones(2, device="cuda")
    assert x.__cuda_array_interface__ == found
    with pytest.raises(RuntimeError, match="requires grad"):
        _ = x.requires_grad_().__cuda_array_interface__
    assert not hasattr(fb.ones(2), "__cuda_array_interface__")


def test_the_stream_of_a_consumer_reaches_the_array_that_is_exported(cuda, monkeypatch):
    asked = []

    def export(array, **options):
        asked.append(options)
        return "capsule"

    kind = fake_accelerator.Array
    monkeypatch.setattr(kind, "__dlpack__", export, raising=False)
    monkeypatch.setattr(kind, "__dlpack_device__", lambda array: (2, 0), raising=False)
    x = fb.ones(2, device="cuda")
    assert x.__dlpack_device__() == (2, 0)
    for stream in (None, -1, 1, 2, 1234):
        assert x.__dlpack__(stream=stream) == "capsule"
    assert [options.get("stream") for options in asked] == [None, -1, 1, 2, 1234]
    assert fb.ones(2).__dlpack__(stream=-1) is not None  # the CPU has no streams


class Put:
    """A result that is put off."""

    def __init__(self, op, args):
        self.op, self.args, self.shape = op, args, args[0].shape


class Putting(fake_accelerator.Fake):
    """The fake device, whose products and cosines in formulas are put off."""

    def __init__(self):
        super().__init__()
        self.settled = []

    def dtype_of(self, array):
        return super().dtype_of(array.args[0] if type(array) is Put else array)

    def to_array(self, value):
        return value if type(value) is Put else super().to_array(value)

    def deferred(self, index, ops):
        def settle(parts):
            self.settled.append([type(p) for p in parts])
            return [now(p) for p in parts]

        def now(a):
            return a.op(*map(now, a.args)) if type(a) is Put else a

        late = {name: (lambda *args, op=ops[name]: Put(op, args)) for name in ("mul", "cos")}
        early = {
            name: (lambda *args, op=op: op(*map(now, args)))
            for name, op in ops.items()
            if name not in late
        }
        return {**early, **late}, settle


@pytest.fixture
def putting():
    plugin = fake_accelerator.Plugin()
    plugin.backend = Putting()
    host.register(plugin, name="putting", device_types=["fake"])
    yield plugin.backend
    host.unregister("putting")


def test_what_formulas_put_off_is_computed_before_anybody_sees_it(putting):
    def program(x):
        seen = []
        y = x.sin() * x
        y.register_hook(seen.append)
        z = y.sin()
        z.sum().backward()
        return x.grad, seen[0]

    found = program(fb.tensor([1.0, 2.0], device="fake", requires_grad=True))
    wanted = program(fb.tensor([1.0, 2.0], requires_grad=True))
    for a, b in zip(found, wanted, strict=True):
        fb.testing.assert_close(a.to("cpu"), b)
    assert [Put] in putting.settled and [Put, Put] in putting.settled


def test_a_recorded_pass_puts_nothing_off(putting):
    x = fb.tensor([1.0, 2.0], device="fake", requires_grad=True)
    (g,) = fb.autograd.grad(x.sin().sum(), x, create_graph=True)
    assert not putting.settled
    (h,) = fb.autograd.grad(g.sum(), x)
    fb.testing.assert_close(h.to("cpu"), -x.detach().to("cpu").sin())
    assert putting.settled


def test_ranges_nest(name, fake):
    assert name.nvtx.range_push("a") == 0
    with name.nvtx.range("b {}", 2):
        assert fake.ranges == ["a", "b 2"]
    assert name.nvtx.range_pop() == 0
    name.nvtx.mark("here")
    assert fake.log[-1] == "mark here"


needs_cpu = pytest.mark.skipif(
    importlib.util.find_spec("flambeau_numpy") is None, reason="needs the CPU backend"
)


@needs_cpu
def waiting(fake, index=0):
    return [kind for kind, _ in fake.streams[index].tasks if kind == "copy"]


@pytest.mark.parametrize(
    "move",
    [
        lambda x: x.to("fake", non_blocking=True),
        lambda x: x.to("fake", None, True),
        lambda x: fb.zeros(2, 3, device="fake").copy_(x, non_blocking=True),
    ],
)
def test_a_copy_from_pinned_memory_is_made_when_the_stream_gets_there(move, fake):
    x = fb.arange(6.0).reshape(2, 3).pin_memory()
    before = len(waiting(fake))
    y = x.to("fake", non_blocking=True)
    assert len(waiting(fake)) == before + 1
    x[0, 0] = 9  # too early: the copy reads it
    fb.fake.synchronize()
    assert not waiting(fake)
    assert y.tolist() == x.tolist() == [[9, 1, 2], [3, 4, 5]]
    assert move(x).tolist() == x.tolist()


def test_a_pinned_tensor_lives_until_it_is_copied(fake):
    x = fb.arange(4.0).pin_memory()
    released: list[bool] = []
    weakref.finalize(x._a, released.append, True)
    y = x.to("fake", non_blocking=True)
    del x
    gc.collect()
    assert not released
    assert y.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("arrange", [lambda x: x, lambda x: x.t(), lambda x: x[:, 1:]])
def test_a_copy_to_the_host_is_in_pinned_memory_and_there_after_synchronising(arrange, fake):
    wanted = arrange(fb.arange(6.0).reshape(2, 3))
    x = arrange(fb.arange(6.0).reshape(2, 3).to("fake"))
    y = x.to("cpu", non_blocking=True)
    assert waiting(fake) and y.is_pinned("fake")
    fb.fake.synchronize()
    assert y.tolist() == wanted.tolist()
    z = x.to("cpu", fb.float64, non_blocking=True)
    fb.fake.synchronize()
    assert z.dtype is fb.float64 and z.tolist() == wanted.tolist()


def test_a_pinned_tensor_is_the_target_of_a_copy_itself(fake):
    target = fb.zeros(3).pin_memory()
    place, version = target.data_ptr(), target._version
    target.copy_(fb.arange(3.0).to("fake"), non_blocking=True)
    assert waiting(fake) and target.tolist() == [0, 0, 0]
    fb.fake.synchronize()
    assert target.tolist() == [0, 1, 2]
    assert target.data_ptr() == place and target._version == version + 1


@pytest.mark.parametrize(
    "source",
    [
        lambda: fb.arange(6.0),
        lambda: fb.arange(6.0).pin_memory()[::2],
        lambda: fb.empty(0).pin_memory(),
        lambda: fb.arange(6.0).reshape(2, 3).pin_memory().t(),
    ],
)
def test_other_copies_wait(source, fake):
    x = source()
    y = x.to("fake", non_blocking=True)
    assert not waiting(fake) and y.tolist() == x.tolist()
    # What is cast or broadcast on the way arrives as well.
    out = fb.zeros(*x.shape, dtype=fb.float64)
    assert out.copy_(y, non_blocking=True).tolist() == x.tolist()


def test_a_recorded_copy_is_as_late_and_its_gradient_comes_back(fake):
    x = fb.arange(3.0).pin_memory().requires_grad_()
    y = x.to("fake", non_blocking=True)
    assert waiting(fake)
    y.to("cpu", non_blocking=False).mul(2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_a_module_is_moved_from_pinned_memory_without_waiting(fake):
    layer = fb.nn.Linear(2, 1)
    layer.weight.data = layer.weight.data.pin_memory()
    wanted = layer.weight.tolist()
    layer.to("fake", non_blocking=True)
    assert waiting(fake) and layer.weight.tolist() == wanted


def test_pinned_memory_is_a_copy_that_knows_it(fake):
    x = fb.arange(6.0).reshape(2, 3).t()
    assert not x.is_pinned()
    y = x.pin_memory()
    assert y.is_pinned() and y.tolist() == x.tolist() and y.data_ptr() != x.data_ptr()
    assert y.pin_memory() is y and y.untyped_storage().is_pinned("fake")
    assert y.to("fake", non_blocking=True).tolist() == x.tolist()
    assert fb.zeros(0).pin_memory().numel() == 0
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        fb.ones(1, device="fake").pin_memory()


@needs_cpu
def test_a_loader_pins_the_tensors_of_batches(fake):
    from flambeau.utils.data import DataLoader

    data = [{"x": fb.ones(2), "label": "a", "pair": (i, fb.zeros(1))} for i in range(4)]
    batches = list(DataLoader(data, batch_size=2, pin_memory=True))  # type: ignore[arg-type]
    assert len(batches) == 2
    for batch in batches:
        assert batch["x"].is_pinned() and batch["pair"][1].is_pinned()
        assert batch["label"] == ["a", "a"]


def test_cuda_without_a_package_answers_and_names_the_package():
    if "cuda" in host.device_types():
        pytest.skip("a package for cuda is installed")
    assert not fb.cuda.is_available() and fb.cuda.device_count() == 0
    fb.cuda.manual_seed(0)
    fb.cuda.manual_seed_all(0)
    for ask in (
        fb.cuda.current_device,
        fb.cuda.Stream,
        fb.cuda.synchronize,
        fb.cuda.nvtx.range_pop,
    ):
        with pytest.raises(RuntimeError, match="is provided by flambeau-cupy: pip install"):
            ask()


def test_codes_of_the_runtime_become_errors(fake, monkeypatch):
    fb.cuda.check_error(0)
    monkeypatch.setattr(fb.cuda._devices, "_runtime", fb.accelerator.namespace("absent")._runtime)
    with pytest.raises(fb.cuda.CudaError, match=r"device error \(2\)") as caught:
        fb.cuda.check_error(2)
    assert caught.value.code == caught.value.error_code == 2
    assert isinstance(caught.value, RuntimeError) and fb.cuda.AcceleratorError is fb.cuda.CudaError
    monkeypatch.setattr(fb.cuda._devices, "_runtime", fb.accelerator.namespace("fake")._runtime)
    monkeypatch.setattr(fake, "error_text", lambda code: f"error {code} of the fake", raising=False)
    with pytest.raises(fb.cuda.CudaError, match=r"error 3 of the fake \(3\)"):
        fb.cuda.check_error(3)


ALIASES = {
    "namespaces of PyTorch": {"cuda/__init__", "cuda/comm", "cuda/nvtx", "accelerator/_graphs"},
    "switches of PyTorch": {"backends/__init__", "backends/cuda", "backends/cudnn"},
    "x.cuda(), x.is_cuda, x.__cuda_array_interface__, integer devices": {
        *("_tensor/tensor", "_types/device", "_storages/untyped", "_storages/typed"),
        *("sparse/_coo", "ops/creation/creation", "jit/_tracing/patches"),
    },
    "profile(use_cuda=True)": {"autograd/_recorder", "autograd/profiler"},
    "names and numbers in files and protocols": {
        *("serialization/_names", "serialization/_locations", "utils/dlpack", "version"),
    },
    "the package to install, driver=": {"plugin/errors", "linalg/_eigenvalues"},
    "what programs that say import torch ask for": {
        *("compat/_torch/version", "utils/_named_ops", "compat/_torch/testing/__init__"),
        *("compat/_torch/nn/parallel/_functions", "compat/_torch/utils/_foreach_utils"),
        *("compat/_torch/optim/optimizer", "compat/_torch/utils/checkpoint"),
    },
    "the engine that PyTorch's name nccl means": {"distributed/_names"},
    "the default of save_on_cpu": {"autograd/graph"},
    "defaults of mixed precision": {
        *(
            "amp/_setting",
            "amp/autocast_mode",
            "amp/grad_scaler",
            "cuda/amp/autocast_mode",
            "cuda/amp/grad_scaler",
        ),
    },
}


def test_only_the_documented_aliases_name_a_device_type_of_a_vendor():
    root, found = Path(fb.__file__).parent, set()
    for path in root.rglob("*.py"):
        where = path.relative_to(root).with_suffix("").as_posix()
        if where.split("/")[0] in ("nn", "optim", "testing"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if re.fullmatch(r"(torch\.)?cuda(:\d*)?", node.value):
                    found.add(where)
    assert found == set().union(*ALIASES.values())


def test_legacy_types_of_cuda_name_dtype_and_device():
    assert repr(fb.cuda.FloatTensor) == "<class 'torch.cuda.FloatTensor'>"
    assert not isinstance(fb.ones(1, device="ref"), fb.cuda.FloatTensor)
    with pytest.raises(RuntimeError, match="cuda"):
        fb.cuda.FloatTensor([1.0])


REFUSED = {
    "index": lambda x, i: x[i],
    "gather": lambda x, i: x.gather(0, i),
    "embedding": lambda x, i: fb.embedding(x.reshape(3, 1), i),
    "index_add": lambda x, i: x.index_add(0, i, x[:2]),
    "nll_loss": lambda x, i: fb.nll_loss(x.reshape(1, 3), i[1:]),
    "embedding_bag": lambda x, i: fb.embedding_bag(x.reshape(3, 1), i * 0, i),
    "bernoulli": lambda x, i: fb.bernoulli(x * 2),
    "poisson": lambda x, i: fb.poisson(-x),
    "multinomial": lambda x, i: fb.multinomial(x / 0, 1),
    "normal": lambda x, i: fb.normal(0.0, -x),
}


@pytest.mark.parametrize("function", REFUSED)
def test_a_device_that_looks_by_itself_is_not_waited_for(function, fake, monkeypatch):
    x, index = fb.ones(3, device="fake"), fb.tensor([0, 3], device="fake")
    call = REFUSED[function]
    with pytest.raises((IndexError, RuntimeError)) as said:
        call(x, index)

    class LaterError(Exception):
        """What the device would raise; it ends the call here, which is not about results."""

    def later(error, text):
        raise LaterError(error, text.replace("{index}", "3"))

    def checked_index(index, size, wrap, allowed, error, text):
        inside = all(-size * wrap <= i < size or i == allowed for i in index.data)
        return index if inside else later(error, text)

    def check_values(values, low, high, error, text):
        return all(low <= v <= high for v in values.data) or later(error, text)

    asked = {"checked_index": checked_index, "check_values": check_values}
    for name, method in asked.items():
        monkeypatch.setattr(fake, name, method)
    with pytest.raises(LaterError) as found:
        call(x, index)
    assert found.value.args == (type(said.value), str(said.value))
    monkeypatch.setattr(fake, "checked_index", lambda *args: None)
    monkeypatch.setattr(fake, "check_values", lambda *args: False)  # the core shall look
    with pytest.raises(type(said.value), match=re.escape(str(said.value))):
        call(x, index)


def test_switches_of_cudnn_are_the_numerics_of_backends():
    from flambeau.plugin import numerics

    assert not fb.backends.cudnn.deterministic
    try:
        fb.backends.cudnn.deterministic = True
        assert numerics.deterministic
    finally:
        fb.backends.cudnn.deterministic = False
    with fb.backends.cudnn.flags(enabled=True, benchmark=True):
        assert numerics.benchmark and fb.backends.cudnn.benchmark
    assert not numerics.benchmark
    fb.backends.cuda.matmul.allow_tf32 = True
    assert numerics.matmul_tf32
    fb.backends.cuda.matmul.allow_tf32 = False


def test_the_cache_of_fft_plans_belongs_to_a_device():
    if fb.cuda.is_available():
        pytest.skip("there is a device")
    with pytest.raises(RuntimeError, match="cuda"):
        _ = fb.backends.cuda.cufft_plan_cache.size
    with pytest.raises(RuntimeError, match="cuda"):
        fb.backends.cuda.cufft_plan_cache[0].clear()


@pytest.mark.parametrize(
    ("capability", "computed", "at_all"),
    [(None, False, False), ((7, 5), False, True), ((8, 0), True, True)],
)
def test_bfloat16_is_computed_from_the_eighth_generation_on(
    monkeypatch, capability, computed, at_all
):
    monkeypatch.setattr(fb.cuda, "is_available", lambda: capability is not None)
    monkeypatch.setattr(fb.cuda, "get_device_capability", lambda: capability)
    assert fb.cuda.is_bf16_supported(including_emulation=False) is computed
    assert fb.cuda.is_bf16_supported() is at_all
