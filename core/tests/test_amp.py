"""Mixed precision: what the blocks choose, what they keep, and how losses are scaled."""

from __future__ import annotations

import contextvars
import importlib
import inspect
import threading

import pytest

import flambeau as fb
from flambeau.amp import _lists, _setting, _switch

DEVICE = "ref"


@pytest.fixture
def matrix():
    return fb.ones(2, 2, device=DEVICE)


def test_products_are_narrow_and_sums_follow_their_operands(matrix):
    with fb.autocast(DEVICE):
        product = matrix @ matrix
        assert product.dtype is fb.bfloat16
        assert (product + product).dtype is fb.bfloat16
        assert (product + matrix).dtype is fb.float32
    assert (matrix @ matrix).dtype is fb.float32


def test_the_dtype_of_a_block_is_chosen(matrix):
    with fb.autocast(DEVICE, dtype=fb.float16):
        assert fb.get_autocast_dtype(DEVICE) is fb.float16
        assert matrix.mm(matrix).dtype is fb.float16
    assert fb.get_autocast_dtype(DEVICE) is fb.bfloat16


def test_functions_that_were_imported_before_choose_too(matrix):
    held, method = fb.matmul, fb.Tensor.mm
    with fb.autocast(DEVICE):
        assert held(matrix, matrix).dtype is method(matrix, matrix).dtype is fb.bfloat16


def test_ops_that_need_precision_run_in_float32(matrix):
    narrow = matrix.bfloat16()
    with fb.autocast(DEVICE):
        assert narrow.prod().dtype is fb.float32
        assert fb.mse_loss(narrow, narrow).dtype is fb.float32
        assert fb.trace(narrow).dtype is fb.float32


def test_operands_take_the_widest_dtype_where_they_meet(matrix):
    narrow = matrix.bfloat16()
    with fb.autocast(DEVICE):
        assert fb.cat([narrow, narrow]).dtype is fb.bfloat16
        assert fb.stack([narrow, matrix]).dtype is fb.float32
        with pytest.raises(RuntimeError, match="Unexpected floating"):
            fb.cat([narrow, matrix.half()])


def test_doubles_and_integers_are_left_alone(matrix):
    with fb.autocast(DEVICE):
        assert (matrix.double() @ matrix.double()).dtype is fb.float64
        assert (matrix.long() @ matrix.long()).dtype is fb.int64


def test_other_devices_are_left_alone():
    x = fb.ones(2, 2, device=DEVICE)
    with fb.autocast("xpu"):
        assert (x @ x).dtype is fb.float32


def test_inner_blocks_override_outer_ones(matrix):
    with fb.autocast(DEVICE):
        with fb.autocast(DEVICE, enabled=False):
            assert not fb.is_autocast_enabled(DEVICE)
            assert (matrix @ matrix).dtype is fb.float32
        with fb.autocast(DEVICE, dtype=fb.float16):
            assert (matrix @ matrix).dtype is fb.float16
        assert (matrix @ matrix).dtype is fb.bfloat16


def test_a_block_is_undone_by_an_exception(matrix):
    with pytest.raises(KeyError), fb.autocast(DEVICE):
        raise KeyError
    assert not fb.is_autocast_enabled(DEVICE)
    assert (matrix @ matrix).dtype is fb.float32


def test_decorated_functions_choose_in_every_call(matrix):
    @fb.autocast(DEVICE)
    def product(x, depth=2):
        """Of a matrix with itself."""
        return x @ x if not depth else product(x, depth - 1)

    assert product(matrix).dtype is fb.bfloat16
    assert product.__doc__ == "Of a matrix with itself."
    assert (matrix @ matrix).dtype is fb.float32


def test_other_threads_choose_nothing(matrix):
    found = []
    with fb.autocast(DEVICE):
        thread = threading.Thread(target=lambda: found.append((matrix @ matrix).dtype))
        thread.start()
        thread.join()
        assert (matrix @ matrix).dtype is fb.bfloat16
    assert found == [fb.float32]


