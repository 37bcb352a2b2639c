"""Order statistics, counts, unique elements and searches agree with PyTorch."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from oracle import DEVICES, assert_same, check, check_error, ours_of  # noqa: E402

NAN, INF = math.nan, math.inf
I = torch.tensor  # noqa: E741
V, M, B = (7,), (4, 5), (2, 3, 4)


def f64(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


CALLS: list[tuple[str, Any, tuple[Any, ...]]] = [
    ("median", lambda t, x: t.median(x), (V,)),
    ("median even", lambda t, x: x.median(), (M,)),
    ("median scalar", lambda t, x: x.median(), ((),)),
    ("median equal", lambda t, x: x.median(), (f64(1, 2, 2, 3, 2),)),
    ("median nan", lambda t, x: x.median(), (f64(1, NAN, 2, NAN),)),
    ("median dim", lambda t, x: t.median(x, 1), (M,)),
    ("median keepdim", lambda t, x: x.median(dim=-2, keepdim=True), (B,)),
    ("median dim scalar", lambda t, x: x.median(0), ((),)),
    ("median dim nan", lambda t, x: x.median(0), (f64(1, NAN, 0, NAN),)),
    ("nanmedian", lambda t, x: t.nanmedian(x), (f64(1, NAN, 0, 5),)),
    ("nanmedian all nan", lambda t, x: t.nanmedian(x), (f64(NAN, NAN),)),
    ("nanmedian dim", lambda t, x: t.nanmedian(x, 0), (f64(1, NAN, 0, NAN, 4),)),
    ("kthvalue", lambda t, x: t.kthvalue(x, 2), (M,)),
    ("kthvalue keepdim", lambda t, x: x.kthvalue(3, 0, True), (M,)),
    ("kthvalue scalar", lambda t, x: x.kthvalue(1), ((),)),
    ("kthvalue nan", lambda t, x: x.kthvalue(3), (f64(2, NAN, 1),)),
    ("mode", lambda t, x: t.mode(x), (f64(2, 1, 1, 3, 2, 1, 0),)),
    ("mode tie", lambda t, x: x.mode(0, True), (f64(2, 1, 3),)),
    ("mode scalar", lambda t, x: x.mode(), ((),)),
    ("quantile", lambda t, x: t.quantile(x, 0.3), (M,)),
    ("quantile dim", lambda t, x: t.quantile(x, 0.6, 0), (M,)),
    (
        "quantile several",
        lambda t, x, q: t.quantile(x, q, 1, True),
        (M, I([0.0, 0.4, 1.0]).double()),
    ),
    ("quantile all", lambda t, x, q: t.quantile(x, q, keepdim=True), (M, I([0.2, 0.4]).double())),
    ("quantile nan", lambda t, x: t.quantile(x, 0.3), (f64(1, NAN, 2),)),
    *[
        (f"quantile {how}", lambda t, x, how=how: t.quantile(x, 0.3, 1, interpolation=how), (M,))
        for how in ("lower", "higher", "midpoint", "nearest")
    ],
    ("nansum", lambda t, x: t.nansum(x), (f64(1, NAN, 2),)),
    ("nansum dim", lambda t, x: t.nansum(x, 1, True), (M,)),
    ("nanmean", lambda t, x: t.nanmean(x), (f64(1, NAN, 2),)),
    ("nanmean dim", lambda t, x: t.nanmean(x, (0, 1)), (B,)),
    ("aminmax", lambda t, x: t.aminmax(x), (M,)),
    ("aminmax dim", lambda t, x: t.aminmax(x, dim=1, keepdim=True), (M,)),
    ("diff", lambda t, x: t.diff(x), (M,)),
    ("diff twice", lambda t, x: t.diff(x, 2, 0), (M,)),
    ("diff extended", lambda t, x, p, a: t.diff(x, 1, 0, p, a), (M, (1, 5), (2, 5))),
    ("diff too often", lambda t, x: t.diff(x, 9), ((3,),)),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("call", "operands"), [pytest.param(*c[1:], id=c[0]) for c in CALLS])
def test_values_and_both_derivatives_agree(call: Any, operands: Any, device: str) -> None:
    check(call, operands, device)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float16", "bfloat16", "float32"])
def test_order_statistics_take_every_dtype(dtype: str) -> None:
    x = I([[3, 1, 2, 1, 5], [4, 4, 0, 0, 7]]).to(getattr(torch, dtype))
    for call in (
        lambda x: x.median(),
        lambda x: x.median(1).values,
        lambda x: x.mode(1).values,
        lambda x: x.kthvalue(4).values,
        lambda x: x.unique(),
    ):
        assert_same(call(ours_of(x)), call(x))
    expected = x.t().mode(0)
    assert_same(ours_of(x).t().mode(0).values, expected.values)


def test_the_named_results_print_as_those_of_pytorch() -> None:
    for call in (lambda t: t.median(t.ones(2), 0), lambda t: t.mode(t.ones(1))):
        assert repr(call(fb)) == repr(call(torch))
    found = fb.tensor([3, 1]).kthvalue(1)
    assert found.values.item() == 1 and found.indices.item() == 1
    assert repr(found).startswith("torch.return_types.kthvalue(")


ROWS = I([[2, 1, 2], [0, 5, 0], [2, 1, 2], [0, 4, 9]])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "x",
    [
        I([3, 1, 3, 2, 1, 1]),
        I([[3, 1], [1, 3]]),
        I(4),
        I([], dtype=torch.int64),
        I([1.5, NAN, 1.5, NAN, -INF]),
        I([True, False, True]),
        ROWS,
    ],
)
def test_unique_elements_agree(x: Any, device: str) -> None:
    ours = ours_of(x, device)
    for inverse in (False, True):
        for counts in (False, True):
            how = {"return_inverse": inverse, "return_counts": counts}
            assert_same(fb.unique(ours, **how), torch.unique(x, **how))
            assert_same(fb.unique_consecutive(ours, **how), torch.unique_consecutive(x, **how))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unique_entries_of_a_dimension_agree(dim: int) -> None:
    for x in (ROWS, ROWS.repeat(2, 1), torch.zeros(4, 2), torch.arange(12).reshape(2, 3, 2) % 3):
        how = {"return_inverse": True, "return_counts": True, "dim": dim}
        assert_same(fb.unique(ours_of(x), **how), torch.unique(x, **how))
        assert_same(fb.unique_consecutive(ours_of(x), **how), torch.unique_consecutive(x, **how))
    alike = torch.ones(6, 20)
    alike[:, 11], alike[3, 17] = I([2.0, 1, 2, 2, 0, 1]), 0  # rows that differ in late columns only
    for x in (alike, alike.t().contiguous()):
        assert_same(fb.unique(ours_of(x), **how), torch.unique(x, **how))
    empty = torch.zeros(0, 2)
    assert_same(fb.unique(ours_of(empty), dim=0), torch.unique(empty, dim=0))


LARGE = torch.arange(40 * 300).mul(7919).remainder(4001).reshape(40, 300)
STRIDED = {
    "as it is": lambda x: x,
    "transposed": lambda x: x.t(),
    "each second": lambda x: x[::2, ::3],
    "expanded": lambda x: x[:, :1].expand(-1, 9),
    "one more dimension": lambda x: x.reshape(8, 5, 300),
    "row": lambda x: x[3],
    "none": lambda x: x[:, :0],
    "scalar": lambda x: x[2, 5],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("layout", STRIDED)
def test_counts_of_every_layout_agree(layout: str, dtype: str) -> None:
    x = (LARGE % 3 - 1).to(getattr(torch, dtype))
    x, ours = STRIDED[layout](x), STRIDED[layout](ours_of(x))
    for call in (
        lambda t, x: t.count_nonzero(x),
        lambda t, x: t.count_nonzero(x, -1) if x.dim() else x.sum(),
        lambda t, x: x.sum(0, True),
        lambda t, x: x.nonzero(),
        lambda t, x: t.equal(x, x.clone()),
        lambda t, x: t.equal(x, x + 1) if x.numel() else True,
    ):
        assert_same(call(fb, ours), call(torch, x))
    if dtype != "bool":
        assert_same(fb.isin(ours, fb.ones(1, dtype=ours.dtype)), torch.isin(x, I([1]).to(x.dtype)))
        few, mine = I([0, 2, 0]).to(x.dtype), fb.tensor([0, 2, 0]).to(ours.dtype)
        assert_same(fb.isin(ours, mine, invert=True), torch.isin(x, few, invert=True))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("layout", [name for name in STRIDED if name not in ("none", "expanded")])
def test_order_statistics_of_every_layout_agree(layout: str, dtype: str) -> None:
    x, ours = (STRIDED[layout](a) for a in (LARGE, ours_of(LARGE)))
    x, ours = x.to(getattr(torch, dtype)), ours.to(getattr(fb, dtype))
    if dtype.startswith("float"):
        x, ours = x.sin(), ours.sin()
    for dim in range(-x.dim(), max(1, x.dim())):
        for call in (
            lambda t, x, d=dim: x.median(d, True).values,
            lambda t, x, d=dim: x.nanmedian(d).values,
            lambda t, x, d=dim: x.kthvalue(2 if x.dim() else 1, d).values,
            lambda t, x, d=dim: x.mode(d).values,
        ):
            assert_same(call(fb, ours), call(torch, x), 1e-6)


def test_order_statistics_of_expanded_tensors_are_those_of_their_copies() -> None:
    # PyTorch's own medians of these are numbers of other rows.
    x = ours_of(LARGE)[:, :1].expand(-1, 9)
    for dim in (0, 1):
        for name in ("median", "nanmedian", "mode"):
            found, wanted = (getattr(a, name)(dim) for a in (x, x.clone()))
            assert found.values.tolist() == wanted.values.tolist()
            assert found.indices.tolist() == wanted.indices.tolist()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_repetitions_agree(dtype: str) -> None:
    counts = (torch.arange(30) * 7 % 5).to(getattr(torch, dtype))
    x = torch.arange(60.0).reshape(30, 2)
    mine, ours = ours_of(counts), ours_of(x)
    for n, m in ((counts, mine), (counts[::2], mine[::2]), (counts[:0], mine[:0])):
        assert_same(fb.repeat_interleave(m), torch.repeat_interleave(n))
    for dim in (0, -2):
        found = fb.repeat_interleave(ours, mine, dim, output_size=int(counts.sum()))
        assert_same(found, torch.repeat_interleave(x, counts, dim))
    assert_same(ours.t().repeat_interleave(mine, 1), x.t().repeat_interleave(counts, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_without_nan_agree_in_every_layout(dtype: str) -> None:
    x = LARGE.to(getattr(torch, dtype)).sin()
    x[x < -0.9], x[0, :7], x[5] = NAN, INF, NAN
    x.requires_grad_()
    ours = ours_of(x)
    for turn in STRIDED.values():
        for call in (
            lambda t, x: t.nansum(x),
            lambda t, x: t.nansum(x, -1, True),
            lambda t, x: t.nanmean(x, 0),
            lambda t, x: t.nansum(x, dtype=t.float64),
        ):
            assert_same(call(fb, turn(ours)), call(torch, turn(x)), 2e-5)
    torch.nansum(x[3:, :50]).backward()
    fb.nansum(ours[3:, :50]).backward()
    assert_same(ours.grad, x.grad)


@pytest.mark.parametrize("device", DEVICES)
def test_histograms_agree(device: str) -> None:
    x = I([1.0, 2.0, NAN, 0.0, -4.0, 3.999, 4.0, 1.5])
    for how in ((4, 0, 4), (3, -1, 9)):
        assert_same(fb.histc(ours_of(x, device), *how), torch.histc(x, *how))
    for x in (torch.ones(3), torch.arange(10.0).double(), torch.zeros(0), torch.ones(2, 2).half()):
        assert_same(fb.histc(ours_of(x, device), 5), torch.histc(x, 5))


@pytest.mark.parametrize("device", DEVICES)
def test_counts_of_numbers_agree(device: str) -> None:
    for x in (I([1, 0, 4, 1]), I([], dtype=torch.int64), I([2, 2], dtype=torch.uint8)):
        ours = ours_of(x, device)
        assert_same(fb.bincount(ours), torch.bincount(x))
        assert_same(fb.bincount(ours, minlength=3), torch.bincount(x, minlength=3))
        for dtype in (torch.int64, torch.float32, torch.float64):
            weights = torch.arange(x.numel()).to(dtype)
            mine = fb.bincount(ours, ours_of(weights, device))
            assert_same(mine, torch.bincount(x, weights))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("right", [False, True])
def test_searches_agree(right: bool, device: str) -> None:
    values = I([[3.0, 9.0, -1.0], [5.0, NAN, 1.0]])
    pairs = [
        (I([1, 3, 3, 5]), I([[3, 6], [0, 5]])),
        (I([1, 3, 5]), I([3.5, 1.0])),
        (I([1.0, 3.0, NAN]), values),
        (I([[1.0, 3.0, 3.0, 4.0], [0.0, 1.0, 2.0, 5.0]]), values),
        (torch.zeros(0), values),
        (I([1, 3]), torch.zeros(0, dtype=torch.int64)),
    ]
    for edges, x in pairs:
        mine = fb.searchsorted(ours_of(edges, device), ours_of(x, device), right=right)
        assert_same(mine, torch.searchsorted(edges, x, right=right))
    assert_same(
        fb.bucketize(ours_of(values, device), ours_of(pairs[2][0], device), right=right),
        torch.bucketize(values, pairs[2][0], right=right),
    )


def test_searches_take_numbers_sorters_and_sides() -> None:
    edges = I([5, 1, 3])
    sorter = edges.argsort()
    assert_same(
        fb.searchsorted(ours_of(edges), fb.tensor([4]), sorter=ours_of(sorter), side="right"),
        torch.searchsorted(edges, I([4]), sorter=sorter, side="right"),
    )
    ordered = I([1, 3, 5])
    for value in (3, 3.5):
        assert_same(
            fb.searchsorted(ours_of(ordered), value, out_int32=True),
            torch.searchsorted(ordered, value, out_int32=True),
        )
    assert_same(fb.bucketize(4, ours_of(ordered)), torch.bucketize(4, ordered))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "counts", [(0, 3), (3, 0), (1, 1), (40, 30), (130, 126), (130, 127), (9, 3000)]
)
def test_membership_agrees_where_all_pairs_are_compared_and_where_not(
    counts: tuple[int, int], device: str
) -> None:
    torch.manual_seed(sum(counts))
    many, few = (torch.randint(0, 90, (count,)) for count in counts)
    for kind in (
        torch.int64,
        torch.uint8,
        torch.int16,
        torch.float32,
        torch.float64,
        torch.bfloat16,
    ):
        x, y = many.to(kind), few.to(kind)
        if kind.is_floating_point:
            for t in (x, y):
                t[::5], t[1::7] = NAN, -0.0
        for invert in (False, True):
            for given in (x, x.reshape(1, -1).mT, x[::2]):
                mine = fb.isin(ours_of(given, device), ours_of(y, device), invert=invert)
                assert_same(mine, torch.isin(given, y, invert=invert))


def test_weights_of_counts_may_be_transformed_but_lie_where_the_elements_do() -> None:
    x = fb.tensor([0, 1, 1])
    found = fb.func.vmap(lambda w: fb.bincount(x, w))(fb.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, 1.0]]))
    assert found.tolist() == [[1, 5], [0, 2]]
    value, slope = fb.func.jvp(
        lambda w: fb.bincount(x, w), (fb.tensor([1.0, 2.0, 3.0]),), (fb.ones(3),)
    )
    assert value.tolist() == [1, 5] and not slope.any()
    with pytest.raises(RuntimeError, match="on the same device"):
        fb.bincount(x, fb.ones(3, device="meta"))


def test_membership_agrees() -> None:
    x, y = I([[1, 2], [3, 1]]), I([1, 7, 3])
    for invert in (False, True):
        mine = fb.isin(ours_of(x), ours_of(y), invert=invert)
        assert_same(mine, torch.isin(x, y, invert=invert))
    assert_same(fb.isin(ours_of(x), 2), torch.isin(x, 2))
    assert_same(fb.isin(3, ours_of(y)), torch.isin(3, y))
    for dtype in ("float32", "float64", "int64", "int32", "uint8"):
        z = I([0, 1, 3]).to(getattr(torch, dtype)) / (10 if dtype.startswith("float") else 1)
        for number in (0.1, 1, 300, -1, 2**40, math.nan, 1.5):
            for invert in (False, True):
                mine = fb.isin(ours_of(z), number, invert=invert)
                assert_same(mine, torch.isin(z, number, invert=invert))
                mine = fb.isin(number, ours_of(z), invert=invert)
                assert_same(mine, torch.isin(number, z, invert=invert))
    assert_same(fb.isin(ours_of(x), fb.zeros(0)), torch.isin(x, torch.zeros(0)))
    nan = I([NAN, 1.0])
    assert_same(fb.isin(ours_of(nan), ours_of(nan)), torch.isin(nan, nan))


def test_results_go_to_given_tensors() -> None:
    values, indices = fb.zeros(0), fb.zeros(0, dtype=fb.int64)
    fb.median(fb.tensor([3.0, 1.0, 2.0]), 0, out=(values, indices))
    assert (values.item(), indices.item()) == (2.0, 2)
    counts = fb.zeros(0)
    fb.histc(fb.tensor([1.0]), 1, out=counts)
    assert counts.tolist() == [1.0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t: t.median(t.zeros(2, 0), 1), "to have non-zero size"),
        (lambda t: t.median(t.tensor([True])), "not implemented"),
        (lambda t: t.median(t.zeros(2), 1), "Dimension out of range"),
        (lambda t: t.kthvalue(t.zeros(2), 3), "selected number k out of range"),
        (lambda t: t.kthvalue(t.zeros(2), 0), "selected number k out of range"),
        (lambda t: t.mode(t.zeros(0)), "to have non-zero size"),
        (lambda t: t.quantile(t.zeros(2), 1.5), "must be in the range [0, 1]"),
        (lambda t: t.quantile(t.tensor([1]), 0.5), "must be either float or double"),
        (lambda t: t.quantile(t.zeros(0), 0.5), "must be non-empty"),
        (lambda t: t.quantile(t.zeros(1), 0.5, interpolation="x"), "must be one of linear"),
        (lambda t: t.histc(t.tensor([1])), "not implemented"),
        (lambda t: t.histc(t.ones(1), 0), "bins must be > 0"),
        (lambda t: t.histc(t.ones(1), 3, 5, 1), "max must be larger than min"),
        (lambda t: t.histc(t.tensor([1.0, math.inf])), "is not finite"),
        (lambda t: t.bincount(t.tensor([-1])), "1-d non-negative integral inputs"),
        (lambda t: t.bincount(t.tensor([[1]])), "1-d non-negative integral inputs"),
        (lambda t: t.bincount(t.ones(1)), "not implemented"),
        (lambda t: t.bincount(t.tensor([1]), t.ones(2)), "weights should be 1-d"),
        (lambda t: t.bincount(t.tensor([1]), minlength=-1), "minlength should be >= 0"),
        (lambda t: t.unique(t.zeros(2, 0), dim=0), "There are 0 sized dimensions"),
        (lambda t: t.searchsorted(t.ones(1, 2), 3), "can be a scalar only when"),
        (lambda t: t.searchsorted(t.ones(1, 2), t.ones(2)), "must match"),
        (lambda t: t.searchsorted(t.ones(2), t.ones(2), side="x"), "can only be 'left' or 'right'"),
        (lambda t: t.searchsorted(t.ones(2), 1, side="left", right=True), "set to opposites"),
        (lambda t: t.bucketize(t.ones(2), t.ones(1, 2)), "must be 1 dimension"),
        (lambda t: t.diff(t.tensor(1.0)), "at least one-dimensional"),
        (lambda t: t.diff(t.ones(2), -1), "order must be non-negative"),
        (lambda t: t.nanmean(t.tensor([1])), "floating point"),
    ],
)
def test_errors_have_the_class_of_pytorch(call: Any, text: str) -> None:
    check_error(call, (), text)
