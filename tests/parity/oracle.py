"""One call on both libraries, compared in values, dtypes and both derivatives.

A call is ``lambda t, x, y: t.function(x, y)`` with `t` the library. An operand is a shape (distinct
float64 numbers of either sign, differentiated) or a PyTorch tensor, differentiated if it wishes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

DEVICES = ("cpu", "ref")
Call = Callable[..., Any]


def theirs_of(operand: Any, place: int = 0) -> Any:
    """An operand as PyTorch's tensor."""
    if isinstance(operand, torch.Tensor):
        return operand
    count = math.prod(operand)
    values = torch.arange(count, dtype=torch.float64).mul(1.7 + place).sin().mul(2).add(0.01)
    return values.reshape(operand).requires_grad_()


def ours_of(tensor: Any, device: str = "cpu") -> Any:
    """PyTorch's tensor as ours, with the same values, dtype and wish for a gradient."""
    dtype = getattr(fb, str(tensor.dtype).removeprefix("torch."))
    made = fb.tensor(tensor.detach().flatten().tolist(), dtype=dtype, device=device)
    return made.reshape(tuple(tensor.shape)).requires_grad_(tensor.requires_grad)


def flattened(result: Any) -> list[Any]:
    """The tensors and plain values of a result that may be a tuple."""
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in flattened(part)]
    return [result]


def assert_same(ours: Any, theirs: Any, tolerance: float = 1e-9) -> None:
    """Equal structure, shapes and dtypes, and close values; nan equals nan."""
    mine, reference = flattened(ours), flattened(theirs)
    assert len(mine) == len(reference)
    for a, b in zip(mine, reference, strict=True):
        if not isinstance(b, torch.Tensor):
            assert a == b
            continue
        assert tuple(a.shape) == tuple(b.shape)
        assert str(a.dtype) == str(b.dtype)
        values = torch.tensor(a.detach().flatten().tolist(), dtype=b.dtype).reshape(b.shape)
        torch.testing.assert_close(
            values, b.detach(), rtol=tolerance, atol=tolerance, equal_nan=True
        )


def weighted(results: list[Any], library: Any) -> Any:
    """A number that depends on every element of the results in its own way."""
    total = 0
    for place, result in enumerate(results):
        count = library.arange(result.numel(), dtype=library.float64, device=result.device)
        total = total + (result * (count * 1.3 + place).cos().reshape(tuple(result.shape))).sum()
    return total


def derivatives(library: Any, results: list[Any], inputs: list[Any], record: bool) -> list[Any]:
    """The gradients of a weighted sum of results, zeros where an input has no part."""
    wanted = [x for x in inputs if x.requires_grad]
    results = [y for y in results if y.requires_grad]
    if not results or not wanted:
        return [library.zeros_like(x) for x in wanted]
    found = library.autograd.grad(
        weighted(results, library),
        wanted,
        retain_graph=True,
        create_graph=record,
        allow_unused=True,
    )
    return [library.zeros_like(x) if g is None else g for x, g in zip(wanted, found, strict=True)]


def check(call: Call, operands: tuple[Any, ...], device: str, tolerance: float = 1e-9) -> None:
    """Assert that a call agrees in values, dtypes, first and second derivatives."""
    their_inputs = [theirs_of(operand, place) for place, operand in enumerate(operands)]
    our_inputs = [ours_of(tensor, device) for tensor in their_inputs]
    expected, found = call(torch, *their_inputs), call(fb, *our_inputs)
    assert_same(found, expected, tolerance)
    reference, mine = flattened(expected), flattened(found)
    assert [x.requires_grad for x in mine] == [x.requires_grad for x in reference]

    their_first = derivatives(torch, reference, their_inputs, True)
    assert_same(derivatives(fb, mine, our_inputs, False), their_first, tolerance)
    our_first = derivatives(fb, mine, our_inputs, True)
    assert_same(our_first, their_first, tolerance)
    recorded = [
        i
        for i, (a, b) in enumerate(zip(our_first, their_first, strict=True))
        if a.requires_grad and b.requires_grad
    ]
    assert_same(
        derivatives(fb, [our_first[i] for i in recorded], our_inputs, False),
        derivatives(torch, [their_first[i] for i in recorded], their_inputs, True),
        tolerance,
    )


def check_error(call: Call, operands: tuple[Any, ...], text: str = "") -> None:
    """Assert that both libraries refuse a call with one class of error, ours with `text` in it."""
    theirs = [theirs_of(operand, place) for place, operand in enumerate(operands)]
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever PyTorch raises
        call(torch, *theirs)
    with pytest.raises(expected.type) as found:
        call(fb, *[ours_of(x) for x in theirs])
    assert found.type is expected.type
    assert text in str(found.value)
