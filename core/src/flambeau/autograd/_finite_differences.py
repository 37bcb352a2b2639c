"""One gradient check: Jacobians by finite differences against those of backward.

The comparison runs on Python numbers, so that it asks nothing of the backend under test but the
checked function, `zeros_like`, `tensor`, `reshape` and `copy_`.
"""

from __future__ import annotations

import cmath
import itertools
import math
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import flambeau as fb

if TYPE_CHECKING:
    from flambeau import Tensor

Number = float | complex
# One row per element of the input, one column per element of the output.
Jacobian = list[list[Number]]


class GradcheckError(RuntimeError):
    """A gradient that failed a check of `gradcheck` or `gradgradcheck`."""


class Check:
    """One call of `gradcheck`: the function, its inputs and the tolerances."""

    def __init__(
        self,
        func: Callable[..., Any],
        inputs: tuple[Any, ...],
        eps: float,
        atol: float,
        rtol: float,
        nondet_tol: float,
        check_grad_dtypes: bool,
    ) -> None:
        func, inputs = by_stored_elements(func, inputs)
        self.func, self.inputs = func, inputs
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol
        self.check_grad_dtypes = check_grad_dtypes
        self.wanted = [i for i, x in enumerate(inputs) if requires_grad(x)]
        self.checked = [inputs[i] for i in self.wanted]
        if not self.wanted:
            raise ValueError(
                "gradcheck: no input requires a gradient, so there is nothing to check"
            )
        for i in self.wanted:
            _check_input(i, inputs[i])

    def run(self, fast_mode: bool, check_undefined_grad: bool) -> None:
        results = as_tuple(self.func(*self.inputs))
        positions = [k for k, out in enumerate(results) if requires_grad(out)]
        outputs = [results[k] for k in positions]
        if any(getattr(out, "is_sparse", False) for out in outputs):
            raise ValueError("gradcheck: an output is sparse; return its to_dense() instead")
        if not outputs:
            self.check_independent(results)
            return
        is_complex = any(t.is_complex() for t in (*self.checked, *outputs))
        # Gradients first: changing the inputs would make the saved values of this graph stale.
        if fast_mode and not is_complex:
            self.check_projections(outputs, positions)
        else:
            self.check_jacobians(outputs, positions)
        outputs = [out for out in as_tuple(self.func(*self.inputs)) if requires_grad(out)]
        self.check_zero_gradients(outputs)
        if check_undefined_grad:
            self.check_undefined_gradients(outputs)

    def check_jacobians(self, outputs: list[Tensor], positions: list[int]) -> None:
        """Compare every element of every Jacobian."""
        analytical = [
            {part: self.analytical(out, unit) for part, unit in _parts(out)} for out in outputs
        ]
        for column, i in enumerate(self.wanted):
            numerical = self.numerical(i, positions)
            for k, position in enumerate(positions):
                for part, unit in _parts(outputs[k]):
                    expected: Jacobian = [
                        [_part(value, unit) for value in row] for row in numerical[k]
                    ]
                    if self.inputs[i].is_complex():
                        # Rows alternate: the change of Re(x), the change of Im(x).
                        pairs = zip(expected[::2], expected[1::2], strict=True)
                        expected = [
                            [a + 1j * b for a, b in zip(*rows, strict=True)] for rows in pairs
                        ]
                    self.compare(analytical[k][part][column], expected, position, i, part)

    def numerical(self, i: int, positions: list[int]) -> list[Jacobian]:
        """Central differences of the outputs at `positions`, a row for each change of input `i`."""
        data = self.inputs[i].data
        before = flat(data)
        jacobians: list[Jacobian] = [[] for _ in positions]
        for place, index in enumerate(_indices(data)):
            for change in (self.eps, self.eps * 1j) if data.is_complex() else (self.eps,):
                found = []
                try:
                    for value in (before[place] + change, before[place] - change):
                        # As a whole: a write to one place may be a program for each place.
                        changed = [*before[:place], value, *before[place + 1 :]]
                        data.copy_(_like(data, changed))
                        found.append(self.evaluate(positions))
                finally:
                    data.copy_(_like(data, before))
                above, below = found
                if [len(a) for a in above] != [len(b) for b in below]:
                    raise AssertionError(
                        f"gradcheck: func must return outputs of one shape when input {i} changes "
                        f"by {self.eps} at {index}, got {[len(a) for a in above]} and "
                        f"{[len(b) for b in below]} elements"
                    )
                for rows, a, b in zip(jacobians, above, below, strict=True):
                    rows.append([(p - m) / (2 * self.eps) for p, m in zip(a, b, strict=True)])
        return jacobians

    def evaluate(self, positions: list[int]) -> list[list[Number]]:
        outputs = as_tuple(self.func(*self.inputs))
        return [flat(outputs[k]) for k in positions]

    def analytical(self, output: Tensor, unit: Number) -> list[Jacobian]:
        """The Jacobians of one output by every checked input, one backward for each element."""
        jacobians: list[Jacobian] = [[[] for _ in range(x.numel())] for x in self.checked]
        for place in range(output.numel()):
            seed = _like(output, [unit * (k == place) for k in range(output.numel())])
            for rows, gradient in zip(jacobians, self.backward(output, seed), strict=True):
                for row, value in zip(rows, gradient, strict=True):
                    row.append(value)
        return jacobians

    def backward(self, output: Tensor, seed: Tensor) -> list[list[Number]]:
        """Gradients by every checked input as numbers, computed twice and compared."""
        found = []
        for _ in range(2):
            gradients = fb.autograd.grad(
                output, self.checked, seed, retain_graph=True, allow_unused=True
            )
            found.append([self.numbers(i, g) for i, g in zip(self.wanted, gradients, strict=True)])
        for i, first, second in zip(self.wanted, *found, strict=True):
            worst = max((_distance(a, b) for a, b in zip(first, second, strict=True)), default=0.0)
            if worst > self.nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant: two passes with the same gradient differ by "
                    f"{worst:g} in the gradient of input {i}, more than nondet_tol="
                    f"{self.nondet_tol:g}. If the function is not deterministic, raise nondet_tol"
                )
        return found[0]

    def numbers(self, i: int, gradient: Tensor | None) -> list[Number]:
        x = self.inputs[i]
        if gradient is None:
            return [0.0] * x.numel()
        if tuple(gradient.shape) != tuple(x.shape):
            raise GradcheckError(
                f"Analytical gradient has incorrect size: input {i} has shape {tuple(x.shape)}, "
                f"its gradient {tuple(gradient.shape)}"
            )
        if self.check_grad_dtypes and gradient.dtype != x.dtype:
            raise GradcheckError(
                f"Gradient has dtype mismatch: input {i} is {x.dtype}, "
                f"its gradient {gradient.dtype}"
            )
        return flat(gradient)

    def compare(self, found: Jacobian, expected: Jacobian, k: int, i: int, part: str) -> None:
        wrong = [
            (_distance(a, n), row, column)
            for row, (left, right) in enumerate(zip(found, expected, strict=True))
            for column, (a, n) in enumerate(zip(left, right, strict=True))
            if not _close(a, n, self.rtol, self.atol)
        ]
        if not wrong:
            return
        worst, row, column = max(wrong)
        considering = f"while considering the {part} part of complex outputs only, " if part else ""
        raise GradcheckError(
            f"{considering}Jacobian mismatch for output {k} with respect to input {i}: "
            f"{len(wrong)} of {sum(map(len, found))} elements differ, most at input element {row}, "
            f"output element {column}, by {worst:g},\n"
            f"numerical:{fb.tensor(expected)}\nanalytical:{fb.tensor(found)}\n"
        )

    def check_independent(self, results: tuple[Any, ...]) -> None:
        """Without a differentiable output nothing may depend on the inputs."""
        floating = [k for k, out in enumerate(results) if is_floating(out)]
        for i in self.wanted:
            for k, jacobian in zip(floating, self.numerical(i, floating), strict=True):
                if any(value != 0 for row in jacobian for value in row):
                    raise GradcheckError(
                        f"Numerical gradient for function expected to be zero: output {k} does not "
                        f"require a gradient but depends on input {i}, "
                        f"numerical:{fb.tensor(jacobian)}"
                    )

    def check_projections(self, outputs: list[Tensor], positions: list[int]) -> None:
        """Compare v·J·u for one random u per input and one random v per output."""
        draw = random.Random(0)
        seeds = [[draw.random() for _ in range(out.numel())] for out in outputs]
        gradients = [
            self.backward(out, _like(out, seed)) for out, seed in zip(outputs, seeds, strict=True)
        ]
        for column, i in enumerate(self.wanted):
            x = self.inputs[i]
            u = [draw.random() for _ in range(x.numel())]
            length = math.sqrt(sum(value * value for value in u)) or 1.0
            u = [value / length for value in u]
            before, step = x.detach().clone(), _like(x, u) * self.eps
            try:
                x.data.copy_(before + step)
                above = self.evaluate(positions)
                x.data.copy_(before - step)
                below = self.evaluate(positions)
            finally:
                x.data.copy_(before)
            for k, v in enumerate(seeds):
                change = zip(v, above[k], below[k], strict=True)
                numerical = sum(w * (p - m) / (2 * self.eps) for w, p, m in change)
                analytical = sum(a * b for a, b in zip(gradients[k][column], u, strict=True))
                if not _close(analytical, numerical, self.rtol, self.atol * sum(u) * sum(v)):
                    raise GradcheckError(
                        f"Jacobian mismatch for output {positions[k]} with respect to input {i}: "
                        f"of a random projection,\nnumerical:{numerical}\nanalytical:{analytical}\n"
                        "Repeat the check with fast_mode=False to see the Jacobians"
                    )

    def check_zero_gradients(self, outputs: list[Tensor]) -> None:
        """Zero gradients of the outputs must give zeros, of the form of the inputs."""
        zeros = [fb.zeros_like(out) for out in outputs]
        found = fb.autograd.grad(outputs, self.checked, zeros, retain_graph=True, allow_unused=True)
        for i, gradient in zip(self.wanted, found, strict=True):
            if gradient is None:
                continue
            x = self.inputs[i]
            if any(value != 0 for value in flat(gradient)):
                raise GradcheckError(
                    "backward not multiplied by grad_output: zero gradients of the outputs give "
                    f"input {i} the gradient {gradient}"
                )
            if self.check_grad_dtypes and gradient.dtype != x.dtype:
                raise GradcheckError(
                    f"grad is incorrect type: {gradient.dtype}, input {i} is {x.dtype}"
                )
            if gradient.device != x.device:
                raise GradcheckError(
                    f"grad is incorrect device: {gradient.device}, input {i} is on {x.device}"
                )
            if tuple(gradient.shape) != tuple(x.shape):
                raise GradcheckError(
                    f"grad is incorrect size: {tuple(gradient.shape)}, "
                    f"input {i} has {tuple(x.shape)}"
                )

    def check_undefined_gradients(self, outputs: list[Tensor]) -> None:
        """All outputs, then each alone, go without a gradient: it counts as zero."""
        count = len(outputs)
        zeros = [fb.zeros_like(out) for out in outputs]
        cases = [set(range(count)), *([{k} for k in range(count)] if count > 1 else [])]
        for undefined in cases:
            cut = [
                _without_gradient(out) if k in undefined else out for k, out in enumerate(outputs)
            ]
            try:
                found = fb.autograd.grad(
                    cut, self.checked, zeros, retain_graph=True, allow_unused=True
                )
            except RuntimeError as error:
                raise GradcheckError(
                    "backward must accept undefined output grads, but raised for outputs "
                    f"{sorted(undefined)}: {error}"
                ) from error
            for i, gradient in zip(self.wanted, found, strict=True):
                if gradient is not None and any(value != 0 for value in flat(gradient)):
                    raise GradcheckError(
                        "undefined output grads must count as zero, but input "
                        f"{i} gets the gradient {gradient}"
                    )


