"""Neural-network ops by their decompositions, on the pure-Python device."""

from __future__ import annotations

import math

import pytest

import flambeau as fb
from flambeau import ops
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.testing.sample_composites import ACTIVATION
from flambeau.testing.sample_layers import LAYERS
from flambeau.testing.samples import Arr, realise

SAMPLES = {**ACTIVATION, **LAYERS}
SMOOTH = [
    pytest.param(name, sample, id=f"{name}-{sample.name}")
    for name, samples in SAMPLES.items()
    for sample in samples
    if sample.grad
]


def make(values, shape, dtype):
    return fb.tensor(list(values), dtype=dtype, device="ref").reshape(shape)


def ref(data, **options):
    return fb.tensor(data, device="ref", **options)


def zeros(*shape, **options):
    return fb.zeros(shape, device="ref", **options)


@pytest.fixture(autouse=True)
def _ref_is_the_default():
    before = fb.get_default_device()
    fb.set_default_device("ref")
    yield
    fb.set_default_device(before)


@pytest.mark.parametrize(("name", "sample"), SMOOTH)
def test_first_and_second_derivatives_match_finite_differences(name, sample):
    arguments = list(realise(sample.args, make, fb.float64))
    chosen = [
        i
        for i, described in enumerate(sample.args)
        if isinstance(described, Arr) and described.dtype is None and not described.fixed
    ]

    def call(*inputs):
        for i, value in zip(chosen, inputs, strict=True):
            arguments[i] = value
        return getattr(ops, name)(*arguments)

    inputs = [arguments[i].requires_grad_() for i in chosen]
    assert gradcheck(call, inputs, fast_mode=True)
    assert gradgradcheck(call, inputs, fast_mode=True)


@pytest.mark.parametrize("normalized", [(3,), (2, 3)])
def test_layer_norm_has_derivatives_of_both_orders_through_all_its_results(normalized):
    values = [math.sin(1.7 * i) for i in range(12)]
    x = ref(values, dtype=fb.float64).reshape(2, 2, 3).requires_grad_()
    count = math.prod(normalized)
    w, b = (
        ref(values[k : k + count], dtype=fb.float64).reshape(normalized).requires_grad_()
        for k in (1, 3)
    )

    def call(*inputs):
        return ops.layer_norm(*inputs, normalized, 1e-3)

    assert gradcheck(call, (x, w, b))
    assert gradgradcheck(call, (x, w, b), fast_mode=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: fb.relu(x),
        lambda x: fb.leaky_relu(x, 0.5),
        lambda x: fb.threshold(x, 0.5, 2.0),
    ],
    ids=["relu", "leaky_relu", "threshold"],
)
def test_piecewise_linear_functions_have_second_derivatives_that_are_zero(call):
    x = ref([-1.0, 2.0], requires_grad=True)
    (slope,) = fb.autograd.grad(call(x).sum(), x, create_graph=True)
    (curvature,) = fb.autograd.grad(slope.sum(), x)
    assert curvature.tolist() == [0.0, 0.0]


def test_elu_and_softplus_have_finite_second_derivatives_far_from_zero():
    for call in (fb.elu, fb.softplus):
        x = ref([-5000.0, 5000.0], requires_grad=True)
        (slope,) = fb.autograd.grad(call(x).sum(), x, create_graph=True)
        (curvature,) = fb.autograd.grad(slope.sum(), x)
        assert slope.tolist() == [0.0, 1.0]
        assert curvature.tolist() == [0.0, 0.0]


def test_weights_of_classes_refuse_a_gradient_in_both_forms():
    scores, target = zeros(2, 3, requires_grad=True), ref([0, 2])
    weight = fb.ones(3, device="ref", requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for 'weight'"):
        fb.nll_loss(scores, target, weight)
    with pytest.raises(NotImplementedError, match="derivative for 'weight'"):
        ops.nll_loss(scores, target, weight, "mean", -100)[0].backward()


@pytest.mark.parametrize("name", [*SAMPLES, "layer_norm", "layer_norm_backward"])
def test_every_op_of_these_families_may_be_overridden(name):
    assert ops.OPS[name].tier == "composite"
    assert ops.OPS[name].overridable


def test_relu_and_softmax_keep_nan_and_softmax_survives_large_scores():
    assert math.isnan(fb.relu(ref([math.nan]))[0].item())
    assert fb.softmax(ref([1e30, 1e30]), 0).tolist() == [0.5, 0.5]
    assert fb.log_softmax(ref([-math.inf, 0.0]), 0).tolist() == [-math.inf, 0.0]


@pytest.mark.parametrize("function", [fb.softmax, fb.log_softmax])
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0,)])
@pytest.mark.parametrize("dim", [0, -1])
def test_softmax_of_nothing_is_nothing(function, shape, dim):
    assert tuple(function(zeros(*shape), dim).shape) == shape


