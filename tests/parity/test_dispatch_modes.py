"""Modes below autograd and selective checkpoints see and keep what PyTorch's do."""

from __future__ import annotations

import functools
import importlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402 - imported beside its oracle
from flambeau.utils import _aten  # noqa: E402

LIBRARIES = (fb, torch)


def aten(lib: Any, name: str, overload: str = "default") -> Any:
    packet = torch.ops.aten if lib is torch else None
    return getattr(getattr(packet, name) if packet else _aten.find(name), overload)


def counting(lib: Any) -> Any:
    """A mode of a library that counts ops by name."""
    base = importlib.import_module(f"{lib.__name__}.utils._python_dispatch").TorchDispatchMode

    class Counts(base):  # type: ignore[misc] - a class of either library
        def __init__(self) -> None:
            super().__init__()
            self.seen: Counter[str] = Counter()

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.seen[str(func)] += 1
            return func(*args, **(kwargs or {}))

    return Counts()


def weights(lib: Any) -> list[Any]:
    shapes = ((5, 4), (5,), (3, 5))
    made = [lib.arange(float(size(shape))).reshape(shape).sin() for shape in shapes]
    return [each.requires_grad_() for each in made]


def size(shape: tuple[int, ...]) -> int:
    return functools.reduce(int.__mul__, shape)


def network(lib: Any, x: Any, w: Any, b: Any, v: Any) -> Any:
    F = importlib.import_module(f"{lib.__name__}.nn.functional")
    hidden = F.linear(x, w, b).tanh()
    return (F.linear(hidden, v).exp() * 0.1).sum()


PROGRAMS: list[Callable[[Any, Any], Any]] = [
    lambda lib, x: x @ x,
    lambda lib, x: x.expand(2, 4, 4) @ x.expand(2, 4, 4),
    lambda lib, x: x @ x[0],
    lambda lib, x: lib.addmm(x, x, x, beta=0.5),
    lambda lib, x: (x + 1).exp().sqrt() / x - x.abs(),
    lambda lib, x: lib.softmax(x, 1).log_softmax(0),
    lambda lib, x: lib.nn.functional.conv2d(x[None, None], x[None, None, :2, :2], padding=1),
    lambda lib, x: lib.cat([x, x]).amax(1),
    lambda lib, x: x.to(lib.float64),
    lambda lib, x: lib.where(x > 0, x, x),
]
COMPARED = """mm bmm mv addmm exp sqrt div.Tensor sub.Tensor abs _softmax _log_softmax convolution
    cat amax _to_copy where.self gt add.Tensor tanh mul.Tensor""".split()


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_mode_sees_the_ops_that_pytorch_names_and_gives_their_results(number: int) -> None:
    seen, values = [], []
    for lib in LIBRARIES:
        x = lib.arange(16.0).reshape(4, 4).cos()
        with counting(lib) as mode:
            y = PROGRAMS[number](lib, x)
        values.append(y.tolist())
        names = {name.removeprefix("aten.").removesuffix(".default"): n for name, n in
                 mode.seen.items()}  # fmt: skip
        seen.append({name: n for name, n in names.items() if name in COMPARED})
    fb.testing.assert_close(fb.tensor(values[0]), fb.tensor(values[1]))
    assert seen[0] == seen[1]
    assert seen[0]


def test_a_mode_sees_backward_and_changes_no_gradient() -> None:
    found = []
    for lib in LIBRARIES:
        x, parameters = lib.arange(8.0).reshape(2, 4).cos(), weights(lib)
        network(lib, x, *parameters).backward()
        plain = [p.grad for p in parameters]
        for p in parameters:
            p.grad = None
        with counting(lib) as mode:
            network(lib, x, *parameters).backward()
        for p, wanted in zip(parameters, plain, strict=True):
            assert p.grad.tolist() == wanted.tolist()
        found.append({k: mode.seen[f"aten.{k}.default"] for k in ("mm", "addmm", "exp")})
    assert found[0] == found[1] == {"mm": 4, "addmm": 1, "exp": 1}


