"""Ops on the stand-in, from the public function to the kernel in CUDA C that runs on the host."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import standin

import flambeau as fb
from flambeau._dispatch.bound import bind
from flambeau.plugin import numerics
from flambeau.plugin.host import host
from flambeau_cupy.device import philox
from flambeau_cupy.kernels import indexing, optimizer
from flambeau_cupy.source import FAMILIES

pytestmark = pytest.mark.skipif(
    standin.launcher is None, reason="needs g++ or clang++ on Linux: nothing would be launched"
)
TOLERANCE = {fb.float64: 1e-12, fb.float32: 1e-4, fb.float16: 1e-2, fb.bfloat16: 8e-2}
DTYPES = list(TOLERANCE)


@pytest.fixture(scope="module", autouse=True)
def device():
    host.register(standin, name="standin", device_types=[standin.DEVICE])
    yield standin.DEVICE
    host.unregister("standin")


@pytest.fixture
def launched():
    """The names of the kernels that the test has launched so far."""
    standin.launcher.launched.clear()
    return lambda: {name for _, name in standin.launcher.launched}


@pytest.fixture
def deterministic(monkeypatch):
    monkeypatch.setattr(numerics, "deterministic", True)


@pytest.fixture
def default_dtype():
    before = fb.get_default_dtype()
    yield
    fb.set_default_dtype(before)


def numbers(*shape, seed=0):
    return fb.randn(shape, dtype=fb.float64, generator=fb.Generator().manual_seed(seed))


def agree(function, inputs, dtype, device, **options):
    """Compare results and gradients with those of float64 numbers of the same values on the CPU."""
    rounded = [x.to(dtype).double() if x.is_floating_point() else x for x in inputs]
    both = []
    for where, kind in ((device, dtype), ("cpu", fb.float64)):
        args = [
            x.to(where, kind).detach().requires_grad_() if x.is_floating_point() else x.to(where)
            for x in rounded
        ]
        results = function(*args, **options)
        results = results if isinstance(results, tuple) else (results,)
        floating = [r for r in results if r.is_floating_point() and r.requires_grad]
        if floating:
            total = sum((r.double() * numbers(*r.shape, seed=9).to(where)).sum() for r in floating)
            total.backward()
        gradients = [x.grad for x in args if x.is_floating_point()]
        both.append([None if t is None else t.detach().to("cpu") for t in (*results, *gradients)])
    scale = max([1.0, *(t.abs().max().item() for t in both[1] if t is not None and t.numel())])
    tolerance = TOLERANCE[dtype]
    for found, wanted in zip(*both, strict=True):
        assert (found is None) == (wanted is None)
        if found is not None:
            assert found.shape == wanted.shape
            assert found.dtype is (dtype if wanted.is_floating_point() else wanted.dtype)
            fb.testing.assert_close(
                found.double(), wanted.double(), rtol=tolerance, atol=tolerance * scale
            )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((3, 7), 1), ((2, 300), -1), ((4, 5, 6), 1), ((3, 4), 0), ((), 0), ((0, 4), 1), ((4, 0), 1)],
)
def test_softmax(shape, dim, dtype, device, launched):
    for name in ("softmax", "log_softmax"):
        agree(lambda x, name=name: getattr(x, name)(dim), [numbers(*shape)], dtype, device)
    if fb.Size(shape).numel():
        assert {"softmax_forward", "softmax_backward", "log_softmax_backward"} <= launched()


def test_softmax_passes_nan_on_and_bears_infinities(device):
    rows = [[fb.nan, 1], [-fb.inf, 0], [1e30, -1e30]]
    found = fb.tensor(rows, dtype=fb.float32, device=device).softmax(1).tolist()
    assert found[0][0] != found[0][0] and found[1:] == [[0, 1], [1, 0]]


ACTIVATIONS = {
    "relu": fb.relu,
    "sigmoid": fb.sigmoid,
    "silu": fb.nn.functional.silu,
    "gelu": fb.nn.functional.gelu,
    "gelu_tanh": lambda x: fb.nn.functional.gelu(x, approximate="tanh"),
    "softplus": lambda x: fb.nn.functional.softplus(x, 2.0, 1.5),
    "leaky_relu": lambda x: fb.nn.functional.leaky_relu(x, 0.3),
    "elu": lambda x: fb.nn.functional.elu(x, 0.7),
    "threshold": lambda x: fb.nn.functional.threshold(x, 0.2, -4.0),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name, dtype, device, launched):
    for x in (numbers(5, 13), numbers(7, 6).t(), numbers(9)[1::2], numbers(3, 1).expand(3, 4)):
        agree(ACTIVATIONS[name], [x], dtype, device)
    assert "elementwise" in launched()


@pytest.mark.parametrize("name", ["relu", "sigmoid", "threshold"])
def test_activations_of_other_dtypes_need_no_kernel_in_cuda_c(name, device, launched):
    x = fb.tensor([[-2, 3], [0, 1]])
    x = x * (1 + 0.5j) if name == "sigmoid" else x
    found = ACTIVATIONS[name](x.to(device))
    fb.testing.assert_close(found.to("cpu"), ACTIVATIONS[name](x))
    assert not launched()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 7), (2, 5, 40), (33, 5), (0, 4)])
@pytest.mark.parametrize("affine", [False, True])
def test_layer_norm(shape, affine, dtype, device, launched):
    def function(x, *parameters):
        return fb.nn.functional.layer_norm(x, shape[-1:], *parameters)

    x = numbers(*shape) + 2
    parameters = [numbers(shape[-1], seed=s) for s in (2, 3)] if affine else []
    agree(function, [x, *parameters], dtype, device)
    if x.numel():
        assert {"layer_norm_forward", "layer_norm_backward_input"} <= launched()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 5), (4, 3, 5), (2, 40, 3, 3), (5, 33)])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_batch_norm(shape, affine, training, dtype, device, launched):
    def function(x, mean, spread, *parameters):
        running = mean.detach(), spread.detach().abs() + 1
        return fb.nn.functional.batch_norm(x, *running, *parameters, training=training)

    vectors = [numbers(shape[1], seed=s) for s in range(1, 5 if affine else 3)]
    agree(function, [numbers(*shape) + 1, *vectors], dtype, device)
    wanted = {"batch_norm_transform"}
    if training:
        kind = "column_" if len(shape) == 2 else ""
        wanted |= {f"batch_norm_{kind}statistics", f"batch_norm_{kind}sums"}
    assert wanted <= launched()


@pytest.mark.parametrize("dtype", DTYPES)
def test_images_with_the_channels_last_are_normalised_where_they_lie(dtype, device, launched):
    def function(x, w, b):
        y = fb.nn.functional.batch_norm(
            x.contiguous(memory_format=fb.channels_last), None, None, w, b, True
        )
        assert x.device.type == "cpu" or y.permute(0, 2, 3, 1).is_contiguous()
        return y

    agree(function, [numbers(3, 5, 4, 2), *(numbers(5, seed=s) for s in (1, 2))], dtype, device)
    assert {"batch_norm_column_statistics", "batch_norm_column_sums"} <= launched()


def test_parameters_of_normalisation_may_be_wider_than_the_input(device):
    x, w, b = numbers(4, 6).half(), numbers(6, seed=1).float(), numbers(6, seed=2).float()
    for function in (
        lambda x, w, b: fb.nn.functional.layer_norm(x, (6,), w, b),
        lambda x, w, b: fb.nn.functional.batch_norm(x, None, None, w, b, training=True),
    ):
        found = function(x.to(device), w.to(device), b.to(device))
        wanted = function(x.double(), w.double(), b.double())
        assert found.dtype is fb.float16
        fb.testing.assert_close(found.to("cpu").double(), wanted, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_group_norm_runs_on_the_kernels_of_rows(dtype, device, launched):
    vectors = [numbers(6, seed=s) for s in (1, 2)]
    agree(
        lambda x, w, b: fb.nn.functional.group_norm(x, 3, w, b),
        [numbers(2, 6, 4, 5), *vectors],
        dtype,
        device,
    )
    assert "layer_norm_forward" in launched()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_over_classes(reduction, weighted, dtype, device, launched):
    target = fb.tensor([0, 4, 2, -100, 1, 1, 3])
    weight = numbers(5, seed=1).abs() if weighted else None

    def function(x, t, loss):
        w = None if weight is None else weight.to(x.device, x.dtype)
        return getattr(fb.nn.functional, loss)(x, t, w, reduction=reduction)

    for loss in ("nll_loss", "cross_entropy"):
        agree(lambda x, t, loss=loss: function(x, t, loss), [numbers(7, 5), target], dtype, device)
    assert {"nll_backward", "nll_rows" if reduction == "none" else "nll_total"} <= launched()
    assert ("cross_entropy_backward" in launched()) == (reduction == "mean" and not weighted)


@pytest.mark.parametrize("dtype", [fb.float32, fb.float64])
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_ctc(zero_infinity, dtype, device, launched):
    targets = fb.tensor([[1, 2, 2, 1], [3, 1, 0, 0], [2, 4, 4, 4], [1, 1, 1, 1]])
    inputs, labels = (9, 5, 0 if zero_infinity else 4, 9), (4, 2, 3 if zero_infinity else 1, 0)

    def function(x):
        how = {"reduction": "sum", "zero_infinity": zero_infinity}
        y = x.log_softmax(2)
        return fb.nn.functional.ctc_loss(y, targets.to(x.device), inputs, labels, **how)

    agree(function, [numbers(9, 4, 5)], dtype, device)
    assert {"ctc_forward", "ctc_backward"} <= launched()


def test_the_gradient_of_an_impossible_ctc_is_nan(device):
    y = numbers(2, 1, 3).to(device).log_softmax(2).requires_grad_()
    targets = fb.tensor([[1, 1]], device=device)  # needs a blank between, hence three steps
    loss = fb.nn.functional.ctc_loss(y, targets, (2,), (2,), reduction="sum")
    loss.backward()
    assert loss.item() == fb.inf and y.grad.isnan().all()


WINDOWS = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": (3, 2), "stride": (2, 3), "padding": (1, 0), "ceil_mode": True},
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("window", WINDOWS)
def test_max_pooling(window, dtype, device, launched):
    def function(x):
        return fb.nn.functional.max_pool2d(x, **window, return_indices=True)

    x = (fb.arange(2 * 3 * 7 * 9).reshape(2, 3, 7, 9) * 37 % 64).double() / 8  # with equal ones
    agree(function, [x], dtype, device)
    assert {"max_pool", "max_pool_backward"} <= launched()


def test_max_pooling_adds_in_a_fixed_order_if_asked(device, deterministic, launched):
    agree(lambda x: fb.nn.functional.max_pool2d(x, 3, 1), [numbers(2, 3, 6, 6)], fb.float32, device)
    assert "max_pool_backward_in_order" in launched()
    assert "max_pool_backward" not in launched()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("count_include_pad", [False, True])
@pytest.mark.parametrize("divisor", [None, 5])
def test_mean_pooling(window, count_include_pad, divisor, dtype, device, launched):
    how = {**window, "count_include_pad": count_include_pad, "divisor_override": divisor}
    agree(lambda x: fb.nn.functional.avg_pool2d(x, **how), [numbers(2, 3, 7, 8)], dtype, device)
    assert {"avg_pool", "avg_pool_backward"} <= launched()


@pytest.mark.parametrize("dtype", DTYPES)
def test_pooling_of_volumes(dtype, device):
    x = numbers(2, 2, 4, 5, 6)
    agree(lambda x: fb.nn.functional.max_pool3d(x, 2, 1), [x], dtype, device)
    agree(lambda x: fb.nn.functional.avg_pool3d(x, (2, 3, 2), 2, 1), [x], dtype, device)


def test_integers_are_pooled_exactly(device, launched):
    x = fb.tensor([[[[2**60, 2**60 + 1], [5, -7]]]])
    assert fb.max_pool2d(x.to(device), 2).item() == 2**60 + 1
    y = fb.tensor([[[[-7, -8, 0, 0]]]])
    assert fb.avg_pool2d(y.to(device), (1, 2)).tolist() == [[[[-7, 0]]]]
    assert {"max_pool", "avg_pool"} <= launched()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}, {"scale_grad_by_freq": True}])
def test_embedding(options, dtype, device, launched):
    indices = fb.tensor([[1, 4, 1], [0, 1, 4]])
    agree(
        lambda w, i: fb.nn.functional.embedding(i, w, **options),
        [numbers(6, 5), indices],
        dtype,
        device,
    )
    assert {"take_rows", "add_rows"} <= launched()


def test_the_gradient_of_an_embedding_is_summed_in_the_order_of_the_indices(device):
    """In float32 the order is visible: 1e8 + 1 - 1e8 is 0 or 1."""
    w = fb.zeros(2, 1, device=device, requires_grad=True)
    rows = fb.nn.functional.embedding(fb.tensor([1, 0, 1, 1], device=device), w)
    rows.backward(fb.tensor([[1e8], [1.0], [1.0], [-1e8]], device=device))
    assert w.grad.tolist() == [[1.0], [0.0]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gather_and_scatter_add(dim, dtype, device, launched):
    x = numbers(3, 4, 5)
    shape = [3, 4, 5]
    shape[dim] = 6
    index = fb.arange(fb.Size(shape).numel()).reshape(shape) * 7 % x.shape[dim]
    agree(lambda x, i: x.gather(dim, i), [x, index], dtype, device)
    agree(
        lambda x, i, y: x.scatter_add(dim, i, y), [x, index, numbers(*shape, seed=3)], dtype, device
    )
    assert {"gather_along", "scatter_add_along_at_once"} <= launched()


@pytest.mark.parametrize(
    "call",
    [
        lambda x, index: fb.ops.scatter_add(x, 0, index, x[:2]),
        lambda x, index: fb.ops.scatter_extremum(x, 0, index, x[:2], True),
        lambda x, index: fb.ops.topk(x, 4, 0, True),
    ],
)
def test_kernels_walk_no_operand_that_is_smaller_than_another(call, device):
    x, index = fb.ones(3, 2, device=device), fb.zeros(3, 2, dtype=fb.int64, device=device)
    with pytest.raises(RuntimeError, match=r"expected src of shape \[3, 2\]|k has to be in"):
        call(x, index)


def test_scatter_add_adds_in_a_fixed_order_if_asked(device, deterministic, launched):
    index = fb.tensor([0, 1, 0, 0], device=device)
    values = fb.tensor([1e8, 2.0, 1.0, -1e8], device=device)
    found = fb.zeros(2, device=device).scatter_add(0, index, values)
    assert found.tolist() == [0.0, 2.0]
    assert "scatter_add_along_at_once" not in launched()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_the_greatest_and_the_least_by_index(include_self, reduce, dtype, device, launched):
    how = {"reduce": reduce, "include_self": include_self}
    x, s = numbers(4, 5), numbers(3, 6, seed=3)
    index = fb.arange(18).reshape(3, 6) * 7 % 5
    for given in ([x, index, s], [x.t().contiguous().t(), index[:2, :4], s]):
        agree(lambda x, i, s: x.scatter_reduce(1, i, s, **how), given, dtype, device)
    rows = fb.tensor([2, 0, 2])
    agree(lambda x, i, s: x.index_reduce(0, i, s, **how), [x, rows, x[1:]], dtype, device)
    scalars = [x[0, 0], fb.tensor([0, 0]), s[0, :2]]
    agree(lambda x, i, s: x.scatter_reduce(0, i, s, **how), scalars, dtype, device)
    ties = [fb.zeros(3, dtype=fb.float64), fb.tensor([0, 0, 1, 2]), fb.ones(4, dtype=fb.float64)]
    agree(lambda x, i, s: x.scatter_reduce(0, i, s.abs(), **how), ties, dtype, device)
    agree(lambda x, i, s: x.scatter_reduce(0, i[:0], s[:0], **how), ties, dtype, device)
    assert "scatter_extremum_along" in launched()


@pytest.mark.parametrize("dtype", [fb.bool, fb.uint8, fb.int8, fb.int16, fb.int32, fb.int64])
@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_the_greatest_and_the_least_of_integers(reduce, dtype, device, launched):
    index, values = fb.tensor([2, 0, 2, 3, 0]), fb.tensor([3, 7, 127, -128, 0]).to(dtype)
    x = fb.tensor([5, -6, 4, 1]).to(dtype)
    for include_self in (True, False):
        how = {"reduce": reduce, "include_self": include_self}
        found = x.to(device).scatter_reduce(0, index.to(device), values.to(device), **how)
        assert found.dtype is dtype
        assert fb.equal(found.to("cpu"), x.scatter_reduce(0, index, values, **how))
    assert launched() >= {"scatter_extremum_along"}


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_is_the_greatest_and_the_least_by_index(dtype, device):
    values = fb.tensor([fb.nan, -1, fb.inf, -fb.nan, -fb.inf], dtype=dtype, device=device)
    index = fb.tensor([1, 1, 2, 3, 3], device=device)
    x = fb.tensor([-fb.nan, 0, fb.nan, 5, -2], dtype=dtype, device=device)
    for reduce in ("amax", "amin"):
        found = x.scatter_reduce(0, index, values, reduce).tolist()
        assert [v != v for v in found] == [True] * 4 + [False] and found[4] == -2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("include_last", [False, True])
def test_the_greatest_of_bags(include_last, dtype, device, launched):
    def function(table, tokens, offsets, **options):
        how = {"mode": "max", "include_last_offset": include_last, **options}
        return fb.nn.functional.embedding_bag(tokens, table, offsets, **how)

    tokens, offsets = fb.tensor([1, 5, 1, 0, 2, 2]), fb.tensor([0, 2, 2, 5])
    for options in ({}, {"padding_idx": 1}):
        agree(function, [numbers(6, 4), tokens, offsets], dtype, device, **options)
    assert launched() >= {"scatter_extremum_along"}


@pytest.mark.parametrize("dtype", [fb.int8, fb.int16, fb.int32, fb.bool, fb.complex64])
def test_rows_of_other_dtypes_are_taken_bit_by_bit(dtype, device):
    x = (fb.arange(-6, 6).reshape(4, 3) * (1 + 2j if dtype.is_complex else 1)).to(dtype)
    i = fb.tensor([3, 0, 3])
    assert fb.equal(x.to(device)[i.to(device)].to("cpu"), x[i])
    places = i.reshape(3, 1).expand(3, 3)
    assert fb.equal(x.to(device).gather(0, places.to(device)).to("cpu"), x.gather(0, places))


def test_a_gathered_nan_keeps_its_bits(device):
    bits = fb.tensor([0x7F800001, 0x7FC12345], dtype=fb.int32)
    i = fb.tensor([1, 0])
    found = bits.to(device).view(fb.float32)[i.to(device)].view(fb.int32)
    assert found.tolist() == [0x7FC12345, 0x7F800001]


def check_topk(x, k, dim, largest, device):
    """Against a sort on the CPU: the same places, and what is there."""
    found, places = x.to(device).topk(k, dim, largest)
    wanted, first = fb.sort(x, dim=dim, descending=largest, stable=True)
    narrow = wanted.narrow(dim, 0, k)
    fb.testing.assert_close(found.to("cpu"), narrow, rtol=0, atol=0, equal_nan=True)
    assert fb.equal(places.to("cpu"), first.narrow(dim, 0, k))


ORDERED = [*DTYPES, fb.int64, fb.int32, fb.int16, fb.int8, fb.uint8]


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("shape_dim", [((3, 70), 1), ((5, 4), 0), ((2, 300, 3), 1), ((9,), 0)])
def test_topk_without_sorting(dtype, largest, shape_dim, device, launched):
    shape, dim = shape_dim
    x = (fb.arange(fb.Size(shape).numel()).reshape(shape) * 29 % 11).to(dtype)  # with equal ones
    if dtype.is_floating_point:
        x.view(-1)[3], x.view(-1)[8], x.view(-1)[5] = fb.nan, -fb.inf, -0.0
    for k in (0, 1, min(4, shape[dim]), shape[dim]):
        check_topk(x, k, dim, largest, device)
    check_topk(x.flip(dim), 3, dim, largest, device)
    check_topk(x.t() if x.dim() == 2 else x[::2], 2, -1, largest, device)
    assert launched() >= {"select_few"}


@pytest.mark.parametrize("dtype", [fb.float32, fb.float16, fb.int64])
@pytest.mark.parametrize("k", [3, 300, 2048, 2049, 9999])
@pytest.mark.parametrize("long", [1, 1 << 17])
def test_topk_of_many_without_sorting_them_all(dtype, k, long, device, launched, monkeypatch):
    monkeypatch.setattr(indexing, "LONG_ROW", long)
    x = (fb.arange(20000).reshape(2, 10000) * 7919 % 9001 - 4000).to(dtype)
    check_topk(x, k, 1, True, device)
    check_topk(x.t(), k, 0, False, device)
    if k == 9999:  # of nearly all, a sort
        assert not launched() & {"select_few", "select_many", "count_digits"}
    elif long == 1:
        assert launched() >= {"count_digits", "collect_first"}
    else:
        assert launched() >= {"select_few" if k == 3 else "select_many"}


def test_topk_of_a_row_of_millions(device, launched):
    n = 3_000_017
    x = (fb.arange(n) * 1_000_003 % n).to(fb.float32)
    found, places = x.to(device).topk(5)
    assert found.tolist() == [n - 1.0, n - 2.0, n - 3.0, n - 4.0, n - 5.0]
    assert fb.equal(x[places.to("cpu")], found.to("cpu"))
    assert fb.zeros(n, device=device).topk(300).indices.tolist() == list(range(300))
    assert launched() >= {"count_digits", "collect_first", "order_first"}


@pytest.mark.parametrize("k", [1, 4, 700])
def test_the_kth_value_is_the_last_of_the_first_k(k, device, launched):
    x = fb.arange(2 * 900).reshape(2, 900) * 7919 % 499
    found, places = x.to(device).kthvalue(k, 1)
    wanted, first = fb.sort(x, 1, stable=True)
    assert found.tolist() == wanted[:, k - 1].tolist()
    assert places.tolist() == first[:, k - 1].tolist()
    assert launched() & {"select_few", "select_many"}


@pytest.mark.parametrize("dtype", DTYPES)
def test_topk_gives_its_gradient_to_what_it_took(dtype, device):
    agree(lambda x: x.topk(3, 0)[0], [numbers(7, 3)], dtype, device)
    agree(lambda x: x.topk(300)[0], [numbers(2, 700)], dtype, device)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {}),
        ("SGD", {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
        ("SGD", {"momentum": 0.9, "dampening": 0.3, "maximize": True}),
        ("Adam", {}),
        ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
        ("AdamW", {"maximize": True}),
        ("AdamW", {"capturable": True}),
        ("ASGD", {"t0": 1, "weight_decay": 0.1}),
        ("ASGD", {"maximize": True}),
        ("RMSprop", {}),
        ("RMSprop", {"momentum": 0.9, "weight_decay": 0.1, "capturable": True}),
        ("RMSprop", {"centered": True, "eps": 0.5}),
        ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "maximize": True}),
        ("Adadelta", {"eps": 1e-3}),
        ("Adadelta", {"eps": 1e-3, "weight_decay": 0.1, "capturable": True}),
        ("Adamax", {"eps": 1e-3}),
        ("Adamax", {"eps": 1e-3, "weight_decay": 0.1, "capturable": True}),
        ("NAdam", {"eps": 1e-3}),
        ("NAdam", {"eps": 1e-3, "weight_decay": 0.1, "capturable": True}),
        ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1, "maximize": True}),
        ("RAdam", {"eps": 1e-3, "betas": (0.9, 0.5)}),
        ("RAdam", {"eps": 1e-3, "weight_decay": 0.1, "capturable": True}),
        ("Rprop", {}),
        ("Rprop", {"maximize": True, "capturable": True}),
    ],
)
def test_optimisers(name, options, dtype, device, launched, default_dtype):
    if dtype is fb.float64:  # the counts and rates of parameters take the default dtype
        fb.set_default_dtype(dtype)
    shapes = [(3, 4), (5,), (0,), (1,)]
    both = []
    for where, kind in ((device, dtype), ("cpu", fb.float64)):
        params = [numbers(*s, seed=i).to(dtype).to(where, kind) for i, s in enumerate(shapes)]
        params.append(numbers(4, 3, seed=8).to(dtype).to(where, kind).t())
        params.append(numbers(4, 6, seed=7).to(dtype).to(where, kind)[:, ::2])
        params = [p.detach().requires_grad_() for p in params]
        optimizer = getattr(fb.optim, name)(params, lr=0.05, **options)
        for step in range(3):
            for i, p in enumerate(params):
                p.grad = numbers(*p.shape, seed=10 * step + i).to(dtype).to(where, kind)
            optimizer.step()
        both.append([p.detach().to("cpu", fb.float64) for p in params])
    for found, wanted in zip(*both, strict=True):
        tolerance = TOLERANCE[dtype]
        fb.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)
    assert f"{name.lower().removesuffix('w')}_step" in launched()


@pytest.mark.parametrize(
    "name",
    "SGD AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam Rprop".split(),
)
def test_a_group_of_parameters_takes_one_launch(name, device):
    params = [fb.ones(3, device=device, requires_grad=True) for _ in range(60)]
    optimizer = getattr(fb.optim, name)(params)
    for p in params:
        p.grad = fb.ones_like(p)
    optimizer.step()  # makes the state
    standin.launcher.launched.clear()
    optimizer.step()
    launched = [name for _, name in standin.launcher.launched]
    assert launched == [f"{name.lower().removesuffix('w')}_step"]


def wait(device):
    fb.accelerator.namespace(device).synchronize()


COMPLAINTS = {
    "index": (
        lambda x, i: x[i],
        IndexError,
        "index {} is out of bounds for dimension 0 with size 3",
        (-4, 3),
    ),
    "index_put": (
        lambda x, i: x.clone().index_put_((i,), x[0]),
        IndexError,
        "index {} is out of bounds for dimension 0 with size 3",
        (-4, 3),
    ),
    "take": (lambda x, i: x.take(i), IndexError, "index {} is out of bounds", (-7, 6)),
    "gather": (
        lambda x, i: x.gather(0, i[:, None]),
        RuntimeError,
        r"gather\(\): index {} is out of bounds for dimension with size 3",
        (-1, 3),
    ),
    "scatter": (
        lambda x, i: x.scatter(0, i[:, None], x),
        RuntimeError,
        r"scatter\(\): index {} is out of bounds",
        (-1, 3),
    ),
    "scatter_reduce": (
        lambda x, i: x.scatter_reduce(0, i[:, None], x, "amax"),
        RuntimeError,
        r"scatter_reduce\(\): index {} is out of bounds for dimension with size 3",
        (-1, 3),
    ),
    "index_reduce": (
        lambda x, i: x.index_reduce(0, i, x[:2], "amin"),
        IndexError,
        "index {} is out of bounds for dimension 0 with size 3",
        (-1, 3),
    ),
    "index_select": (
        lambda x, i: x.index_select(0, i),
        IndexError,
        "out of (range|bounds)",
        (-1, 3),
    ),
    "index_add": (
        lambda x, i: x.index_add(0, i, x[:2]),
        (IndexError, RuntimeError),
        "index {} is out of bounds",
        (-1, 3),
    ),
    "embedding": (
        lambda x, i: fb.embedding(x, i),
        IndexError,
        "index out of range in self: embedding has 3 rows",
        (-1, 3),
    ),
    "embedding_bag": (
        lambda x, i: fb.nn.functional.embedding_bag(i, x, fb.tensor([0], device=x.device)),
        RuntimeError,
        r"embedding_bag: .* valid range \[0, 3\)",
        (-1, 3),
    ),
    "nll_loss": (
        lambda x, i: fb.nn.functional.nll_loss(x[:2], i),
        IndexError,
        "Target {} is out of bounds.",
        (-1, 2),
    ),
    "cross_entropy": (
        lambda x, i: fb.nn.functional.cross_entropy(x[:2], i),
        IndexError,
        "Target {} is out of bounds.",
        (-1, 2),
    ),
}


@pytest.mark.parametrize("name", COMPLAINTS)
def test_an_index_out_of_range_is_raised_when_the_device_is_waited_for(name, device):
    function, error, text, numbers_ = COMPLAINTS[name]
    x = numbers(3, 2).to(device)
    for wrong in numbers_:
        index = fb.tensor([0, wrong], device=device)
        result = function(x, index)  # asks and goes on
        assert result.device.type == device
        with pytest.raises(error, match=text.replace("{}", str(wrong))):
            result.tolist()
        assert (x + 1).tolist() == (x.cpu() + 1).tolist()  # said once, and the device works
        function(x, index)
        with pytest.raises(error, match=text.replace("{}", str(wrong))):
            wait(device)
        wait(device)


def test_what_is_in_range_is_used_as_it_is(device):
    x, cpu = numbers(3, 2).to(device), numbers(3, 2)
    for values in ([0, -1, 2, -3], [], [[1], [2]]):
        index = fb.tensor(values, dtype=fb.int64)
        assert fb.equal(x[index.to(device)].cpu(), cpu[index])
    backwards = fb.arange(3).flip(0)
    for index in (backwards[::2], backwards.expand(2, 3), backwards.to(fb.int32)):
        assert fb.equal(x[index.to(device)].cpu(), cpu[index])
    target = fb.tensor([1, -100, 0])
    loss = fb.nn.functional.cross_entropy
    fb.testing.assert_close(loss(x, target.to(device)).cpu(), loss(cpu, target))
    with pytest.raises(IndexError, match="out of bounds"):  # nothing is in range: known at once
        x[:0][fb.tensor([0], device=device)]
    wait(device)


@pytest.mark.parametrize("dtype", [fb.uint8, fb.int8, fb.int16, fb.int32, fb.int64], ids=str)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_a_zero_divisor_is_raised_when_the_device_is_waited_for(name, dtype, device):
    a, b = (fb.tensor(v, dtype=dtype) for v in ([7, 9, 4, 100], [2, 5, 3, 7]))
    function = getattr(fb, name)
    assert fb.equal(function(a.to(device), b.to(device)).cpu(), function(a, b))
    assert fb.equal(function(a.to(device), 3).cpu(), function(a, 3))
    b[2] = 0
    for divisor in (b.to(device), b.to(device)[::2], b.to(device)[2]):
        shape = (a[::2] if divisor.shape == (2,) else a).to(device)
        result = function(shape, divisor)
        with pytest.raises(RuntimeError, match="ZeroDivisionError: integer division or modulo"):
            result.tolist()
    if name != "fmod":
        target = a.to(device)
        getattr(target, f"{name}_")(b.to(device))
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            wait(device)
    assert (a.to(device) / b.to(device)).tolist()[2] == float("inf")


def floats(where, *values, dtype=fb.float32):
    return fb.tensor(values, dtype=dtype, device=where)


def ints(where, *values):
    return fb.tensor(values, dtype=fb.int64, device=where)


def bags(where, *offsets):
    table = floats(where, 1.0, 2.0).reshape(2, 1)
    return fb.nn.functional.embedding_bag(ints(where, 0, 1, 0), table, ints(where, *offsets))


def ctc(where, targets, lengths):
    y = fb.zeros(5, len(lengths), 3, device=where).log_softmax(2)
    steps = (5,) * len(lengths)
    return fb.nn.functional.ctc_loss(y, targets, steps, lengths, reduction="none")


REFUSED = {
    "probability below 0": lambda d: fb.bernoulli(floats(d, 0.5, -0.5)),
    "probability above 1": lambda d: fb.bernoulli(floats(d, 0.5, 1.5, dtype=fb.bfloat16)),
    "probability of none": lambda d: fb.bernoulli(floats(d, 0.5, float("nan"), dtype=fb.float16)),
    "probability in place": lambda d: fb.zeros(2, 3, device=d).bernoulli_(floats(d, 1, 0, 2)),
    "probability of a view": lambda d: fb.bernoulli(floats(d, 0.5, 0.5, 2, 0.5)[::2]),
    "rate": lambda d: fb.poisson(floats(d, 3.0, -1e-300, dtype=fb.float64)),
    "rate of none": lambda d: fb.poisson(floats(d, 3.0, float("nan"))),
    "weight below 0": lambda d: fb.multinomial(floats(d, 1.0, -1.0), 1),
    "infinite weight": lambda d: fb.multinomial(floats(d, 1, fb.inf, dtype=fb.float16), 2, True),
    "weight of none": lambda d: fb.multinomial(floats(d, 1.0, float("nan")), 2),
    "row without weight": lambda d: fb.multinomial(fb.eye(2, device=d)[:, :1], 2, True),
    "weights of nothing": lambda d: fb.multinomial(fb.zeros(2, 0, device=d), 2, True),
    "deviation": lambda d: fb.normal(floats(d, 0.0, 0.0), floats(d, 1.0, -1.0)),
    "deviation of none": lambda d: fb.normal(0.0, floats(d, float("nan"))),
    "whole deviation": lambda d: fb.normal(floats(d, 0.0, 0.0), ints(d, 1, -1)),
    "first bag": lambda d: bags(d, 1, 2),
    "last bag": lambda d: bags(d, 0, 4),
    "label": lambda d: ctc(d, ints(d, 1, 3).reshape(2, 1), (1, 1)),
    "labels one after the other": lambda d: ctc(d, ints(d, 1, -1, 2), (1, 2)),
    "mask": lambda d: floats(d, 1, 2, 3).masked_scatter(floats(d, 1, 1, 0) > 0, floats(d, 7)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_probability_or_the_like_is_raised_when_the_device_is_waited_for(name, device):
    with pytest.raises(RuntimeError) as said:
        REFUSED[name]("cpu")
    for waits in (lambda result: wait(device), lambda result: result.tolist()):
        result = REFUSED[name](device)  # asks and goes on
        with pytest.raises(RuntimeError) as found:
            waits(result)
        assert str(found.value) == str(said.value)
        wait(device)  # said once


@pytest.mark.parametrize("dtype", DTYPES)
def test_probabilities_and_the_like_may_be_at_the_ends_of_their_interval(dtype, device):
    def of(*values):
        return floats(device, *values, dtype=dtype)

    assert fb.bernoulli(of(0, 1)).tolist() == [0, 1]
    assert fb.bernoulli(of(1)[0]).item() == 1
    assert fb.bernoulli(of(0, 1).expand(2, 2).t()).tolist() == [[0, 0], [1, 1]]
    assert fb.poisson(of(0, -0.0, fb.inf)).tolist() == [0, 0, fb.inf]
    assert fb.normal(of(2, 3), of(0, -0.0)).tolist() == [2, 3]
    assert fb.normal(of(2, 3), fb.zeros(2, dtype=fb.bool, device=device)).tolist() == [2, 3]
    least = fb.finfo(dtype).smallest_normal
    for rows in (of(0, least, 0), of(0, fb.finfo(dtype).max, 0), of(0, 1, 0, 0)[:3]):
        for how in ((1,), (3, True)):
            assert fb.multinomial(rows, *how).tolist() == [1] * how[0]
    for nothing in (fb.bernoulli(of()), fb.poisson(of()), fb.normal(of(), of())):
        assert nothing.tolist() == []
    assert fb.multinomial(of(1)[:0, None], 2, True).shape == (0, 2)
    wait(device)


def test_of_several_complaints_the_first_is_raised(device):
    x = fb.ones(3, device=device)
    fb.bernoulli(x * 2)
    x[ints(device, 3)]
    with pytest.raises(RuntimeError, match="p_in >= 0"):
        wait(device)
    wait(device)


def test_a_row_that_is_none_is_refused_by_the_kernel_too(device):
    """As the conformance kit asks: what no core has checked is not read elsewhere."""
    be = bind(device)
    x = fb.arange(6.0, device=device).reshape(3, 2)
    for wrong in (3, -1, 1 << 40):
        rows = ints(device, 2, wrong)
        taken = be.index(x._a, (rows._a,))
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for dimension 0"):
            wait(device)
        assert be.backend.tolist(taken) == [[4, 5], [0, 0]]
        be.embedding(x[:0]._a, rows._a, -1, False)
        with pytest.raises(IndexError, match="out of bounds for dimension 0 with size 0"):
            wait(device)


@pytest.mark.parametrize("dtype", [fb.float32, fb.bool, fb.int8, fb.complex128])
def test_a_place_that_is_none_is_refused_by_the_kernel_too(dtype, device):
    """What CuPy indexes itself: it would take such places from the other end."""
    be = bind(device)
    x = fb.arange(6, device=device).reshape(3, 2).to(dtype)
    good, wrong, last = ints(device, 2, 1), ints(device, 1, 3), ints(device, 1, -1)
    assert be.backend.tolist(be.index(x._a, (good._a, last._a.clip(0)))) == [
        x[2, 1].item(),
        x[1, 0].item(),
    ]
    for indices, text in (
        ((wrong._a, good._a.clip(0, 1)), "index 3 is out of bounds for dimension 0 with size 3"),
        ((good._a, last._a), "index -1 is out of bounds for dimension 1 with size 2"),
        ((None, last._a), "index -1 is out of bounds for dimension 1 with size 2"),
        ((wrong._a,), "index 3 is out of bounds for dimension 0 with size 3"),
    ):
        be.index(x._a, indices)
        with pytest.raises(IndexError, match=text):
            wait(device)
    with pytest.raises(IndexError, match="index is out of bounds for dimension 1 with size 0"):
        be.index(x[:, :0]._a, (good._a, good._a))


def test_with_launches_that_wait_the_exception_comes_at_once(device, monkeypatch):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    x = fb.ones(3, device=device)
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        x[fb.tensor([5], device=device)]
    assert x.tolist() == [1.0] * 3


def test_complaints_are_told_apart_up_to_a_number(monkeypatch):
    from flambeau_cupy.device import faults
    from flambeau_cupy.layer import NumpyLayer

    monkeypatch.setattr(faults, "MOST", 2)
    made, index = faults.Faults(NumpyLayer(standin.launcher)), fb.tensor([9]).numpy()
    for i, text in enumerate(("first {index}", "second {index}")):
        assert made.index(index, 3 + i, False, None, (ValueError, text)).tolist() == [0]
        error, said = (ValueError, "first 9") if i == 0 else (IndexError, "index 9 is out of range")
        with pytest.raises(error, match=said):
            made.look()
    assert made.index(index, 3, False, 9, (ValueError, "first")).tolist() == [9]
    made.look()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_kernels_draw_the_documented_stream(n, dtype, device, launched):
    """That of the formulas, which run where there is nothing to launch."""
    from flambeau_cupy.kernels.random import KERNELS
    from flambeau_cupy.layer import NumpyLayer

    formulas = NumpyLayer().bound(KERNELS)
    generator = fb.Generator(device=device).manual_seed(5)
    be = bind(device)
    p = numbers(n).abs().clamp(0.1, 1).sub(0.1).to(dtype).to(device)._a  # with zeros
    p[-1:] = 1
    table = p[None, :].repeat(3, 0)
    cases = {
        "uniform": ((n,), -1.0, 2.0, dtype, generator),
        "normal": ((n,), 0.5, 2.0, dtype, generator),
        "bernoulli": (p, generator),
        "bernoulli_scalar": ((n,), 0.3, dtype, generator),
        "randint": (0, 1000, (n,), fb.int64, generator),
        "multinomial": (p, 5, True, generator),
        "multinomial of rows": (table, 7, True, generator),
        "multinomial of one sample": (table, 1, True, generator),
        "multinomial without replacement": (table[:, ::-1], min(n, 4), False, generator),
    }
    for case, args in cases.items():
        name = case.split()[0]
        generator.set_offset(8)
        found = be.backend.on_host(getattr(be, name)(*args))
        after = generator.get_offset()
        generator.set_offset(8)
        hosts = [be.backend.on_host(a) if type(a) is be.backend.array else a for a in args]
        wanted = formulas[name](*hosts)
        assert generator.get_offset() == after
        tolerance = TOLERANCE[dtype] / 10 if name in ("uniform", "normal") else 0
        error = abs(found.astype("float64") - wanted.astype("float64")).max()
        assert error <= tolerance * 4, case
    drawn = {"philox_uniform", "philox_normal", "philox_bernoulli", "philox_words"}
    more = {"philox_bernoulli_each", "philox_scores", "weight_sums", "philox_search"}
    assert drawn | more <= launched()


def uniforms(seed, number):
    """The uniforms of one element, in plain Python, as the docstrings say they are made."""
    for further in itertools.count():
        counter = number & 0xFFFFFFFF, number >> 32, further, 0
        words = philox.cipher(counter, (seed & 0xFFFFFFFF, seed >> 32))
        yield from (((words[i] << 32 | words[i + 1]) >> 11) * 2.0**-53 for i in (0, 2))


def events(rate, seed, number):
    """Poisson's number for one element."""
    unit = uniforms(seed, number)
    if rate < 10:
        count, product = 0, 1.0
        while rate:
            product *= next(unit)
            if product <= math.exp(-rate):
                return count
            count += 1
        return 0
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    while True:
        u, v = next(unit) - 0.5, next(unit)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        level = math.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (us * us) + b))
        if level <= k * math.log(rate) - rate - math.lgamma(k + 1):
            return k


