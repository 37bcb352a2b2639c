"""Pruned modules agree with PyTorch: masks of the same seeds, state, gradients, error classes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
prune_of_torch = pytest.importorskip("torch.nn.utils.prune")

import flambeau as fb  # noqa: E402
from flambeau.nn.utils import prune as prune_of_fb  # noqa: E402

LIBRARIES = ((fb, prune_of_fb), (torch, prune_of_torch))
RAMP = [float((7 * i) % 18) for i in range(18)]

PROGRAMS = {
    "identity": lambda lib, p, m: p.identity(m, "weight"),
    "random entries": lambda lib, p, m: p.random_unstructured(m, "weight", 5),
    "a random share": lambda lib, p, m: p.random_unstructured(m, "weight", 0.4),
    "no random entry": lambda lib, p, m: p.random_unstructured(m, "weight", 0),
    "small entries": lambda lib, p, m: p.l1_unstructured(m, "weight", 0.5),
    "by scores": lambda lib, p, m: p.l1_unstructured(
        m, "weight", 7, importance_scores=lib.tensor(RAMP).reshape(6, 3)
    ),
    "random rows": lambda lib, p, m: p.random_structured(m, "weight", 2, dim=0),
    "random columns": lambda lib, p, m: p.random_structured(m, "weight", 0.4, dim=-1),
    "no random row": lambda lib, p, m: p.random_structured(m, "weight", 0, dim=0),
    "small rows": lambda lib, p, m: p.ln_structured(m, "weight", 3, n=2, dim=0),
    "small columns": lambda lib, p, m: p.ln_structured(m, "weight", 1, n=1, dim=-1),
    "low maxima": lambda lib, p, m: p.ln_structured(m, "weight", 0.5, n=float("inf"), dim=0),
    "rows by scores": lambda lib, p, m: p.ln_structured(
        m, "weight", 2, n=2, dim=0, importance_scores=lib.tensor(RAMP).reshape(6, 3)
    ),
    "a mask": lambda lib, p, m: p.custom_from_mask(m, "bias", lib.tensor([0, 1, 1, 0, 1, 1])),
    "entries twice": lambda lib, p, m: p.l1_unstructured(
        p.random_unstructured(m, "weight", 4), "weight", 0.5
    ),
    "entries, then rows": lambda lib, p, m: p.ln_structured(
        p.l1_unstructured(m, "weight", 4), "weight", 2, n=2, dim=0
    ),
    "rows, then random rows": lambda lib, p, m: p.random_structured(
        p.ln_structured(m, "weight", 2, n=2, dim=0), "weight", 2, dim=0
    ),
    "rows, columns, a mask": lambda lib, p, m: p.custom_from_mask(
        p.ln_structured(p.random_structured(m, "weight", 1, dim=1), "weight", 2, n=2, dim=-2),
        "weight",
        lib.tensor([[1.0, 0, 1]] * 6),
    ),
    "pruned, removed, pruned": lambda lib, p, m: p.l1_unstructured(
        p.remove(p.l1_unstructured(m, "weight", 4), "weight"), "weight", 6
    ),
}


def outcome(lib: Any, change: Any) -> list[Any]:
    lib.manual_seed(3)
    module = lib.nn.Linear(3, 6).double()
    change(module)
    x = lib.arange(6, dtype=lib.float64).reshape(2, 3).sub(2.5)
    found: list[Any] = [list(module.state_dict()), [n for n, _ in module.named_parameters()]]
    for _ in range(2):
        output = module(x)
        output.sin().sum().backward()
        found.append(output.detach().flatten().tolist())
        found += [p.grad.flatten().tolist() for p in module.parameters()]
        with lib.no_grad():
            for p in module.parameters():
                p.sub_(p.grad)
    for value in module.state_dict().values():
        found.append((str(value.dtype), tuple(value.shape), value.flatten().tolist()))
    found.append([type(hook).__name__ for hook in module._forward_pre_hooks.values()])
    return found


def assert_close(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_close(a, b)
    else:
        assert ours == (
            pytest.approx(theirs, rel=1e-9, abs=1e-12) if theirs != str(theirs) else theirs
        )


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_pruned_layer_trains_as_in_pytorch(name: str) -> None:
    ours, theirs = (
        outcome(lib, lambda m, lib=lib, p=p: PROGRAMS[name](lib, p, m)) for lib, p in LIBRARIES
    )
    assert_close(ours, theirs)


def globally(lib: Any, p: Any, method: str, scored: bool, twice: bool) -> list[Any]:
    lib.manual_seed(5)
    net = lib.nn.Sequential(lib.nn.Linear(3, 6), lib.nn.ReLU(), lib.nn.Linear(6, 2))
    pairs = [(net[0], "weight"), (net[2], "weight"), (net[2], "bias")]
    scores = {(net[0], "weight"): lib.tensor(RAMP).reshape(6, 3)} if scored else None
    if twice:
        p.l1_unstructured(net[0], "weight", 3)
    kind = getattr(p, method)
    p.global_unstructured(pairs, pruning_method=kind, importance_scores=scores, amount=0.4)
    return [[k, v.flatten().tolist()] for k, v in net.state_dict().items()]


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("scored", [False, True])
@pytest.mark.parametrize("method", ["L1Unstructured", "RandomUnstructured"])
def test_global_pruning_chooses_among_all_parameters(
    method: str, scored: bool, twice: bool
) -> None:
    ours, theirs = (globally(lib, p, method, scored, twice) for lib, p in LIBRARIES)
    assert_close(ours, theirs)


def raised(call: Any, *args: Any) -> type[BaseException]:
    with pytest.raises(Exception) as error:  # noqa: PT011 - the class is what is compared
        call(*args)
    return error.type


FAULTS = {
    "amount below zero": lambda lib, p, m: p.l1_unstructured(m, "weight", -1),
    "share above one": lambda lib, p, m: p.l1_unstructured(m, "weight", 1.5),
    "amount no number": lambda lib, p, m: p.l1_unstructured(m, "weight", "all"),
    "more than there are": lambda lib, p, m: p.random_unstructured(m, "weight", 19),
    "more rows than there are": lambda lib, p, m: p.random_structured(m, "weight", 7, 0),
    "rows of a vector": lambda lib, p, m: p.ln_structured(m, "bias", 1, n=2, dim=0),
    "no such dimension": lambda lib, p, m: p.ln_structured(m, "weight", 1, n=2, dim=2),
    "no such parameter": lambda lib, p, m: p.l1_unstructured(m, "weights", 1),
    "scores of another shape": lambda lib, p, m: p.l1_unstructured(
        m, "weight", 1, importance_scores=lib.zeros(3, 6)
    ),
    "mask of another shape": lambda lib, p, m: p.custom_from_mask(m, "bias", lib.zeros(5)),
    "remove what is not pruned": lambda lib, p, m: p.remove(m, "weight"),
    "global over no iterable": lambda lib, p, m: p.global_unstructured(3, p.L1Unstructured),
    "global scores no dictionary": lambda lib, p, m: p.global_unstructured(
        [(m, "weight")], p.L1Unstructured, importance_scores=[1], amount=1
    ),
    "global of a structured method": lambda lib, p, m: p.global_unstructured(
        [(m, "weight")], p.LnStructured, amount=1, n=2
    ),
    "container of something else": lambda lib, p, m: p.PruningContainer().add_pruning_method(m),
    "container of another name": lambda lib, p, m: p.PruningContainer(
        p.Identity.apply(m, "weight")
    ).add_pruning_method(p.Identity.apply(m, "bias")),
    "a method without a module": lambda lib, p, m: p.Identity().apply_mask(m),
    "removal without a module": lambda lib, p, m: p.Identity().remove(m),
}


@pytest.mark.parametrize("name", FAULTS)
def test_errors_are_of_pytorchs_class_and_leave_the_layer_whole(name: str) -> None:
    classes = []
    for lib, p in LIBRARIES:
        module = lib.nn.Linear(3, 6)
        classes.append(raised(FAULTS[name], lib, p, module))
        assert module(lib.ones(1, 3)).shape == (1, 6)
    assert classes[0] is classes[1]


def test_a_failed_second_pruning_leaves_the_first() -> None:
    module = prune_of_fb.l1_unstructured(fb.nn.Linear(3, 6), "weight", 4)
    with pytest.raises(ValueError, match="amount=99"):
        prune_of_fb.l1_unstructured(module, "weight", 99)
    assert [type(h) for h in module._forward_pre_hooks.values()] == [prune_of_fb.L1Unstructured]
    assert int(module.weight_mask.sum()) == 14


def test_prune_without_a_module_is_pytorchs() -> None:
    for default, scores in ((None, None), ([1.0, 0, 1, 1], None), (None, [4.0, 3, 2, 1])):
        results = []
        for lib, p in LIBRARIES:
            given = {
                "default_mask": None if default is None else lib.tensor(default),
                "importance_scores": None if scores is None else lib.tensor(scores),
            }
            t = lib.tensor([3.0, -1.0, 2.0, -4.0])
            results.append(p.L1Unstructured(amount=2).prune(t, **given).tolist())
        assert results[0] == results[1]


def test_is_pruned_sees_inner_modules_and_removal() -> None:
    for lib, p in LIBRARIES:
        net = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Linear(2, 2))
        seen = [p.is_pruned(net)]
        p.identity(net[1], "bias")
        seen += [p.is_pruned(net), p.is_pruned(net[0])]
        p.remove(net[1], "bias")
        assert [*seen, p.is_pruned(net)] == [False, True, False, False]


def test_a_copied_module_keeps_its_pruning() -> None:
    module = prune_of_fb.l1_unstructured(fb.nn.Linear(3, 6), "weight", 4)
    module(fb.ones(1, 3))
    state = module.state_dict()
    other = prune_of_fb.identity(fb.nn.Linear(3, 6), "weight")
    other.load_state_dict(copy.deepcopy(state))
    x = fb.randn(2, 3)
    assert other(x).tolist() == module(x).tolist()
