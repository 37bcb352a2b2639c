"""The runtime of device type ``cuda`` on a CuPy for tests, of two devices (see `fake_cupy`)."""

from __future__ import annotations

import copy
import io
import sys
import threading

import fake_cupy
import on_host
import pytest
from test_graphs import (  # noqa: F401 (the same tests, with this module's fixtures)
    test_a_function_of_replays_has_the_values_and_gradients_of_the_function,
    test_a_generator_that_is_first_used_in_a_recording_is_recorded,
    test_a_recorded_step_refuses_other_batches,
    test_a_replay_reads_what_its_inputs_hold_by_then,
    test_an_error_in_the_block_ends_the_recording,
    test_arguments_and_results_may_be_nested,
    test_draws_from_tensors_are_recorded_without_a_wait,
    test_dropout_in_a_recorded_step_draws_on,
    test_gradients_of_replays_add_up,
    test_labels_of_ctc_are_recorded_without_a_wait,
    test_one_graph_at_a_time_is_recorded_on_a_device,
    test_random_numbers_of_a_replay_go_on_from_where_the_generator_is,
    test_several_callables_share_a_pool_and_run_in_order,
    test_steps_with_classes_and_indices_are_recorded_without_a_wait,
    test_what_a_graph_refuses,
)

import flambeau as fb
from flambeau._random.generator import default_generators
from flambeau.plugin.host import host

pytestmark = pytest.mark.skipif(
    on_host.COMPILER is None or sys.platform != "linux",
    reason="needs g++ or clang++ on Linux: nothing would be launched",
)


@pytest.fixture
def backend(monkeypatch):
    others = {kind: made for kind, made in host._backends.items() if kind != "cuda"}
    with monkeypatch.context() as patch, fake_cupy.installed():
        patch.setattr(host, "_backends", others)  # of which there is one in a process
        patch.setattr(default_generators, "_others", {})
        for library in ("cudnn", "nvmath"):  # they need a driver
            patch.setitem(sys.modules, library, None)
        host.rescan()
        yield host.activate("cuda").backend
    host.rescan()


@pytest.fixture
def device(backend):
    return "cuda"


def test_programs_run_on_both_devices_whichever_is_current(backend):
    for index in (0, 1):
        with fb.cuda.device(1 - index):
            x = fb.randn(4, 3, device=f"cuda:{index}", requires_grad=True)
            y = (x.softmax(1) @ x.t()).tanh().sum()
            y.backward()
            c = x.detach().cpu().requires_grad_()
            (c.softmax(1) @ c.t()).tanh().sum().backward()
            fb.testing.assert_close(x.grad.cpu(), c.grad)
            assert fb.cuda.current_device() == 1 - index


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.transpose(1, 3),
        lambda x: x[:, ::2, 1:],
        lambda x: x[0, 0, 0, :1].expand(3, 4),
        lambda x: x.to(memory_format=fb.channels_last),
        lambda x: x[1, 1, 1, 1],
        lambda x: x[:0],
    ],
)
@pytest.mark.parametrize("dtype", [fb.float32, fb.bfloat16, fb.bool, fb.complex64])
def test_what_is_copied_between_devices_is_the_array_as_it_will_be(dtype, view, backend):
    host_values = fb.arange(48).reshape(2, 4, 2, 3).to(dtype)
    x = view(host_values.to("cuda:0"))
    fake_cupy.log.clear()
    y = x.to("cuda:1")
    log = [*fake_cupy.log]
    assert y.device == fb.device("cuda:1") and fb.equal(y.cpu(), view(host_values))
    assert y.is_contiguous() or y.stride() == x.stride() or not x.is_contiguous()
    *before, made, waits, copied, done, last = log
    assert [entry[0] for entry in log[-5:]] == ["record", "wait", "copy", "record", "wait"]
    assert before in ([], [("dense", 0)])  # gaps are left out before device 1 waits for device 0
    assert (made[1], waits[1], waits[3]) == (0, 1, made[3])
    assert copied[1:] == (0, 1) and (done[1], last[1]) == (1, 0)  # and that for the copy