def gamma(alpha, seed, number):
    """A gamma number of scale 1 for one element."""
    unit, scale = uniforms(seed, number), 1.0
    if alpha < 1:
        scale, alpha = (1 - next(unit)) ** (1 / alpha), alpha + 1
    d = alpha - 1 / 3
    while True:
        radius = math.sqrt(-2 * math.log1p(-next(unit)))
        x = radius * math.cos(2 * math.pi * next(unit))
        v = (1 + x / math.sqrt(9 * d)) ** 3
        if v <= 0:
            continue
        u = 1 - next(unit)
        if u < 1 - 0.0331 * x**4 or math.log(u) < x * x / 2 + d * (1 - v + math.log(v)):
            return scale * d * v


def successes(count, prob, seed, number):
    """The binomial number of one element."""
    unit, p = uniforms(seed, number), min(prob, 1 - prob)
    if count * p < 10:
        found, passed = -1, 0
        while passed <= count:
            passed += math.ceil(math.log(next(unit)) / math.log1p(-p)) if p else math.inf
            found += 1
        return found if prob <= 0.5 else count - found
    deviation, mode = math.sqrt(count * p * (1 - p)), math.floor((count + 1) * p)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p

    def log_chance(k):
        chances = k * math.log(p) + (count - k) * math.log1p(-p)
        return chances - math.lgamma(k + 1) - math.lgamma(count - k + 1)

    while True:
        u, v = next(unit) - 0.5, next(unit)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + count * p + 0.5)
        if not 0 <= k <= count:
            continue
        level = math.log(v * (2.83 + 5.1 / b) * deviation / (a / (us * us) + b))
        squeezed = us >= 0.07 and v <= 0.92 - 4.2 / b
        if squeezed or level <= log_chance(k) - log_chance(mode):
            return k if prob <= 0.5 else count - k


