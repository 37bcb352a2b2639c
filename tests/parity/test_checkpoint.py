"""Checkpointed functions give PyTorch's results, gradients, random numbers, warnings and errors."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import flambeau  # noqa: E402 - imported beside its oracle

LIBRARIES = (flambeau, torch)
FORMS = (True, False)


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(values, dtype=lib.float64, requires_grad=True)


def checkpoint(lib: Any, *args: Any, **kwargs: Any) -> Any:
    __import__(f"{lib.__name__}.utils.checkpoint")
    return lib.utils.checkpoint.checkpoint(*args, **kwargs)


def mixed(x: Any, y: Any) -> Any:
    """Unary, binary, matrix, view and in-place operations, and several results."""
    a = (x * y).exp()
    b = a.view(3, 1) @ y.view(1, 3)
    c = b.t()[1:] * 2
    c.add_(a).tanh_()
    return c.sum() + (a * x).log_softmax(0).square().sum(), (x / y).sort().values


def both(value: Any) -> Any:
    return value[0] + value[1].prod()


@pytest.mark.parametrize("reentrant", FORMS)
def test_results_and_gradients_are_those_without_checkpoint(reentrant):
    def run(lib: Any, checkpointed: bool) -> list[Any]:
        x, y = leaf(lib, 0.3, -0.5, 0.9), leaf(lib, 1.5, 0.7, -0.2)
        inner = (x.sin(), y * 2)
        if checkpointed:
            result = both(checkpoint(lib, mixed, *inner, use_reentrant=reentrant))
        else:
            result = both(mixed(*inner))
        result.backward()
        return [result.item(), x.grad.tolist(), y.grad.tolist()]

    expected = run(torch, False)
    for ours in (run(flambeau, False), run(flambeau, True)):
        for a, b in zip(ours, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("reentrant", FORMS)
def test_parameters_that_the_function_uses_get_their_gradients(reentrant):
    def run(lib: Any) -> list[Any]:
        w, x = leaf(lib, 2.0, 3.0), leaf(lib, 0.5, -0.5)
        checkpoint(lib, lambda t: (t * w).sigmoid().sum(), x, use_reentrant=reentrant).backward()
        return [w.grad.tolist(), x.grad.tolist()]

    np.testing.assert_allclose(run(flambeau), run(torch), rtol=1e-12)


@pytest.mark.parametrize("reentrant", FORMS)
@pytest.mark.parametrize("first", [True, False])
def test_the_second_run_has_the_precision_of_the_first(reentrant, first):
    def run(lib: Any) -> list[Any]:
        x = lib.tensor([[1.0, 2.0]], requires_grad=True)
        dtypes = []

        def product(t: Any) -> Any:
            y = t @ t.t()
            dtypes.append(str(y.dtype))
            return y

        with lib.autocast("cpu", enabled=first):
            y = checkpoint(lib, product, x, use_reentrant=reentrant)
        with lib.autocast("cpu", enabled=not first):
            y.backward()
        return [set(dtypes), x.grad.tolist()]

    assert run(flambeau) == run(torch)


def test_a_function_of_an_outer_intermediate_gets_its_gradient():
    def run(lib: Any) -> list[float]:
        x = leaf(lib, 0.5, -0.5)
        hidden = x.exp()
        checkpoint(lib, lambda t: (t * hidden).sum(), x * 3, use_reentrant=False).backward()
        return x.grad.tolist()

    np.testing.assert_allclose(run(flambeau), run(torch), rtol=1e-12)


@pytest.mark.parametrize("preserve", [True, False])
@pytest.mark.parametrize("reentrant", FORMS)
def test_the_second_run_draws_the_random_numbers_of_the_first(reentrant, preserve):
    def run(lib: Any) -> list[Any]:
        lib.manual_seed(5)
        x = lib.ones(8, dtype=lib.float64, requires_grad=True)

        def noisy(t: Any) -> Any:
            return (t * lib.rand(8, dtype=lib.float64)).square()

        y = checkpoint(lib, noisy, x, use_reentrant=reentrant, preserve_rng_state=preserve)
        y.sum().backward()
        return [y.tolist(), x.grad.tolist(), lib.rand(2).tolist()]

    ours, theirs = run(flambeau), run(torch)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    repeated = np.allclose(ours[1], np.multiply(ours[0], 2), rtol=1e-6)
    assert repeated is preserve


@pytest.mark.parametrize("reentrant", FORMS)
def test_the_function_runs_twice_and_intermediate_values_are_not_kept(reentrant):
    kept: list[weakref.ref[Any]] = []

    def function(t: Any) -> Any:
        hidden = t.exp()
        kept.append(weakref.ref(hidden))
        return (hidden * hidden).sum()

    x = leaf(flambeau, 1.0, 2.0)
    y = checkpoint(flambeau, function, x, use_reentrant=reentrant)
    assert kept[0]() is None
    y.backward()
    assert len(kept) == 2
    np.testing.assert_allclose(x.grad.tolist(), 2 * np.exp([2.0, 4.0]))


def test_a_result_without_backward_is_freed_without_the_collector():
    gc.disable()
    try:
        big = leaf(flambeau, 1.0) * 2
        watcher = weakref.ref(big)
        y = checkpoint(flambeau, lambda t: t.exp().sin(), big, use_reentrant=False)
        del big
        assert watcher() is not None  # the second run needs it
        del y
        assert watcher() is None
    finally:
        gc.enable()


def test_grad_and_second_derivatives_are_those_of_pytorch():
    def run(lib: Any) -> list[Any]:
        x, w = leaf(lib, 0.5, -0.3), leaf(lib, 2.0, 1.5)
        y = checkpoint(lib, lambda t: (t * w).tanh().exp().sum(), x, use_reentrant=False)
        first = lib.autograd.grad(y, (x, w), create_graph=True)
        second = lib.autograd.grad((first[0] * first[1]).sum(), (x, w))
        return [t.tolist() for t in (*first, *second)]

    np.testing.assert_allclose(run(flambeau), run(torch), rtol=1e-12)


def test_gradcheck_holds_through_a_checkpoint():
    x, y = leaf(flambeau, 0.3, -0.5, 0.9), leaf(flambeau, 1.5, 0.7, -0.2)

    def function(x: Any, y: Any) -> Any:
        return both(checkpoint(flambeau, mixed, x, y, use_reentrant=False))

    assert flambeau.autograd.gradcheck(function, (x, y))
    assert flambeau.autograd.gradgradcheck(function, (x, y))


def test_a_retained_graph_serves_again_and_a_freed_one_does_not():
    x = leaf(flambeau, 0.5)
    y = checkpoint(flambeau, lambda t: t.exp() * t, x, use_reentrant=False)
    y.backward(retain_graph=True)
    once = x.grad.item()
    y.backward()
    assert x.grad.item() == 2 * once
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad=True")
@pytest.mark.parametrize("reentrant", FORMS)
def test_checkpoints_nest(reentrant):
    def run(lib: Any) -> list[float]:
        x = leaf(lib, 0.5, -0.3)

        def inner(t: Any) -> Any:
            return t.exp() * t

        def outer(t: Any) -> Any:
            return checkpoint(lib, inner, t.sin(), use_reentrant=reentrant).cos() * t

        checkpoint(lib, outer, x, use_reentrant=reentrant).sum().backward()
        return x.grad.tolist()

    np.testing.assert_allclose(run(flambeau), run(torch), rtol=1e-12)


def test_custom_functions_and_dictionaries_pass_through():
    class Cube(flambeau.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            ctx.save_for_backward(t)
            return t**3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (t,) = ctx.saved_tensors
            return grad * 3 * t * t

    x = leaf(flambeau, 2.0)
    result = checkpoint(
        flambeau, lambda t, *, scale: {"y": [Cube.apply(t.exp()) * scale]}, x,
        scale=0.5, use_reentrant=False,
    )  # fmt: skip
    result["y"][0].backward()
    np.testing.assert_allclose(x.grad.tolist(), [1.5 * np.exp(6.0)])


@pytest.mark.parametrize("reentrant", FORMS)
def test_without_recording_the_function_runs_once(reentrant):
    calls = []
    with flambeau.no_grad():
        y = checkpoint(
            flambeau, lambda t: calls.append(1) or t * 2, leaf(flambeau, 1.0),
            use_reentrant=reentrant,
        )  # fmt: skip
    assert not y.requires_grad
    assert calls == [1]


def test_contexts_surround_both_runs():
    events = []

    class Note:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            events.append(self.name)

        def __exit__(self, *exc: object) -> None:
            events.append("end of " + self.name)

    def contexts() -> tuple[Note, Note]:
        return Note("first"), Note("second")

    x = leaf(flambeau, 1.0)
    y = checkpoint(flambeau, lambda t: t.exp(), x, use_reentrant=False, context_fn=contexts)
    assert events == ["first", "end of first"]
    y.backward()
    assert events[2:] == ["second", "end of second"]


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ((lambda t: t.exp(), lambda t: t.exp()[:1]), r"other \(shape, dtype, device\)"),
        ((lambda t: t.exp(), lambda t: t.sin()), "operation 0 is SinBackward0, not ExpBackward0"),
        ((lambda t: t.exp(), lambda t: t.exp().cos()), "2 operations, not 1"),
    ],
)
def test_a_second_run_that_does_something_else_is_an_error_that_tells_what(functions, message):
    runs = iter(functions)
    x = leaf(flambeau, 1.0, 2.0)
    y = checkpoint(flambeau, lambda t: next(runs)(t), x, use_reentrant=False)
    with pytest.raises(flambeau.utils.checkpoint.CheckpointError, match=message):
        y.sum().backward()


@pytest.mark.parametrize("reentrant", FORMS)
@pytest.mark.parametrize("lib", LIBRARIES)
def test_an_argument_that_was_written_to_since_is_an_error(lib, reentrant):
    x = leaf(lib, 1.0, 2.0)
    hidden = x * 2
    y = checkpoint(lib, lambda t: t.exp(), hidden, use_reentrant=reentrant)
    with lib.no_grad():
        hidden.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("lib", LIBRARIES)
def test_the_form_should_be_given(lib):
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(lib, lambda t: t * 2, leaf(lib, 1.0)).backward()
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        lib.utils.checkpoint.checkpoint_sequential([lambda t: t * 2] * 2, 2, leaf(lib, 1.0))


@pytest.mark.parametrize("lib", LIBRARIES)
def test_reentrant_without_a_gradient_among_the_arguments_warns(lib):
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        y = checkpoint(lib, lambda t: t * 2, lib.ones(2), use_reentrant=True)
    assert not y.requires_grad


BAD = [
    lambda lib: checkpoint(lib, len, [], use_reentrant=True, size=3),
    lambda lib: checkpoint(lib, len, [], use_reentrant=True, debug=True),
    lambda lib: checkpoint(lib, len, [], use_reentrant=False, determinism_check="strict"),
]


@pytest.mark.parametrize("call", BAD)
@pytest.mark.parametrize("lib", LIBRARIES)
def test_arguments_that_do_not_fit_raise_value_errors(lib, call):
    with pytest.raises(ValueError, match="keyword arguments: size|only supported|should be one of"):
        call(lib)


def sequential(lib: Any, segments: int, **kwargs: Any) -> Any:
    __import__(f"{lib.__name__}.utils.checkpoint")
    functions = [lambda t: t * 2, lambda t: t + 1]
    return lib.utils.checkpoint.checkpoint_sequential(
        functions, segments, leaf(lib, 1.0), use_reentrant=False, **kwargs
    )


@pytest.mark.parametrize("lib", LIBRARIES)
@pytest.mark.parametrize(("segments", "kwargs"), [(3, {}), (2, {"size": 1})])
def test_sequences_that_cannot_be_made_raise_value_errors(lib, segments, kwargs):
    with pytest.raises(ValueError, match="segments of 2|must not be zero|arguments: size"):
        sequential(lib, segments, **kwargs)


def test_a_result_may_be_written_to():
    x = leaf(flambeau, 0.5, 1.0)
    y = checkpoint(flambeau, lambda t: t.exp(), x, use_reentrant=False)
    y.mul_(3)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), 3 * np.exp([0.5, 1.0]))


def test_reentrant_that_depends_on_no_argument_is_unnecessary():
    def message(lib: Any) -> str:
        x = leaf(lib, 1.0)
        y = checkpoint(lib, lambda t: t.detach() * 2, x, use_reentrant=True)
        with pytest.raises(RuntimeError, match="not necessary") as error:
            y.backward()
        return str(error.value)

    assert message(flambeau) == message(torch)


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
@pytest.mark.parametrize("reentrant", FORMS)
def test_sequences_in_segments_are_those_of_pytorch(reentrant, segments):
    def run(lib: Any) -> list[Any]:
        __import__(f"{lib.__name__}.utils.checkpoint")
        lib.manual_seed(0)
        layers = [lib.nn.Linear(3, 3), lib.nn.Tanh(), lib.nn.Linear(3, 3), lib.nn.Sigmoid()]
        model = lib.nn.Sequential(*layers, lib.nn.Linear(3, 1)).double()
        x = lib.ones(2, 3, dtype=lib.float64, requires_grad=True)
        y = lib.utils.checkpoint.checkpoint_sequential(model, segments, x, use_reentrant=reentrant)
        y.sum().backward()
        return [y.tolist(), x.grad.tolist(), *(p.grad.tolist() for p in model.parameters())]

    for a, b in zip(run(flambeau), run(torch), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