def test_a_block_that_another_thread_leaves_does_not_end_this_one(matrix):
    entered, left = threading.Event(), threading.Event()

    def other():
        with fb.autocast(DEVICE):
            entered.set()
            left.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(10)
    with fb.autocast(DEVICE):
        left.set()
        thread.join()
        assert (matrix @ matrix).dtype is fb.bfloat16


def test_functions_are_what_they_were_when_the_last_block_has_ended():
    # Once there is a subclass of Tensor, the name stands for what asks it first.
    linear = getattr(fb.linear, "_function", fb.linear)
    plain = linear.__code__
    with fb.autocast(DEVICE):
        assert linear.__code__ is not plain
        with fb.autocast(DEVICE, dtype=fb.float16):
            pass
        assert linear.__code__ is not plain
    assert linear.__code__ is plain


def test_signatures_stay_within_a_block():
    before = {f: inspect.signature(f) for f in (fb.linear, fb.exp, fb.Tensor.softmax, fb.pow)}
    with fb.autocast(DEVICE):
        assert {f: inspect.signature(f) for f in before} == before


def test_results_written_elsewhere_and_in_place_choose_nothing(matrix):
    out = fb.empty(2, 2, device=DEVICE)
    with fb.autocast(DEVICE):
        assert fb.mm(matrix, matrix + 2**-10, out=out) is out
        assert out.tolist() == [[2 + 2**-9] * 2] * 2
        written = fb.zeros(2, 2, device=DEVICE).addmm_(matrix, matrix + 2**-10)
    assert written.tolist() == [[2 + 2**-9] * 2] * 2


def test_weights_are_converted_once_until_the_outermost_block_ends(matrix):
    weight = fb.ones(2, 2, device=DEVICE, requires_grad=True)
    with fb.autocast(DEVICE):
        with fb.autocast(DEVICE):
            (matrix @ weight) + (matrix @ weight)
        assert len(_setting.local.kept) == 1
        matrix @ (weight * 2)
        assert len(_setting.local.kept) == 1  # no leaf
        with fb.autocast(DEVICE, cache_enabled=False):
            assert not fb.is_autocast_cache_enabled()
        fb.clear_autocast_cache()
        assert not _setting.local.kept
        matrix @ weight
    assert not _setting.local.kept


def test_gradients_of_a_weight_add_up_over_its_uses(matrix):
    weight = fb.ones(2, 2, device=DEVICE, requires_grad=True)
    with fb.autocast(DEVICE):
        loss = (matrix @ weight).sum() + (2 * matrix @ weight).sum()
    loss.backward()
    assert weight.grad.dtype is fb.float32
    assert weight.grad.tolist() == [[6.0, 6.0], [6.0, 6.0]]


def test_a_weight_that_was_used_without_recording_gets_its_gradient(matrix):
    weight = fb.ones(2, 2, device=DEVICE, requires_grad=True)
    with fb.autocast(DEVICE):
        with fb.no_grad():
            matrix @ weight
        loss = (matrix @ weight).sum()
    loss.backward()
    assert weight.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_a_weight_that_is_written_to_is_converted_again(matrix):
    weight = fb.ones(2, 2, device=DEVICE, requires_grad=True)
    with fb.autocast(DEVICE):
        matrix @ weight
        with fb.no_grad():
            weight.mul_(3)
        assert (matrix @ weight).tolist() == [[6.0, 6.0], [6.0, 6.0]]


def test_the_backward_pass_is_in_the_dtypes_of_the_forward_pass(matrix):
    weight = fb.ones(2, 2, device=DEVICE, requires_grad=True)
    with fb.autocast(DEVICE):
        product = matrix @ weight
    product.retain_grad()
    product.float().sum().backward()
    assert product.grad.dtype is fb.bfloat16 and weight.grad.dtype is fb.float32


def test_losses_of_accelerators_accumulate_in_float32(monkeypatch, matrix):
    monkeypatch.setattr("flambeau.amp._casts.lists_of", lambda _: _lists.ON_ACCELERATORS)
    monkeypatch.setattr(_switch, "_switches", {})
    monkeypatch.setattr(_switch, "_libraries", -1)
    half = matrix.half()
    with fb.autocast(DEVICE, dtype=fb.float16):
        assert half.sum().dtype is half.softmax(0).dtype is fb.float32
        assert half.sum(0, dtype=fb.float16).dtype is fb.float16
        assert fb.softmax(half, 0, fb.float16).dtype is fb.float16
        assert half.exp().dtype is (half**2).dtype is fb.float32
        assert fb.addcmul(half, half, matrix).dtype is fb.float32
        assert half.norm().dtype is fb.float32