def test_memory_that_another_stream_uses_is_not_given_away_before_that_is_done(backend):
    main, side = fb.cuda.current_stream(), fb.cuda.Stream()
    with fb.cuda.stream(side):
        x = fb.zeros(1000, device="cuda")
    main.wait_stream(side)
    x.record_stream(main)
    place = x.data_ptr()
    main.synchronize()
    _ = x + 1  # used after it was said, as loaders that fetch ahead do
    del x
    with fb.cuda.stream(side):
        y = fb.zeros(1000, device="cuda")
        assert y.data_ptr() != place
        main.synchronize()
        z = fb.zeros(1000, device="cuda")
        assert z.data_ptr() == place


def test_memory_of_one_stream_is_given_away_at_once(backend):
    x = fb.zeros(1000, device="cuda")
    place = x.data_ptr()
    del x
    assert fb.zeros(1000, device="cuda").data_ptr() == place


def test_figures_of_memory_are_those_of_tensors_and_pool(backend):
    fb.cuda.empty_cache()
    fb.cuda.reset_peak_memory_stats()
    before, held = fb.cuda.memory_allocated(), fb.cuda.memory_reserved()
    there = fb.cuda.memory_allocated(1)
    x = fb.zeros(1000, device="cuda")
    y = x[3:].view(-1)
    assert fb.cuda.memory_allocated() - before == 4096
    del x
    assert fb.cuda.memory_allocated() - before == 4096
    del y
    assert fb.cuda.memory_allocated() == before
    assert fb.cuda.max_memory_allocated() >= before + 4096
    assert fb.cuda.memory_reserved() >= held + 4096
    fb.cuda.empty_cache()
    assert fb.cuda.memory_reserved() <= fb.cuda.max_memory_reserved() - 4096
    fb.cuda.reset_max_memory_allocated()
    assert fb.cuda.max_memory_allocated() == fb.cuda.memory_allocated()
    fb.cuda.reset_max_memory_cached()
    assert fb.cuda.max_memory_cached() == fb.cuda.memory_cached()
    assert fb.cuda.memory_allocated(1) == there
    assert "cuda:0 Fake 0" in fb.cuda.memory_summary()


def test_out_of_memory_names_the_figures_and_the_device_goes_on(backend, monkeypatch):
    monkeypatch.setattr(fake_cupy.MemoryPool, "limit", 1 << 20)
    side = fb.cuda.Stream()
    x = fb.zeros(1 << 17, device="cuda")
    x.record_stream(side)
    fb.zeros(1, device="cuda").record_stream(side)
    with pytest.raises(
        fb.cuda.OutOfMemoryError,
        match=r"(?s)cuda out of memory. Tried to allocate 768.00 KiB; device cuda:0 has 1.00 GiB"
        r".* free, .* used by tensors and .* reserved by the pool and unused",
    ):
        fb.zeros(3 << 16, device="cuda")
    del x
    assert fb.zeros(3 << 16, device="cuda").sum().item() == 0  # the other stream is waited for


def test_pinned_memory_is_kept_until_its_copy_is_made(backend):
    x = fb.arange(6.0).pin_memory()
    assert x.is_pinned() and not fb.arange(6.0).is_pinned()
    (source,) = [page for page in fake_cupy.pinned if page() is not None][-1:]
    y = x.to("cuda:1", non_blocking=True)
    z = y.to("cpu", non_blocking=True)
    del x
    fb.zeros(1, device="cuda:1")
    assert source() is not None
    fb.cuda.synchronize(1)
    fb.zeros(1, device="cuda:1")
    assert source() is None
    assert z.is_pinned() and z.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    batches = fb.utils.data.DataLoader(fb.arange(6.0), batch_size=4, pin_memory=True)
    assert [batch.is_pinned() for batch in batches] == [True, True]


