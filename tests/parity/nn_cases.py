"""What the parity tests of layers share: one call on both libraries, and one layer on both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

Case = tuple[str, Callable[..., Any], tuple[Any, ...]]


def functional(name: str, *args: Any, label: str = "", shapes: Any, **options: Any) -> Case:
    """A function of ``nn.functional`` on operands of `shapes`, then `args` and `options`."""
    text = label or ", ".join(map(str, [*args, *(f"{k}={v}" for k, v in options.items())]))

    def call(library: Any, *operands: Any) -> Any:
        return getattr(library.nn.functional, name)(*operands, *args, **options)

    return f"{name} {shapes} {text}", call, shapes


def parameters(cases: list[Case]) -> list[Any]:
    """Cases as parameters with their names."""
    return [pytest.param(call, operands, id=name) for name, call, operands in cases]


def assert_same_layer(
    name: str, args: tuple[Any, ...], options: dict[str, Any], shape: Any
) -> None:
    """Equal repr, state of a seed, output and gradients of a layer of both libraries."""
    made = []
    for library in (fb, torch):
        library.manual_seed(7)
        layer = getattr(library.nn, name)(*args, **options)
        library.manual_seed(13)
        given = library.randn(*shape).requires_grad_()
        library.manual_seed(17)
        output = layer(given)
        weights = library.arange(1.0, output.numel() + 1).reshape(output.shape)
        wanted = [given, *layer.parameters()]
        grads = library.autograd.grad((output * weights).sum(), wanted)
        made.append((repr(layer), layer.state_dict(), output, grads))
    (here, state, output, grads), (there, expected, wanted_output, wanted_grads) = made
    assert here == there
    assert list(state) == list(expected)
    pairs = [(state[key], expected[key], 2e-7) for key in expected]
    pairs += [(output, wanted_output, 1e-5)]
    pairs += [(a, b, 1e-4) for a, b in zip(grads, wanted_grads, strict=True)]
    for a, b, tolerance in pairs:
        assert tuple(a.shape) == tuple(b.shape)
        values = torch.tensor(a.detach().flatten().tolist()).reshape(b.shape)
        torch.testing.assert_close(values, b.detach(), rtol=tolerance, atol=tolerance)
