"""What needs a GPU: the tests of ops once more on it, streams, memory, graphs, and PyTorch beside.

Without one the module is skipped, and the reason says what is missing.
"""

from __future__ import annotations

import subprocess
import sys

import on_device
import pytest
from test_fusion import (  # noqa: F401
    test_composites_of_elementwise_ops_give_what_their_decomposition_gives,
    test_dropout_has_a_second_derivative_and_leaves_integers_to_the_others,
    test_gradients_of_gradients_pass_through_fused_formulas,
)
from test_ops import (  # noqa: F401 (the same tests, with this module's fixtures)
    default_dtype,
    deterministic,
    test_a_gathered_nan_keeps_its_bits,
    test_a_place_that_is_none_is_refused_by_the_kernel_too,
    test_a_row_that_is_none_is_refused_by_the_kernel_too,
    test_a_zero_divisor_is_raised_when_the_device_is_waited_for,
    test_activations,
    test_an_index_out_of_range_is_raised_when_the_device_is_waited_for,
    test_batch_norm,
    test_ctc,
    test_embedding,
    test_events_are_drawn_from_the_documented_stream,
    test_events_have_their_distribution,
    test_gather_and_scatter_add,
    test_group_norm_runs_on_the_kernels_of_rows,
    test_integers_are_pooled_exactly,
    test_kernels_draw_the_documented_stream,
    test_layer_norm,
    test_losses_over_classes,
    test_max_pooling,
    test_mean_pooling,
    test_nan_is_the_greatest_and_the_least_by_index,
    test_of_several_complaints_the_first_is_raised,
    test_optimisers,
    test_pooling_of_volumes,
    test_probabilities_and_the_like_may_be_at_the_ends_of_their_interval,
    test_rows_of_other_dtypes_are_taken_bit_by_bit,
    test_samples_have_their_weights,
    test_softmax,
    test_softmax_passes_nan_on_and_bears_infinities,
    test_the_gradient_of_an_embedding_is_summed_in_the_order_of_the_indices,
    test_the_greatest_and_the_least_by_index,
    test_the_greatest_and_the_least_of_integers,
    test_the_greatest_of_bags,
    test_the_kth_value_is_the_last_of_the_first_k,
    test_topk_gives_its_gradient_to_what_it_took,
    test_topk_of_a_row_of_millions,
    test_topk_of_many_without_sorting_them_all,
    test_topk_without_sorting,
    test_what_is_in_range_is_used_as_it_is,
    test_what_is_no_probability_or_the_like_is_raised_when_the_device_is_waited_for,
)

import flambeau as fb
from flambeau.plugin.host import host
from flambeau.testing import engine_kit
from flambeau_cupy.communication import NcclEngine

if reason := on_device.missing():
    pytest.skip(reason, allow_module_level=True)
pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device():
    return "cuda"


@pytest.fixture
def launched(device):
    """The names of the kernels that the test has launched so far."""
    launcher = host.activate(device).backend.layer.launch
    launcher._functions.clear()
    launcher._programs.clear()

    def names():
        generated = {"elementwise"} if launcher._programs else set()
        return generated | {kernel for _, kernel, _ in launcher._functions}

    return names


def test_arrays_come_back_as_they_went(device):
    for dtype in (fb.float16, fb.bfloat16, fb.float32, fb.int64, fb.bool, fb.complex64):
        x = fb.arange(-6, 6).reshape(3, 4).to(dtype)
        assert fb.equal(x.to(device).t().to("cpu"), x.t())


def test_events_measure_and_order_streams(device):
    side, start, end = fb.cuda.Stream(), fb.cuda.Event(True), fb.cuda.Event(True)
    x = fb.ones(1 << 22, device=device)
    side.wait_stream(fb.cuda.current_stream())
    with fb.cuda.stream(side):
        start.record()
        for _ in range(20):
            x = x * 2
        end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 0
    fb.cuda.current_stream().wait_stream(side)
    assert x[:2].tolist() == [2.0**20] * 2


def test_processes_with_a_device_each_keep_the_contract_of_engines(device):
    if why := NcclEngine().unavailable():
        pytest.skip(why)
    sizes = range(1, 1 + min(4, fb.cuda.device_count()))  # one device is refused to two processes
    assert engine_kit.check("nccl", sizes, method="spawn") == {}


def test_too_much_memory_is_refused_with_the_figures_and_the_device_goes_on(device):
    total = fb.cuda.get_device_properties().total_memory
    with pytest.raises(fb.cuda.OutOfMemoryError, match="Tried to allocate .* reserved by the pool"):
        fb.empty(2 * total, dtype=fb.uint8, device=device)
    assert (fb.ones(3, device=device) + 1).tolist() == [2.0] * 3


