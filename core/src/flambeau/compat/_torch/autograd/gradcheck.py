"""Checks of gradients, under the path of their file in PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.autograd import GradcheckError, gradcheck, gradgradcheck
from flambeau.compat._torch.autograd.function import _iter_tensors
from flambeau.compat._torch.autograd.functional import _as_tuple_nocheck as _as_tuple

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor


__all__ = [
    "GradcheckError",
    "_as_tuple",
    "_iter_tensors",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "gradcheck",
    "gradgradcheck",
    "iter_tensors",
    "make_jacobian",
    "zero_gradients",
]


def iter_tensors(x: object, only_requiring_grad: bool = False) -> Iterator[fb.Tensor]:
    """The tensors in a tensor or in nested lists."""
    if isinstance(x, fb.Tensor):
        if x.requires_grad or not only_requiring_grad:
            yield x
    elif isinstance(x, Iterable) and not isinstance(x, str):
        for each in x:
            yield from iter_tensors(each, only_requiring_grad)


def zero_gradients(x: object) -> None:
    """Set the gradients of all tensors in nested lists to zero, and cut off their history."""
    for each in iter_tensors(x):
        if each.grad is not None:
            each.grad.detach_()
            each.grad.zero_()


def make_jacobian(input: Any, num_out: int) -> Tensor | None:
    """Zeros in the form of a nested list: for each floating tensor that wants a gradient a matrix
    with a row for each of its elements; None for anything else."""
    if isinstance(input, fb.Tensor):
        if not (input.is_floating_point() and input.requires_grad):
            return None
        return fb.zeros(input.numel(), num_out, dtype=input.dtype, device=input.device)
    if isinstance(input, Iterable) and not isinstance(input, str):
        rows = [made for each in input if (made := make_jacobian(each, num_out)) is not None]
        return type(input)(rows) if rows else None  # type: ignore[call-arg]
    return None


def get_numerical_jacobian(
    fn: Callable[[Any], Any], input: object, target: object = None, eps: float = 1e-3
) -> Tensor | None:
    """Central differences of `fn(input)` by the tensors in `target`, by default those in `input`.

    In the form of `make_jacobian`.  What is changed is `tensor.data`.
    """
    target = input if target is None else target
    found = make_jacobian(target, fn(input).numel())
    for x, jacobian in zip(iter_tensors(target, True), iter_tensors(found), strict=True):
        data: Any = x.data
        if data.is_sparse:
            data = data._values()
        before = data.clone()
        for row, index in enumerate(itertools.product(*map(range, data.shape))):
            changed = []
            for change in (-eps, eps):
                data[index] = before[index] + change
                changed.append(fn(input).detach().reshape(-1).clone())
            data[index] = before[index]
            jacobian[row] = (changed[1] - changed[0]) / (2 * eps)
    return found


def get_analytical_jacobian(
    input: object, output: fb.Tensor, nondet_tol: float = 0.0
) -> tuple[Any, bool, bool]:
    """The Jacobian of `output` by `input` from backward passes, a column for each of its elements.

    Returns:
        the Jacobian in the form of `make_jacobian`; whether two passes agree to `nondet_tol`;
        whether the gradients have the shapes of their tensors.
    """
    wanted = list(iter_tensors(input, True))
    found, again = make_jacobian(input, output.numel()), make_jacobian(input, output.numel())
    sizes = True
    for place in range(output.numel()):
        seed = fb.zeros(output.numel(), dtype=output.dtype, device=output.device)
        seed[place] = 1
        for jacobians in (found, again):
            gradients = fb.autograd.grad(
                output, wanted, seed.view(output.shape), retain_graph=True, allow_unused=True
            )
            for x, jacobian, gradient in zip(
                wanted, iter_tensors(jacobians), gradients, strict=True
            ):
                if gradient is not None and gradient.shape != x.shape:
                    sizes = False
                elif gradient is not None:
                    dense = gradient.to_dense() if gradient.is_sparse else gradient
                    jacobian[:, place] = dense.reshape(-1)
    pairs = zip(iter_tensors(found), iter_tensors(again), strict=True)
    same = all(a.numel() == 0 or (a - b).abs().max() <= nondet_tol for a, b in pairs)
    return found, same, sizes
