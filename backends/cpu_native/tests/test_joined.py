"""Calls that the steps of a loop make alike are one call, and give the bits that they give."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from plans_agree import agree, memory, ops_of

import flambeau as fb
from flambeau_native.extension import native

pytestmark = pytest.mark.skipif(not native.has_linear(), reason="the processor has no AVX-512")


class Loop:
    """A cell that is written out, whose gradients are returned."""

    def __init__(self, steps: int, batch: int, width: int, inputs: int, bias: bool = True) -> None:
        fb.manual_seed(0)
        self.inputs = fb.nn.Linear(inputs, width, bias)
        self.states = fb.nn.Linear(width, width, bias)
        self.words = fb.randn(steps, batch, inputs)

    def parameters(self) -> list[fb.Tensor]:
        return [*self.inputs.parameters(), *self.states.parameters()]

    def __call__(self, words: fb.Tensor) -> list[fb.Tensor]:
        for p in self.parameters():
            p.grad = None
        h = fb.zeros(words.size(1), self.states.weight.size(0))
        for word in words:
            h = fb.tanh(self.inputs(word) + self.states(h))
        h.square().mean().backward()
        return [h.detach(), *[cast(fb.Tensor, p.grad) for p in self.parameters()]]


SHAPES = [(5, 8, 96, 33), (4, 1, 20, 12), (3, 6, 128, 96), (7, 3, 300, 5), (30, 9, 64, 64)]


@pytest.mark.parametrize(("steps", "batch", "width", "inputs"), SHAPES)
@pytest.mark.parametrize("bias", [True, False])
def test_loops_give_what_their_calls_give(
    steps: int, batch: int, width: int, inputs: int, bias: bool
) -> None:
    loop = Loop(steps, batch, width, inputs, bias)
    agree(loop, loop.words)


def test_gradients_of_weights_and_biases_are_sums_over_steps(programs: list[Any]) -> None:
    loop = Loop(5, 8, 96, 48)
    agree(loop, loop.words)
    assert ops_of(programs).count("products_of_steps") == 2
    assert ops_of(programs).count("sums_of_steps") == 1
    assert ops_of(programs).count("clone") == 1  # both biases have the same gradient
    assert ops_of(programs).count("linear") == 6


def test_what_two_parameters_share_is_two_arrays() -> None:
    loop = Loop(5, 8, 96, 48)
    compiled = fb.compile(loop)
    for _ in range(3):
        compiled(loop.words)
    first, second = cast(fb.Tensor, loop.inputs.bias.grad), cast(fb.Tensor, loop.states.bias.grad)
    assert fb.equal(first, second)
    first.zero_()
    assert second.any()


def test_two_steps_stay_as_they_are(programs: list[Any]) -> None:
    loop = Loop(2, 8, 96, 48)
    agree(loop, loop.words)
    assert not {"products_of_steps", "sums_of_steps", "parts"} & set(ops_of(programs))


def test_many_rows_stay_products_of_their_own(programs: list[Any]) -> None:
    """Beyond 256 of them libraries sum in parts."""
    loop = Loop(3, 300, 310, 300)
    agree(loop, loop.words)
    assert "products_of_steps" not in ops_of(programs)


def test_nothing_is_joined_across_a_write(programs: list[Any]) -> None:
    weight, table = fb.randn(64, 32), fb.randn(4, 8, 32)

    def function(x: fb.Tensor) -> list[fb.Tensor]:
        first = [fb.nn.functional.linear(x[i], weight) for i in range(3)]
        weight.mul_(1.0)
        weight[0] = 2.0
        return [sum(first, fb.zeros(())) * 2, fb.nn.functional.linear(x[3], weight) * 2]

    compiled = fb.compile(function)
    start = weight.clone()
    for _ in range(4):
        weight.copy_(start)
        expected = [memory(t) for t in function(table)]
        weight.copy_(start)
        assert [memory(t) for t in compiled(table)] == expected
    assert "parts" not in ops_of(programs)


def test_layers_whose_results_are_returned_are_arrays_of_their_own(programs: list[Any]) -> None:
    layer = fb.nn.Linear(32, 64).requires_grad_(False)

    def function(x: fb.Tensor) -> list[fb.Tensor]:
        made = [layer(word) for word in x]
        return [made[0], made[1].view(-1), made[2] * 2 + 1]

    agree(function, fb.randn(3, 8, 32))
    assert "parts" not in ops_of(programs)


def test_layers_of_some_parts_stay_layers(programs: list[Any]) -> None:
    layer = fb.nn.Linear(32, 64).requires_grad_(False)
    agree(lambda x: [sum(layer(x[i]) * 2 for i in (0, 1, 3))], fb.randn(4, 8, 32))
    assert "parts" not in ops_of(programs)
    agree(lambda x: [sum(layer(x[i]) * 2 for i in (3, 0, 1, 2, 1))], fb.randn(4, 8, 32))


def test_layers_of_parts_in_any_order_are_one(programs: list[Any]) -> None:
    layer = fb.nn.Linear(32, 64).requires_grad_(False)
    agree(lambda x: [sum(layer(x[i]).tanh() * (i + 1) for i in (3, 0, 2, 1))], fb.randn(4, 8, 32))
    assert ops_of(programs).count("parts") == ops_of(programs).count("linear") == 1


def test_terms_that_others_read_stay(programs: list[Any]) -> None:
    def function(a: fb.Tensor, b: fb.Tensor) -> list[fb.Tensor]:
        terms = [a[i].t() @ b[i] for i in range(4)]
        whole = terms[0] + terms[1] + terms[2] + terms[3]
        return [whole, terms[1] * 2]

    agree(function, fb.randn(4, 5, 64), fb.randn(4, 5, 32))
    assert "products_of_steps" not in ops_of(programs)


@pytest.mark.parametrize("special", [float("nan"), float("inf"), -0.0])
def test_sums_are_taken_in_the_order_of_their_additions(
    special: float, programs: list[Any]
) -> None:
    def function(a: fb.Tensor, b: fb.Tensor) -> list[fb.Tensor]:
        products = [a[i].t() @ b[i] for i in (2, 0, 3, 1)]
        lines = [a[i].sum(0) for i in (2, 0, 3, 1)]
        whole = products[3] + (products[2] + (products[1] + products[0]))
        return [whole, lines[0] + lines[1] + lines[2] + lines[3]]

    a, b = fb.randn(4, 9, 64) * 1000, fb.randn(4, 9, 34)
    a[1, 2, 3] = b[2, 4] = special
    a[:, :, 5] = -0.0
    agree(function, a, b)
    assert "products_of_steps" in ops_of(programs) and "sums_of_steps" in ops_of(programs)


def test_other_dtypes_and_layouts_stay(programs: list[Any]) -> None:
    def function(a: fb.Tensor, b: fb.Tensor) -> list[fb.Tensor]:
        return [sum((a[i].t() @ b[i] for i in range(1, 4)), a[0].t() @ b[0])]

    agree(function, fb.randn(4, 9, 64).double(), fb.randn(4, 9, 34).double())
    agree(function, fb.randn(4, 9, 128)[..., ::2], fb.randn(4, 9, 34))
    agree(function, fb.randn(4, 9, 64), fb.randn(4, 34, 9).transpose(1, 2))
    assert "products_of_steps" not in ops_of(programs)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("depth", [0, 1, 8, 100])
@pytest.mark.parametrize("rows", [0, 1, 5, 6, 13])
@pytest.mark.parametrize("columns", [0, 1, 16, 17, 32, 70])
def test_products_of_steps_are_those_of_the_kernel_of_two_matrices(
    steps: int, depth: int, rows: int, columns: int
) -> None:
    a, b = numbers(steps, depth, rows), numbers(steps, depth, columns)
    wanted = np.zeros((rows, columns), np.float32)
    for i in range(steps):
        term = np.empty_like(wanted)
        native.matrices(term, a[i], b[i], None, rows, columns, depth, True, False, 0)
        wanted = term if i == 0 else wanted + term
    found = np.full((rows, columns), 7, np.float32)
    native.products_of_steps(found, a, b, rows, columns, depth, steps)
    np.testing.assert_array_equal(found, wanted)


def test_steps_are_divided_among_threads_and_have_the_same_bits(threads: Any) -> None:
    a, b, found = numbers(40, 16, 130), numbers(40, 16, 90), []
    for number in 1, 2, 3, 64:
        threads(number)
        out = np.empty((130, 90), np.float32)
        native.products_of_steps(out, a, b, 130, 90, 16, 40)
        found.append(out.tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    "sizes",
    [(7, 9, 5, 3), (6, 10, 5, 3), (6, 9, 6, 3), (6, 9, 5, 4), (-6, 9, 5, 3), (1 << 62,) * 4],
)
def test_products_of_steps_refuse_arrays_that_are_too_short(sizes: tuple[int, ...]) -> None:
    out, a, b = numbers(6, 9), numbers(3, 5, 6), numbers(3, 5, 9)
    with pytest.raises((ValueError, IndexError, RuntimeError, OverflowError)):
        native.products_of_steps(out, a, b, *sizes)


def test_steps_of_nothing_are_over_at_once() -> None:
    out, nothing = np.full((3, 3), 7, np.float32), np.zeros(0, np.float32)
    native.products_of_steps(out, nothing, nothing, 3, 3, 0, 1 << 40)
    assert not out.any()
