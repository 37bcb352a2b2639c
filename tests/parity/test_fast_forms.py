"""Ops that have a form of their own on small or ordinary arguments agree with PyTorch there too."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from oracle import DEVICES, assert_same, check, check_error, derivatives, ours_of  # noqa: E402

NAN, INF = float("nan"), float("inf")
CORNERS = torch.tensor([NAN, -INF, INF, -0.0, 0.0, -2.5, 2.5, 1.0], dtype=torch.float64)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    "limits", [(-1, 1), (-1.5, None), (None, 0.5), (2.0, -2.0), (NAN, 1.0), (0, INF)]
)
def test_clamp_agrees_at_corners(limits: Any, dtype: Any, device: str) -> None:
    x = CORNERS.to(dtype)
    assert_same(ours_of(x, device).clamp(*limits), x.clamp(*limits))


@pytest.mark.parametrize("device", DEVICES)
def test_clamp_and_its_derivatives_agree_at_the_limits(device: str) -> None:
    x = torch.tensor([-2.0, -1.0, 0.5, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    for limits in ((-1, 1), (None, 1.0), (-1.0, None)):
        check(lambda t, x, b=limits: x.clamp(*b), (x,), device)
    whole = torch.tensor([-3, 0, 3])
    check(lambda t, x: (x.clamp(-1, 2), x.clamp(-1.5, 2)), (whole,), device)


LIMITS = (
    torch.tensor([0.0, 1, 2, 3, NAN, 1, 1, 5, 5, 5, 1], dtype=torch.float64),
    torch.tensor([0.0, 2, 2, 1, 1, NAN, 1, 3, 3, 9, 9], dtype=torch.float64),
    torch.tensor([1.0, 3, 2, 2, 2, 2, NAN, 3, 4, 2, 2], dtype=torch.float64),
)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("given", ["both", "low", "high"])
def test_clamp_by_tensors_and_its_derivatives_agree_where_they_meet_cross_or_are_nan(
    given: str, device: str
) -> None:
    def clamped(t: Any, x: Any, low: Any, high: Any) -> Any:
        return t.clamp(x, None if given == "high" else low, None if given == "low" else high)

    theirs = [x.clone().requires_grad_() for x in LIMITS]
    ours = [ours_of(x, device) for x in theirs]
    expected, found = clamped(torch, *theirs), clamped(fb, *ours)
    assert_same(found, expected)
    assert found.grad_fn.name() == expected.grad_fn.name() == "ClampBackward0"
    assert_same(
        derivatives(fb, [found], ours, False), derivatives(torch, [expected], theirs, False)
    )
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        few = [x.to(dtype) for x in LIMITS]
        assert_same(clamped(fb, *(ours_of(x, device) for x in few)), clamped(torch, *few))
    whole = [x.nan_to_num(4).to(torch.int64) for x in LIMITS]
    check(clamped, tuple(whole), device)
    check(clamped, ((2, 4, 3), (4, 1), (3,)), device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_along_a_dimension_agree(name: str, device: str) -> None:
    x = torch.tensor([[2.0, NAN, 5.0], [5.0, -1.0, 5.0]], dtype=torch.float64)
    for dim in (0, 1, -1):
        for keepdim in (False, True):
            check(lambda t, x, d=dim, k=keepdim: tuple(getattr(t, name)(x, d, k)), (x,), device)
    check(lambda t, x: tuple(getattr(t, name)(x, 1)), ((3, 4),), device)
    check(lambda t, x: tuple(getattr(t, name)(x > 0, 1)), ((3, 4),), device)
    check(lambda t, x: tuple(getattr(t, name)(x, 0)), ((),), device)
    check_error(lambda t, x: getattr(t, name)(x, 1), (torch.zeros(2, 0),))
    check_error(lambda t, x: getattr(t, name)(x), (torch.zeros(2, 0),))


@pytest.mark.parametrize("device", DEVICES)
def test_topk_and_its_derivatives_agree(device: str) -> None:
    for dim in (0, 1, 2):
        for largest in (True, False):
            check(lambda t, x, d=dim, b=largest: tuple(t.topk(x, 2, d, b)), ((3, 4, 2),), device)
    found = ours_of(CORNERS, device).topk(3)
    assert_same(found.values, CORNERS.topk(3).values)
    assert fb.ones(3, 4, device=device).topk(2, 0).values.is_contiguous()


@pytest.mark.parametrize("device", DEVICES)
def test_stack_and_its_derivatives_agree(device: str) -> None:
    for dim in (0, 1, -1):
        check(lambda t, x, y, d=dim: t.stack([x, y, x], d), ((2, 3), (2, 3)), device)
    check(lambda t, x, y: t.stack([x, y]), ((), ()), device)
    check(lambda t, x: t.stack([x, x.long()], 1), ((3,),), device)
    check(lambda t, x: t.stack([x.t(), x.t()]), ((2, 3),), device)


@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (1, 3, 5, 7), (3, 6, 6)])
@pytest.mark.parametrize(
    "arguments", [(2,), (3, 1), ((2, 3), (2, 1)), (2, 2, 1), (3, 2, 1, 1, True)]
)
def test_small_images_pool_as_large_ones_do(shape: tuple[int, ...], arguments: Any) -> None:
    x = torch.arange(float(torch.Size(shape).numel())).mul(0.7).sin().reshape(shape)
    x[..., 1, 2] = NAN
    mine = fb.nn.functional.max_pool2d(ours_of(x), *arguments)
    assert_same(mine, torch.nn.functional.max_pool2d(x, *arguments))
    y = x.nan_to_num()
    arguments = arguments[:3]
    mine = fb.nn.functional.avg_pool2d(ours_of(y), *arguments)
    assert_same(mine, torch.nn.functional.avg_pool2d(y, *arguments), 1e-6)


@pytest.mark.parametrize("index", [[[0, 3]], [[-1, 0]]])
def test_indices_out_of_range_are_refused_at_every_size(index: Any) -> None:
    for repeats in (1, 40):
        i = torch.tensor(index).repeat(repeats, 1)
        x = torch.zeros(repeats, 3)
        check_error(lambda t, x, i: t.gather(x, 1, i), (x, i))
        check_error(lambda t, x, i: t.nn.functional.embedding(i, x[:3]), (x, i * 40))


@pytest.mark.filterwarnings("ignore:var.*degrees of freedom is <= 0")
def test_variances_of_small_tensors_agree() -> None:
    for dtype in (torch.float32, torch.float64, torch.float16):
        x = torch.tensor([[1e3, 1e3 + 1, 1e3 + 3], [0.5, 0.25, -1.0]]).to(dtype)
        for dim in (None, 0, 1, (0, 1)):
            for correction in (0, 1, 2, 5):
                mine = ours_of(x).var(dim, correction=correction)
                theirs = x.var(dim, correction=correction)
                assert_same(mine, theirs, 1e-2 if dtype is torch.float16 else 1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["max", "min", "amax", "amin"])
def test_extrema_of_complex_numbers_are_refused(name: str, device: str) -> None:
    x = torch.zeros(3, dtype=torch.complex64)
    ours = ours_of(x, device)
    for call in (lambda x: getattr(x, name)(), lambda x: getattr(x, name)(0)):
        with pytest.raises(RuntimeError) as theirs:
            call(x)
        with pytest.raises(theirs.type):
            call(ours)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("times", [(1,), (2,), (1, 1), (2, 1, 3)])
def test_a_repetition_is_no_view(times: tuple[int, ...], device: str) -> None:
    x = ours_of(torch.arange(3.0), device)
    y = x.repeat(*times)
    y.add_(1)
    assert y._base is None
    assert x.tolist() == [0.0, 1.0, 2.0]
    check(lambda t, x: x.repeat(*times), ((3,),), device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (2, 3)])
def test_a_place_that_keeps_dimensions_is_no_view(shape: tuple[int, ...], device: str) -> None:
    x = torch.ones(shape)
    for name in ("argmax", "argmin"):
        found = getattr(fb, name)(ours_of(x, device), keepdim=True)
        assert_same(found, getattr(torch, name)(x, keepdim=True))
        assert found._base is None


@pytest.mark.parametrize("device", DEVICES)
def test_a_mask_of_leading_dimensions_selects_as_in_pytorch(device: str) -> None:
    for shape in ((4,), (2, 3), (2, 3, 2), (0,), (2, 0)):
        for rank in range(1, len(shape) + 1):
            check(lambda t, x, r=rank: x[(x > 0).flatten(r - 1).any(-1)], (shape,), device)
            check(lambda t, x, r=rank: x[x.sum(tuple(range(r, x.dim()))) > 0], (shape,), device)
    check_error(lambda t, x: x[t.tensor([True])], (torch.zeros(2),))
    check_error(lambda t, x: x[t.ones(2, 2) > 0], (torch.zeros(2),))