@pytest.mark.parametrize("dtype", DTYPES)
def test_events_are_drawn_from_the_documented_stream(dtype, device, launched):
    seed, offset = 5 << 33 | 7, (1 << 34) - 8
    generator = fb.Generator(device=device).manual_seed(seed).set_offset(offset)
    rates = fb.tensor([0, 1e-3, 0.5, 3, 9.5, 10, 12.5, 47, 1000, 60000], dtype=dtype).repeat(9)
    found = fb.poisson(rates.to(device), generator=generator)
    assert generator.get_offset() == offset + 4 * 90
    wanted = [events(rate, seed, offset // 4 + i) for i, rate in enumerate(rates.tolist())]
    assert found.tolist() == fb.tensor(wanted, dtype=dtype).tolist()
    assert "philox_poisson" in launched()


def beginning(device):
    """A generator, its seed, and a draw's first block."""
    seed, offset = 5 << 33 | 7, (1 << 34) - 8
    return fb.Generator(device=device).manual_seed(seed).set_offset(offset), seed, offset // 4


@pytest.mark.parametrize("dtype", [fb.float32, fb.float64])
def test_gamma_numbers_are_drawn_from_the_documented_stream(dtype, device, launched):
    generator, seed, first = beginning(device)
    shapes = fb.tensor([1e-3, 0.2, 0.9, 1, 1.5, 12, 4e5], dtype=dtype).repeat(9)
    found = fb._standard_gamma(shapes.to(device), generator=generator).cpu()
    assert generator.get_offset() == 4 * (first + 63)
    wanted = [gamma(a, seed, first + i) for i, a in enumerate(shapes.tolist())]
    least = fb.finfo(dtype).tiny
    wanted = fb.tensor(wanted, dtype=fb.float64).clamp_min(least).to(dtype)
    fb.testing.assert_close(found, wanted, rtol=1e-12 if dtype is fb.float64 else 3e-7, atol=0)
    ends = fb.tensor([0.0, math.inf, math.nan, -1.0], dtype=dtype)
    found = fb._standard_gamma(ends.to(device), generator=generator)
    assert found[:2].tolist() == [least, math.inf] and found[2:].isnan().all()
    assert "philox_gamma" in launched()


@pytest.mark.parametrize("dtype", [fb.float32, fb.float64])
def test_dirichlet_rows_are_gamma_numbers_over_their_sum(dtype, device, launched):
    generator, seed, first = beginning(device)
    alpha = fb.tensor([[0.3, 1, 20], [0.01, 0.02, 5]], dtype=dtype)
    found = fb._sample_dirichlet(alpha.to(device), generator=generator).cpu()
    numbers = [gamma(a, seed, first + i) for i, a in enumerate(alpha.reshape(-1).tolist())]
    rows = fb.tensor(numbers, dtype=fb.float64).reshape(2, 3)
    wanted = (rows / rows.sum(-1, keepdim=True)).clamp_min(fb.finfo(dtype).tiny).to(dtype)
    fb.testing.assert_close(found, wanted, rtol=1e-12 if dtype is fb.float64 else 3e-7, atol=0)
    many = fb._sample_dirichlet(fb.full((500, 2), 1e-3, dtype=dtype, device=device))
    assert (many > 0).all() and (many < 1).all()
    assert fb._sample_dirichlet(fb.ones(0, 3, dtype=dtype, device=device)).shape == (0, 3)
    assert "philox_gamma_wide" in launched()


@pytest.mark.parametrize("dtype", [fb.float32, fb.float64])
def test_successes_are_drawn_from_the_documented_stream(dtype, device, launched):
    generator, seed, first = beginning(device)
    counts = fb.tensor([0, 1, 5, 18, 40, 1000, 3e5], dtype=dtype).repeat_interleave(6).repeat(3)
    probs = fb.tensor([0, 1e-4, 0.25, 0.5, 0.875, 1], dtype=dtype).repeat(21)
    found = fb.binomial(counts.to(device), probs.to(device), generator=generator)
    assert generator.get_offset() == 4 * (first + 126)
    given = enumerate(zip(counts.tolist(), probs.tolist(), strict=True))
    assert found.tolist() == [successes(n, p, seed, first + i) for i, (n, p) in given]
    ends = [(math.inf, 0.5), (math.nan, 0.5), (3.0, math.nan), (math.nan, 0.0), (4.0, 2.0)]
    n, p = fb.tensor(ends, dtype=dtype, device=device).unbind(1)
    found = fb.binomial(n, p).tolist()
    assert all(map(math.isnan, found[:3])) and found[3:] == [0.0, 4.0]
    assert "philox_binomial" in launched()


def test_gamma_dirichlet_and_binomial_numbers_have_their_moments(device):
    n = 20000
    generator = fb.Generator(device=device).manual_seed(1)

    def drawn(draw, *numbers):
        given = [fb.full((n,), x, dtype=fb.float64, device=device) for x in numbers]
        return draw(*given, generator=generator).cpu()

    for a in (0.3, 1.0, 7.5):
        x = drawn(fb._standard_gamma, a)
        assert abs(x.mean().item() - a) < 5 * math.sqrt(a / n)
        assert abs(x.log().mean().item() - fb.digamma(fb.tensor(a)).item()) < 0.15
    for count, p in ((5.0, 0.3), (40.0, 0.5), (400.0, 0.9)):
        x, variance = drawn(fb.binomial, count, p), count * p * (1 - p)
        assert abs(x.mean().item() - count * p) < 5 * math.sqrt(variance / n)
        assert abs(x.var().item() / variance - 1) < 0.06


@pytest.mark.parametrize("rate", [0.3, 6.0, 10.0, 33.0])
def test_events_have_their_distribution(rate, device):
    n = 20000
    generator = fb.Generator(device=device).manual_seed(1)
    drawn = fb.poisson(fb.full((n,), rate, dtype=fb.float64, device=device), generator=generator)
    counts = drawn.to("cpu", fb.int64).bincount(minlength=200).double()
    k = fb.arange(float(len(counts)), dtype=fb.float64)
    expected = n * fb.exp(k * math.log(rate) - rate - fb.lgamma(k + 1))
    often = expected >= 10
    errors = (counts - expected)[often].square() / expected[often]
    degrees = int(often.sum())
    assert errors.sum().item() < degrees + 5 * math.sqrt(2 * degrees)
    assert counts[~often].sum().item() <= 60


@pytest.mark.parametrize("n", [5, 3000])
def test_samples_have_their_weights(n, device):
    generator = fb.Generator(device=device).manual_seed(2)
    weights = fb.arange(n, dtype=fb.float32, device=device) % 4
    drawn = fb.multinomial(weights.repeat(2, 1), 30000, True, generator=generator).cpu()
    for row in drawn % 4:
        shares = row.bincount(minlength=4) / 30000
        wanted = fb.bincount(fb.arange(n) % 4, weights.cpu()) / weights.cpu().sum()
        fb.testing.assert_close(shares, wanted.float(), atol=0.015, rtol=0)
        assert shares[0] == 0
    picked = fb.multinomial(weights, n // 2, generator=generator).cpu()
    assert len(set(picked.tolist())) == n // 2 and (picked % 4 > 0).all()


def test_every_kernel_is_launched_by_some_op():
    """The cases for AddressSanitizer check that they launch all; here without it."""
    import asan_cases

    asan_cases.run()
    assert set(FAMILIES) == {
        path.stem
        for path in Path(asan_cases.kernels.__code__.co_filename).parents[1].glob("source/*.cu")
    }


def test_a_slice_of_the_conformance_kit_passes_on_the_stand_in():
    """As ``--device cuda``, which the stand-in serves in place of CuPy."""
    tests = "test_kernels_agree or test_gradients_agree or test_steps"
    plans = "test_plans and (a_step or a_plan or gelu or norm or where or index)"
    layouts = "contiguous and not transposed"
    environment = {**os.environ, "FLAMBEAU_STANDIN": "cuda"}
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parent), *filter(None, sys.path)]
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "standin", "-p", "no:cacheprovider"),
            *("-p", "no:xdist", "--pyargs", "flambeau.testing.backend", "--device", "cuda"),
            *("-k", f"({tests}) and {layouts} and (float32 or bfloat16) or {plans}"),
        ],
        env=environment,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout


