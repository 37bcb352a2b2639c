"""Properties of the functions: definitions, randomness, in-place forms, double backward."""

from __future__ import annotations

import math

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn import functional as F

INPLACE = [
    *["relu", "relu6", "leaky_relu", "elu", "selu", "celu", "silu", "mish"],
    *["hardtanh", "hardsigmoid", "hardswish", "rrelu"],
]
UNDERSCORE = ["relu_", "leaky_relu_", "elu_", "selu_", "celu_", "hardtanh_", "rrelu_"]


@pytest.mark.parametrize("name", INPLACE)
def test_in_place_forms_write_into_their_input_with_the_same_gradient(name):
    function = getattr(F, name)
    source = fb.tensor([-2.0, -0.5, 0.5, 2.0, 7.0], requires_grad=True)
    expected = function(source)
    (gradient,) = fb.autograd.grad(expected.sum(), source)
    target = source * 1
    assert function(target, inplace=True) is target
    assert target.tolist() == pytest.approx(expected.tolist())
    (found,) = fb.autograd.grad(target.sum(), source)
    assert found.tolist() == pytest.approx(gradient.tolist())


@pytest.mark.parametrize("name", UNDERSCORE)
def test_names_with_an_underscore_are_in_place(name):
    x = fb.tensor([-2.0, 3.0])
    expected = getattr(F, name.removesuffix("_"))(fb.tensor([-2.0, 3.0]))
    assert getattr(F, name)(x) is x
    assert x.tolist() == expected.tolist()


def test_in_place_on_a_leaf_that_needs_a_gradient_is_refused():
    with pytest.raises(RuntimeError, match="leaf"):
        F.leaky_relu(fb.ones(2, requires_grad=True), inplace=True)


@pytest.mark.parametrize("name", ["logsigmoid", "softplus", "gelu", "silu", "elu", "sigmoid"])
def test_smooth_functions_have_the_gradient_of_their_differences(name):
    function = getattr(F, name)
    x = fb.linspace(-3.0, 3.0, 13, dtype=fb.float64).requires_grad_()
    (gradient,) = fb.autograd.grad(function(x).sum(), x)
    step = 1e-6
    with fb.no_grad():
        difference = (function(x + step) - function(x - step)) / (2 * step)
    # 0, where ELU has two one-sided slopes of the same value, is no exception.
    assert gradient.tolist() == pytest.approx(difference.tolist(), abs=1e-6)


def test_logsigmoid_neither_overflows_nor_cancels():
    x = fb.tensor([-1e4, -100.0, 0.0, 100.0, 1e4])
    assert F.logsigmoid(x).tolist()[:2] == [-1e4, -100.0]
    assert F.logsigmoid(x).tolist()[2] == pytest.approx(-math.log(2))
    assert F.logsigmoid(x).tolist()[3:] == pytest.approx([-math.exp(-100), 0.0])


def test_softmax_in_another_dtype():
    x = fb.tensor([1.0, 2.0], dtype=fb.float16)
    assert F.softmax(x, 0, dtype=fb.float64).dtype is fb.float64
    assert F.log_softmax(x, 0, dtype=fb.float64).exp().sum().item() == pytest.approx(1.0)


def test_gumbel_softmax_is_a_distribution_and_hard_is_one_hot_with_soft_gradient():
    fb.manual_seed(0)
    logits = fb.zeros(4, 3, requires_grad=True)
    assert F.gumbel_softmax(logits).sum(-1).tolist() == pytest.approx([1.0] * 4)
    hard = F.gumbel_softmax(logits, tau=0.5, hard=True)
    assert sorted(set(hard.detach().round().flatten().tolist())) == [0.0, 1.0]
    (hard * fb.arange(3.0)).sum().backward()
    assert logits.grad.abs().sum().item() > 0


def test_dropout_keeps_or_scales_every_element():
    fb.manual_seed(0)
    kept = F.dropout(fb.ones(1000), 0.25)
    values = sorted(set(kept.tolist()))
    assert values == pytest.approx([0.0, 4 / 3])
    assert 650 < (kept > 0).sum().item() < 850


