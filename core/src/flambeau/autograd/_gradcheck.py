"""Gradients checked against finite differences: `gradcheck` and `gradgradcheck`.

Both are written with public tensor operations only; the work is done in `_finite_differences`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau.autograd._finite_differences import (
    Check,
    GradcheckError,
    as_tuple,
    by_stored_elements,
    random_like,
    requires_grad,
)
from flambeau.autograd._forward_checks import (
    check_batched_backward,
    check_batched_forward,
    check_forward,
)

if TYPE_CHECKING:
    from flambeau import Tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


@takes_as_annotated
def gradcheck(
    func: Callable[..., Tensor | Sequence[Tensor]],
    inputs: Tensor | Sequence[Tensor],
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    check_sparse_nnz: bool | None = None,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    *,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` are the derivatives that small changes of its inputs show.

    Numerical derivatives are central differences, (f(x + eps) - f(x - eps)) / (2 eps).  An element
    agrees if ``|analytical - numerical| <= atol + rtol * |numerical|``.  For a complex input the
    gradient is df/dRe(x) + i df/dIm(x); a complex output is checked by its real and by its
    imaginary part.

    Beyond the values it is checked that backward gives the same result twice, that zero gradients
    give zeros, that gradients have the shape and device of their inputs, and that outputs without
    a gradient count as zeros.

    Args:
        func: takes the inputs, returns a tensor or several.
        inputs: those that require a gradient are checked; give them in double precision.
        eps: the change of an input element.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: raise `GradcheckError` at the first failure instead of returning False.
        check_sparse_nnz: of PyTorch 1; False refuses sparse inputs.
        nondet_tol: by how much two backward passes over one graph may differ.
        check_undefined_grad: whether outputs without a gradient are tried.
        check_grad_dtypes: whether gradients must have the dtype of their inputs.
        check_batched_grad: whether a pass for several gradients at once gives those of single ones.
        check_batched_forward_grad: the same of derivatives in forward mode; it needs
            `check_forward_ad`.
        check_forward_ad: whether derivatives in forward mode are compared, too, always in full.
        check_backward_ad: False leaves backward out.
        fast_mode: compare one random projection of each Jacobian instead of all elements (real
            functions only; complex ones are checked in full).
        masked: accepted; of sparse inputs it is always the stored elements that are changed, and
            the gradients at their positions that are compared.

    Raises:
        GradcheckError: a check failed.
        ValueError: no input requires a gradient.
        RuntimeError: an input is sparse and `check_sparse_nnz` is False, or elements of an input
            share memory, so that they cannot be changed one by one.

    >>> import flambeau as fb
    >>> x = fb.tensor([0.5, 2.0], dtype=fb.float64, requires_grad=True)
    >>> fb.autograd.gradcheck(lambda x: (x * x).sum(), (x,))
    True
    """
    if not (check_backward_ad or check_forward_ad):
        raise AssertionError(
            "gradcheck: one of check_backward_ad and check_forward_ad must be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    given = as_tuple(inputs)
    if check_sparse_nnz is False and any(getattr(x, "is_sparse", False) for x in given):
        raise RuntimeError(
            "gradcheck expects all tensor inputs are dense when check_sparse_nnz is set to False."
        )
    check = Check(func, given, eps, atol, rtol, nondet_tol, check_grad_dtypes)
    try:
        if check_backward_ad:
            check.run(fast_mode, check_undefined_grad)
        if check_batched_grad:
            check_batched_backward(check)
        if check_forward_ad:
            check_forward(check)
        if check_batched_forward_grad:
            check_batched_forward(check)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@takes_as_annotated
def gradgradcheck(
    func: Callable[..., Tensor | Sequence[Tensor]],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    *,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the gradients of the gradients of `func` are right: `gradcheck` of its backward pass.

    The checked function takes the inputs and the gradients of the outputs to the gradients of the
    inputs.

    Args:
        grad_outputs: gradients of the outputs; by default random ones in (-1, 1) that require a
            gradient themselves.
        gen_non_contig_grad_outputs: make the random ones non-contiguous.
        check_fwd_over_rev: whether the backward pass is differentiated in forward mode, too.
        check_rev_over_rev: False leaves out the backward pass of the backward pass.

    The other arguments, the result and the exceptions are those of `gradcheck`.

    >>> import flambeau as fb
    >>> x = fb.tensor([0.5, 2.0], dtype=fb.float64, requires_grad=True)
    >>> fb.autograd.gradgradcheck(lambda x: x * x * x, (x,))
    True
    """
    if not (check_rev_over_rev or check_fwd_over_rev):
        raise AssertionError(
            "gradgradcheck: one of check_rev_over_rev and check_fwd_over_rev must be True"
        )
    func, given = by_stored_elements(func, as_tuple(inputs))
    if grad_outputs is None:
        draw = random.Random(0)
        outputs = [out for out in as_tuple(func(*given)) if requires_grad(out)]
        gradients = tuple(random_like(out, draw, gen_non_contig_grad_outputs) for out in outputs)
    else:
        gradients = as_tuple(grad_outputs)

    def backward(*args: Any) -> tuple[Tensor, ...]:
        xs, gs = args[: len(given)], args[len(given) :]
        outputs = [out for out in as_tuple(func(*xs)) if requires_grad(out)]
        wanted = [x for x in xs if requires_grad(x)]
        found = fb.autograd.grad(outputs, wanted, gs, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    agrees = True
    if check_fwd_over_rev:
        agrees = gradcheck(
            _pulled_back(func, given),
            (*given, *gradients),
            eps=eps,
            atol=atol,
            rtol=rtol,
            raise_exception=raise_exception,
            check_forward_ad=True,
            check_backward_ad=False,
        )
    if not check_rev_over_rev:
        return agrees
    return agrees and gradcheck(
        backward,
        (*given, *gradients),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
        masked=masked,
    )


def _pulled_back(
    func: Callable[..., Any], given: tuple[Any, ...]
) -> Callable[..., tuple[Tensor, ...]]:
    """The backward pass of `func` as a transform, which forward mode goes through."""
    wanted = [i for i, x in enumerate(given) if requires_grad(x)]
    results = as_tuple(func(*given))
    places = [k for k, out in enumerate(results) if requires_grad(out)]

    def backward(*args: Any) -> tuple[Tensor, ...]:
        def of_wanted(*own: Any) -> tuple[Tensor, ...]:
            xs = list(args[: len(given)])
            for i, x in zip(wanted, own, strict=True):
                xs[i] = x
            found = as_tuple(func(*xs))
            return tuple([found[k] for k in places])

        _, pull = fb.func.vjp(of_wanted, *[args[i] for i in wanted])
        return pull(tuple(args[len(given) :]))

    return backward