MISFITS = {
    "layer_norm of other rows": ("layer_norm", (2, 4), None, None, (3,), 1e-5),
    "layer_norm by a longer weight": ("layer_norm", (2, 3), (4,), None, (3,), 1e-5),
    "layer_norm plus a shorter bias": ("layer_norm", (2, 3), None, (2,), (3,), 1e-5),
    "batch_norm by a shorter weight": ("batch_norm", (2, 3), (2,), None, (3,), (3,)),
    "batch_norm with one mean": ("batch_norm", (2, 3), None, None, (1,), (3,)),
    "batch_norm_train plus a shorter bias": ("batch_norm_train", (2, 3), None, (2,), 1e-5),
    "nll_loss of more targets": ("nll_loss", (2, 3), (5, "i"), None, "mean", -100),
    "nll_loss of fewer targets": ("nll_loss", (2, 3), (1, "i"), None, "none", -100),
    "nll_loss by a shorter weight": ("nll_loss", (2, 3), (2, "i"), (2,), "sum", -100),
    "cross_entropy of more targets": ("cross_entropy", (2, 3), (5, "i"), -100),
    "ctc_loss of fewer targets": ("ctc_loss", (4, 2, 3), (1, 2, "i"), (4, 4), (1, 1), 0, False),
    "ctc_loss of more steps": ("ctc_loss", (4, 2, 3), (2, 2, "i"), (5, 4), (1, 1), 0, False),
    "ctc_loss of more labels": ("ctc_loss", (4, 2, 3), (2, 2, "i"), (4, 4), (3, 1), 0, False),
    "ctc_loss of another blank": ("ctc_loss", (4, 2, 3), (2, 2, "i"), (4, 4), (1, 1), 3, False),
}
TENSORS = {"layer_norm": 3, "batch_norm": 5, "batch_norm_train": 3, "nll_loss": 3}


