"""View methods take a short way for plain arguments, which agrees with PyTorch as the long does."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

SHAPES = ((), (0,), (1,), (4,), (2, 3), (3, 1), (1, 2, 1, 3), (2, 0, 3))
DIMS = (-3, -2, -1, 0, 1, 2, 3)
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    *((name, (d,)) for name in ("squeeze", "unsqueeze") for d in DIMS),
    ("squeeze", ()),
    *(("select", (d, i)) for d in (-2, -1, 0, 1) for i in (-3, -1, 0, 2)),
    *(("narrow", (d, s, n)) for d in (-1, 0, 1) for s in (-1, 0, 2) for n in (-1, 0, 1, 3)),
    *(("flatten", dims) for dims in ((), (0,), (1,), (0, -2), (-2, -1), (1, 0), (5,), (0, 4))),
    *(("transpose", (a, b)) for a in (-2, 0, 1) for b in (-1, 0, 1, 3)),
    *(("permute", dims) for dims in (((),), (0,), (1, 0), (0, -1), (1, 1), (3, 0, 2, 1), (0, 5))),
    ("permute", ((1, 0),)),
    ("permute", ([1, 0],)),
    ("permute", (1.0, 0.0)),
    *(
        ("expand", sizes)
        for sizes in ((-1,), (4,), (2, 3), (-1, 3), (3, 5), (2, -1, -1), (-1, 3, 1), (0,))
    ),
    ("expand", (2, 2, 3, 1, 3)),
    ("expand", ((2, 3),)),
    ("expand", (-2, 3)),
    ("expand", (2.0, 3)),
    *(("view", sizes) for sizes in ((6,), (-1,), (3, -1), (-1, -1), (0, -1), (2, 1, 3), (1.0,))),
    *(("reshape", sizes) for sizes in ((6,), (-1,), (3, 2), ([3, 2],), ((-1, 1),), (5,))),
    ("t", ()),
]
KEYS: tuple[Any, ...] = (
    ...,
    None,
    (None, ...),
    (..., None, 0),
    (0, ...),
    (slice(None, None, 2),),
    (slice(-2, None), None, ...),
    (..., slice(3, 1)),
    (slice(None), slice(1, 9, 3)),
    (slice(None, None, 0),),
    (slice(None, None, -1),),
    (0, 0, 0, 0, 0),
    (-1, slice(None, -1)),
    (0, None, 0),
    (),
)


def outcome(library: Any, shape: tuple[int, ...], requires_grad: bool, call: Any) -> Any:
    """What can be seen of a call: the view and its gradient, or the kind of error."""
    values = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    x = library.tensor(values.tolist()).reshape(shape).requires_grad_(requires_grad)
    try:
        v = call(x)
    except (RuntimeError, IndexError, TypeError, ValueError):
        return "refused"  # which error it is, the tests of bad input say
    found = [tuple(v.shape), v.tolist(), v.requires_grad, v._base is x, v._is_view()]
    if v.numel():
        found.append([s for n, s in zip(v.shape, v.stride(), strict=True) if n > 1])
        found.append(v.storage_offset())
    if requires_grad:
        (v * 2).sum().backward()
        found.append(x.grad.tolist())
    return found


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_a_view_method_does_what_pytorchs_does(
    name: str, arguments: tuple[Any, ...], shape: tuple[int, ...], requires_grad: bool
) -> None:
    def call(x: Any) -> Any:
        return getattr(x, name)(*arguments)

    ours, theirs = (outcome(lib, shape, requires_grad, call) for lib in (fb, torch))
    assert ours == theirs


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_basic_key_selects_what_pytorchs_does(
    key: Any, shape: tuple[int, ...], requires_grad: bool
) -> None:
    ours, theirs = (outcome(lib, shape, requires_grad, lambda x: x[key]) for lib in (fb, torch))
    assert ours == theirs


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_basic_key_is_written_where_pytorch_writes(key: Any) -> None:
    def written(library: Any) -> Any:
        x = library.arange(12.0).reshape(3, 4)
        try:
            x[key] = 7.0
        except (RuntimeError, IndexError, TypeError, ValueError):
            return "refused"
        return x.tolist()

    assert written(fb) == written(torch)


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="how CPython lays out instances")
def test_attributes_of_views_share_the_layout_of_tensors() -> None:
    """A dictionary of its own per view would double what making one costs."""
    many = [fb.zeros(1) for _ in range(64)]  # CPython closes the layout of a class after 30
    view = many[-1][0]
    view.requires_grad_()
    assert len(view.__dict__) > len(many[0].__dict__)
    assert sys.getsizeof(view.__dict__) == sys.getsizeof(many[0].__dict__)