def test_streams_have_priorities_handles_and_their_thread(backend):
    assert fb.cuda.Stream(priority=-1).priority == -1
    assert fb.cuda.Stream(priority=-100).priority == -5
    side = fb.cuda.Stream(1)
    seen = []

    def look():
        seen.append((fb.cuda.current_device(), fb.cuda.current_stream(1)))

    with fb.cuda.stream(side):
        assert fb.cuda.current_device() == 1 and fb.cuda.current_stream() == side
        assert side.cuda_stream == side._native.ptr
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [(0, fb.cuda.default_stream(1))]
    assert fb.cuda.current_stream(1) == fb.cuda.default_stream(1)
    theirs = fb.cuda.Stream(1, stream_ptr=side.cuda_stream)
    assert theirs == side


def test_constants_are_there_for_all_streams_when_they_are_made(backend, monkeypatch):
    native = fb.cuda.Stream()._native
    home = backend.current_stream(0)
    made = []

    def noted(host):
        made.append(fake_cupy.get_current_stream())
        made[-1].work.asked += 1  # a copy from memory that is not page-locked may end later
        return fake_cupy.placed(host)

    monkeypatch.setattr(backend, "_streamed", set())
    monkeypatch.setattr(sys.modules["cupy"], "asarray", noted)
    early = backend.scalar(1.5, fb.float32)
    assert made[0].ptr == home.ptr and not made[0].done  # of one stream, in whose order all is
    backend.set_stream(0, native)
    try:
        assert made[0].done  # before another stream can read it
        late = backend.scalar(2.5, fb.float32)
        assert made[1].ptr not in (home.ptr, native.ptr) and made[1].done
        backend.from_host(bytes(8), (2,), fb.float32, 0)
        assert made[2].ptr == native.ptr and not made[2].done  # no constant: nobody waits
        assert backend.from_host(bytes(4), (), fb.float32, 0).shape == () and made[3].done
        assert native.ptr in late.data.mem._owner.streams  # its memory is used here
    finally:
        backend.set_stream(0, home)
    assert [backend.item(early), backend.item(late)] == [1.5, 2.5]


def test_events_order_streams_of_both_devices_and_measure_time(backend):
    first, last = fb.cuda.Event(enable_timing=True), fb.cuda.Event(enable_timing=True)
    first.record()
    x = fb.ones(3, device="cuda:0") + 1
    last.record()
    other = fb.cuda.Stream(1)
    other.wait_event(last)
    assert not last.query()
    last.synchronize()
    assert last.query() and first.elapsed_time(last) > 0 and x.tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="does not match the recording stream's device"):
        first.record(other)
    shared = fb.cuda.Event(interprocess=True)
    opened = fb.cuda.Event.from_ipc_handle("cuda:1", shared.ipc_handle())
    assert opened.device == fb.device("cuda:1")


def test_the_library_for_marks_counts_ranges_of_its_thread(backend):
    ranges = fb.cuda.nvtx
    assert [ranges.range_push("a"), ranges.range_push("b")] == [0, 1]
    assert [ranges.range_pop(), ranges.range_pop(), ranges.range_pop()] == [1, 0, -1]
    assert ranges.range_push("c") == 0
    assert ranges.range_pop() == 0
    ranges.mark("m")


def test_a_graph_has_its_memory_and_its_random_numbers(backend):
    x = fb.randn(8, 5, device="cuda")
    generator = fb.Generator("cuda").manual_seed(5)
    fb.rand(3, device="cuda", generator=generator)
    x.softmax(1)
    recorded = fb.cuda.CUDAGraph()
    with fb.cuda.graph(recorded):
        y = x.softmax(1) * 2
        drawn = fb.rand(3, device="cuda", generator=generator)
    eager = fb.Generator("cuda").manual_seed(5)
    fb.rand(3, device="cuda", generator=eager)
    for _ in range(3):
        x.copy_(fb.randn(8, 5, device="cuda"))
        recorded.replay()
        fb.testing.assert_close(y, x.softmax(1) * 2)
        assert fb.equal(drawn, fb.rand(3, device="cuda", generator=eager))
    with (
        pytest.raises(RuntimeError, match="StreamCaptureUnsupported"),
        fb.cuda.graph(fb.cuda.CUDAGraph()),
    ):
        fb.cuda.synchronize()
    assert not fb.cuda.is_current_stream_capturing()