@pytest.mark.parametrize("case", MISFITS)
def test_operands_that_do_not_fit_never_reach_a_kernel(case, device, launched):
    name, *given = MISFITS[case]
    count = TENSORS.get(name, 2)

    def made(shape):
        if shape is None:
            return None
        if shape[-1] == "i":
            return fb.zeros(shape[:-1], dtype=fb.int64, device=device)
        return fb.ones(shape, device=device)

    args = [*map(made, given[:count]), *given[count:]]
    with pytest.raises((RuntimeError, IndexError, ValueError)):
        getattr(fb.ops, name)(*args)
    assert not launched() & {"layer_norm_forward", "batch_norm_transform", "ctc_forward"}
    assert not launched() & {"nll_rows", "nll_total"}


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_a_target_that_names_no_class_is_never_read_with(reduction, device):
    y = numbers(3, 4).to(device, fb.float32).log_softmax(1)
    for wrong in (-1, 4, 2**40, -(2**40)):
        target = fb.tensor([0, wrong, -100], device=device)
        loss = fb.ops.nll_loss(y, target, None, reduction, -100)[0].cpu()
        assert loss.isnan().tolist() == ([False, True, False] if reduction == "none" else True)


@pytest.mark.parametrize("shape", [(2,), (4,), (3, 1), ()])
def test_a_step_refuses_state_of_another_shape(shape):
    made = [np.ones(3, np.float32), np.ones(3, np.float32), np.ones(shape, np.float32)]
    with pytest.raises(RuntimeError, match="arrays of one shape"):
        optimizer.row_of(made, {})
