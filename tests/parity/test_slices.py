"""Slices are read and written as PyTorch's: values, gradients, and what lies between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as fb

PARTS = {
    "columns": (slice(None), slice(1, 6)),
    "two columns": (slice(None), slice(2, 4)),
    "one column": (slice(None), slice(3, 4)),
    "a column": (slice(None), 3),
    "rows": (slice(1, 4),),
    "every second": (Ellipsis, slice(None, None, 2)),
    "every third": (slice(1, None, 2), slice(2, None, 3)),
    "backwards in memory": (slice(None, None, 2), slice(5, None)),
}
READ: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda t, x: x.sum(-1),
    "mean": lambda t, x: x.mean(0),
    "softmax": lambda t, x: x.softmax(-1),
    "log_softmax": lambda t, x: x.log_softmax(0),
    "logsumexp": lambda t, x: x.logsumexp(-1),
    "max": lambda t, x: x.max(-1)[0],
    "amin": lambda t, x: x.amin(0),
    "prod": lambda t, x: x.prod(-1),
    "var": lambda t, x: x.var(0),
    "norm": lambda t, x: x.norm(dim=-1),
    "cumsum": lambda t, x: x.cumsum(-1),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, x.shape[-1:]),
    "mse_loss": lambda t, x: t.nn.functional.mse_loss(x, x.detach() * 2),
    "median": lambda t, x: x.median(0)[0],
    "topk": lambda t, x: x.topk(1)[0],
    "relu": lambda t, x: x.relu(),
    "arithmetic": lambda t, x: (x + x[:1]) * 3 - x / 2,
}
WRITE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add a number": lambda t, x, y: x.add_(1),
    "add": lambda t, x, y: x.add_(y),
    "add a row": lambda t, x, y: x.add_(y[:1]),
    "subtract with a factor": lambda t, x, y: x.sub_(y, alpha=0.5),
    "multiply by itself": lambda t, x, y: x.mul_(x),
    "clamp": lambda t, x, y: x.clamp_(-0.5, 0.5),
    "relu": lambda t, x, y: x.relu_(),
    "sigmoid": lambda t, x, y: x.sigmoid_(),
    "fill by a mask": lambda t, x, y: x.masked_fill_(y > 0, -2.0),
    "lerp": lambda t, x, y: x.lerp_(y, 0.25),
    "addcmul": lambda t, x, y: x.addcmul_(y, y, value=0.5),
}


def numbers(dtype: Any) -> Any:
    return torch.randn(6, 9, generator=torch.Generator().manual_seed(0)).to(dtype)


def both(x: Any, requires_grad: bool = False) -> tuple[Any, Any]:
    ours = fb.tensor(x.tolist(), dtype=getattr(fb, str(x.dtype).removeprefix("torch.")))
    return ours.requires_grad_(requires_grad), x.clone().requires_grad_(requires_grad)


def assert_close(ours: Any, theirs: Any, dtype: Any = torch.float32) -> None:
    found = torch.tensor(ours.tolist(), dtype=dtype).reshape(tuple(ours.shape))
    bound = 1e-5 if dtype is torch.float32 else 1e-12  # slopes of two columns are near 100
    torch.testing.assert_close(found, theirs.detach(), rtol=bound, atol=bound)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("part", PARTS)
def test_what_is_computed_of_slices_agrees(part: str, name: str, dtype: Any) -> None:
    leaves = both(numbers(dtype), requires_grad=True)
    results = []
    for lib, x in zip((fb, torch), leaves, strict=True):
        cut = x[PARTS[part]]
        results.append(READ[name](lib, cut))
        results[-1].sum().backward()
    assert_close(results[0], results[1], dtype)
    assert_close(leaves[0].grad, leaves[1].grad, dtype)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", WRITE)
@pytest.mark.parametrize("part", PARTS)
def test_what_is_written_to_slices_agrees(part: str, name: str, dtype: Any, recorded: bool) -> None:
    leaves, written = both(numbers(dtype), requires_grad=recorded), []
    operands = both(numbers(dtype).flip(0))
    for lib, x, y in zip((fb, torch), leaves, operands, strict=True):
        whole = x * 1
        WRITE[name](lib, whole[PARTS[part]], y[PARTS[part]])
        written.append(whole)
        if recorded and name == "multiply by itself":
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                whole.sum().backward()
        elif recorded:
            whole.sum().backward()
    assert_close(written[0], written[1], dtype)
    if leaves[1].grad is not None:
        assert_close(leaves[0].grad, leaves[1].grad, dtype)


@given(
    st.tuples(st.integers(0, 5), st.integers(1, 6), st.integers(1, 3)),
    st.tuples(st.integers(0, 8), st.integers(1, 9), st.integers(1, 3)),
    st.sampled_from(["+=", "*=", "="]),
)
@settings(max_examples=150, deadline=None)
def test_augmented_assignment_to_a_slice_agrees(
    rows: tuple[int, int, int], columns: tuple[int, int, int], how: str
) -> None:
    key = slice(*rows), slice(*columns)
    found = []
    for x in both(numbers(torch.float32)):
        version = x._version
        if how == "+=":
            x[key] += 1
        elif how == "*=":
            x[key] *= x[:1, key[1]].clone()
        else:
            x[key] = x[key]
        found.append((x, x._version - version))
    assert_close(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


@pytest.mark.parametrize("kwargs", [{}, {"dim": 1}, {"dim": 0, "keepdim": True}])
def test_norms_of_order_0_have_a_history_and_no_gradient(kwargs: dict[str, Any]) -> None:
    libraries: tuple[Any, Any] = fb, torch
    for lib, x in zip(libraries, both(numbers(torch.float32), requires_grad=True), strict=True):
        found = lib.linalg.vector_norm(x, 0, **kwargs)
        assert found.requires_grad
        found.sum().backward()
        assert x.grad is None
        (lib.linalg.vector_norm(x * 2, 0, **kwargs).sum() + x.sum()).backward()
        assert x.grad.tolist() == [[1.0] * 9] * 6
        with pytest.raises(RuntimeError, match="not have been used"):
            lib.autograd.grad(lib.norm(x, 0), x)