def test_switches_hold_until_they_are_thrown_back(matrix):
    def there():
        fb.set_autocast_enabled(DEVICE, True)
        fb.set_autocast_dtype(DEVICE, fb.float16)
        assert fb.is_autocast_enabled(DEVICE)
        assert (matrix @ matrix).dtype is fb.float16
        fb.set_autocast_enabled(DEVICE, False)
        assert (matrix @ matrix).dtype is fb.float32

    contextvars.copy_context().run(there)
    assert fb.get_autocast_dtype(DEVICE) is fb.bfloat16


def test_what_is_no_device_or_no_narrow_dtype_is_told():
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        fb.autocast(3)
    with pytest.raises(RuntimeError):
        fb.autocast("meta")
    with pytest.raises(RuntimeError):
        fb.autocast("no such device")
    with pytest.raises(TypeError, match="requires a callable"):
        fb.autocast(DEVICE)(3)
    with pytest.raises(TypeError, match="must be"):
        fb.set_autocast_dtype(DEVICE, 3)
    with pytest.warns(UserWarning, match="not supported. Disabling"):
        block = fb.autocast(DEVICE, dtype=fb.float64)
    with block:
        assert not fb.is_autocast_enabled(DEVICE)


class _Doubled(fb.autograd.Function):
    @staticmethod
    @fb.amp.custom_fwd(device_type=DEVICE)
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x

    @staticmethod
    @fb.amp.custom_bwd(device_type=DEVICE)
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        _Doubled.seen = (x @ x).dtype
        return g.to(x.dtype)


class _InFloat32(_Doubled):
    @staticmethod
    @fb.amp.custom_fwd(device_type=DEVICE, cast_inputs=fb.float32)
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x


def test_functions_of_programs_choose_in_backward_as_in_forward(matrix):
    x = matrix.requires_grad_()
    with fb.autocast(DEVICE):
        y = _Doubled.apply(x)
    assert y.dtype is fb.bfloat16
    y.sum().backward()
    assert _Doubled.seen is fb.bfloat16
    _Doubled.apply(x).sum().backward()
    assert _Doubled.seen is fb.float32


def test_functions_of_programs_cast_their_operands(matrix):
    with fb.autocast(DEVICE):
        y = _InFloat32.apply(matrix.bfloat16().requires_grad_())
    assert y.dtype is fb.float32
    y.sum().backward()
    assert _Doubled.seen is fb.float32


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_scaler_of_the_former_names_is_one_of_its_device(device):
    former = getattr(fb, device).amp.GradScaler
    with pytest.warns(FutureWarning, match="torch.amp.GradScaler") as found:
        scaler = former(init_scale=8.0, enabled=False)
    assert found[0].filename == __file__
    assert isinstance(scaler, fb.amp.GradScaler) and scaler._device == device
    assert former.__module__ == f"flambeau.{device}.amp.grad_scaler"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_former_names_are_found_in_the_files_where_pytorch_has_them(device):
    package = importlib.import_module(f"flambeau.{device}.amp")
    scaler = importlib.import_module(f"flambeau.{device}.amp.grad_scaler")
    casts = importlib.import_module(f"flambeau.{device}.amp.autocast_mode")
    assert scaler.GradScaler is package.GradScaler and casts.autocast is package.autocast


def test_former_names_warn():
    with pytest.warns(FutureWarning, match="torch.amp.autocast"), fb.cpu.amp.autocast():
        assert fb.is_autocast_enabled("cpu")
    with pytest.warns(FutureWarning, match="torch.amp.custom_fwd"):
        fb.cuda.amp.custom_fwd(lambda ctx: None)
    with pytest.warns(DeprecationWarning, match="get_autocast_dtype"):
        assert fb.get_autocast_gpu_dtype() is fb.float16