def test_figures_of_memory_follow_tensors(device):
    before = fb.cuda.memory_allocated()
    x = fb.empty(1 << 20, dtype=fb.uint8, device=device)
    assert fb.cuda.memory_allocated() - before >= 1 << 20
    del x
    assert fb.cuda.memory_allocated() == before


def test_a_graph_reads_what_its_inputs_hold_by_then(device):
    x = fb.randn(64, 33, device=device)
    x.softmax(1)  # compiled before the recording
    recorded = fb.cuda.CUDAGraph()
    with fb.cuda.graph(recorded):
        y = x.softmax(1) * 2 + 1
    for _ in range(2):
        x.copy_(fb.randn(64, 33, device=device))
        recorded.replay()
        fb.testing.assert_close(y, x.softmax(1) * 2 + 1)


def test_random_numbers_of_a_graph_go_on(device):
    generator = fb.Generator(device=device).manual_seed(3)
    fb.rand(2, device=device, generator=generator)
    recorded = fb.cuda.CUDAGraph()
    with fb.cuda.graph(recorded):
        x = fb.rand(100, device=device, generator=generator)
    eager = fb.Generator(device=device).manual_seed(3)
    fb.rand(2, device=device, generator=eager)
    for _ in range(3):
        recorded.replay()
        assert fb.equal(x, fb.rand(100, device=device, generator=eager))


def test_targets_and_indices_of_a_graph_are_checked_by_each_replay(device):
    table = fb.randn(7, 5, device=device, requires_grad=True)
    tokens, target = (fb.tensor(v, device=device) for v in ([1, 6, 1, 0], [4, 0, -100, 2]))

    def step():
        rows = fb.nn.functional.embedding(tokens, table)
        loss = fb.nn.functional.cross_entropy(rows, target)
        return loss, *fb.autograd.grad(loss, table), table[-tokens], tokens // 3

    step()
    recorded = fb.cuda.CUDAGraph()
    with fb.cuda.graph(recorded):
        found = step()
    tokens.copy_(fb.tensor([2, 3, 4, 5], device=device))
    recorded.replay()
    for a, b in zip(found, step(), strict=True):
        fb.testing.assert_close(a, b)
    target.fill_(5)
    recorded.replay()
    with pytest.raises(IndexError, match="Target 5 is out of bounds"):
        fb.cuda.synchronize()


def test_a_whole_training_step_is_replayed(device):
    def trained(graphed):
        fb.manual_seed(0)
        model = fb.nn.Sequential(
            fb.nn.Linear(8, 16, device=device), fb.nn.ReLU(), fb.nn.Linear(16, 4, device=device)
        )
        optimizer = fb.optim.AdamW(model.parameters(), lr=0.05, capturable=True)
        x = fb.randn(32, 8, device=device)
        target = fb.randint(0, 4, (32,), device=device)

        def step():
            optimizer.zero_grad(set_to_none=False)
            loss = fb.nn.functional.log_softmax(model(x), 1).mul(1).sum() + model(x).mean()
            loss.backward()
            optimizer.step()

        for _ in range(3):
            step()
        if graphed:
            recorded = fb.cuda.CUDAGraph()
            with fb.cuda.graph(recorded):
                step()
            for _ in range(5):
                recorded.replay()
        else:
            for _ in range(5):
                step()
        assert target.shape == (32,)
        return [p.detach().to("cpu") for p in model.parameters()]

    for found, wanted in zip(trained(True), trained(False), strict=True):
        fb.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif("fb.cuda.device_count() < 2", reason="needs two devices")
def test_copies_between_devices_come_after_what_makes_their_source(device):
    x = fb.ones(1 << 24, device="cuda:0")
    for _ in range(50):
        x = x * 2 - x
    y = x.to("cuda:1")
    x.zero_()
    assert y.device == fb.device("cuda:1") and y.sum().item() == 1 << 24
    with pytest.raises(RuntimeError, match="same device"):
        _ = x + y
    model = fb.nn.DataParallel(fb.nn.Linear(4, 2).cuda())
    batch = fb.randn(6, 4, device="cuda:0")
    fb.testing.assert_close(model(batch), model.module(batch))


def test_copies_do_not_wait_where_memory_is_pinned(device):
    x = fb.randn(1 << 20).pin_memory()
    assert x.is_pinned()
    y = x.to(device, non_blocking=True)
    z = (y + 1).to("cpu", non_blocking=True)
    assert z.is_pinned()
    fb.cuda.synchronize()
    assert fb.equal(z, x + 1)
    out = fb.empty(1 << 20).pin_memory()
    place = out.data_ptr()
    out.copy_(y, non_blocking=True)
    fb.cuda.synchronize()
    assert fb.equal(out, x) and out.data_ptr() == place