def by_stored_elements(
    func: Callable[..., Any], inputs: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function of the stored elements of sparse inputs, and its inputs.

    Elements that are not stored are zero whatever happens, so there is nothing to check of them.
    """
    places = {i: x for i, x in enumerate(inputs) if requires_grad(x) and x.is_sparse}
    if not places:
        return func, inputs

    def of_elements(*args: object) -> object:
        return func(*(places[i].like(x) if i in places else x for i, x in enumerate(args)))

    elements = (
        x._values().clone().requires_grad_() if i in places else x for i, x in enumerate(inputs)
    )
    return of_elements, tuple(elements)


def _check_input(i: int, x: Tensor) -> None:
    if x.dtype not in (fb.float64, fb.complex128):
        warnings.warn(
            f"gradcheck: input {i} is {x.dtype}; the check will likely fail for inputs that are "
            "not of double precision (float64, complex128)",
            stacklevel=4,
        )
    strides = x.stride()
    places = {sum(a * b for a, b in zip(index, strides, strict=True)) for index in _indices(x)}
    if len(places) < x.numel():
        raise RuntimeError(
            f"gradcheck: {x.numel()} elements of input {i} share {len(places)} places in memory "
            f"(shape {tuple(x.shape)}, stride {tuple(strides)}), so they cannot change one by one; "
            "pass a contiguous copy and expand it inside func"
        )


def _without_gradient(output: Tensor) -> Tensor:
    """The same values, through a function whose backward gives no gradient at all."""

    class Undefined(fb.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: object, *grad_outputs: object) -> None:
            return None

    return Undefined.apply(output)


def as_tuple(value: object) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def requires_grad(value: Tensor) -> bool:
    return isinstance(value, fb.Tensor) and value.requires_grad


def is_floating(value: object) -> bool:
    return isinstance(value, fb.Tensor) and (value.is_floating_point() or value.is_complex())


def _indices(x: Tensor) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, x.shape))


def flat(x: Tensor) -> list[Number]:
    return x.detach().reshape(-1).tolist()


def _parts(output: Tensor) -> list[tuple[str, Number]]:
    """The real quantities of an output, each with the gradient that selects it."""
    return [("real", 1.0), ("imaginary", 1j)] if output.is_complex() else [("", 1.0)]


def _part(value: Number, unit: Number) -> Number:
    return value.imag if isinstance(unit, complex) else value.real


def _distance(a: Number, b: Number) -> float:
    return 0.0 if a == b or (cmath.isnan(a) and cmath.isnan(b)) else abs(a - b)


def _close(a: Number, b: Number, rtol: float, atol: float) -> bool:
    return a == b or abs(a - b) <= atol + rtol * abs(b)


def _like(x: Tensor, values: Sequence[Number]) -> Tensor:
    return fb.tensor(values, dtype=x.dtype, device=x.device).reshape(x.shape)


def random_like(x: Tensor, draw: random.Random, spread: bool) -> Tensor:
    """Random values in (-1, 1) that require a gradient; with `spread`, not contiguous."""
    options = {"dtype": x.dtype, "device": x.device}
    values = [draw.uniform(-1, 1) for _ in range(x.numel() * (1 + spread))]
    if x.is_complex():
        values = [complex(value, draw.uniform(-1, 1)) for value in values]
    made = fb.tensor(values, **options).reshape((*x.shape, 1 + spread))
    return made.select(-1, 0).detach().requires_grad_()
