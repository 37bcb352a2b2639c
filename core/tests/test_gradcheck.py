"""gradcheck and gradgradcheck accept right gradients and catch wrong ones."""

import itertools
import warnings

import pytest

import flambeau as fb
from flambeau.autograd import GradcheckError, gradcheck, gradgradcheck


def double(data, requires_grad=True):
    return fb.tensor(data, dtype=fb.float64, requires_grad=requires_grad)


def plane():
    return double([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])


class Square(fb.autograd.Function):
    """x² with a backward that each subclass spoils in its own way."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class HalfGradient(Square):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return x * grad


class ConstantGradient(Square):
    """Right where the gradient of the output is one, and not multiplied by it."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * (grad != 0).to(x.dtype) + 1e-7


class WrongSecondGradient(Square):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x.detach() * grad


class FloatingCounter(Square):
    """A gradient that grows by 1e-9 with every backward pass."""

    passes = itertools.count()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad * (1 + next(FloatingCounter.passes) * 1e-9)


class TwoOutputs(fb.autograd.Function):
    """2x and 3x, and what backward does if the first gradient is missing and the second zero."""

    @staticmethod
    def forward(ctx, x, when_missing):
        ctx.set_materialize_grads(False)
        ctx.when_missing = when_missing
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, first, second):
        if first is None and second is not None and bool((second == 0).all()):
            return ctx.when_missing(second), None
        parts = [factor * g for factor, g in ((2, first), (3, second)) if g is not None]
        return sum(parts[1:], parts[0]) if parts else None, None


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    "func",
    [
        lambda x: x.exp(),
        lambda x: (x * x).sum(),
        lambda x: (x.t() @ x, x.sum(0)),
        lambda x: x[:, 1:] * x[:, :-1],
        Square.apply,
    ],
)
def test_right_gradients_pass(func, fast_mode):
    assert gradcheck(func, (plane(),), fast_mode=fast_mode)
    assert gradgradcheck(func, (plane(),), fast_mode=fast_mode)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.t(),
        lambda x: x[:, ::2],
        lambda x: x[1, 2],
        lambda x: x[:0],
        lambda x: x.unsqueeze(0).transpose(0, 2),
    ],
)
def test_inputs_of_every_layout_are_checked_and_left_as_they_were(view):
    x = view(plane())
    before = x.tolist()
    assert gradcheck(lambda x: x.tanh() * x, (x,))
    assert gradgradcheck(lambda x: x.tanh() * x, (x,))
    assert x.tolist() == before
    with pytest.raises(GradcheckError) if x.numel() else warnings.catch_warnings():
        gradcheck(HalfGradient.apply, (x,))


@pytest.mark.parametrize("fast_mode", [False, True])
def test_wrong_gradient_is_caught(fast_mode):
    with pytest.raises(GradcheckError, match="mismatch for output 0 with respect to input 0"):
        gradcheck(HalfGradient.apply, (plane(),), fast_mode=fast_mode)


def test_report_names_output_and_input_and_shows_both_jacobians():
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda x, y: (x * 1, HalfGradient.apply(y)), (double([1.0]), double([3.0, 4.0])))
    text = str(caught.value)
    assert "output 1 with respect to input 1: 2 of 4 elements differ" in text
    assert "most at input element 1, output element 1, by 4" in text
    assert f"numerical:{fb.tensor([[6.0, 0.0], [0.0, 8.0]])}" in text
    assert f"analytical:{fb.tensor([[3.0, 0.0], [0.0, 4.0]])}" in text


def test_without_exceptions_a_failure_is_false():
    assert gradcheck(HalfGradient.apply, (plane(),), raise_exception=False) is False
    assert gradcheck(Square.apply, (plane(),), raise_exception=False) is True
    assert gradgradcheck(WrongSecondGradient.apply, (plane(),), raise_exception=False) is False


def test_tolerances_decide():
    def almost(x):
        return x * 2 + (x.detach() - x) * 1e-3

    assert not gradcheck(almost, (plane(),), raise_exception=False, rtol=1e-5)
    assert gradcheck(almost, (plane(),), rtol=1e-2)
    assert gradcheck(almost, (plane(),), atol=1e-2, rtol=0.0)


def test_wrong_second_gradient_is_caught_by_gradgradcheck_only():
    assert gradcheck(WrongSecondGradient.apply, (plane(),))
    with pytest.raises(GradcheckError, match="mismatch"):
        gradgradcheck(WrongSecondGradient.apply, (plane(),))


