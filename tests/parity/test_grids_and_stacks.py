"""Grids, repetitions, stacks, diagonals, rotations and sums of products agree with PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from oracle import DEVICES, assert_same, check, check_error, ours_of  # noqa: E402

I = torch.tensor  # noqa: E741
V2, V3, M, B = (2,), (3,), (2, 3), (2, 3, 4)

CALLS: list[tuple[str, Any, tuple[Any, ...]]] = [
    ("meshgrid ij", lambda t, *v: t.meshgrid(*v, indexing="ij"), (V2, V3, (1,))),
    ("meshgrid xy", lambda t, *v: t.meshgrid(list(v), indexing="xy"), (V2, V3, (2,))),
    ("meshgrid scalar", lambda t, *v: t.meshgrid(*v, indexing="xy"), ((), V3)),
    ("meshgrid one", lambda t, v: t.meshgrid(v, indexing="xy"), (V3,)),
    ("cartesian_prod", lambda t, *v: t.cartesian_prod(*v), (V2, V3)),
    ("cartesian_prod one", lambda t, v: t.cartesian_prod(v), (V2,)),
    ("combinations", lambda t, v: t.combinations(v), ((4,),)),
    ("combinations 3", lambda t, v: t.combinations(v, 3), ((5,),)),
    ("combinations repeated", lambda t, v: t.combinations(v, 2, True), ((3,),)),
    ("combinations 0", lambda t, v: t.combinations(v, 0), ((3,),)),
    ("combinations too many", lambda t, v: t.combinations(v, 3), ((2,),)),
    ("tile", lambda t, x: t.tile(x, (2, 2)), (M,)),
    ("tile fewer", lambda t, x: x.tile(2), (M,)),
    ("tile more", lambda t, x: x.tile((3, 1, 2)), (V3,)),
    ("repeat_interleave", lambda t, x: t.repeat_interleave(x, 2), (M,)),
    ("repeat_interleave dim", lambda t, x: x.repeat_interleave(3, dim=-1), (M,)),
    ("repeat_interleave 0", lambda t, x: t.repeat_interleave(x, 0, 0), (M,)),
    ("repeat_interleave scalar", lambda t, x: t.repeat_interleave(x, 2), ((),)),
    ("repeat_interleave counts", lambda t, x, n: t.repeat_interleave(x, n, 1), (M, I([2, 0, 1]))),
    ("repeat_interleave one count", lambda t, x, n: t.repeat_interleave(x, n, 0), (M, I([2]))),
    ("repeat_interleave indices", lambda t, n: t.repeat_interleave(n), (I([2, 0, 3]),)),
    (
        "repeat_interleave rows",
        lambda t, x: x.repeat_interleave(t.tensor([1, 2], device=x.device), 0),
        (M,),
    ),
    ("atleast_1d", lambda t, *x: t.atleast_1d(*x), ((), V2)),
    ("atleast_2d", lambda t, *x: t.atleast_2d(list(x)), ((), V2, M)),
    ("atleast_3d", lambda t, *x: t.atleast_3d(*x), ((), V2, M, B)),
    ("hstack", lambda t, *x: t.hstack(x), (V2, V3)),
    ("hstack matrices", lambda t, *x: t.hstack(x), (M, (2, 1))),
    ("vstack", lambda t, *x: t.vstack(x), (V3, M)),
    ("dstack", lambda t, *x: t.dstack(x), (M, M)),
    ("column_stack", lambda t, *x: t.column_stack(x), (V2, (2, 2), V2)),
    ("fliplr", lambda t, x: x.fliplr(), (M,)),
    ("flipud", lambda t, x: x.flipud(), (V3,)),
    *[(f"rot90 {k}", lambda t, x, k=k: t.rot90(x, k), (M,)) for k in range(-1, 5)],
    ("rot90 plane", lambda t, x: x.rot90(1, [2, 0]), (B,)),
    ("diag_embed", lambda t, x: t.diag_embed(x), (M,)),
    ("diag_embed above", lambda t, x: x.diag_embed(1), (M,)),
    ("diag_embed dims", lambda t, x: t.diag_embed(x, -2, 0, 2), (B,)),
    ("diag_embed swapped", lambda t, x: t.diag_embed(x, 1, 2, 0), (M,)),
    ("diagflat", lambda t, x: t.diagflat(x, -1), (M,)),
    ("diagflat scalar", lambda t, x: t.diagflat(x), ((),)),
    ("trace", lambda t, x: t.trace(x), (M,)),
    ("cross", lambda t, x, y: t.cross(x, y, dim=0), ((3, 2), (3, 2))),
    ("cross broadcast", lambda t, x, y: x.cross(y, dim=-1), ((2, 3), (1, 3))),
    ("renorm", lambda t, x: t.renorm(x, 2, 0, 1.0), (M,)),
    ("renorm 1", lambda t, x: x.renorm(1, -1, 2.5), (B,)),
    ("einsum matrices", lambda t, x, y: t.einsum("ij,jk->ik", x, y), (M, (3, 4))),
    ("einsum implicit", lambda t, x, y: t.einsum("ij , jk", x, y), (M, (3, 4))),
    ("einsum batch", lambda t, x, y: t.einsum("bij,bkj->bik", x, y), (B, (2, 5, 4))),
    ("einsum attention", lambda t, q, k: t.einsum("bqhd,bkhd->bhqk", q, k), ((2, 3, 2, 4),) * 2),
    ("einsum sum", lambda t, x: t.einsum("ij->", x), (M,)),
    ("einsum trace", lambda t, x: t.einsum("ii", x), ((3, 3),)),
    ("einsum diagonal", lambda t, x: t.einsum("ii->i", x), ((3, 3),)),
    ("einsum diagonal batch", lambda t, x: t.einsum("aba->ab", x), ((2, 3, 2),)),
    ("einsum thrice", lambda t, x: t.einsum("iii->i", x), ((2, 2, 2),)),
    ("einsum transpose", lambda t, x: t.einsum("ijk->kij", x), (B,)),
    ("einsum outer", lambda t, x, y: t.einsum("i,j->ji", x, y), (V2, V3)),
    ("einsum three", lambda t, *x: t.einsum("bn,anm,bm->ba", *x), ((2, 3), (4, 3, 2), (2, 2))),
    ("einsum ellipsis", lambda t, x, y: t.einsum("...ij,jk->...ik", x, y), (B, (4, 2))),
    ("einsum ellipses", lambda t, x, y: t.einsum("a...,...b->...ab", x, y), (B, (4, 2))),
    ("einsum broadcast", lambda t, x, y: t.einsum("i...,i...->...", x, y), ((2, 1, 4), (2, 3, 1))),
    ("einsum summed ellipsis", lambda t, x: t.einsum("i...->i", x), (B,)),
    ("einsum size one", lambda t, x, y: t.einsum("ij,ij->i", x, y), ((2, 1), M)),
    ("einsum elementwise", lambda t, x, y: t.einsum("ij,ij->ij", x, y), (M, M)),
    ("einsum scalar", lambda t, x, y: t.einsum(",ij->ij", x, y), ((), M)),
    ("einsum capitals", lambda t, x, y: t.einsum("Ab,bA", x, y), (M, (3, 2))),
    ("einsum list", lambda t, x, y: t.einsum("ij,jk", [x, y]), (M, (3, 4))),
    ("einsum lists", lambda t, x, y: t.einsum(x, [0, 1], y, [1, 2], [2, 0]), (M, (3, 4))),
    ("einsum lists implicit", lambda t, x: t.einsum(x, [..., 1, 0]), (B,)),
    ("einsum empty", lambda t, x, y: t.einsum("ij,jk", x, y), ((2, 0), (0, 3))),
    ("tensordot", lambda t, x, y: t.tensordot(x, y), (B, (3, 4, 2))),
    ("tensordot 0", lambda t, x, y: t.tensordot(x, y, 0), (V2, V3)),
    ("tensordot lists", lambda t, x, y: t.tensordot(x, y, ([2, 0], [0, 1])), (B, (4, 2, 3))),
    ("tensordot all", lambda t, x, y: t.tensordot(x, y, 2), (M, M)),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("call", "operands"), [pytest.param(*c[1:], id=c[0]) for c in CALLS])
def test_values_and_both_derivatives_agree(call: Any, operands: Any, device: str) -> None:
    check(call, operands, device)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.meshgrid(x[0], x[1], indexing="ij"),
        lambda t, x: t.cartesian_prod(x[0], x[1]),
        lambda t, x: t.combinations(x[0]),
        lambda t, x: x.tile(2),
        lambda t, x: x.repeat_interleave(2, 1),
        lambda t, x: t.hstack([x, x]),
        lambda t, x: x.rot90(),
        lambda t, x: t.diag_embed(x, 1),
        lambda t, x: t.diagflat(x),
    ],
)
def test_arrangements_keep_every_dtype(call: Any, dtype: str) -> None:
    x = torch.tensor([[0, 1, 2], [3, 0, 5]]).to(getattr(torch, dtype))
    assert_same(call(fb, ours_of(x)), call(torch, x))
    assert_same(call(fb, ours_of(x.t().contiguous()).t()), call(torch, x))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32"])
def test_products_have_the_dtypes_of_pytorch(dtype: str) -> None:
    x = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]]).to(getattr(torch, dtype))
    for call in (
        lambda t, x: t.einsum("ij,jk", x, x),
        lambda t, x: t.einsum("ij->i", x),
        lambda t, x: t.tensordot(x, x, 1),
        lambda t, x: t.cross(x, x.flip(0), dim=1),
        lambda t, x: t.trace(x),
    ):
        assert_same(call(fb, ours_of(x)), call(torch, x))


@pytest.mark.parametrize(("row", "col"), [(3, 3), (2, 4), (4, 2), (0, 3), (3, 0), (1, 1)])
@pytest.mark.parametrize("offset", [-3, -1, 0, 1, 5])
def test_triangle_indices_agree(row: int, col: int, offset: int) -> None:
    for name in ("tril_indices", "triu_indices"):
        assert_same(getattr(fb, name)(row, col, offset), getattr(torch, name)(row, col, offset))
    assert fb.tril_indices(2, 2, dtype=fb.int32).dtype is fb.int32


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sequences_agree() -> None:
    spans: list[tuple[Any, ...]] = [
        (0, 2, 3),
        (-1.5, 2.5, 7, 2.0),
        (1, 1, 1),
        (0, 1, 0),
        (3, 0, 4, 0.5),
    ]
    for args in spans:
        assert_same(fb.logspace(*args), torch.logspace(*args), 1e-6)
        wide = fb.logspace(*args, dtype=fb.float64)
        assert_same(wide, torch.logspace(*args, dtype=torch.float64), 1e-12)
    for args in ((0, 4), (1, 2.5, 0.5), (5, 0, -2), (1, 1)):
        assert_same(fb.range(*args), torch.range(*args))
    assert_same(fb.range(0, 5, 2, dtype=fb.int64), torch.range(0, 5, 2, dtype=torch.int64))


def test_range_warns_that_it_is_deprecated() -> None:
    with pytest.warns(UserWarning, match="range is deprecated"):
        fb.range(0, 1)


def test_grids_are_views_of_their_vectors() -> None:
    x = fb.tensor([1.0, 2.0])
    grid = fb.meshgrid(x, fb.tensor([3.0]), indexing="ij")[0]
    x[0] = 7
    assert grid[0, 0].item() == 7


def test_renorm_in_place_writes_into_the_tensor() -> None:
    x = fb.tensor([[3.0, 4.0], [0.3, 0.4]])
    assert x.renorm_(2, 0, 1) is x
    theirs = torch.tensor([[3.0, 4.0], [0.3, 0.4]]).renorm_(2, 0, 1)
    assert_same(x, theirs, 1e-6)


@pytest.mark.parametrize(
    ("call", "operands", "text"),
    [
        (lambda t, x: t.meshgrid(x), (M,), "Expected 0D or 1D tensor"),
        (lambda t: t.meshgrid(), (), "non-empty TensorList"),
        (lambda t, x: t.meshgrid(x, indexing="ab"), (V2,), "indexing must be one of"),
        (lambda t, x, y: t.meshgrid(x, y, indexing="ij"), (V2, I([1])), "same dtype"),
        (lambda t, x: t.cartesian_prod(x), (M,), "Expect a 1D vector"),
        (lambda t, x: t.combinations(x), (M,), "Expect a 1D vector"),
        (lambda t, x: t.combinations(x, -1), (V2,), "Expect a non-negative number"),
        (lambda t, x: x.repeat_interleave(-1), (V2,), ""),
        (lambda t, x, n: x.repeat_interleave(n), (V2, I([1, 2, 3])), "must have the same size"),
        (lambda t, x, n: x.repeat_interleave(n), (V2, I([1, -2])), "repeats can not be negative"),
        (lambda t, n: t.repeat_interleave(n), (I([1.0]),), "use int64 or"),
        (lambda t, n: t.repeat_interleave(n), (I([[1]]),), "only accepts 1D vector"),
        (lambda t, x: x.fliplr(), (V2,), "Input must be >= 2-d"),
        (lambda t, x: x.flipud(), ((),), "Input must be >= 1-d"),
        (lambda t, x: x.rot90(1, [0]), (M,), "expected total rotation dims == 2"),
        (lambda t, x: x.rot90(1, [0, 0]), (M,), "rotation dims to be different"),
        (lambda t, x: x.rot90(), (V2,), "expected total dims >= 2"),
        (lambda t, x: x.rot90(1, [0, 2]), (M,), "Dimension out of range"),
        (lambda t, x: x.diag_embed(0, 1, 1), (M,), "diagonal dimensions cannot be identical"),
        (lambda t, x: x.diag_embed(0, 0, 3), (M,), "Dimension out of range"),
        (lambda t, x: t.trace(x), (V2,), "expected a matrix"),
        (lambda t, x, y: t.cross(x, y, dim=0), (M, M), "must have length 3"),
        (lambda t, x, y: t.cross(x, y, dim=0), (V3, (3, 1)), "same number of dimensions"),
        (lambda t, x: t.renorm(x, 0, 0, 1), (M,), "non-positive-norm not supported"),
        (lambda t, x: t.renorm(x, 1, 0, -1), (M,), "expected maxnorm to be >= 0"),
        (lambda t, x: t.renorm(x, 1, 0, 1), (V2,), "needs at least 2 dimensions"),
        (lambda t: t.tril_indices(-1, 2), (), "row"),
        (lambda t: t.logspace(0, 1, -1), (), "number of steps must be non-negative"),
        (lambda t, x: t.einsum("ij", x), (V2,), "does not match the number"),
        (lambda t, x: t.einsum("i", x), (M,), "does not match the number"),
        (lambda t, x: t.einsum("i,j", x), (V2,), "fewer operands"),
        (lambda t, x: t.einsum("i", x, x), (V2,), "more operands"),
        (lambda t, x: t.einsum("i->j", x), (V2,), "does not appear in the equation"),
        (lambda t, x: t.einsum("i->ii", x), (V2,), "appears more than once"),
        (lambda t, x: t.einsum("ii", x), (M,), "is repeated for operand"),
        (lambda t, x, y: t.einsum("i,i", x, y), (V2, V3), "does not broadcast"),
        (lambda t, x: t.einsum("i$", x), (M,), "invalid subscript"),
        (lambda t, x: t.einsum("......", x), (M,), "ellipsis was already found"),
        (lambda t, x: t.einsum(x, [60]), (V2,), "must be in the range [0, 52)"),
        (lambda t: t.einsum("i"), (), "at least one operand"),
        (lambda t, x, y: t.tensordot(x, y, 2), (M, (3, 2)), "contracted dimensions need to match"),
        (lambda t, x, y: t.tensordot(x, y, -1), (M, M), "expects dims >= 0"),
        (lambda t, x, y: t.tensordot(x, y, ([0], [0, 1])), (M, M), "should have same length"),
    ],
)
def test_errors_have_the_class_of_pytorch(call: Any, operands: Any, text: str) -> None:
    check_error(call, operands, text)
