"""View methods take a short way for plain arguments, which agrees with PyTorch as the long does."""

from __future__ import annotations

import enum
import sys
from typing import Any

import numpy as np
import pytest

import flambeau as fb
from flambeau._memory.record import state_of

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
# As functions: sizes and orders are one argument there.
FORMS: list[tuple[str, tuple[Any, ...]]] = [
    (name, (given,) if name in ("permute", "reshape") and not isinstance(given[0], list) else given)
    for name, given in CALLS
    if name not in ("expand", "view") and not (given and isinstance(given[0], tuple))
] + [
    *(("movedim", (a, b)) for a in (-2, 0, 1) for b in (-1, 0, 2)),
    ("movedim", ((0, 1), (1, 0))),
    ("squeeze", ((0, 1),)),
]


class Index(enum.IntEnum):
    FIRST = 0
    SECOND = 1


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
@pytest.mark.parametrize(("name", "arguments"), FORMS)
def test_a_view_function_does_what_pytorchs_does(
    name: str, arguments: tuple[Any, ...], shape: tuple[int, ...], requires_grad: bool
) -> None:
    ours, theirs = (
        outcome(lib, shape, requires_grad, lambda x, lib=lib: getattr(lib, name)(x, *arguments))
        for lib in (fb, torch)
    )
    assert ours == theirs


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    ("name", "shape"),
    [*(("T", s) for s in SHAPES), *(("mT", s) for s in SHAPES if s)],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch advises against other than matrices
def test_an_attribute_transposes_as_pytorchs_does(
    name: str, shape: tuple[int, ...], requires_grad: bool
) -> None:
    ours, theirs = (
        outcome(lib, shape, requires_grad, lambda x: getattr(x, name)) for lib in (fb, torch)
    )
    assert ours == theirs


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("squeeze", (Index.SECOND,)),
        ("unsqueeze", (Index.SECOND,)),
        ("select", (Index.SECOND, Index.FIRST)),
        ("flatten", (Index.FIRST, Index.SECOND)),
        ("transpose", (Index.FIRST, Index.SECOND)),
        ("permute", ((Index.SECOND, Index.FIRST),)),
        ("reshape", ((Index.SECOND, 6),)),
        ("movedim", (Index.FIRST, Index.SECOND)),
    ],
)
def test_members_of_enumerations_are_dimensions(name: str, arguments: tuple[Any, ...]) -> None:
    """What is no plain int takes the long way, which ends in the short one."""
    x = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    for call in (lambda lib, t: getattr(lib, name)(t, *arguments), _method(name, arguments)):
        assert call(fb, fb.tensor(x)).tolist() == call(torch, torch.tensor(x)).tolist()


def _method(name: str, arguments: tuple[Any, ...]) -> Any:
    return lambda _lib, t: getattr(t, name)(*arguments)


def test_the_transposed_of_a_subclass_is_of_the_subclass() -> None:
    class Sub(fb.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            return super().__torch_function__(func, types, args, kwargs or {})

    assert type(fb.zeros(2, 3).as_subclass(Sub).T) is Sub


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
    assert len(state_of(view)) > len(state_of(many[0]))
    assert sys.getsizeof(state_of(view)) == sys.getsizeof(state_of(many[0]))