def test_dropout_is_the_identity_outside_training_and_draws_nothing():
    x = fb.ones(3)
    fb.manual_seed(0)
    expected = fb.rand(2).tolist()
    fb.manual_seed(0)
    for function in (F.dropout, F.dropout1d, F.alpha_dropout, F.feature_alpha_dropout):
        given = x.reshape(1, 3)
        assert function(given, 0.5, training=False) is given
    assert F.dropout(x, 0.0) is x
    assert F.dropout(x, 1.0).tolist() == [0.0] * 3
    assert fb.rand(2).tolist() == expected


def test_dropout_masks_gradients_as_it_masks_values():
    fb.manual_seed(0)
    x = fb.ones(50, requires_grad=True)
    y = F.dropout(x, 0.5)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


@pytest.mark.parametrize(
    ("function", "shape", "spatial"),
    [
        (F.dropout1d, (8, 16, 3), 1),
        (F.dropout1d, (16, 3), 1),
        (F.dropout2d, (8, 16, 2, 2), 2),
        (F.dropout3d, (8, 16, 2, 2, 2), 3),
        (F.dropout3d, (16, 2, 2, 2), 3),
    ],
)
def test_channel_dropout_drops_whole_channels(function, shape, spatial):
    fb.manual_seed(1)
    dims = tuple(range(-spatial, 0))
    out = function(fb.ones(shape), 0.5)
    assert out.shape == shape
    assert out.amax(dims).flatten().tolist() == out.amin(dims).flatten().tolist()
    assert set(out.flatten().tolist()) == {0.0, 2.0}


@pytest.mark.filterwarnings("ignore:dropout3d")
def test_an_input_without_a_batch_has_its_channels_first_whatever_its_dimensions():
    fb.manual_seed(1)
    for shape in ((64,), (64, 2), (64, 2, 2), (1, 64, 2, 2, 2, 2)):
        out = F.dropout3d(fb.ones(shape), 0.5)
        rows = out.flatten(1) if len(shape) > 1 else out.unsqueeze(1)
        assert fb.equal(rows.amax(1), rows.amin(1))


@pytest.mark.parametrize("ndim", [2, 3, 5])
def test_channel_dropout_of_unusual_shapes_warns(ndim):
    with pytest.warns(UserWarning, match="dropout2d"):
        F.dropout2d(fb.ones((2,) * ndim), 0.5)


def test_alpha_dropout_keeps_mean_and_variance():
    fb.manual_seed(0)
    x = F.selu(fb.randn(20000))
    y = F.alpha_dropout(x, 0.2, training=True)
    assert y.mean().item() == pytest.approx(x.mean().item(), abs=0.03)
    assert y.var().item() == pytest.approx(x.var().item(), rel=0.05)


def test_conv2d_is_a_sum_of_products():
    x = fb.arange(18.0).reshape(1, 2, 3, 3)
    weight = fb.arange(8.0).reshape(1, 2, 2, 2)
    expected = sum(
        x[0, c, u, v].item() * weight[0, c, u, v].item()
        for c in range(2)
        for u in range(2)
        for v in range(2)
    )
    out = F.conv2d(x, weight, fb.tensor([100.0]))
    assert out.shape == (1, 1, 2, 2) and out[0, 0, 0, 0].item() == expected + 100


def test_convolution_of_an_empty_batch():
    assert F.conv2d(fb.ones(0, 1, 4, 4), fb.ones(2, 1, 3, 3)).shape == (0, 2, 2, 2)