def test_gradient_that_ignores_the_gradient_of_the_output_is_caught():
    with pytest.raises(GradcheckError, match="not multiplied by grad_output"):
        gradcheck(ConstantGradient.apply, (plane(),))


def test_detached_path_is_caught():
    with pytest.raises(GradcheckError, match=r"expected to be zero.*input 0"):
        gradcheck(lambda x: x.detach() * 2, (plane(),))
    assert gradcheck(lambda x: (x * 0).detach(), (plane(),))
    assert gradcheck(lambda x: x > 0, (plane(),))


def test_unused_inputs_have_gradient_zero():
    assert gradcheck(lambda x, y: x * 2, (plane(), double(1.0)))
    assert gradcheck(lambda x, y: x * 2 + y, (plane(), double(1.0, requires_grad=False)))


def test_non_determinism_is_caught_within_its_tolerance():
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(FloatingCounter.apply, (plane(),))
    assert gradcheck(FloatingCounter.apply, (plane(),), nondet_tol=1e-6)


def test_wrong_dtype_of_a_gradient_is_caught_if_wanted(monkeypatch):
    original = fb.autograd.grad

    def single(*args, **kwargs):
        return tuple(g if g is None else g.float() for g in original(*args, **kwargs))

    monkeypatch.setattr(fb.autograd, "grad", single)
    assert gradcheck(lambda x: x * 2, (plane(),))
    with pytest.raises(GradcheckError, match=r"dtype mismatch: input 0 is torch\.float64"):
        gradcheck(lambda x: x * 2, (plane(),), check_grad_dtypes=True)


def test_wrong_shape_of_a_gradient_is_caught(monkeypatch):
    original = fb.autograd.grad

    def flattened(*args, **kwargs):
        return tuple(g if g is None else g.reshape(-1) for g in original(*args, **kwargs))

    monkeypatch.setattr(fb.autograd, "grad", flattened)
    with pytest.raises(GradcheckError, match=r"incorrect size: input 0 has shape \(2, 3\)"):
        gradcheck(lambda x: x * 2, (plane(),))


def test_backward_that_needs_every_gradient_is_caught():
    def refuse(grad):
        raise RuntimeError("the first gradient is missing")

    def func(x):
        return TwoOutputs.apply(x, refuse)

    with pytest.raises(GradcheckError, match=r"outputs \[0\]: the first gradient is missing"):
        gradcheck(func, (plane(),))
    assert gradcheck(func, (plane(),), check_undefined_grad=False)


def test_missing_gradient_that_does_not_count_as_zero_is_caught():
    with pytest.raises(GradcheckError, match="must count as zero, but input 0 gets"):
        gradcheck(lambda x: TwoOutputs.apply(x, lambda grad: grad + 1), (plane(),))
    assert gradcheck(lambda x: TwoOutputs.apply(x, lambda grad: grad), (plane(),))
    assert gradcheck(lambda x: TwoOutputs.apply(x, lambda grad: None), (plane(),))


def test_nothing_to_check_is_an_error():
    with pytest.raises(ValueError, match="no input requires a gradient"):
        gradcheck(lambda x: x, (double([1.0], requires_grad=False),))
    with pytest.raises(ValueError, match="no input requires a gradient"):
        gradcheck(lambda x: x, (), raise_exception=False)


@pytest.mark.parametrize("shared", [lambda x: x.expand(3), lambda x: x.as_strided((2, 2), (0, 0))])
def test_inputs_that_share_memory_are_refused(shared):
    with pytest.raises(RuntimeError, match="elements of input 0 share 1 places in memory"):
        gradcheck(lambda x: x * 2, (shared(double([1.0])),))


def test_inputs_with_stride_zero_along_one_element_are_accepted():
    assert gradcheck(lambda x: x * 2, (double([1.0]).expand(1, 1),))


def test_single_precision_warns_that_the_check_will_likely_fail():
    x = fb.tensor([0.1, 0.7], requires_grad=True)
    with pytest.warns(UserWarning, match="input 0 is torch.float32"):
        gradcheck(lambda x: x.exp(), (x,), raise_exception=False)


ALL = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.exp().sum(0), x.amax()),
        lambda x: (x @ x.t()).tanh(),
        lambda x: x.softmax(1).log(),
        lambda x: fb.complex(x, x * x) * 1j,
    ],
)
def test_forward_mode_and_batches_of_right_functions_pass(function):
    assert gradcheck(function, (plane(),), **ALL)


