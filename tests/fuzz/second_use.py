"""What programs left behind is used again, as programs use it: a call may break what it was given.

An object that took a hostile value without a word fails later, where nobody looks for it.
"""

from __future__ import annotations

import ast
import copy
import io
import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

import flambeau as fb
from flambeau import distributed, distributions, nn
from flambeau.utils import data

MANY = 70_000
"""Elements of a tensor of which nothing is computed."""
LONGEST = 12
"""Objects of one program that are used again."""


def _save(value: Any) -> None:
    file = io.BytesIO()
    fb.save(value, file)
    file.seek(0)
    fb.load(file)


def _called(module: nn.Module, value: fb.Tensor) -> Any:
    # What stands before a call may be as many power iterations as were asked for.
    return None if module._forward_pre_hooks else module(value)


def _step(optimizer: fb.optim.Optimizer) -> None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = fb.ones_like(parameter)
    optimizer.step(lambda: fb.tensor(1.0))


def _first(values: Any) -> list[Any]:
    if getattr(values, "num_workers", 0):
        return []  # processes that are started are not what this looks at
    return list(itertools.islice(values, 5))


def _archive(module: fb.jit.ScriptModule) -> None:
    file = io.BytesIO()
    fb.jit.save(module, file)
    file.seek(0)
    fb.jit.load(file)


def _store(store: distributed.Store) -> None:
    store.set("fuzz", "1")
    store.get("fuzz")
    store.add("fuzz count", 1)
    store.delete_key("fuzz")


ANY: list[Callable[[Any], object]] = [repr, copy.copy, copy.deepcopy, pickle.dumps]

WAYS: list[tuple[Any, list[Callable[[Any], object]]]] = [
    (
        fb.Tensor,
        [
            lambda t: t.clone(),
            lambda t: t.sum(),
            lambda t: t + t,
            lambda t: t.detach().reshape(-1)[-1:],
            lambda t: t.contiguous().tolist() if t.numel() < 100 else None,
            lambda t: np.asarray(t.detach()),
            lambda t: t.detach().mul_(1),
            lambda t: t.t() @ t,
            lambda t: fb.nn.functional.relu(t),
            lambda t: bytes(t.untyped_storage()[-64:]),
            _save,
        ],
    ),
    (
        (fb.UntypedStorage, fb.TypedStorage),
        [len, lambda s: s.tolist() if len(s) < 1000 else s[-1], lambda s: s.clone(), _save],
    ),
    (
        fb.Generator,
        [
            lambda g: fb.rand(700, generator=g),
            lambda g: fb.randn(33, generator=g),
            lambda g: fb.randperm(9, generator=g),
            lambda g: fb.rand(700, generator=g.clone_state()),
            lambda g: g.set_state(g.get_state()),
            lambda g: fb.poisson(fb.rand(700), generator=g),
        ],
    ),
    (
        nn.Module,
        [
            lambda m: _called(m, fb.ones(2, 3)),
            lambda m: m.load_state_dict(m.state_dict()),
            lambda m: m.eval().zero_grad(),
            lambda m: sum(p.sum() for p in m.parameters()),
            lambda m: _save(m.state_dict()),
            lambda m: _called(m.double(), fb.ones(2, 3).double()),
        ],
    ),
    (
        (nn.RNNBase, nn.RNNCellBase, nn.Embedding, nn.EmbeddingBag),
        [lambda m: m(fb.ones(2, 1, 3)), lambda m: m(fb.tensor([[0, 1]]))],
    ),
    (fb.jit.ScriptModule, [lambda m: m.code, lambda m: m.graph, _archive]),
    (fb.jit.ScriptFunction, [lambda f: f(fb.ones(2, 3)), lambda f: f.code, lambda f: f.graph]),
    (
        fb.optim.Optimizer,
        [
            _step,
            _step,
            lambda o: o.load_state_dict(o.state_dict()),
            lambda o: _save(o.state_dict()),
            lambda o: o.zero_grad(),
        ],
    ),
    (
        fb.optim.lr_scheduler.LRScheduler,
        [lambda s: s.step(), lambda s: s.get_last_lr(), lambda s: s.state_dict()],
    ),
    (data.Dataset, [lambda d: d[0], len, _first]),
    ((data.Sampler, data.DataLoader), [_first, len, _first]),
    (
        nn.utils.rnn.PackedSequence,
        [
            lambda p: nn.utils.rnn.pad_packed_sequence(p),
            lambda p: p.to(fb.float64),
            lambda p: nn.LSTM(p.data.shape[-1], 2)(p),
            lambda p: nn.GRU(p.data.shape[-1], 2)(p),
        ],
    ),
    (
        distributions.Distribution,
        [
            lambda d: d.log_prob(d.sample((2,))),
            lambda d: d.mean,
            lambda d: d.entropy(),
            lambda d: d.expand((2, *d.batch_shape)).sample(),
        ],
    ),
    (distributions.Transform, [lambda t: t.inv(t(fb.rand(3)))]),
    (fb.fx.Graph, [lambda g: g.lint(), lambda g: g.python_code("self"), str]),
    (fb.quasirandom.SobolEngine, [lambda s: s.draw(3), lambda s: s.reset(), lambda s: s.draw(2)]),
    (fb.amp.GradScaler, [lambda s: s.scale(fb.ones(2)), lambda s: s.update()]),
    (distributed.Store, [_store]),
    (distributed.ProcessGroup, [lambda g: distributed.all_reduce(fb.ones(2), group=g)]),
]
"""What is done with objects of a class, and of those below it."""


def kept(text: str, path: str) -> ast.Module:
    """The tree of a program in which what its last calls are given has names, too."""
    tree = ast.parse(text, path)
    count = itertools.count()

    def name(value: ast.expr) -> ast.expr:
        if not isinstance(value, ast.Call | ast.BinOp):
            return value
        target = ast.Name(f"kept_{next(count)}", ast.Store())
        return ast.copy_location(ast.NamedExpr(ast.copy_location(target, value), value), value)

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr | ast.keyword) and not isinstance(child, _OWN_NAMES):
                visit(child)
        if isinstance(node, ast.Call):
            node.args = [name(a) for a in node.args]
            for keyword in node.keywords:
                keyword.value = name(keyword.value)
            if isinstance(node.func, ast.Attribute):
                node.func.value = name(node.func.value)

    for statement in tree.body[-2:]:
        if isinstance(statement, ast.Assign | ast.Expr):
            visit(statement.value)
    return tree


def _is_small(value: fb.Tensor) -> bool:
    if fb.nn.parameter.is_lazy(value):
        return False
    # Two thousand million rows of nothing are as many lists.
    return math.prod(max(n, 1) for n in value.shape) <= MANY and value.device.type != "meta"


_OWN_NAMES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def uses(names: dict[str, Any]) -> Iterator[tuple[str, Callable[[Any], object], Any]]:
    """How the objects that a program's names have left are used: the name, the use, the object."""
    done: set[int] = set()
    for name, value in list(names.items())[::-1]:
        home = str(getattr(type(value), "__module__", ""))
        if isinstance(value, ModuleType | FunctionType | type) or not home.startswith("flambeau"):
            continue
        if id(value) in done or len(done) == LONGEST:
            continue
        done.add(id(value))
        if isinstance(value, fb.Tensor) and not _is_small(value):
            yield name, repr, value
            continue
        for use in ANY:
            yield name, use, value
        for kind, ways in WAYS:
            if isinstance(value, kind):
                for use in ways:
                    yield name, use, value