@pytest.mark.parametrize("dtype", [fb.float16, fb.bfloat16, fb.float32, fb.float64])
@pytest.mark.parametrize(("name", "sample"), [(k, v[0]) for k, v in SAMPLES.items()])
def test_floating_results_keep_the_dtype_of_the_first_operand(name, sample, dtype):
    result = getattr(ops, name)(*realise(sample.args, make, dtype))
    results = result if isinstance(result, tuple) else (result,)
    assert {r.dtype for r in results if r.dtype.is_floating_point} == {dtype}


def test_half_precision_is_rounded_once():
    # In float16 exp(11.25) is infinite, and so would the denominator be.
    assert fb.sigmoid(ref([-11.25], dtype=fb.float16)).item() == pytest.approx(1.3e-5, rel=0.01)


def test_an_ignored_row_may_be_infinite():
    loss = fb.nll_loss(ref([[-math.inf, 0.0], [-1.0, -2.0]]), ref([-100, 0]))
    assert loss.item() == 1.0


def test_the_mean_over_ignored_rows_only_is_nan_and_its_gradient_zero():
    x = zeros(2, 3, requires_grad=True)
    for loss in (fb.nll_loss(x, ref([-100, -100])), fb.cross_entropy(x, ref([-100, -100]))):
        assert math.isnan(loss.item())
        (grad,) = fb.autograd.grad(loss, x)
        assert grad.tolist() == [[0.0] * 3] * 2


def test_the_first_of_equal_maxima_counts_and_padding_never_does():
    x = fb.full((1, 1, 3, 3), -math.inf, device="ref")
    values, indices = fb.max_pool2d_with_indices(x, 3, 2, 1)
    assert values.flatten().tolist() == [-math.inf] * 4
    assert indices.flatten().tolist() == [0, 1, 3, 4]


def test_the_last_of_nans_is_the_maximum():
    values, indices = fb.max_pool2d_with_indices(ref([[[math.nan, 5.0], [math.nan, 7.0]]]), 2)
    assert math.isnan(values.item())
    assert indices.item() == 2


def test_a_window_without_elements_is_refused():
    with pytest.raises(RuntimeError, match="window at -1 has no element of a dimension of size 2"):
        fb.max_pool2d(zeros(1, 2, 2), 2, 1, 1, 3)


def test_averages_do_not_spread_nan_beyond_their_windows():
    x = ref([[[math.nan, 1.0, 2.0]]])
    assert fb.avg_pool2d(x, (1, 1)).isnan().flatten().tolist() == [True, False, False]
    assert fb.avg_pool2d(x, (1, 2), 1).isnan().flatten().tolist() == [True, False]


def test_averages_of_integers_truncate():
    assert fb.avg_pool2d(ref([[[-3, 0]]]), (1, 2)).item() == -1


def test_same_padding_of_an_even_kernel_adds_one_more_zero_behind():
    result = fb.conv2d(fb.ones(1, 1, 4), fb.ones(1, 1, 1, 2), padding="same")
    assert result.flatten().tolist() == [2.0, 2.0, 2.0, 1.0]


def test_conv_transpose2d_is_the_adjoint_of_conv2d():
    x = fb.arange(50.0).reshape(1, 2, 5, 5).requires_grad_()
    w = fb.arange(36.0).reshape(2, 2, 3, 3)
    y = fb.conv2d(x, w, stride=2, padding=1)
    y.backward(fb.ones_like(y))
    assert x.grad.tolist() == fb.conv_transpose2d(fb.ones_like(y), w, stride=2, padding=1).tolist()


def test_batch_norm_updates_running_statistics_with_the_unbiased_variance():
    mean, var = fb.zeros(1), fb.ones(1)
    fb.batch_norm(ref([[1.0], [3.0]]), None, None, mean, var, True, 0.25, 1e-5, False)
    assert mean.item() == 0.5
    assert var.item() == pytest.approx(0.75 + 0.25 * 2.0, abs=1e-4)


def test_batch_norm_of_one_value_per_channel_has_no_variance():
    mean, var = fb.zeros(2), fb.ones(2)
    result = fb.batch_norm(fb.ones(1, 2), None, None, mean, var, True, 0.5, 1e-5, False)
    assert result.tolist() == [[0.0, 0.0]]
    assert var.isnan().all()