def test_a_mode_may_replace_results_and_modes_nest_as_in_pytorch() -> None:
    for lib in LIBRARIES:
        base = importlib.import_module(f"{lib.__name__}.utils._python_dispatch").TorchDispatchMode
        said: list[str] = []

        class Doubled(base):  # type: ignore[misc, valid-type] - a class of either library
            def __init__(self, name: str, said: list[str]) -> None:
                super().__init__()
                self.name, self.said = name, said

            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                self.said.append(self.name)
                result = func(*args, **(kwargs or {}))
                return result.clone().fill_(7.0) if str(func) == "aten.exp.default" else result

        x = lib.zeros(2, requires_grad=True)
        with Doubled("outer", said), Doubled("inner", said):
            y = x.exp()
            assert y.tolist() == [7.0, 7.0]
        assert said[:2] == ["inner", "outer"]
        y.sum().backward()
        assert x.grad.tolist() == [7.0, 7.0]  # the gradient of exp is its result
        assert x.exp().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kept", [(), ("mm",), ("mm", "addmm"), ("tanh",), ("exp", "addmm")])
@pytest.mark.parametrize("as_policy", [False, True])
def test_selective_checkpoints_compute_again_what_pytorch_does(
    kept: tuple[str, ...], as_policy: bool
) -> None:
    found = []
    for lib in LIBRARIES:
        module = importlib.import_module(f"{lib.__name__}.utils.checkpoint")
        ops: Any = [aten(lib, name) for name in kept]
        chosen = ops
        if as_policy:
            policy = module.CheckpointPolicy

            def chosen(
                context: Any, op: Any, *args: Any, ops: Any = ops, policy: Any = policy, **kw: Any
            ) -> Any:
                assert not context.is_recompute
                assert context.op_output is not None
                return policy.MUST_SAVE if op in ops else policy.PREFER_RECOMPUTE

        contexts = functools.partial(module.create_selective_checkpoint_contexts, chosen)
        x, parameters = lib.arange(8.0).reshape(2, 4).cos(), weights(lib)
        network(lib, x, *parameters).backward()
        plain = [p.grad for p in parameters]
        for p in parameters:
            p.grad = None
        loss = module.checkpoint(
            functools.partial(network, lib), x, *parameters, use_reentrant=False,
            context_fn=contexts, early_stop=False, **({"determinism_check": "none"}),
        )  # fmt: skip
        with counting(lib) as mode:
            loss.backward()
        for p, wanted in zip(parameters, plain, strict=True):
            assert p.grad.tolist() == wanted.tolist()
        found.append({k: mode.seen[f"aten.{k}.default"] for k in ("mm", "addmm", "exp", "tanh")})
    # What is computed again is seen by the mode around backward, what was kept is not.
    assert found[0] == found[1]


def test_lists_of_ops_are_checked_as_in_pytorch() -> None:
    for lib in LIBRARIES:
        module = importlib.import_module(f"{lib.__name__}.utils.checkpoint")
        packet = torch.ops.aten.mm if lib is torch else _aten.find("mm")
        with pytest.raises(ValueError, match="Expected op in `op_list` to be an OpOverload"):
            module.create_selective_checkpoint_contexts([packet])
        with pytest.raises(TypeError, match="either a function or a list of ops"):
            module.create_selective_checkpoint_contexts(3)


def test_overloads_are_told_as_in_pytorch() -> None:
    for name, overload in (("mm", "default"), ("add", "Tensor"), ("sum", "dim_IntList")):
        ours, theirs = aten(fb, name, overload), aten(torch, name, overload)
        for ask in (str, repr, lambda op: op.name(), lambda op: op.__name__,
                    lambda op: op.namespace, lambda op: str(op.overloadpacket),
                    lambda op: repr(op.overloadpacket), lambda op: op.overloadpacket.__name__,
                    lambda op: op.overloadpacket._qualified_op_name,
                    lambda op: op._overloadname):  # fmt: skip
            assert ask(ours) == ask(theirs)
        assert aten(fb, name, overload) is ours