@pytest.mark.parametrize("size", [(5, 6), (6, 5)])
@pytest.mark.parametrize("kernel", [(1, 1), (2, 3), (3, 4)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_same_padding_keeps_the_size(size, kernel, dilation):
    x, weight = fb.ones((1, 1, *size)), fb.ones((1, 1, *kernel))
    assert F.conv2d(x, weight, padding="same", dilation=dilation).shape == x.shape


def test_conv1d_is_conv2d_of_height_one():
    x, weight = fb.arange(8.0).reshape(1, 2, 4), fb.ones(2, 1, 2)
    rows = F.conv2d(x.unsqueeze(2), weight.unsqueeze(2), groups=2, padding=(0, 1))
    assert F.conv1d(x, weight, groups=2, padding=1).tolist() == rows.squeeze(2).tolist()


def test_max_pool_indices_point_at_the_maxima():
    fb.manual_seed(0)
    x = fb.randn(2, 3, 6, 6)
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    assert x.flatten(2).gather(2, indices.flatten(2)).tolist() == values.flatten(2).tolist()


def test_pooling_of_an_unbatched_image():
    x = fb.arange(16.0).reshape(1, 4, 4)
    assert F.max_pool2d(x, 2).tolist() == [[[5.0, 7.0], [13.0, 15.0]]]
    assert F.avg_pool2d(x, 2).tolist() == [[[2.5, 4.5], [10.5, 12.5]]]


SETTINGS = ("kernel_size", "stride", "padding", "dilation")
POOLS = [("max", setting) for setting in SETTINGS] + [("avg", setting) for setting in SETTINGS[:3]]


@pytest.mark.parametrize(("kind", "argument"), POOLS)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_what_is_no_integer_is_refused_after_an_equal_integer(rank, kind, argument):
    pool, x = getattr(F, f"{kind}_pool{rank}d"), fb.zeros(1, 1, *(4,) * rank)
    settings = {"kernel_size": 2, "stride": 2}
    right = (1, (1,), (1,) * rank, [1] * rank)
    wrong = (1.0, True, (1.0,), (*right[2][1:], 1.0), [1.0] * rank)
    shapes = {pool(x, **settings | {argument: value}).shape for value in right}
    assert len(shapes) == 1
    for value in wrong:
        with pytest.raises(TypeError, match=argument):
            pool(x, **settings | {argument: value})


def test_groups_that_are_no_integer_are_refused():
    x, w = fb.zeros(1, 2, 4, 4), fb.zeros(2, 2, 2, 2)
    assert F.conv2d(x, w, groups=1).shape == (1, 2, 3, 3)
    for groups in (1.0, "1", None):
        with pytest.raises(TypeError, match="groups"):
            F.conv2d(x, w, groups=groups)


def test_a_size_that_is_a_tensor_is_read_at_every_call():
    x, size = fb.zeros(1, 4, 4), fb.tensor(2)
    assert F.max_pool2d(x, (size, 2)).shape == (1, 2, 2)
    size.fill_(4)
    assert F.max_pool2d(x, (size, 2)).shape == (1, 1, 2)


@pytest.mark.parametrize(("size", "windows"), [(7, 3), (8, 4), (3, 5), (5, 1), (4, 4)])
def test_adaptive_pooling_takes_the_means_of_its_windows(size, windows):
    x = fb.arange(float(size)).square().reshape(1, size)
    expected = []
    for i in range(windows):
        start, end = i * size // windows, math.ceil((i + 1) * size / windows)
        expected.append(sum(k * k for k in range(start, end)) / (end - start))
    assert F.adaptive_avg_pool1d(x, windows)[0].tolist() == pytest.approx(expected)


def test_adaptive_pooling_does_not_spread_infinities():
    x = fb.tensor([[[math.inf, 1.0, 2.0], [1.0, 1.0, 3.0]]])
    assert F.adaptive_avg_pool2d(x, (1, 2))[0, 0].tolist() == [math.inf, 1.75]


def test_batch_norm_of_a_batch_has_mean_0_and_variance_1():
    fb.manual_seed(0)
    x = fb.randn(64, 3) * 5 + 2
    y = F.batch_norm(x, None, None, training=True)
    assert y.mean(0).tolist() == pytest.approx([0.0] * 3, abs=1e-5)
    assert y.var(0, unbiased=False).tolist() == pytest.approx([1.0] * 3, abs=1e-4)


def test_running_statistics_follow_the_unbiased_batch():
    x = fb.tensor([[1.0], [3.0]])
    mean, variance = fb.zeros(1), fb.ones(1)
    F.batch_norm(x, mean, variance, training=True, momentum=0.5)
    assert mean.tolist() == [1.0] and variance.tolist() == pytest.approx([1.5])
    y = F.batch_norm(x, mean, variance)
    assert y.flatten().tolist() == pytest.approx([0.0, 2 / math.sqrt(1.5 + 1e-5)])


def test_a_constant_batch_keeps_the_running_variance_non_negative():
    mean, variance = fb.zeros(1), fb.zeros(1)
    F.batch_norm(fb.full((4, 1), 3.0), mean, variance, training=True, momentum=1.0)
    assert variance.item() == pytest.approx(0.0, abs=1e-9) and variance.item() >= 0


def test_momentum_none_averages_all_batches_alike():
    layer = nn.BatchNorm1d(1, momentum=None)
    for value in (2.0, 4.0, 9.0):
        layer(fb.tensor([[value - 1], [value + 1]]))
    assert layer.running_mean.tolist() == pytest.approx([5.0])
    assert layer.num_batches_tracked.item() == 3


def test_cross_entropy_is_log_softmax_and_nll():
    fb.manual_seed(0)
    x, target = fb.randn(5, 4), fb.tensor([0, 3, 1, 2, 2])
    by_hand = -x.log_softmax(1)[fb.arange(5), target].mean()
    assert F.cross_entropy(x, target).item() == pytest.approx(by_hand.item())
    one_hot = fb.eye(4)[target]
    assert F.cross_entropy(x, one_hot).item() == pytest.approx(by_hand.item())


def test_full_smoothing_is_the_uniform_target():
    fb.manual_seed(0)
    x, target = fb.randn(5, 4), fb.tensor([0, 3, 1, 2, 2])
    uniform = F.cross_entropy(x, fb.full((5, 4), 0.25))
    smoothed = F.cross_entropy(x, target, label_smoothing=1.0)
    assert smoothed.item() == pytest.approx(uniform.item())


def test_ignored_targets_change_nothing_but_the_divisor():
    x = fb.tensor([[1.0, 2.0], [3.0, 0.0], [5.0, 5.0]], requires_grad=True)
    loss = F.cross_entropy(x, fb.tensor([0, -100, 1]))
    loss.backward()
    assert x.grad[1].tolist() == [0.0, 0.0]
    assert loss.item() == pytest.approx(F.cross_entropy(x[::2], fb.tensor([0, 1])).item())


def test_a_mean_over_no_targets_is_nan():
    assert math.isnan(F.cross_entropy(fb.zeros(2, 3), fb.tensor([-100, -100])).item())
    assert math.isnan(F.cross_entropy(fb.zeros(0, 3), fb.zeros(0, dtype=fb.int64)).item())


def test_out_of_range_targets_name_the_first():
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        F.cross_entropy(fb.zeros(3, 2), fb.tensor([0, 7, -3]))
    with pytest.raises(IndexError, match="Target -3 is out of bounds"):
        F.nll_loss(fb.zeros(2, 2), fb.tensor([0, -3]), reduction="none")
    F.nll_loss(fb.zeros(2, 2), fb.tensor([0, 9]), ignore_index=9)


def test_byte_targets_are_classes():
    x = fb.tensor([[1.0, 2.0], [3.0, 0.0]])
    classes = fb.tensor([1, 0])
    expected = F.cross_entropy(x, classes).item()
    assert F.cross_entropy(x, classes.to(fb.uint8)).item() == expected


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_over_images_are_losses_over_pixels(reduction):
    fb.manual_seed(0)
    x, target = fb.randn(2, 3, 2, 2), fb.randint(0, 3, (2, 2, 2))
    flat = F.cross_entropy(
        x.permute(0, 2, 3, 1).reshape(-1, 3), target.reshape(-1), reduction=reduction
    )
    image = F.cross_entropy(x, target, reduction=reduction)
    assert image.flatten().tolist() == pytest.approx(flat.flatten().tolist())


def test_binary_losses_agree_with_each_other_and_stay_finite():
    x = fb.tensor([-200.0, -1.0, 0.0, 3.0, 200.0])
    target = fb.tensor([0.0, 1.0, 0.5, 0.0, 1.0])
    from_scores = F.binary_cross_entropy_with_logits(x, target, reduction="none")
    from_probabilities = F.binary_cross_entropy(x.sigmoid(), target, reduction="none")
    assert from_scores.tolist() == pytest.approx(from_probabilities.tolist(), abs=1e-4)
    assert F.binary_cross_entropy(fb.zeros(1), fb.ones(1)).item() == 100.0


def test_a_weighted_mean_divides_by_the_weights():
    x, target = fb.tensor([1.0, 2.0]), fb.zeros(2)
    weight = fb.tensor([3.0, 1.0])
    assert F.mse_loss(x, target, weight=weight).item() == pytest.approx(7 / 4)
    assert F.l1_loss(x, target, weight=weight).item() == pytest.approx(5 / 4)
    assert F.huber_loss(x, target, delta=5.0, weight=weight).item() == pytest.approx(3.5 / 4)
    with pytest.raises(ValueError, match="same size"):
        F.l1_loss(x, target, weight=fb.ones(3))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.cross_entropy(x, fb.tensor([0, 1])),
        lambda x: F.mse_loss(x, fb.ones(2, 3)),
        lambda x: F.binary_cross_entropy(x.sigmoid(), fb.full((2, 3), 0.3, dtype=x.dtype)),
        lambda x: F.huber_loss(x, fb.full((2, 3), 0.3, dtype=x.dtype), delta=0.5),
        lambda x: F.gelu(x).sum(),
        lambda x: (F.batch_norm(x, None, None, training=True) ** 3).sum(),
        lambda x: (F.conv2d(x.reshape(1, 1, 2, 3), x.reshape(1, 1, 2, 3)[..., :2]) ** 2).sum(),
    ],
)
def test_gradients_can_be_differentiated_again(function):
    fb.manual_seed(0)
    x = fb.randn(2, 3, dtype=fb.float64).requires_grad_()
    direction = fb.randn(2, 3, dtype=fb.float64)

    def slope(at):
        (gradient,) = fb.autograd.grad(function(at), at, create_graph=True)
        return (gradient * direction).sum()

    (found,) = fb.autograd.grad(slope(x), x)
    step = 1e-5
    along = fb.randn(2, 3, dtype=fb.float64)
    ahead = slope((x.detach() + step * along).requires_grad_())
    behind = slope((x.detach() - step * along).requires_grad_())
    expected = (ahead - behind).item() / (2 * step)
    assert (found * along).sum().item() == pytest.approx(expected, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding_puts_the_tensor_in_the_middle(mode):
    x = fb.arange(6.0).reshape(1, 2, 3)
    y = F.pad(x, (2, 1), mode)
    assert y.shape == (1, 2, 6) and y[..., 2:5].tolist() == x.tolist()
    assert F.pad(x, (-1, -1), mode).tolist() == [[[1.0], [4.0]]]
    kept = F.pad(x, (0, 0), mode)
    assert kept.tolist() == x.tolist() and kept.data_ptr() != x.data_ptr()


def test_linear_takes_vectors_and_a_weight_without_rows():
    x = fb.tensor([1.0, 2.0])
    assert F.linear(x, fb.tensor([[3.0, 4.0]]), fb.tensor([0.5])).tolist() == [11.5]
    assert F.linear(x, fb.tensor([3.0, 4.0]), fb.tensor(0.5)).item() == 11.5
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        F.linear(x, fb.ones(1, 3))