def test_forward_mode_of_complex_inputs_passes():
    z = fb.tensor([0.5 + 1j, 2 - 0.3j], dtype=fb.complex128, requires_grad=True)
    assert gradcheck(lambda z: (z * z).exp(), (z,), **ALL)


def test_backward_is_differentiated_in_forward_mode():
    x, w = plane(), plane()
    for function in (lambda x, w: (x * w).tanh(), lambda x, w: (x @ w.t(), x.sum())):
        assert gradgradcheck(function, (x, w), check_fwd_over_rev=True)
        assert gradgradcheck(function, (x, w), check_fwd_over_rev=True, check_rev_over_rev=False)


class Twofold(fb.autograd.Function):
    """A square whose two derivatives are factors of its own."""

    factors = 2, 2

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_forward(x)
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, *grads):
        return grads[0] * Twofold.factors[0] * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * Twofold.factors[1] * ctx.saved_tensors[0]


def test_a_wrong_derivative_in_forward_mode_is_found(monkeypatch):
    assert gradcheck(Twofold.apply, (plane(),), check_forward_ad=True)
    monkeypatch.setattr(Twofold, "factors", (2, 3))
    assert gradcheck(Twofold.apply, (plane(),))
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(Twofold.apply, (plane(),), check_forward_ad=True)
    monkeypatch.setattr(Twofold, "factors", (3, 2))
    assert gradcheck(Twofold.apply, (plane(),), check_forward_ad=True, check_backward_ad=False)


def test_batches_of_a_pass_need_the_pass():
    for one, other in (("grad", "backward_ad"), ("forward_grad", "forward_ad")):
        options = {"check_backward_ad": one != "grad", f"check_batched_{one}": True}
        options.setdefault("check_forward_ad", one == "grad")
        with pytest.raises(AssertionError, match=f"check_{other}"):
            gradcheck(lambda x: x, (plane(),), **options)


def test_skipping_every_check_is_refused():
    with pytest.raises(AssertionError, match="check_backward_ad"):
        gradcheck(lambda x: x, (plane(),), check_backward_ad=False)
    with pytest.raises(AssertionError, match="check_rev_over_rev"):
        gradgradcheck(lambda x: x, (plane(),), check_rev_over_rev=False)


def test_documented_positional_arguments_are_accepted():
    x = plane()
    assert gradcheck(lambda x: x * x, (x,), 1e-6, 1e-5, 1e-3, True, False, 0.0)
    assert gradgradcheck(lambda x: x * x, (x,), plane(), 1e-6, 1e-5, 1e-3, False, True, 0.0)


def test_a_single_tensor_is_accepted_as_input_and_output():
    assert gradcheck(lambda x: x * x, plane())
    assert gradcheck(lambda x: [x * x, x], [plane()])


def test_given_gradients_of_outputs_are_used():
    seen = []

    def func(x):
        y = x * x
        if y.requires_grad:
            y.register_hook(lambda grad: seen.append(grad.tolist()))
        return y

    gradgradcheck(func, (double([2.0]),), double([0.5]))
    assert [0.5] in seen


def test_random_gradients_can_be_made_non_contiguous():
    contiguous = []

    def func(x):
        y = x * x
        y.register_hook(lambda grad: contiguous.append(grad.is_contiguous()))
        return y

    gradgradcheck(func, (plane(),))
    assert contiguous[0]
    contiguous.clear()
    gradgradcheck(func, (plane(),), gen_non_contig_grad_outputs=True)
    assert not contiguous[0]


def test_output_whose_shape_depends_on_values_is_refused():
    with pytest.raises(AssertionError, match="one shape"):
        gradcheck(lambda x: x[x > 0.5], (double([0.5, 1.0]),))


def complex_values():
    try:
        return fb.tensor([1 + 2j, 0.5 - 1j], dtype=fb.complex128, requires_grad=True)
    except NotImplementedError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("func", [lambda z: z * z, lambda z: z.abs(), lambda z: z * z.conj()])
def test_complex_functions_are_checked_by_real_and_imaginary_part(func):
    assert gradcheck(func, (complex_values(),))
    assert gradgradcheck(func, (complex_values(),))


def test_wrong_complex_gradient_is_caught_in_its_part():
    def holomorphic_only_in_name(z):
        return z.conj().detach() * z

    with pytest.raises(GradcheckError, match="considering the real part of complex outputs"):
        gradcheck(holomorphic_only_in_name, (complex_values(),))


def test_real_function_with_complex_output_is_checked():
    complex_values()
    assert gradcheck(lambda x: x * (1 + 2j), (plane(),))
