"""NumPy's names of arguments (`axis`, `keepdims`, `x1` …) are taken where PyTorch takes them."""

from __future__ import annotations

import os
import types
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau as fb
from expressions import agree, programs
from flambeau.compat import torch_alias
from flambeau.compat._spellings import accept

torch = pytest.importorskip("torch")

PROGRAMS = """
t.ones(2, 3).sum(axis=0, keepdims=True)
t.sum(t.ones(2, 3), axis=(0, 1))
t.sum(x=t.ones(2))
t.sum(a=t.ones(2))
t.sum(x1=t.ones(2))
t.sum(t.ones(2, 3), dim=0, axis=0)
t.sum(input=t.ones(2), a=t.ones(2))
t.add(x1=t.ones(2), x2=t.ones(2))
t.ones(2).add_(x2=3)
t.cat([t.ones(2, 3)] * 2, axis=1)
t.stack([t.ones(2, 3)] * 2, axis=-1)
t.stack(x=[t.ones(2)])
t.ones(2, 3).softmax(axis=0)
t.nn.functional.softmax(t.ones(2, 3), axis=0)
t.nn.functional.linear(x=t.ones(2, 3), weight=t.ones(1, 3))
t.nn.functional.relu(x=t.ones(2))
t.relu_(x=t.ones(2))
tuple(t.ones(2, 3).max(axis=0, keepdims=True))
t.max(x1=t.ones(2), x2=t.zeros(2))
t.where(t.ones(2) > 0, x=t.ones(2), x2=t.zeros(2))
t.where(t.ones(2) > 0, input=t.ones(2), other=2.0)
t.where(t.ones(2) > 0, 1.0)
t.ones(2, 3).split(1, axis=0)
t.flip(t.ones(2), axis=(0,))
t.norm(t.ones(2), axis=0)
t.linalg.norm(t.ones(2, 3), axis=0)
t.linalg.vector_norm(a=t.ones(2))
t.linalg.eigvalsh(x=t.eye(2))
t.fft.fft(t.ones(4), axis=0).real
t.special.logsumexp(t.ones(2, 3), axis=0)
t.ones(2, 3).scatter(axis=0, index=t.zeros(1, 3, dtype=t.int64), src=t.zeros(1, 3))
t.ones(2, 3).size(axis=1)
t.pow(t.ones(2), x2=t.ones(2))
t.zeros_like(x=t.ones(2))
t.gather(t.ones(2, 3), axis=0, index=t.zeros(1, 3, dtype=t.int64))
t.cdist(x1=t.ones(2, 3), x2=t.zeros(2, 3))
"""


@pytest.fixture
def alias() -> Iterator[None]:
    with torch_alias():
        yield


@pytest.mark.usefixtures("alias")
@pytest.mark.parametrize("program", programs(PROGRAMS))
def test_names_are_taken_as_by_pytorch(program):
    agree(program)


def functions() -> list[str]:
    """Every function and method of both libraries."""
    found = []
    for path in ("", "fft", "linalg", "special", "nn.functional", "Tensor"):
        for name in dir(_at(torch, path)):
            theirs = getattr(_at(torch, path), name)
            is_function = isinstance(
                theirs, types.FunctionType | types.BuiltinFunctionType | types.MethodDescriptorType
            )
            if is_function and not name.startswith("_") and hasattr(_at(fb, path), name):
                found.append(f"{path}.{name}".strip("."))
    return found


def _at(library: Any, path: str) -> Any:
    for name in path.split(".") if path else ():
        library = getattr(library, name)
    return library


def calls(library: Any) -> list[tuple[list[Any], dict[str, Any]]]:
    """Arguments of which some fit most functions."""
    matrix, ints = library.ones(3, 3), library.ones(3, 3, dtype=library.int64)
    one = [[matrix], [ints], [[matrix, matrix]]]
    two = [[matrix, matrix], [ints, ints], [matrix, 1], [ints, 1]]
    more = [[matrix, matrix, matrix], [matrix, 1, matrix]]
    along = [{"dim": 0}, {"dim": 0, "keepdim": True}, {"dim": (0,)}, {"dim": (0, 1)}]
    index = {"dim": 0, "index": library.zeros(3, 3, dtype=library.int64)}
    found: list[tuple[list[Any], dict[str, Any]]] = []
    for args in [*one, *two, *more]:
        found += [(args, named) for named in along]
        found += [(args[:1], {**index, "src": matrix}), (args[:1], index)]
        found += [(args[1:], {"input": args[0]})]
    for args in two:
        found += [(args[:1], {"other": args[1]}), ([], {"input": args[0], "other": args[1]})]
    return found


SPELLINGS = [{"dim": "axis", "keepdim": "keepdims", "input": name, "other": "x2"} for name in "xa"]
SPELLINGS.append({**SPELLINGS[0], "input": "x1"})


def taken(library: Any, path: str, call: int, spelling: dict[str, str] | None) -> bool | None:
    """Whether a call is more than a refusal of its arguments; None for crashes of other kinds."""
    args, named = calls(library)[call]
    if spelling is not None:
        named = {spelling.get(name, name): value for name, value in named.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _at(library, path)(*args, **named)
        except TypeError:
            return False
        except Exception:
            return None
    return True


# The rest is swept by hand: FLAMBEAU_TEST_WHOLE=1 pytest tests/parity/test_spellings.py
STEP = 1 if os.environ.get("FLAMBEAU_TEST_WHOLE", "") not in ("", "0") else 12
NOT_CALLED = frozenset("compile load save vmap use_deterministic_algorithms".split())


@pytest.mark.usefixtures("alias")
def test_every_function_takes_the_names_that_it_takes_in_pytorch():
    compared = 0
    wrong = []
    for path in functions()[::STEP]:
        name = path.rpartition(".")[2]
        if name in NOT_CALLED or name.startswith(("set_", "backward", "manual_seed")):
            continue
        accept([name])
        for call in range(len(calls(torch))):
            both = [taken(library, path, call, None) for library in (torch, fb)]
            if both != [True, True]:
                continue
            for spelling in SPELLINGS:
                theirs, ours = (taken(library, path, call, spelling) for library in (torch, fb))
                compared += 1
                if theirs is not ours:
                    wrong.append((path, calls(torch)[call][1].keys(), spelling["input"], theirs))
    assert compared > 4000 // STEP
    assert not wrong, "\n".join(map(str, wrong))
