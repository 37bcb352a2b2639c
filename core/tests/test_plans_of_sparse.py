"""Plans of functions that hold sparse tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as fb
from flambeau import nn

PLACES = [[0, 1, 1, 3, 0, 1], [2, 0, 2, 3, 2, 1]]


def sparse(*, coalesced: bool = False) -> Any:
    made = fb.sparse_coo_tensor(PLACES, fb.arange(1.0, 7.0), (4, 4))
    return made.coalesce() if coalesced else made


USES: dict[str, Callable[[Any, fb.Tensor], fb.Tensor]] = {
    "sparse.mm": lambda s, x: fb.sparse.mm(s, x),
    "@": lambda s, x: s @ x,
    "mv": lambda s, x: fb.mv(s, x[:, 0]),
    "addmm": lambda s, x: fb.sparse.addmm(x, s, x),
    "a transpose": lambda s, x: fb.mm(s.t(), x),
    "values alone": lambda s, x: s.coalesce().values() * 2 if s.is_coalesced() else x + 1,
    "elements": lambda s, x: (s * 2).to_dense(),
}


@pytest.mark.parametrize("coalesced", [False, True])
@pytest.mark.parametrize("use", USES)
def test_a_plan_gives_what_the_function_gives(use: str, coalesced: bool) -> None:
    s, x = sparse(coalesced=coalesced), fb.linspace(-1, 1, 12).reshape(4, 3)

    def function(x: fb.Tensor) -> fb.Tensor:
        return USES[use](s, x)

    compiled = fb.compile(function)
    for turn in range(5):
        assert fb.equal(compiled(x + turn), function(x + turn))
    assert compiled.explain().replays == 3


def test_a_function_that_holds_only_a_sparse_tensor_is_compiled() -> None:
    s = sparse()
    compiled = fb.compile(lambda: s.to_dense())
    for _ in range(4):
        assert fb.equal(compiled(), s.to_dense())
    assert compiled.explain().replays == 2


def test_steps_of_a_graph_network_are_repeated() -> None:
    s, x = sparse(coalesced=True), fb.linspace(-1, 1, 12).reshape(4, 3)

    def training() -> Callable[[], fb.Tensor]:
        fb.manual_seed(0)
        layer = nn.Linear(3, 2)
        optimizer = fb.optim.Adam(layer.parameters())

        def step() -> fb.Tensor:
            optimizer.zero_grad()
            loss = fb.sparse.mm(s, layer(x)).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    plain, compiled = training(), fb.compile(training())
    assert [compiled().item() for _ in range(6)] == [plain().item() for _ in range(6)]
    assert compiled.explain().replays == 4


def test_new_values_and_new_parts_are_seen() -> None:
    values, x = fb.arange(1.0, 7.0), fb.ones(4, 2)
    s: Any = fb.sparse_coo_tensor(PLACES, values, (4, 4))
    compiled = fb.compile(lambda: fb.sparse.mm(s, x))
    for _ in range(4):
        assert fb.equal(compiled(), fb.sparse.mm(s, x))
        s._values().mul_(2)
    assert compiled.explain().replays == 2
    s.mul_(3)  # other parts
    assert fb.equal(compiled(), fb.sparse.mm(s, x))
    s = s.coalesce()
    assert fb.equal(compiled(), fb.sparse.mm(s, x))
    assert compiled.explain().plans == 3


def test_what_a_plan_cannot_repeat_of_sparse_tensors_refuses_it() -> None:
    s, t, x = sparse(), sparse(), fb.ones(4, 2)

    def grow(s: Any) -> fb.Tensor:
        s.mul_(2)
        return fb.sparse.mm(s, x)

    compiled = fb.compile(lambda: grow(s))
    for _ in range(4):
        assert fb.equal(compiled(), grow(t))
    assert compiled.explain().replays == 0

    leaf: Any = sparse().requires_grad_()

    def slope() -> fb.Tensor:
        for t in (leaf,):
            t.grad = None
        fb.sparse.mm(leaf, x).sum().backward()
        return leaf.grad.to_dense()

    compiled, expected = fb.compile(slope), slope()
    for _ in range(4):
        assert fb.equal(compiled(), expected)
    assert "requires a gradient" in str(compiled.explain())
