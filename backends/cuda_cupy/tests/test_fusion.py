"""Generated kernels: every step on every dtype and layout, chains in one launch, formulas."""

from __future__ import annotations

import numpy as np
import on_host
import pytest
import standin
import test_ops
from test_ops import DTYPES, agree, numbers

import flambeau as fb
from flambeau_cupy.fusion.expressions import MOST_OPERANDS, standard
from flambeau_cupy.fusion.steps import C_TYPES
from flambeau_cupy.layer import NumpyLayer

pytestmark = pytest.mark.skipif(
    standin.launcher is None, reason="needs g++ or clang++ on Linux: nothing would be launched"
)
device, launched = test_ops.device, test_ops.launched
RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module")
def fusion():
    return NumpyLayer(on_host.HostLauncher()).fusion


def noise(*shape):
    return RANDOM.random(shape).astype(np.float32)


LAYOUTS = {
    "row-major": lambda: noise(3, 5),
    "scalar": lambda: noise(3, 5)[1, 2:3].reshape(()),
    "empty": lambda: noise(0, 5),
    "transposed": lambda: noise(5, 3).T,
    "every other": lambda: noise(6, 10)[::2, 1::2],
    "backwards": lambda: noise(3, 5)[::-1, ::-1],
    "not aligned": lambda: noise(16)[1:].reshape(3, 5),
    "expanded": lambda: np.broadcast_to(noise(3, 1), (3, 5)),
    "channels last": lambda: noise(2, 3, 3, 5).transpose(0, 3, 1, 2),
    "many": lambda: noise(70, 129),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_lie_in_memory_as_their_operands(layout, fusion):
    a = LAYOUTS[layout]()
    found = fusion.apply("exp", a)
    np.testing.assert_allclose(found, np.exp(a), rtol=1e-6)
    assert found.flags.owndata or found.base.flags.owndata
    wanted = np.empty_like(a) if 0 not in a.strides and a.size else np.empty(a.shape, a.dtype)
    if layout not in ("every other", "backwards"):  # NumPy keeps the order there as well
        assert found.strides == wanted.strides
    half = a.astype(np.float16)
    np.testing.assert_array_equal(fusion.apply("neg", half), -half)


@pytest.mark.parametrize("first", [n for n in LAYOUTS if n not in ("channels last", "many")])
@pytest.mark.parametrize("second", ["row-major", "transposed", "every other", "scalar", "expanded"])
def test_operands_of_different_layouts_meet_element_by_element(first, second, fusion):
    a, b = LAYOUTS[first](), LAYOUTS[second]()
    if not a.size:
        b = b[:1] if b.ndim else b
    shape = np.broadcast_shapes(a.shape, b.shape)
    found = fusion.apply("sub", a, b)
    assert found.shape == shape
    np.testing.assert_array_equal(found, a - b)


def test_more_dimensions_than_a_layout_holds_are_computed_all_the_same(fusion):
    a = np.broadcast_to(noise(*[2, 1] * 7), (2,) * 14)
    b = noise(*[1, 2] * 7)
    np.testing.assert_array_equal(fusion.apply("add", a, b), a + b)


@pytest.mark.parametrize("out", [noise(4, 6)[:, ::2], noise(3, 4).T, noise(4, 3)])
def test_results_are_written_where_they_shall_be(out, fusion):
    a, b = noise(4, 3), noise(3)
    fusion.apply("mul", a, b, out=out)
    np.testing.assert_array_equal(out, a * b)


def test_a_result_that_does_not_fit_is_refused(fusion):
    out = noise(1, 4)
    with pytest.raises(ValueError, match="does not fit"):
        fusion.apply("add", out, noise(3, 4), out=out)


def test_what_is_still_to_be_read_is_not_overwritten(fusion):
    x = np.arange(8, dtype=np.float32)
    wanted = x[1:] + x[:-1]
    fusion.apply("add", x[1:], x[:-1], out=x[1:])
    np.testing.assert_array_equal(x[1:], wanted)


def test_a_number_of_a_wider_dtype_is_stored_as_the_array_it_is_written_to(fusion):
    out = np.zeros(3, np.int8)
    fusion.apply("clone", np.array([1.9, -1.9, 130.0], np.float32), out=out)
    assert out.tolist() == [1, -1, -126]


@pytest.mark.parametrize("kind", sorted(C_TYPES))
def test_every_step_has_a_kernel_that_compiles(kind):
    assert len(standard(kind)) >= len(C_TYPES)
    on_host._programs(kind, None)


def test_integers_wrap_and_divide_as_they_do_on_the_host(fusion):
    a = np.array([-128, -7, 7, 127, -1, 0], np.int8)[:, None]
    b = np.array([-128, -3, -1, 1, 3, 127], np.int8)
    with np.errstate(all="ignore"):
        for step, function in {
            "add": np.add,
            "mul": np.multiply,
            "remainder": np.remainder,
            "fmod": np.fmod,
            "floor_divide": np.floor_divide,
        }.items():
            np.testing.assert_array_equal(fusion.apply(step, a, b), function(a, b), step)


def test_zeros_infinities_and_nan_divide_as_they_do_on_the_host(fusion):
    a = np.array([0.0, -0.0, 1.5, -1.5, np.inf, np.nan], np.float64)[:, None]
    b = np.array([1.0, -1.0, 0.0, np.inf, -np.inf, 0.4], np.float64)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(fusion.apply("fmod", a, b), np.fmod(a, b))
        np.testing.assert_array_equal(fusion.apply("maximum", a, b), np.maximum(a, b))
        np.testing.assert_array_equal(fusion.apply("pow", a, b), np.power(a, b))


def test_a_chain_is_one_launch_and_reads_each_array_once(fusion):
    a, b = noise(4, 5), noise(5)
    launcher = fusion.elementwise._launch
    x = fusion.deferred("mul", a, b)
    y = fusion.deferred("add", x, fusion.deferred("exp", a))
    before = len(launcher.launched)
    found = fusion.settle([y, None, x, a])
    assert len(launcher.launched) == before + 1
    np.testing.assert_allclose(found[0], a * b + np.exp(a), rtol=1e-6)
    assert found[1] is None and found[3] is a
    np.testing.assert_allclose(found[2], a * b, rtol=1e-6)


def test_a_chain_of_too_many_arrays_is_computed_in_pieces(fusion):
    arrays = [noise(3) for _ in range(MOST_OPERANDS + 2)]
    total = arrays[0]
    for a in arrays[1:]:
        total = fusion.deferred("add", total, a)
    np.testing.assert_allclose(fusion.settle([total])[0], sum(arrays), rtol=1e-5)


def test_halves_are_rounded_once_at_the_end_of_a_chain(fusion):
    a = np.array([2048.0], np.float16)
    one = np.array([1.0], np.float16)
    x = fusion.deferred("sub", fusion.deferred("add", a, one), a)
    assert fusion.settle([x])[0].tolist() == [1.0]  # 2049 is no half


COMPOSITES = {
    "square": lambda x: x.square(),
    "lgamma": lambda x: (x.abs() + 0.5).lgamma(),
    "erfinv": lambda x: x.tanh().erfinv(),
    "i0": lambda x: fb.special.i0(x),
}


@pytest.mark.parametrize("dtype", [fb.float32, fb.float64])
@pytest.mark.parametrize("name", COMPOSITES)
def test_composites_of_elementwise_ops_give_what_their_decomposition_gives(
    name, dtype, device, launched
):
    agree(COMPOSITES[name], [numbers(4, 5)], dtype, device)
    assert "elementwise" in launched()


def test_a_composite_of_elementwise_ops_is_one_launch(device):
    x = numbers(4, 5).to(device)
    for function in (fb.square, fb.lgamma, fb.erfinv, fb.special.i0):
        function(x)
        standin.launcher.launched.clear()
        function(x)
        assert standin.launcher.launched == [("", "elementwise")], function.__name__


FORMULAS = {
    "tanh": (fb.tanh, 1),
    "sigmoid": (fb.sigmoid, 1),
    "silu": (fb.nn.functional.silu, 1),
    "softplus": (fb.nn.functional.softplus, 1),
    "gelu": (fb.nn.functional.gelu, 1),
    "sqrt": (lambda x: (x * x + 1).sqrt(), 3),  # and the sum of the gradients of both factors
    "mul": (lambda x: x * x.detach().exp(), 1),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_gradient_formula_is_one_launch(name, device):
    function, launches = FORMULAS[name]
    x = numbers(4, 5).float().to(device).requires_grad_()
    y = function(x)
    seed = fb.ones_like(y)
    standin.launcher.launched.clear()
    (found,) = fb.autograd.grad(y, x, seed)
    assert standin.launcher.launched == [("", "elementwise")] * launches
    cpu = x.detach().to("cpu").requires_grad_()
    (wanted,) = fb.autograd.grad(function(cpu), cpu, seed.to("cpu"))
    fb.testing.assert_close(found.to("cpu"), wanted, rtol=1e-5, atol=1e-6)


def test_what_several_ops_of_a_formula_read_is_computed_once(device):
    """Of gelu's, whose gradient goes into two products and a sum."""
    both = []
    for where in (device, "cpu"):
        x, w, b = (numbers(*shape).to(where).requires_grad_() for shape in ((5, 3), (4, 3), (4,)))
        y, _ = fb.ops.linear_activation(x, w, b, "gelu_tanh", True)
        seed = numbers(*y.shape).to(where)
        standin.launcher.launched.clear()
        both.append([g.to("cpu") for g in fb.autograd.grad(y, [x, w, b], seed)])
        if where == device:
            assert standin.launcher.launched.count(("", "elementwise")) == 1
    for found, wanted in zip(*both, strict=True):
        fb.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


def test_gradients_that_are_one_deferred_result_are_not_one_memory(device):
    from flambeau.ops.declaration.table import composite

    @composite
    def _both_for_this_test(a: Tensor, b: Tensor) -> Tensor:  # noqa: F821
        return (a + b).exp()

    def formula(F, g, result):
        over = F.mul(g, result)
        return over, over

    try:
        _both_for_this_test.gradient("a", "b")(formula)
        x, y = (numbers(3).to(device).requires_grad_() for _ in "xy")
        be = x._be
        kernel = _both_for_this_test.decomposed(be)
        be.both_for_this_test = be.formulas.both_for_this_test = kernel
        _both_for_this_test(x, y).sum().backward()
        x.grad.zero_()
        assert y.grad.abs().min() > 0
    finally:
        del fb.ops.OPS["both_for_this_test"]


def test_gradients_of_gradients_pass_through_fused_formulas(device):
    both = []
    for where in (device, "cpu"):
        x = numbers(3, 4).to(where).requires_grad_()
        (g,) = fb.autograd.grad((x.tanh() * x.sigmoid()).sum(), x, create_graph=True)
        both.append(fb.autograd.grad(g.pow(2).sum(), x)[0].to("cpu"))
    fb.testing.assert_close(*both, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "arrange",
    [
        lambda x: x,
        lambda x: x.t(),
        lambda x: x[:, ::2],
        lambda x: x[0, 0],
        lambda x: x.reshape(2, 3, 5, 1).contiguous(memory_format=fb.channels_last),
    ],
)
def test_dropout_is_one_launch_and_draws_what_its_parts_draw(arrange, dtype, device, launched):
    x = arrange(numbers(5, 6).to(dtype).to(device)).requires_grad_()
    seed = fb.ones_like(x)
    generator = fb.accelerator.namespace(device)
    generator.manual_seed(7)
    standin.launcher.launched.clear()
    y = fb.dropout(x, 0.25, True)
    assert [name for _, name in standin.launcher.launched] == ["philox_dropout"]
    (grad,) = fb.autograd.grad(y, x, seed)
    generator.manual_seed(7)
    noise = x.detach().clone().bernoulli_(0.75).div_(0.75)
    assert fb.equal(y, x.detach() * noise) and fb.equal(grad, noise)
    assert y.stride() == noise.stride()
    assert y.grad_fn.name() == "MulBackward0"


def test_dropout_has_a_second_derivative_and_leaves_integers_to_the_others(device):
    x = numbers(4).to(device).requires_grad_()
    (g,) = fb.autograd.grad((fb.dropout(x, 0.5, True) * x).sum(), x, create_graph=True)
    (h,) = fb.autograd.grad(g.sum(), x)
    assert set(h.tolist()) <= {0.0, 4.0}
    with pytest.raises(RuntimeError):
        fb.dropout(fb.ones(3, dtype=fb.int64, device=device), 0.5, True)
    assert fb.dropout(fb.ones(0, device=device), 0.5, True).shape == (0,)
