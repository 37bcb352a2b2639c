"""What `gradcheck` does beyond backward: forward mode, and batches of both."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.autograd import forward_ad
from flambeau.autograd._finite_differences import (
    Check,
    GradcheckError,
    Jacobian,
    as_tuple,
    flat,
    is_floating,
    random_like,
    requires_grad,
)

if TYPE_CHECKING:
    from flambeau import Tensor


def check_forward(check: Check) -> None:
    """Compare the Jacobians of forward mode with central differences, change by change.

    Raises:
        GradcheckError: they differ.
    """
    results = as_tuple(check.func(*check.inputs))
    positions = [k for k, out in enumerate(results) if is_floating(out)]
    for i in check.wanted:
        numerical = check.numerical(i, positions)
        found = _forward(check, i, positions)
        for k, position in enumerate(positions):
            check.compare(found[k], numerical[k], position, i, "")


def _forward(check: Check, i: int, positions: list[int]) -> list[Jacobian]:
    """J e for each unit e of input `i`; of a complex one for 1 and for the imaginary unit."""
    x = check.inputs[i].detach()
    jacobians: list[Jacobian] = [[] for _ in positions]
    for place in range(x.numel()):
        for unit in (1.0, 1j) if x.is_complex() else (1.0,):
            change = fb.zeros(x.numel(), dtype=x.dtype, device=x.device)
            change[place] = unit
            for rows, tangent in zip(
                jacobians, _tangents(check, i, change.reshape(x.shape), positions), strict=True
            ):
                rows.append(flat(tangent))
    return jacobians


def _tangents(check: Check, i: int, change: Tensor, positions: Sequence[int]) -> list[Tensor]:
    """The derivatives of outputs in one direction of input `i`."""
    with forward_ad.dual_level():
        given = list(check.inputs)
        given[i] = forward_ad.make_dual(given[i], change)
        results = as_tuple(check.func(*given))
        duals = [forward_ad.unpack_dual(results[k]) for k in positions]
        return [fb.zeros_like(p) if t is None else t for p, t in duals]


def check_batched_backward(check: Check) -> None:
    """Compare a pass for several gradients at once with a pass for each.

    Raises:
        GradcheckError: they differ, or there is no pass for several.
    """
    draw = random.Random(0)
    outputs = [out for out in as_tuple(check.func(*check.inputs)) if requires_grad(out)]
    for k, out in enumerate(outputs):
        seeds = [random_like(out, draw, False).detach() for _ in range(2)]
        options: Any = {"retain_graph": True, "allow_unused": True}
        singly = [fb.autograd.grad(out, check.checked, seed, **options) for seed in seeds]
        try:
            at_once = fb.autograd.grad(
                out, check.checked, fb.stack(seeds), is_grads_batched=True, **options
            )
        except RuntimeError as error:
            raise GradcheckError(f"while computing batched gradients, got: {error}") from error
        for i, batch, *each in zip(check.wanted, at_once, *singly, strict=True):
            for one, single in zip(batch if batch is not None else (None, None), each, strict=True):
                _compare(check, one, single, f"gradient of output {k} by input {i}")


def check_batched_forward(check: Check) -> None:
    """Compare derivatives in several directions at once with those in each.

    Raises:
        GradcheckError: they differ, or cannot be computed at once.
    """
    draw = random.Random(0)
    results = as_tuple(check.func(*check.inputs))
    positions = [k for k, out in enumerate(results) if is_floating(out)]
    for i in check.wanted:
        x = check.inputs[i]
        changes = [random_like(x, draw, False).detach() for _ in range(2)]

        def derivative(change: Tensor, i: int = i) -> tuple[Tensor, ...]:
            return tuple(_tangents(check, i, change, positions))

        try:
            at_once = fb.func.vmap(derivative)(fb.stack(changes))
        except RuntimeError as error:
            raise GradcheckError(
                f"while computing batched forward derivatives, got: {error}"
            ) from error
        for n, change in enumerate(changes):
            for k, batch, single in zip(positions, at_once, derivative(change), strict=True):
                _compare(check, batch[n], single, f"derivative of output {k} along input {i}")


def _compare(check: Check, found: Any, expected: Any, what: str) -> None:
    if found is None or expected is None:
        agrees = all(t is None or not t.count_nonzero() for t in (found, expected))
    else:
        agrees = fb.allclose(found, expected, rtol=check.rtol, atol=check.atol)
    if not agrees:
        raise GradcheckError(
            f"the {what} differs in a batch:\nbatched:{found}\nsingle:{expected}\n"
        )
