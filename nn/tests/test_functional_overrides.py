"""Subclasses of Tensor see the calls of `flambeau.nn.functional`."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from typing import Any

import pytest

import flambeau as fb
from flambeau.nn import functional as F

pytestmark = pytest.mark.usefixtures("calls")
CALLS: list[str] = []


class Counted(fb.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        CALLS.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.fixture
def calls() -> list[str]:
    CALLS.clear()
    return CALLS


def counted(*shape: int) -> Any:
    return fb.linspace(-1, 1, fb.Size(shape).numel()).reshape(shape).as_subclass(Counted)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("relu", lambda x: F.relu(x)),
        ("gelu", lambda x: F.gelu(x)),
        ("softmax", lambda x: F.softmax(x, dim=-1)),
        ("layer_norm", lambda x: F.layer_norm(x, (4,))),
        ("linear", lambda x: F.linear(x, fb.ones(2, 4))),
        ("linear", lambda x: F.linear(fb.ones(2, 4), weight=x)),
        ("dropout", lambda x: F.dropout(x, 0.5, training=False)),
        ("mse_loss", lambda x: F.mse_loss(x, fb.zeros(3, 4))),
        ("pad", lambda x: F.pad(x, (1, 1))),
        ("conv1d", lambda x: F.conv1d(x, fb.ones(2, 3, 1))),
    ],
)
def test_a_call_is_seen_once_and_keeps_the_subclass(name: str, call: Any, calls: Any) -> None:
    x = counted(3, 4)
    calls.clear()
    result = call(x)
    assert calls == [name]
    assert type(result) is Counted
    assert result.tolist() == call(fb.tensor(x.tolist())).tolist()


def test_every_public_function_offers_its_calls(calls: Any) -> None:
    for name in F.__all__:
        function = getattr(F, name)
        assert not inspect.isfunction(function), name
        assert function.__name__ == function._function.__name__


def test_modules_offer_the_calls_of_their_functions(calls: Any) -> None:
    x = counted(3, 4)
    calls.clear()
    net = fb.nn.Sequential(fb.nn.Linear(4, 2), fb.nn.ReLU(), fb.nn.LayerNorm(2))
    assert type(net(x)) is Counted
    assert calls == ["linear", "relu", "layer_norm"]


def test_a_subclass_may_replace_a_function() -> None:
    class Replacing(fb.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is F.gelu:
                return "gelu"
            return super().__torch_function__(func, types, args, kwargs or {})

    x = fb.ones(2).as_subclass(Replacing)
    assert F.gelu(x) == "gelu"
    assert F.relu(x).tolist() == [1.0, 1.0]


def test_plain_tensors_are_not_offered(calls: Any) -> None:
    x = fb.ones(2, 4)
    x.requires_grad_()
    F.mse_loss(F.linear(x, fb.ones(3, 4)), fb.zeros(2, 3)).backward()
    assert calls == []
    assert x.grad is not None


def test_functions_can_be_pickled_after_the_first_subclass() -> None:
    for function in (F.gelu, F.conv1d, F.softmax, F.cross_entropy, fb.add):
        assert pickle.loads(pickle.dumps(function)) is function


def test_sparse_tensors_are_refused_by_name() -> None:
    x = fb.eye(3).to_sparse()
    for name, call in (("gelu", F.gelu), ("softplus", F.softplus), ("layer_norm", F.layer_norm)):
        arguments = ((3,),) if name == "layer_norm" else ()
        with pytest.raises(NotImplementedError, match=f"{name}: not implemented for sparse"):
            call(x, *arguments)


PROGRAM = """
import flambeau as fb
{early}
class Seen(fb.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {{}})
from flambeau.nn import functional as F
x = fb.ones(1, 2).as_subclass(Seen)
F.gelu(x); F.conv1d(x, fb.ones(1, 1, 1)); fb.conv1d(x, fb.ones(1, 1, 1)); fb.nn.functional.relu(x)
assert F.conv1d is fb.conv1d
"""


@pytest.mark.parametrize(
    "early",
    [
        "",
        "import types, flambeau.nn.functional as F\n"
        "assert all(isinstance(getattr(F, n), types.FunctionType) for n in F.__all__)",
    ],
    ids=["nn after the subclass", "nn before it, unwrapped"],
)
def test_the_order_of_import_and_subclass_does_not_matter(early: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(early=early)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.split() == ["gelu", "conv1d", "conv1d", "relu"], done.stderr
