"""The history of gradients that PyTorch computes by one function of several tensors."""

import gc
import weakref

import pytest

import flambeau as fb
from flambeau.autograd import grad, gradgradcheck
from flambeau.ops import OPS


@pytest.fixture
def image(device):
    return fb.arange(32.0, device=device).reshape(1, 2, 4, 4).requires_grad_()


@pytest.fixture
def filters(device):
    return fb.ones(2, 2, 2, 2, device=device)


def gradient(result, leaf):
    return grad(result.sum(), leaf, create_graph=True)[0]


def test_a_convolutions_gradient_belongs_to_the_input_on_which_it_does_not_depend(image, filters):
    for call in (fb.conv2d, fb.conv_transpose2d):
        g = gradient(call(image, filters), image)
        assert g.requires_grad
        assert g.grad_fn.name() == "ConvolutionBackwardBackward0"
        assert grad(g.sum(), image, allow_unused=True, retain_graph=True) == (None,)
        with pytest.raises(RuntimeError, match="not have been used in the graph"):
            grad(g.sum(), image, retain_graph=True)
        g.sum().backward()
        assert image.grad is None


def test_the_other_operand_has_its_gradient_still(image, filters):
    w = filters.requires_grad_()
    g = gradient(fb.conv2d(image, w), image)
    assert grad(g.sum(), w)[0].tolist() == fb.full((2, 2, 2, 2), 9.0).tolist()


def test_a_bias_alone_has_a_constant_gradient(image, filters):
    x, b = image.detach(), fb.zeros(2, device=image.device, requires_grad=True)
    assert not gradient(fb.conv2d(x, filters, b), b).requires_grad
    assert gradient(fb.conv2d(image, filters, b), b).requires_grad


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: OPS["avg_pool2d"](x, (2, 2), (2, 2), (0, 0), False, True, None),
        lambda x: OPS["max_pool2d"](x, (2, 2), (2, 2), (0, 0), (1, 1), False)[0],
        lambda x: OPS["adaptive_max_pool2d"](x, (2, 2))[0],
        lambda x: OPS["adaptive_max_pool3d"](x.unsqueeze(0), (2, 2, 2))[0],
        lambda x: fb.max_pool3d(x.unsqueeze(0), 2),
    ],
)
def test_the_gradient_of_a_pools_gradient_is_zero(image, pool):
    g = gradient(pool(image), image)
    assert g.requires_grad
    (again,) = grad(g.sum(), image, retain_graph=True)
    assert again.shape == image.shape
    assert not again.any()
    (g * g).sum().backward()
    assert not image.grad.any()


def test_a_norm_with_given_statistics_has_a_history(image):
    mean, var = fb.zeros(2, device=image.device), fb.ones(2, device=image.device)
    y = fb.batch_norm(image, None, None, mean, var, False, 0.1, 1e-5, False)
    g = gradient(y, image)
    assert g.grad_fn.name() == "NativeBatchNormBackwardBackward0"
    assert grad(g.sum(), image, allow_unused=True) == (None,)


def test_without_create_graph_nothing_has_a_history(image, filters):
    assert not grad(fb.conv2d(image, filters).sum(), image)[0].requires_grad
    fb.conv2d(image, filters).sum().backward()
    assert image.grad.grad_fn is None


def test_transforms_leave_no_history(image, filters):
    x = image.detach()
    assert not fb.func.grad(lambda x: fb.conv2d(x, filters).sum())(x).requires_grad
    twice = fb.func.grad(lambda x: fb.func.grad(lambda y: fb.conv2d(y, filters).sum())(x).sum())
    assert not twice(x).any()


def test_numeric_second_derivatives_agree_for_fixed_filters(device):
    x = fb.arange(18.0, device=device, dtype=fb.float64).reshape(1, 2, 3, 3).sin().requires_grad_()
    w = fb.arange(8.0, device=device, dtype=fb.float64).reshape(1, 2, 2, 2).cos()
    assert gradgradcheck(lambda x: fb.conv2d(x, w), (x,))
    assert gradgradcheck(lambda x: fb.max_pool2d(x, 2), (x,))


def test_whole_numbers_among_saved_results_have_no_history(leaf):
    x = leaf([[3.0, 1.0, 2.0]])
    for result in (x.sort(1)[0], x.max(1)[0], x.topk(2)[0], x.min(1, keepdim=True).values):
        assert not gradient(result, x).requires_grad


@pytest.mark.parametrize("name", ["sign", "floor", "ceil", "round", "trunc", "sgn"])
def test_the_gradient_of_steps_is_zero_whatever_comes(name, leaf):
    x = leaf([1.5, -2.0])
    given = fb.tensor([fb.inf, fb.nan], device=x.device)
    assert grad(getattr(x, name)(), x, given)[0].tolist() == [0.0, 0.0]


def test_a_recorded_gradient_is_freed_with_its_names(image, filters):
    g = gradient(fb.conv2d(image, filters), image)
    gone = weakref.ref(g.grad_fn)
    gc.disable()
    try:
        del g
        assert gone() is None
    finally:
        gc.enable()


def test_joint_inputs_are_inputs():
    joint = [op for op in OPS.values() if op.joint]
    assert joint
    for op in joint:
        assert max(op.joint) < len(op.inputs)
        assert op.places is not None
        assert not op.joint_zeros or len(op.joint) == 1