def test_normalisation_of_an_empty_batch_is_empty_and_leaves_running_statistics():
    mean, var = fb.zeros(3), fb.ones(3)
    assert fb.batch_norm(zeros(0, 3), None, None, mean, var, True, 0.1, 1e-5, False).shape == (0, 3)
    assert fb.layer_norm(zeros(0, 3), [3]).shape == (0, 3)
    assert mean.tolist() == [0.0] * 3
    assert var.tolist() == [1.0] * 3


def test_dropout_zeroes_or_scales_and_passes_its_mask_to_the_gradient():
    fb.manual_seed(0)
    x = fb.ones(200, requires_grad=True)
    y = fb.dropout(x, 0.25, train=True)
    assert {round(v, 4) for v in y.tolist()} == {0.0, 1.3333}
    assert 20 < y.tolist().count(0.0) < 80
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_dropout_is_the_identity_outside_training_and_zero_for_certain_loss():
    x = fb.ones(2)
    assert fb.dropout(x, 0.5, train=False) is x
    assert fb.dropout(x, 0.0, train=True) is x
    assert fb.dropout(x, 1.0, train=True).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("title", "call"),
    [
        ("ReluBackward0", lambda x: fb.relu(x)),
        ("SigmoidBackward0", lambda x: fb.sigmoid(x)),
        ("SoftmaxBackward0", lambda x: fb.softmax(x, 1)),
        ("LogSoftmaxBackward0", lambda x: fb.log_softmax(x, 1)),
        ("GeluBackward0", lambda x: fb.gelu(x)),
        ("SiluBackward0", lambda x: fb.silu(x)),
        ("SoftplusBackward0", lambda x: fb.softplus(x)),
        ("EluBackward0", lambda x: fb.selu(x)),
        ("LeakyReluBackward0", lambda x: fb.leaky_relu(x)),
        ("ThresholdBackward0", lambda x: fb.threshold(x, 0, 0)),
        ("ConvolutionBackward0", lambda x: fb.conv2d(x[None, None], fb.ones(1, 1, 1, 1))),
        ("MaxPool2DWithIndicesBackward0", lambda x: fb.max_pool2d(x[None, None], 1)),
        ("AvgPool2DBackward0", lambda x: fb.avg_pool2d(x[None, None], 1)),
        ("NativeLayerNormBackward0", lambda x: fb.layer_norm(x, [3])),
        (
            "NativeBatchNormBackward0",
            lambda x: fb.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False),
        ),
        ("NllLossBackward0", lambda x: fb.nll_loss(x, ref([0, 1]))),
        ("NllLossBackward0", lambda x: fb.cross_entropy(x, ref([0, 1]))),
        ("MseLossBackward0", lambda x: fb.mse_loss(x, zeros(2, 3))),
    ],
)
def test_history_is_named_as_in_pytorch(title, call):
    assert call(fb.ones(2, 3, requires_grad=True)).grad_fn.name() == title


