"""Writing by index agrees with PyTorch: out of place, in place, in both derivatives and errors."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from oracle import DEVICES, assert_same, check, check_error, ours_of  # noqa: E402

I = torch.tensor  # noqa: E741
M, B = (3, 4), (2, 3, 4)
ROWS, COLUMNS = I([2, 0]), I([3, 1, 3])
MASK = I([[True, False, True, True], [False, False, True, False], [True, True, False, False]])

CALLS: list[tuple[str, Any, tuple[Any, ...]]] = [
    ("index_add rows", lambda t, x, i, s: t.index_add(x, 0, i, s), (M, ROWS, (2, 4))),
    ("index_add twice", lambda t, x, i, s: x.index_add(1, i, s, alpha=2), (M, COLUMNS, (3, 3))),
    ("index_add middle", lambda t, x, i, s: x.index_add(-2, i, s), (B, ROWS, (2, 2, 4))),
    ("index_add scalar", lambda t, x, i, s: x.index_add(0, i, s), ((), I([0]), ())),
    ("index_add nothing", lambda t, x, i, s: x.index_add(0, i, s), (M, ROWS[:0], (0, 4))),
    ("index_copy rows", lambda t, x, i, s: t.index_copy(x, 0, i, s), (M, ROWS, (2, 4))),
    ("index_copy columns", lambda t, x, i, s: x.index_copy(-1, i, s), (M, ROWS, (3, 2))),
    ("index_copy vector", lambda t, x, i, s: x.index_copy(0, i, s), ((3,), I(1), ())),
    ("index_fill number", lambda t, x, i: t.index_fill(x, 1, i, 7), (M, I([-1, 0]))),
    ("index_fill tensor", lambda t, x, i, v: x.index_fill(0, i, v), (M, ROWS, ())),
    ("index_fill nothing", lambda t, x, i: x.index_fill(0, i, 7), (M, ROWS[:0])),
    ("masked_scatter", lambda t, x, m, s: t.masked_scatter(x, m, s), (M, MASK, (8,))),
    ("masked_scatter broadcast", lambda t, x, m, s: x.masked_scatter(m, s), (M, MASK[0], M)),
    ("masked_scatter larger", lambda t, x, m, s: x.masked_scatter(m, s), ((4,), MASK, M)),
    ("masked_scatter none", lambda t, x, m, s: x.masked_scatter(m, s), ((1,), I([False]), (0,))),
    ("put", lambda t, x, i, s: t.put(x, i, s), (M, I([0, -1, 5]), (3,))),
    ("put accumulated", lambda t, x, i, s: x.put(i, s, True), (M, I([[1, 1], [2, 0]]), (4,))),
    ("take_along_dim", lambda t, x, i: t.take_along_dim(x, i, 1), (M, I([[0], [3], [1]]))),
    ("take_along_dim wide", lambda t, x, i: t.take_along_dim(x, i, 0), ((3, 1), I([[0, 2]]))),
    ("take_along_dim around", lambda t, x, i: t.take_along_dim(x, i, 1), (M, I([[-1], [9], [-6]]))),
    ("take_along_dim flat", lambda t, x, i: t.take_along_dim(x, i), (M, I([[0], [7]]))),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("call", "operands"), [pytest.param(*c[1:], id=c[0]) for c in CALLS])
def test_values_and_both_derivatives_agree(call: Any, operands: Any, device: str) -> None:
    check(call, operands, device)


REDUCED = I([[0, 2, 2, 1], [1, 2, 0, 0]])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "amax", "amin"])
def test_scatter_reduce_agrees(reduce: str, include_self: bool, device: str) -> None:
    def call(t: Any, x: Any, s: Any, i: Any) -> Any:
        return t.scatter_reduce(x, 0, i, s, reduce, include_self=include_self)

    values = torch.tensor([[0.5, -1.5, 2.5, 0.7], [3.1, 1.2, -0.4, 0.7]]).double()
    check(call, (M, values.requires_grad_(), REDUCED), device)
    # PyTorch has no gradient where values have no index.
    check(call, (torch.linspace(-1, 3, 15).reshape(3, 5), torch.eye(3, 4), REDUCED), device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "amax", "amin"])
def test_scatter_reduce_takes_scalars_for_vectors_and_indices_of_nothing(
    reduce: str, device: str
) -> None:
    seven = I(7.0, dtype=torch.float64).requires_grad_()  # no extremum by accident
    scalars = ((3,), (), I(1)), ((3,), (), I([2])), (seven, (2,), I([0, 0]))
    nothing = (M, (0, 4), REDUCED[:0]), (M, (2, 0), REDUCED[:, :0])
    for own in (True, False):
        for operands in (*scalars, *nothing):
            check(
                lambda t, x, s, i, own=own: t.scatter_reduce(x, 0, i, s, reduce, include_self=own),
                operands,
                device,
            )


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_equal_extrema_share_the_gradient_as_in_pytorch(reduce: str) -> None:
    x = torch.tensor([1.0, 2.0, 0.0], dtype=torch.float64, requires_grad=True)
    s = torch.tensor([1.0, 1.0, 2.0, 5.0], dtype=torch.float64, requires_grad=True)
    check(lambda t, x, s, i: x.scatter_reduce(0, i, s, reduce), (x, s, I([0, 0, 1, 2])), "cpu")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "float16", "bool"])
def test_scatter_reduce_takes_every_dtype(dtype: str) -> None:
    d = getattr(torch, dtype)
    x, s = torch.ones(3, 4).to(d), torch.arange(8).reshape(2, 4).to(d)
    for reduce in ("amax", "amin", "prod", "sum", "mean")[: 4 if dtype == "bool" else 5]:
        for own in (True, False):
            mine = fb.scatter_reduce(
                ours_of(x), 0, ours_of(REDUCED), ours_of(s), reduce, include_self=own
            )
            assert_same(mine, torch.scatter_reduce(x, 0, REDUCED, s, reduce, include_self=own))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "bfloat16"])
def test_writes_keep_every_dtype(dtype: str) -> None:
    x = torch.tensor([[0, 1, 2, 0], [3, 0, 5, 1], [1, 1, 0, 0]]).to(getattr(torch, dtype))
    for call in (
        lambda t, x, i, m: t.index_add(x, 0, i, x[:2]),
        lambda t, x, i, m: t.index_copy(x, 0, i, x[:2]),
        lambda t, x, i, m: t.index_fill(x, 0, i, 1),
        lambda t, x, i, m: t.masked_scatter(x, m, x.flip(0)),
        lambda t, x, i, m: t.put(x, i, x[0, :2]),
    ):
        mine = call(fb, ours_of(x), ours_of(ROWS), ours_of(MASK))
        assert_same(mine, call(torch, x, ROWS, MASK))
        mine = call(fb, ours_of(x.t().contiguous()).t(), ours_of(ROWS), ours_of(MASK))
        assert_same(mine, call(torch, x, ROWS, MASK))


IN_PLACE: list[tuple[str, Any, tuple[Any, ...]]] = [
    ("index_add_", lambda t, x, i, s: x.index_add_(0, i, s), (M, ROWS, (2, 4))),
    ("index_copy_", lambda t, x, i, s: x.index_copy_(0, i, s), (M, ROWS, (2, 4))),
    ("index_fill_", lambda t, x, i: x.index_fill_(1, i, 2.5), (M, ROWS)),
    ("index_fill_ tensor", lambda t, x, i, v: x.index_fill_(1, i, v), (M, ROWS, ())),
    ("masked_scatter_", lambda t, x, m, s: x.masked_scatter_(m, s), (M, MASK, M)),
    ("put_", lambda t, x, i, s: x.put_(i, s), (M, I([0, 5]), (2,))),
    (
        "scatter_reduce_",
        lambda t, x, i, s: x.scatter_reduce_(0, i, s, "amax"),
        (M, REDUCED, (2, 4)),
    ),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("call", "operands"), [pytest.param(*c[1:], id=c[0]) for c in IN_PLACE])
def test_in_place_forms_write_and_record_as_those_of_pytorch(
    call: Any, operands: Any, device: str
) -> None:
    def on_a_copy(t: Any, x: Any, *rest: Any) -> Any:
        y = x * 1
        assert call(t, y, *rest) is y
        return y

    def on_a_view(t: Any, x: Any, *rest: Any) -> Any:
        y = x.repeat(2, 1)
        call(t, y[3:], *rest)
        return y

    check(on_a_copy, operands, device)
    check(on_a_view, operands, device)


def test_python_functions_are_applied_to_every_element() -> None:
    x = torch.tensor([[1.0, -2.0], [3.0, 0.0]])
    ours = ours_of(x)
    assert ours.t().apply_(lambda v: v * v + 1).shape == (2, 2)
    assert_same(ours, x.apply_(lambda v: v * v + 1))
    assert_same(
        ours.map_(ours_of(torch.tensor([1.0, 2.0])), lambda a, b: a - b),
        x.map_(torch.tensor([1.0, 2.0]).expand(2, 2), lambda a, b: a - b),
    )


def test_is_set_to_tells_the_same_view_of_the_same_memory() -> None:
    for t in (torch, fb):
        x = t.arange(6.0)
        facts = [x.is_set_to(y) for y in (x, x[:], x[1:], x.view(2, 3), x.clone())]
        assert facts == [True, True, False, False, False]


def test_comparing_methods_answer_as_the_functions() -> None:
    for t in (torch, fb):
        x, y = t.tensor([1.0, 2.0]), t.tensor([1.0, 2.0 + 1e-7])
        assert x.allclose(y) is True
        assert x.equal(y) is (x == y).all().item()
        assert x.isclose(y + 1, atol=0.5).tolist() == [False, False]
        assert t.tensor([3]).is_nonzero() is True


def test_results_go_to_given_tensors() -> None:
    out = fb.zeros(3)
    fb.index_add(fb.ones(3), 0, fb.tensor([1]), fb.ones(1), out=out)
    assert out.tolist() == [1.0, 2.0, 1.0]


X = torch.zeros(3, 2)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t, x: x.index_add(0, t.tensor([5]), t.ones(1, 2)), "out of bounds"),
        (lambda t, x: x.index_add(0, t.tensor([-1]), t.ones(1, 2)), "out of bounds"),
        (lambda t, x: x[:, 0].index_add(0, t.tensor([5]), t.ones(1)), ""),
        (lambda t, x: x[:, 0].index_add(0, t.tensor([-1]), t.ones(1)), ""),
        (lambda t, x: x.index_add(0, t.tensor([0, 1]), t.ones(1, 2)), "Number of indices (2)"),
        (lambda t, x: x.index_add(0, t.tensor([0]), t.ones(1, 2).double()), "same"),
        (lambda t, x: x.index_add(0, t.tensor([0]), t.ones(1, 3)), "must match self tensor shape"),
        (lambda t, x: x.index_add(0, t.tensor([[0]]), t.ones(1, 2)), "supposed to be a vector"),
        (lambda t, x: x.index_add(0, t.tensor([0.0]), t.ones(1, 2)), "Expected dtype int32/int64"),
        (lambda t, x: x.index_copy(0, t.tensor([5]), t.ones(1, 2)), "out of bounds"),
        (lambda t, x: x.index_copy(0, t.tensor([-1]), t.ones(1, 2)), "out of bounds"),
        (lambda t, x: x.index_copy(0, t.tensor([0, 1]), t.ones(1, 2)), "Number of indices (2)"),
        (lambda t, x: x.index_copy(0, t.tensor([0]), t.ones(1, 2).long()), "same dtype"),
        (lambda t, x: x.index_copy(0, t.tensor([0]), t.ones(1, 3)), "Got self.shape"),
        (lambda t, x: x.index_fill(0, t.tensor([5]), 1.0), "out of bounds"),
        (lambda t, x: x.index_fill(0, t.tensor([0.0]), 1.0), "Expected dtype int64 for index"),
        (lambda t, x: x.index_fill(0, t.tensor([0]), t.ones(1)), "0-dimensional value tensor"),
        (lambda t, x: x.masked_scatter(t.ones(3, 2).bool(), t.ones(5)), "< number of ones in mask"),
        (lambda t, x: x.masked_scatter(t.ones(2).long(), t.ones(6)), "only supports boolean masks"),
        (lambda t, x: x.masked_scatter(t.ones(2).bool(), t.ones(6).int()), "same dtypes"),
        (lambda t, x: x[0].masked_scatter_(t.ones(3, 2).bool(), t.ones(6)), ""),
        (lambda t, x: x.put(t.tensor([7]), t.ones(1)), ""),
        (lambda t, x: x.put(t.tensor([0]), t.ones(2)), "same number of elements"),
        (lambda t, x: x.put(t.tensor([0]), t.ones(1).long()), "same dtype"),
        (lambda t, x: x.put(t.tensor([0.0]), t.ones(1)), "Expected a long tensor"),
        (lambda t, x: x.scatter_reduce(0, t.tensor([[0]]), x, "most"), "must be either sum, prod"),
        (lambda t, x: x.scatter_reduce(0, t.tensor([[3]]), x, "sum"), "out of bounds"),
        (lambda t, x: x.scatter_reduce(0, t.tensor([[3]]), x, "amax"), "out of bounds"),
        (lambda t, x: x.scatter_reduce(0, t.tensor([[0, 1]]), x[:, :1], "amax"), "no larger than"),
        (lambda t, x: x.scatter_reduce(0, t.tensor([[0]]), x.double(), "amin"), "to src.dtype"),
        (lambda t, x: x.scatter_reduce(0, t.tensor([[0]]), x[0], "prod"), ""),
        (lambda t, x: x.scatter_add(0, t.tensor([[0]]), x[None]), "dimensions as src tensor"),
        (lambda t, x: x[0].scatter_reduce(0, t.tensor([0, 1]), x[0, 0], "amax"), "no larger than"),
        (lambda t, x: (x * 1j).scatter_reduce(0, t.tensor([[0]]), x * 1j, "amax"), ""),
        (lambda t, x: t.take_along_dim(x, t.tensor([0]), 0), "same number of dimensions"),
        (lambda t, x: t.take_along_dim(x, t.ones(1, 1), 0), "should be Long"),
        (lambda t, x: x.requires_grad_().apply_(lambda v: v), "Can't call apply_"),
        (lambda t, x: x.requires_grad_().map_(x, lambda v, w: v), ""),
    ],
)
def test_errors_have_the_class_of_pytorch(call: Any, text: str) -> None:
    check_error(call, (X.clone(),), text)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "bool", "float32"])
def test_an_index_of_no_elements_may_have_any_dtype(dtype):
    for t in (torch, fb):
        x, index = t.zeros(3), t.zeros(0, dtype=getattr(t, dtype))
        assert t.gather(x, 0, index).shape == (0,)
        assert t.scatter(x, 0, index, 1.0).tolist() == [0, 0, 0]
        assert t.scatter_add(x, 0, index, t.zeros(0)).tolist() == [0, 0, 0]
        assert t.scatter_reduce(x, 0, index, t.zeros(0), "sum").tolist() == [0, 0, 0]
