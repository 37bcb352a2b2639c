"""Random graphs have PyTorch's gradients for any choice of tensors, and call hooks as PyTorch does.

A graph has leaves, results, views, writes to either, ops of several results and autograd classes.
Passes go to leaves, to results, to a tensor beside its view, to the output itself, to one tensor
twice; they accumulate or return, are recorded and differentiated again, and follow one another.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402


def _function(library: Any, log: list[Any]) -> Any:
    class Mixed(library.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b, a - b

        @staticmethod
        def backward(ctx, g, h):
            log.append(("needs", ctx.needs_input_grad))
            a, b = ctx.saved_tensors
            return g * b + h, g * a - h

    return Mixed.apply


STEPS: dict[str, Any] = {
    "add": lambda m, a, b: a + b,
    "add scaled": lambda m, a, b: m.add(a, b, alpha=2),
    "mul": lambda m, a, b: a * b,
    "div": lambda m, a, b: a / (b * b + 1),
    "atan2": lambda m, a, b: m.atan2(a, b),
    "tanh": lambda m, a, b: a.tanh(),
    "row times": lambda m, a, b: a * b[0],
    "matmul": lambda m, a, b: a @ b,
    "matvec": lambda m, a, b: (a @ b[0]).expand(2, 2),
    "linear": lambda m, a, b: m.nn.functional.linear(a, b, b[1]),
    "convolution": lambda m, a, b: m.nn.functional.conv1d(a[None], b[:, :, None], b[0])[0],
    "norm": lambda m, a, b: m.nn.functional.layer_norm(a, (2,), b[0], a[1]),
    "attention": lambda m, a, b: m.nn.functional.scaled_dot_product_attention(a, b, a * b),
    "cat": lambda m, a, b: m.cat([a[:1], b[1:]]),
    "stack": lambda m, a, b: m.stack([a[0], b[1]]),
    "where": lambda m, a, b: m.where(a > b, a, b),
    "lerp": lambda m, a, b: m.lerp(a, b, a),
    "addcmul": lambda m, a, b: m.addcmul(a, b, a),
    "sorted": lambda m, a, b: a.sort(1)[0] * b,
    "unbound": lambda m, a, b: m.stack(list(m.unbind(a * b))[::-1]),
    "scatter": lambda m, a, b: a.scatter_add(0, m.tensor([[1, 0], [0, 1]]), b),
    "written": lambda m, a, b: (a * 1).mul_(b),
    "copied": lambda m, a, b: (a * 1).copy_(b),
    "einsum": lambda m, a, b: m.einsum("ij,kj->ik", a, b),
}


class Program:
    """One random graph in one of the libraries; the same seed gives the same graph in both."""

    def __init__(self, library: Any, seed: int) -> None:
        self.m = library
        self.chance = random.Random(seed)
        self.log: list[Any] = []
        self.made: list[Any] = []
        self.mixed = _function(library, self.log)
        self.names: list[str] = []
        self.build()

    def build(self) -> None:
        chance, m = self.chance, self.m
        for i in range(4):
            values = [[chance.uniform(-1.5, 1.5) for _ in range(2)] for _ in range(2)]
            wanted = chance.random() < 0.75 or i == 0
            self.keep(m.tensor(values, dtype=m.float64, requires_grad=wanted), f"leaf {wanted}")
        self.leaves = list(self.made)
        for _ in range(chance.randint(3, 12)):
            a, b = chance.choice(self.made), chance.choice(self.made)
            kind = chance.random()
            if kind < 0.7:
                name = chance.choice(list(STEPS))
                self.keep(STEPS[name](m, a, b), name)
            elif kind < 0.78:
                # PyTorch calls the hooks of all results of a node where one is chosen.
                first, second = self.mixed(a, b)
                self.keep(first * 1, "first of a class")
                self.keep(second * 1, "second of a class")
            elif kind < 0.86:
                self.keep(a.t(), "view")
            elif kind < 0.9:
                self.keep(a.detach(), "detached")
            elif not a.is_leaf and a._base is None:
                # A write through a view of a result, whose history then goes through it.
                a.t()[0].mul_(b[1] if b.requires_grad else 2.0)
                self.names.append("write")
        total = sum((t * t).sum() * (i + 1) for i, t in enumerate(self.made[2:]))
        self.out = total if chance.random() < 0.7 else self.made[-1].sum()
        for i, t in enumerate(self.made):
            if t.requires_grad and chance.random() < 0.3:
                t.register_hook(self.noting(i))
            if t.requires_grad and not t.is_leaf and chance.random() < 0.2:
                t.retain_grad()
            if t.grad_fn is not None and chance.random() < 0.3:
                t.grad_fn.register_hook(lambda ins, outs, i=i: self.log.append(("node", i)))

    def noting(self, i: int) -> Any:
        def note(g: Any) -> None:
            if g is not None:  # as PyTorch calls it where no gradient came
                self.log.append((i, g.detach().clone()))

        return note

    def keep(self, t: Any, name: str) -> None:
        self.made.append(t)
        self.names.append(name)

    def passes(self) -> list[Any]:
        """What some passes give, one after the other, errors by their class."""
        chance, found = self.chance, []
        for _ in range(5):
            able = [t for t in [*self.made, self.out] if t.requires_grad]
            chosen = [chance.choice(able) for _ in range(chance.randint(1, 3))]
            kind = chance.random()
            keep = chance.random() < 0.9 or 0.4 <= kind < 0.7
            del self.log[:]
            try:
                if kind < 0.4:
                    result = self.m.autograd.grad(
                        self.out, chosen, retain_graph=keep, allow_unused=True
                    )
                elif kind < 0.7:
                    result = self.m.autograd.grad(
                        self.out, chosen, create_graph=True, allow_unused=True
                    )
                    again = [g for g in result if g is not None and g.requires_grad]
                    if again:
                        total = sum((g * g).sum() for g in again)
                        few = chosen[: chance.randint(1, 3)]
                        # A gradient of zero may have no history here, or there.
                        result += self.m.autograd.grad(
                            total, few, retain_graph=True, materialize_grads=True
                        )
                elif kind < 0.9:
                    self.out.backward(inputs=chosen, retain_graph=keep)
                    result = ()
                else:
                    self.out.backward(retain_graph=keep)
                    result = ()
            except RuntimeError as error:
                return [*found, (type(error).__name__,)]  # what has come until then may differ
            if 0.4 <= kind < 0.9:  # some formulas are other ops, and PyTorch applies chosen nodes
                self.log[:] = [entry for entry in self.log if entry[0] not in ("node", "needs")]
            self.log.sort(key=lambda entry: str(entry[: 1 + (entry[0] == "node")]))
            grads = [t.grad for t in self.made if t.is_leaf or t.retains_grad]
            held = [g if g is None else g.detach().clone() for g in grads]
            found.append((*result, *held, *self.log))
            if not keep:  # what is freed is not the same: some nodes keep nothing
                break
        return found


def _plain(value: Any) -> Any:
    if isinstance(value, (torch.Tensor, fb.Tensor)):
        return pytest.approx(value.detach().reshape(-1).tolist(), rel=1e-9, abs=1e-9, nan_ok=True)
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value


def _numbers(value: Any) -> Any:
    if isinstance(value, (torch.Tensor, fb.Tensor)):
        return value.detach().reshape(-1).tolist()
    if isinstance(value, (tuple, list)):
        return [_numbers(v) for v in value]
    return value


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph:UserWarning")
@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_have_the_same_gradients_for_any_choice(seed):
    for more in range(8):
        programs = []
        for library in (torch, fb):
            try:
                programs.append(Program(library, 1000 * more + seed))
            except RuntimeError as error:
                programs.append(type(error))
        theirs, ours = programs
        if isinstance(theirs, type):
            assert ours is theirs
            continue
        assert not isinstance(ours, type), theirs.names
        for a, b in zip(theirs.passes(), ours.passes(), strict=True):
            if a[:1] == ("RuntimeError",):  # a written operand, of which we keep the old values
                break
            assert _numbers(b) == _plain(a), ours.names


OTHERS = (
    "row times",
    "linear",
    "convolution",
    "norm",
    "attention",
    "unbound",
    "lerp",
    "cat",
    "stack",
)
"""Steps of which the last node is not one of both operands, or of a list, which PyTorch fills."""


@pytest.mark.parametrize("name", [name for name in STEPS if name not in OTHERS])
@pytest.mark.parametrize("chosen", [0, 1])
def test_hooks_of_nodes_see_the_gradients_that_pytorchs_see(name, chosen):
    seen = []
    for m in (torch, fb):
        a = m.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
        b = m.tensor([[0.5, -2.0], [1.0, 4.0]], requires_grad=True)
        log: list[int] = []
        y = STEPS[name](m, a * 1, b * 1)
        y.grad_fn.register_hook(lambda ins, outs, s=log: s.append(sum(g is not None for g in ins)))
        m.autograd.grad(y.sum(), (a, b)[chosen], allow_unused=True)
        seen.append(log)
    assert seen[0] == seen[1]