@pytest.mark.parametrize(
    ("shape", "call"),
    [
        ((2, 3), lambda x: fb.softmax(x.flatten(1)[:, :3], 1)),
        ((2, 5, 4, 3), lambda x: fb.conv2d(x, fb.empty(5, 3, 3, 3, device="meta"), padding=(1, 0))),
        ((2, 3, 2, 2), lambda x: fb.max_pool2d(x, 2, ceil_mode=True)),
        ((2, 3, 2, 3), lambda x: fb.avg_pool2d(x, (2, 3), (2, 1))),
        ((2, 3, 4, 5), lambda x: fb.layer_norm(x, [4, 5])),
        ((), lambda x: fb.cross_entropy(x, fb.zeros(2, 4, 5, dtype=fb.int64, device="meta"))),
    ],
    ids=["softmax", "conv2d", "max_pool2d", "avg_pool2d", "layer_norm", "cross_entropy"],
)
def test_shapes_are_known_without_data(shape, call):
    size = (2, 3, 4, 5) if shape != (2, 3, 2, 2) else (2, 3, 4, 4)
    assert tuple(call(fb.empty(size, device="meta")).shape) == shape


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (
            RuntimeError,
            "Boolean inputs not supported for relu",
            lambda: fb.relu(zeros(1, dtype=fb.bool)),
        ),
        (NotImplementedError, r"gelu\(\).*torch.int64", lambda: fb.gelu(ref([1]))),
        (NotImplementedError, r"softmax\(\).*torch.int64", lambda: fb.softmax(ref([1]), 0)),
        (IndexError, "Dimension out of range", lambda: fb.softmax(zeros(2, 3), 2)),
        (RuntimeError, "either none or tanh", lambda: fb.gelu(zeros(1), approximate="erf")),
        (RuntimeError, "alpha cannot be 0 for CELU", lambda: fb.celu(zeros(1), 0)),
        (RuntimeError, "between 0 and 1, but got 2", lambda: fb.dropout(zeros(1), 2, train=True)),
        (RuntimeError, "Mismatch of parameter numbers", lambda: fb.prelu(zeros(2, 3), zeros(2))),
        (
            RuntimeError,
            r"Given groups=1, weight of size \[2, 2, 3, 3\], expected input\[1, 3, 4, 4\] to have "
            "2 channels, but got 3 channels instead",
            lambda: fb.conv2d(zeros(1, 3, 4, 4), zeros(2, 2, 3, 3)),
        ),
        (
            RuntimeError,
            r"padded input size per channel: \(2 x 4\). Kernel size: \(3 x 5\)",
            lambda: fb.conv2d(
                zeros(1, 2, 2, 2), zeros(2, 2, 3, 3), padding=(0, 1), dilation=(1, 2)
            ),
        ),
        (
            RuntimeError,
            r"3D \(unbatched\) or 4D",
            lambda: fb.conv2d(zeros(3, 4), zeros(2, 2, 3, 3)),
        ),
        (
            RuntimeError,
            r"Input type \(torch.float32\) and weight type \(torch.float64\)",
            lambda: fb.conv1d(zeros(1, 2, 4), zeros(2, 2, 3, dtype=fb.float64)),
        ),
        (
            RuntimeError,
            "output padding must be smaller",
            lambda: fb.conv_transpose2d(zeros(1, 2, 4, 4), zeros(2, 2, 3, 3), output_padding=1),
        ),
        (
            RuntimeError,
            r"Calculated output size: \(1x0x0\). Output size is too small",
            lambda: fb.max_pool2d(zeros(1, 1, 2, 2), 3),
        ),
        (
            RuntimeError,
            "pad should be at most half of effective kernel size",
            lambda: fb.avg_pool2d(zeros(1, 1, 4, 4), 2, 1, 2),
        ),
        (
            NotImplementedError,
            "torch.bool",
            lambda: fb.max_pool2d(zeros(1, 2, 2, dtype=fb.bool), 1),
        ),
        (
            RuntimeError,
            "divisor must be not zero",
            lambda: fb.avg_pool2d(zeros(1, 2, 2), 1, divisor_override=0),
        ),
        (
            RuntimeError,
            "running_var must be defined in evaluation mode",
            lambda: fb.batch_norm(zeros(2, 3), None, None, zeros(3), None, False, 0.1, 1e-5, False),
        ),
        (
            RuntimeError,
            "weight should contain 3 elements not 2",
            lambda: fb.batch_norm(zeros(2, 3), zeros(2), None, None, None, True, 0.1, 1e-5, False),
        ),
        (
            RuntimeError,
            r"normalized_shape=\[4\], expected input with shape \[\*, 4\], but got input of "
            r"size\[2, 3\]",
            lambda: fb.layer_norm(zeros(2, 3), [4]),
        ),
        (
            IndexError,
            "Target 5 is out of bounds",
            lambda: fb.cross_entropy(zeros(2, 3), ref([0, 5])),
        ),
        (IndexError, "Target -1 is out of bounds", lambda: fb.nll_loss(zeros(2, 3), ref([0, -1]))),
        (ValueError, r"batch_size \(2\)", lambda: fb.nll_loss(zeros(2, 3), ref([0]))),
        (
            RuntimeError,
            "Long or Byte, but got torch.float32",
            lambda: fb.nll_loss(zeros(2, 3), zeros(2)),
        ),
        (RuntimeError, r"target size \[2, 4\]", lambda: fb.nll_loss(zeros(2, 3, 4), ref([0, 1]))),
        (
            RuntimeError,
            "for all 3 classes or no classes",
            lambda: fb.nll_loss(zeros(2, 3), ref([0, 1]), zeros(2)),
        ),
        (ValueError, "avg is not a valid value", lambda: fb.mse_loss(zeros(1), zeros(1), "avg")),
        (
            RuntimeError,
            "label_smoothing",
            lambda: fb.cross_entropy(zeros(1, 2), ref([0]), label_smoothing=2),
        ),
    ],
)
def test_wrong_arguments_are_refused_with_what_is_wrong(error, message, call):
    with pytest.raises(error, match=message):
        call()