def step_of(model, optimizer):
    """A step of training of a classifier."""

    def step(x, target):
        optimizer.zero_grad()
        loss = fb.nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def test_a_whole_step_of_training_is_replayed(backend):
    """All of it but matrix products, which CuPy's cuBLAS refuses to record."""

    def trained(graphed):
        fb.manual_seed(2)
        model = fb.nn.Sequential(
            fb.nn.Embedding(9, 6), fb.nn.LayerNorm(6), fb.nn.GELU(), fb.nn.Dropout(0.5)
        ).cuda()
        optimizer = fb.optim.AdamW(model.parameters(), lr=0.05, capturable=True)
        step = step_of(model, optimizer)
        batches = [
            (fb.randint(0, 9, (7,), device="cuda"), fb.randint(0, 6, (7,), device="cuda"))
            for _ in range(4)
        ]
        if graphed:
            step = fb.cuda.make_graphed_step(step, batches[0], num_warmup_iters=2)
        else:
            for _ in range(2):
                step(*batches[0])
        losses = [step(*batch).item() for batch in batches]
        return losses, [p.detach().cpu() for p in model.parameters()]

    (found, ours), (wanted, theirs) = trained(True), trained(False)
    assert found == pytest.approx(wanted, rel=1e-5) and len({*found}) == 4
    for a, b in zip(ours, theirs, strict=True):
        fb.testing.assert_close(a, b)


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_a_replay_finds_the_extrema_of_what_is_there_by_then(reduce, backend):
    x, s = (fb.randn(4, n, device="cuda", requires_grad=True) for n in (3, 5))
    index = fb.randint(0, 3, (4, 5), device="cuda")
    table = fb.randn(7, 4, device="cuda", requires_grad=True)
    tokens, offsets = (fb.tensor(v, device="cuda") for v in ([1, 6, 1, 0], [0, 1, 3]))

    def step():
        found = (
            x.scatter_reduce(1, index, s, reduce),
            x.index_reduce(0, tokens[1:] % 4, s[1:, :3], reduce, include_self=False),
            fb.nn.functional.embedding_bag(tokens, table, offsets, mode="max"),
        )
        grads = fb.autograd.grad(found, (x, s, table), [fb.ones_like(y) for y in found])
        return *(y.detach() for y in found), *grads

    step()
    recorded = fb.cuda.CUDAGraph()
    with fb.cuda.graph(recorded):
        results = step()
    for new in ([5, 5, 2, 5], [0, 1, 2, 3]):
        tokens.copy_(fb.tensor(new, device="cuda"))
        offsets.copy_(fb.tensor([0, 0, 2], device="cuda"))
        index.copy_(fb.randint(0, 3, (4, 5), device="cuda"))
        for t in (x, s, table):
            t.detach().copy_(fb.randn(*t.shape, device="cuda"))
        recorded.replay()
        for a, b in zip(results, step(), strict=True):
            fb.testing.assert_close(a, b)


def test_a_product_by_cublas_cannot_be_recorded(backend):
    x = fb.ones(3, 3, device="cuda")
    with (
        pytest.raises(NotImplementedError, match="cuBLAS"),
        fb.cuda.graph(fb.cuda.CUDAGraph()),
    ):
        _ = x @ x
    assert (x @ x).tolist() == [[3.0] * 3] * 3