@pytest.mark.parametrize("dtype", [fb.float32, fb.bfloat16, fb.int64, fb.bool])
def test_memory_is_shared_with_cupy_both_ways(device, dtype):
    import cupy

    x = fb.arange(6, device=device).reshape(2, 3).to(dtype)
    theirs = cupy.from_dlpack(x.t())
    back = fb.from_dlpack(theirs)
    assert back.device == x.device and back.dtype is dtype and back.data_ptr() == x.data_ptr()
    back[0, 1] = 0
    assert fb.equal(back.cpu(), x.t().cpu())
    if dtype is not fb.bfloat16:
        again = fb.as_tensor(cupy.asarray(x), device=device)
        assert again.data_ptr() == x.data_ptr()


def test_memory_is_shared_with_pytorch_on_its_stream(device, torch):
    ours = fb.randn(1 << 20, device=device)
    with torch.cuda.stream(torch.cuda.Stream()):
        theirs = torch.from_dlpack(ours * 2)
        assert theirs.sum().item() == pytest.approx((ours * 2).sum().item(), rel=1e-3)
    x = torch.randn(1 << 20, device="cuda")
    side = fb.cuda.Stream()
    with fb.cuda.stream(side):
        y = fb.from_dlpack(x * 2)
    side.synchronize()
    assert y.sum().item() == pytest.approx((x * 2).sum().item(), rel=1e-3, abs=1)


def test_an_event_is_waited_for_by_another_process(device):
    event = fb.cuda.Event(interprocess=True)
    program = (
        "import sys, flambeau as fb\n"
        "e = fb.cuda.Event.from_ipc_handle('cuda:0', bytes.fromhex(sys.argv[1]))\n"
        "e.synchronize(); print(e.query())\n"
    )
    handle = event.ipc_handle().hex()
    event.record()
    done = subprocess.run(
        [sys.executable, "-c", program, handle], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True"


def test_elementwise_ops_move_memory_nearly_as_fast_as_a_copy(device):
    """Their bound is the memory: at least 85 % of what a copy reaches."""
    x, y = (fb.randn(1 << 26, device=device) for _ in "xy")

    def best(call, moved):
        times = []
        for _ in range(20):
            first, last = fb.cuda.Event(True), fb.cuda.Event(True)
            first.record()
            call()
            last.record()
            last.synchronize()
            times.append(first.elapsed_time(last))
        return moved / min(times)

    copy = best(x.clone, 2)
    for call, moved in ((lambda: x + y, 3), (x.exp, 2), (lambda: fb.nn.functional.gelu(x), 2)):
        assert best(call, moved) > 0.85 * copy


@pytest.fixture
def torch():
    found = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not found.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    return found


PROGRAMS = {
    "linear": lambda t, x: t.nn.functional.linear(x, x[:16]),
    "conv2d": lambda t, x: t.nn.functional.conv2d(
        x.reshape(2, 4, 16, -1), x[:8, :36].reshape(8, 4, 3, 3), padding=1
    ),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, x.shape[-1:]),
    "softmax": lambda t, x: t.softmax(x, 1),
    "gelu": lambda t, x: t.nn.functional.gelu(x),
    "max_pool2d": lambda t, x: t.nn.functional.max_pool2d(x.reshape(1, 4, 16, -1), 3, 2, 1),
    "cross_entropy": lambda t, x: t.nn.functional.cross_entropy(
        x, t.arange(x.shape[0], device=x.device)
    ),
    "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(
        *(x.reshape(1, 4, 16, -1) for _ in "qkv")
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree_with_pytorch_on_the_same_device(name, dtype, device, torch):
    values = fb.randn(64, 128, generator=fb.Generator().manual_seed(1)).tolist()
    found = []
    for t in (fb, torch):
        x = t.tensor(values, dtype=getattr(t, dtype), device="cuda").requires_grad_()
        y = PROGRAMS[name](t, x)
        y.float().pow(2).sum().backward()
        found.append([fb.tensor(a.detach().double().cpu().tolist()) for a in (y, x.grad)])
    tolerance = {"float64": 1e-10, "float32": 2e-3, "float16": 1e-2, "bfloat16": 6e-2}[dtype]
    for a, b in zip(*found, strict=True):
        scale = max(1.0, b.abs().max().item())
        fb.testing.assert_close(a, b, rtol=tolerance, atol=tolerance * scale)
