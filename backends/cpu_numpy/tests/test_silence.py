"""Kernels drop floating-point warnings; the user's own NumPy code keeps them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flambeau import plugin
from flambeau_numpy import silence
from flambeau_numpy.kernels import KERNELS
from flambeau_numpy.silence import quiet, silent

ZERO, ONE, BIG = np.zeros(4, np.float32), np.ones(4, np.float32), np.full(4, 3e38, np.float32)
INF, MINUS = np.full(4, np.inf, np.float32), np.full(4, -1, np.float32)
NAN = np.full(4, np.nan, np.float32)

PROVOCATIONS: dict[str, tuple[Any, ...]] = {
    "div": (ONE, ZERO),
    "add": (BIG, BIG),
    "sub": (INF, INF),
    "mul": (ZERO, INF),
    "pow": (ZERO, MINUS),
    "remainder": (ONE, ZERO),
    "fmod": (INF, ONE),
    "floor_divide": (ONE, ZERO),
    "exp": (BIG,),
    "expm1": (BIG,),
    "log": (ZERO,),
    "log1p": (MINUS - 1,),
    "sqrt": (MINUS,),
    "rsqrt": (ZERO,),
    "reciprocal": (ZERO,),
    "sin": (INF,),
    "acos": (BIG,),
    "cosh": (BIG,),
    "sum": (BIG, (0,), False),
    "prod": (BIG, (0,), False),
    "cumsum": (BIG, 0),
    "cumprod": (BIG, 0),
    "mean": (BIG, (0,), False),
    "var": (INF, (0,), 1, False),
    "logsumexp": (INF, (0,), False),
    "matmul": (BIG, BIG),
    "cast": (NAN, plugin.int32),
    "softmax": (-INF, 0),
    "log_softmax": (INF, 0),
    "sigmoid": (-BIG,),
    "silu": (-BIG,),
    "softplus": (BIG, 1.0, 20.0),
    "softplus_backward": (BIG, BIG, 1.0, 20.0),
    "log_sigmoid": (BIG,),
    "log_sigmoid_backward": (BIG, BIG),
    "smooth_l1_loss": (BIG, -BIG, "mean", 1.0),
    "huber_loss": (BIG, -BIG, "mean", 1.0),
    "elu": (BIG, 1.0, 1.0, 1.0),
    "gelu": (BIG, "none"),
    "mse_loss": (BIG, MINUS, "mean"),
    "maximum": (NAN, ONE),
    "lt": (NAN, ONE),
    "argmax": (NAN, 0, False),
    "sign": (NAN,),
    "round": (NAN,),
}


def enlarged(value: Any) -> Any:
    return np.repeat(value, 20000) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", PROVOCATIONS)
def test_no_warning_escapes_whatever_the_filters_say(name: str, large: bool) -> None:
    args = tuple(enlarged(a) for a in PROVOCATIONS[name]) if large else PROVOCATIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KERNELS[name](*args)


@pytest.mark.parametrize("name", [n for n in PROVOCATIONS if n + "_" in KERNELS])
def test_no_warning_escapes_from_in_place_kernels(name: str) -> None:
    first, *rest = PROVOCATIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KERNELS[name + "_"](first.copy(), *rest)


@pytest.mark.parametrize("name", PROVOCATIONS)
def test_kernels_work_where_the_user_made_errors_raise(name: str) -> None:
    expected = KERNELS[name](*PROVOCATIONS[name])
    with np.errstate(all="raise"):
        found = KERNELS[name](*PROVOCATIONS[name])
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (3,)])
def test_few_elements_are_written_where_the_user_made_errors_raise(shape, dtype) -> None:
    large = np.finfo(dtype).max
    a, b = np.full(shape, large, dtype), np.full(shape, 0, dtype)
    with np.errstate(all="raise"):
        KERNELS["add_"](a, a.copy())
        KERNELS["div_"](b, b.copy())
    assert np.isinf(a).all() and np.isnan(b).all()
    with pytest.raises(TypeError, match="float"):
        KERNELS["div_"](np.ones(shape, np.int64), np.ones(shape, np.int64))


def test_in_place_kernels_finish_where_the_user_made_errors_raise() -> None:
    a = np.full(100_000, 3e38, np.float32)
    with np.errstate(all="raise"):
        KERNELS["add_"](a, a.astype(np.float64))
        KERNELS["exp_"](a)
    assert np.isinf(a).all()


def test_the_error_state_of_the_caller_is_left_alone() -> None:
    with np.errstate(divide="raise", over="print"):
        before = np.geterr()
        KERNELS["softmax"](ONE, 0)
        KERNELS["div"](ONE, ONE)
        assert np.geterr() == before
        with pytest.raises(FloatingPointError):
            np.divide(ONE, ZERO)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.divide(ONE, ZERO)


def test_quiet_restores_the_error_state_after_an_exception() -> None:
    @quiet
    def fail() -> None:
        raise KeyError

    before = np.geterr()
    with pytest.raises(KeyError):
        fail()
    assert np.geterr() == before


def test_kernels_are_silent_in_other_threads() -> None:
    caught: list[BaseException] = []

    def work(kernel: Callable[..., Any] = KERNELS["div"]) -> None:
        try:
            kernel(ONE, ZERO)
        except BaseException as error:
            caught.append(error)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    assert not caught


def test_silent_functions_keep_name_and_documentation() -> None:
    def half(a: float) -> float:
        """Half of `a`."""
        return a / 2

    copy = silent(half)
    assert copy(3.0) == 1.5
    assert (copy.__name__, copy.__doc__, copy.__module__) == ("half", half.__doc__, __name__)


def test_without_nameless_functions_quiet_takes_their_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(silence, "NAMELESS", False)
    divide = silent(lambda a, b, divide=np.divide: divide(a, b))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(divide(ONE, ZERO)).all()