def test_a_model_is_trained_in_parallel_on_both_devices(backend):
    fb.manual_seed(0)
    plain = fb.nn.Sequential(
        fb.nn.Linear(4, 8), fb.nn.LayerNorm(8), fb.nn.ReLU(), fb.nn.Linear(8, 3)
    )
    model = fb.nn.DataParallel(copy.deepcopy(plain).cuda())
    assert model.device_ids == [0, 1]
    x, target = fb.randn(7, 4), fb.randint(0, 3, (7,))
    for m, place in ((plain, "cpu"), (model, "cuda")):
        step = step_of(m, fb.optim.AdamW(m.parameters(), lr=0.1))
        for _ in range(3):
            step(x.to(place), target.to(place))
    for a, b in zip(model.module.parameters(), plain.parameters(), strict=True):
        fb.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-5)


def test_collective_copies_use_both_devices(backend):
    x = fb.arange(6.0, device="cuda").requires_grad_()
    parts = fb.cuda.comm.scatter(x, (0, 1), (2, 4))
    assert [p.device.index for p in parts] == [0, 1]
    joined = fb.cuda.comm.gather(parts, destination=1)
    assert joined.device.index == 1
    joined.square().sum().backward()
    assert x.grad.tolist() == (2 * x).tolist() and x.grad.device.index == 0
    total = fb.cuda.comm.reduce_add([fb.ones(2, device=f"cuda:{i}") for i in (0, 1)], 1)
    assert total.tolist() == [2.0, 2.0]


def test_operands_on_two_devices_are_refused(backend):
    a, b = (fb.ones(2, device=f"cuda:{i}") for i in (0, 1))
    for call in (lambda: a + b, lambda: a @ b, lambda: fb.cat([a, b]), lambda: a + fb.ones(2)):
        with pytest.raises(RuntimeError, match="same device"):
            call()


def test_a_wrong_index_on_any_device_is_raised_when_it_is_waited_for(backend):
    x = fb.arange(6.0, device="cuda:1").reshape(2, 3)
    y = x[fb.tensor([0, 2], device="cuda:1")]
    with pytest.raises(IndexError, match="index 2 is out of bounds for dimension 0 with size 2"):
        fb.cuda.synchronize(1)
    assert y[0].tolist() == [0.0, 1.0, 2.0]


def test_an_error_of_the_runtime_is_a_cuda_error_with_its_number(backend, monkeypatch):
    def fail(self):
        raise fake_cupy.CUDARuntimeError(700)

    x = fb.ones(3, device="cuda")
    with monkeypatch.context() as patch:
        patch.setattr(fake_cupy.BaseStream, "synchronize", fail)
        patch.setattr(fake_cupy.Device, "synchronize", fail)
        for wait in (fb.cuda.synchronize, fb.cuda.current_stream().synchronize, x.tolist):
            with pytest.raises(fb.cuda.CudaError) as caught:
                wait()
            assert caught.value.code == 700
    assert x.tolist() == [1.0] * 3


def test_a_model_is_trained_on_a_device_that_is_not_the_current_one(backend):
    """Also what formulas put off is computed on its own device."""

    def trained(place):
        fb.manual_seed(1)
        model = fb.nn.Sequential(
            fb.nn.Linear(6, 8), fb.nn.BatchNorm1d(8), fb.nn.SiLU(), fb.nn.Linear(8, 2)
        ).to(place)
        optimizer = fb.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x = fb.randn(4, 6, generator=fb.Generator().manual_seed(2)).to(place)
        for _ in range(2):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            fb.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        return [t.detach().cpu() for t in model.state_dict().values()]

    assert fb.cuda.current_device() == 0
    for a, b in zip(trained("cuda:1"), trained("cpu"), strict=True):
        fb.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_tensors_are_saved_with_their_device_and_loaded_on_any(backend):
    file = io.BytesIO()
    x = fb.arange(6.0, device="cuda:1").reshape(2, 3).t()
    fb.save([x, x[1]], file)
    for place, wanted in ((None, "cuda:1"), ("cpu", "cpu"), ({"cuda:1": "cuda:0"}, "cuda:0")):
        file.seek(0)
        whole, row = fb.load(file, map_location=place)
        assert whole.device == row.device == fb.device(wanted)
        assert fb.equal(whole.cpu(), x.cpu()) and row.data_ptr() == whole[1].data_ptr()
