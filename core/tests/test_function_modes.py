"""`TorchFunctionMode`: all calls of a block are seen, and none after it."""

from __future__ import annotations

import threading

import pytest

import flambeau as fb
from flambeau.overrides import TorchFunctionMode

pytest.importorskip("flambeau_numpy")


class Noting(TorchFunctionMode):
    def __init__(self):
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_functions_methods_and_operators_are_seen():
    before = dict(vars(fb.Tensor))
    with Noting() as mode:
        y = (fb.ones(2) + 1).exp().clone()
        y = fb.sum(y)
    assert mode.seen == ["ones", "add", "exp", "clone", "sum"]
    assert y.item() == pytest.approx(2 * 7.389056)
    fb.ones(2).exp()
    assert len(mode.seen) == 5 and dict(vars(fb.Tensor)) == before


def test_the_innermost_mode_comes_first_and_may_answer_itself():
    class Zero(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return fb.zeros(1) if func.__name__ == "exp" else func(*args, **(kwargs or {}))

    x = fb.ones(1)
    with Noting() as outer, Zero():
        assert x.exp().item() == 0.0
    assert "exp" not in outer.seen and "zeros" in outer.seen
    with Zero(), Noting() as inner:
        assert x.exp().item() == 0.0
    assert inner.seen[0] == "exp"


def test_modes_come_before_classes():
    class Marked(fb.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append(f"class {func.__name__}")
            return super().__torch_function__(func, types, args, kwargs or {})

    order = []
    x = fb.ones(2).as_subclass(Marked)
    with Noting() as mode:
        x.exp()
    assert mode.seen[0] == "exp" and order[0] == "class exp"


def test_other_threads_and_errors_leave_nothing_behind():
    class Failing(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    x = fb.ones(2)
    seen = []
    with Noting() as mode:
        thread = threading.Thread(target=lambda: seen.append(x.exp().sum()))
        thread.start()
        thread.join()
    assert len(seen) == 1 and mode.seen == []
    with pytest.raises(TypeError, match="Failing returned NotImplemented"), Failing():
        x.exp()
    with pytest.raises(NotImplementedError, match="of its own"), TorchFunctionMode():
        x.exp()
    assert x.exp().shape == (2,)


def test_a_mode_sees_reading_by_index_however_often_there_was_one():
    def read():  # one place for both, as it specialises on the method that it finds
        for _ in range(12):
            _ = x[0]

    x = fb.tensor([1.0, 2.0])
    for _ in range(600):
        read()
        mode = Noting()
        with mode:
            read()
        assert mode.seen == ["__getitem__"] * 12


def test_operators_decline_operands_of_other_kinds_within_modes():
    class Right:
        def __radd__(self, other):
            return "right"

    x = fb.ones(2)
    with Noting():
        assert (x == "a") is False and (x != "a") is True and (x == None) is False  # noqa: E711
        assert x + Right() == "right"
        with pytest.raises(TypeError, match="unsupported operand"):
            x + "a"
