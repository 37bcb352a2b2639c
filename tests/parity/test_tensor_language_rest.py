"""Shifts, histograms, slopes, indexed reductions and random draws agree with PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from oracle import DEVICES, assert_same, check, check_error, ours_of  # noqa: E402

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def f64(*values: float, grad: bool = True) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_agree_for_every_distance(dtype: Any, device: str) -> None:
    low = 0 if dtype is torch.uint8 else -100
    x = torch.tensor([low, 1, 3, 100], dtype=dtype).reshape(-1, 1)
    n = torch.arange(low // 50, 70).to(dtype)
    a, b = ours_of(x, device), ours_of(n, device)
    assert_same(a << b, x << n)
    assert_same(a >> b, x >> n)


@pytest.mark.parametrize("device", DEVICES)
def test_shift_operators_take_numbers_on_either_side_and_work_in_place(device: str) -> None:
    x = torch.arange(-3, 4)
    check(lambda t, x: (x << 3, x >> 1, 2 << x.abs(), -9 >> x.abs()), (x,), device)
    check(lambda t, x: x.clone().__ilshift__(2), (torch.arange(4),), device)
    check(lambda t, x: x.clone().bitwise_right_shift_(1), (torch.arange(4),), device)


@pytest.mark.parametrize("shift", ["bitwise_left_shift", "bitwise_right_shift"])
def test_shifts_of_floats_and_bools_are_refused(shift: str) -> None:
    for dtype in (torch.float32, torch.bool):
        x = torch.ones(2, dtype=dtype)
        check_error(lambda t, x: getattr(t, shift)(x, x), (x,))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda t, x: t.histogram(x, 4), id="extremes"),
        pytest.param(lambda t, x: t.histogram(x, 4, range=(0.0, 2.0)), id="range"),
        pytest.param(lambda t, x: t.histogram(x, 5, weight=x + 9, density=True), id="density"),
        pytest.param(lambda t, x: t.histogram(x, x.sort()[0][1:6:2].contiguous()), id="edges"),
        pytest.param(lambda t, x: t.histogram(x[:0], 2), id="nothing"),
        pytest.param(lambda t, x: t.histogram(x[:1], 2), id="one value"),
        pytest.param(lambda t, x: t.histogramdd(x.reshape(-1, 2), [2, 3]), id="grid"),
        pytest.param(
            lambda t, x: t.histogramdd(x.reshape(-1, 2), 2, density=True), id="grid density"
        ),
        pytest.param(
            lambda t, x: t.histogramdd(x.reshape(-1, 2), [2, 2], range=[0.0, 1.0, -1.0, 3.0]),
            id="grid range",
        ),
    ],
)
def test_histograms_agree(call: Any, device: str) -> None:
    x = f64(-1.5, 0.25, 0.5, 0.5, 1.25, 2.0, 3.0, 7.5, grad=False)
    check(call, (x,), device)


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.histogram(x, 0),
        lambda t, x: t.histogram(x.long(), 2),
        lambda t, x: t.histogram(x / 0, 2),
        lambda t, x: t.histogram(x, 2, range=(3.0, 1.0)),
        lambda t, x: t.histogram(x, 2, weight=x[:1]),
        lambda t, x: t.histogramdd(x, [2]),
        lambda t, x: t.histogramdd(x.reshape(2, 2), [2]),
    ],
)
def test_errors_of_histograms_are_of_the_same_class(call: Any) -> None:
    check_error(call, (f64(0.0, 1.0, 2.0, 3.0, grad=False),))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda t, x: t.gradient(x), id="all dimensions"),
        pytest.param(lambda t, x: t.gradient(x, dim=1, spacing=0.5), id="one dimension"),
        pytest.param(lambda t, x: t.gradient(x, spacing=[2.0, 3.0], edge_order=2), id="parabolas"),
        pytest.param(
            lambda t, x: t.gradient(
                x,
                dim=(1,),
                spacing=(t.tensor([0.0, 1.0, 3.0, 4.5], dtype=t.float64, device=x.device),),
                edge_order=2,
            ),
            id="coordinates",
        ),
    ],
)
def test_gradient_and_its_derivatives_agree(call: Any, device: str) -> None:
    check(call, ((3, 4),), device)


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.gradient(x, edge_order=3),
        lambda t, x: t.gradient(x[:2], edge_order=2),
        lambda t, x: t.gradient(x, spacing=[1.0, 2.0]),
        lambda t, x: t.gradient(x, dim=1),
        lambda t, x: t.gradient(x, dim=(0, 0)),
    ],
)
def test_errors_of_gradient_are_of_the_same_class(call: Any) -> None:
    check_error(call, (f64(1.0, 4.0, 9.0),))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_index_reduce_and_its_derivatives_agree(
    reduce: str, include_self: bool, device: str
) -> None:
    index = torch.tensor([2, 0, 2])
    check(
        lambda t, x, s, i: x.index_reduce(0, i, s, reduce, include_self=include_self),
        ((3, 2), (3, 2), index),
        device,
    )
    # PyTorch refuses int32 without the old values.
    check(
        lambda t, x, s, i: x.index_reduce(1, i, s, reduce, include_self=include_self),
        ((2, 3), (2, 3), index.int() if include_self else index),
        device,
    )


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize(
    "call",
    [
        lambda t, x, i: x.index_reduce(0, i, x, "sum"),
        lambda t, x, i: x.index_reduce(0, i, x[:2], "prod"),
        lambda t, x, i: x.index_reduce(0, i + 5, x, "prod"),
        lambda t, x, i: x.index_reduce(0, i.double(), x, "prod"),
        lambda t, x, i: x.index_reduce(0, i, x.float(), "prod"),
    ],
)
def test_errors_of_index_reduce_are_of_the_same_class(call: Any) -> None:
    check_error(call, (f64(1.0, 2.0, 3.0), torch.tensor([0, 1, 0])))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "nearest", "midpoint"])
def test_nanquantile_agrees(interpolation: str, device: str) -> None:
    nan = float("nan")
    x = torch.tensor([[1.0, nan, 3.0, -2.0], [nan] * 4, [4.0, 2.0, 0.5, 9.0]], dtype=torch.float64)
    q = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64)
    for options in ({"dim": 1}, {"dim": 0, "keepdim": True}, {}):
        check(
            lambda t, x, q, o=options: t.nanquantile(x, q, interpolation=interpolation, **o),
            (x, q),
            device,
        )


@pytest.mark.parametrize("device", DEVICES)
def test_short_forms_agree(device: str) -> None:
    check(lambda t, x, y: t.vdot(x, y), ((3,), (3,)), device)
    z = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128)
    check(lambda t, z: t.vdot(z, z.flip(0)), (z,), device)
    check(lambda t, x: t.fill(x, 3), ((2, 2),), device)
    check(lambda t, x: t.arctan2(x, x + 1), ((2, 2),), device)
    check(lambda t, x: (*t.unsafe_split(x, 2), *t.unsafe_chunk(x, 2)), ((5,),), device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("ignore:at::")
def test_norms_of_matrices_by_name_agree(device: str) -> None:
    check(lambda t, x: t.frobenius_norm(x, 1, True), ((2, 3),), device)
    check(lambda t, x: t.frobenius_norm(x, [0, 1]), ((2, 3),), device)
    check(lambda t, x: t.nuclear_norm(x, True), ((2, 3),), device, 1e-8)
    check(lambda t, x: t.nuclear_norm(x), ((2, 3, 3),), device, 1e-8)
    check_error(lambda t, x: t.nuclear_norm(x), ((3,),))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(3, 3), (7, 3), (2, 5), (3, 3, 3), (0, 2)])
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal_agrees(shape: tuple[int, ...], wrap: bool, device: str) -> None:
    x = torch.zeros(shape)
    check(lambda t, x: x.clone().fill_diagonal_(2.0, wrap), (x,), device)


def test_fill_diagonal_refuses_vectors_and_bricks() -> None:
    for shape in ((3,), (2, 2, 3)):
        check_error(lambda t, x: x.fill_diagonal_(1.0), (torch.zeros(shape),))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_stream_of_poisson_is_that_of_pytorch(dtype: Any, device: str) -> None:
    rates = torch.tensor([0.0, 0.1, 3.0, 9.99, 10.0, 45.5, 1e3, 2e5] * 20, dtype=dtype)
    torch.manual_seed(7)
    fb.manual_seed(7)
    assert_same(fb.poisson(ours_of(rates, device)), torch.poisson(rates), 0)
    assert fb.rand(1, device=device).item() == torch.rand(1).item()


def test_poisson_has_a_zero_gradient_and_refuses_wrong_rates() -> None:
    x = fb.ones(2, requires_grad=True)
    fb.poisson(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    check_error(lambda t, x: t.poisson(x), (torch.tensor([-1.0]),))
    check_error(lambda t, x: t.poisson(x), (torch.tensor([1]),))


@pytest.mark.parametrize("device", DEVICES)
def test_rrelu_draws_as_pytorch_does(device: str) -> None:
    x = torch.linspace(-3, 3, 25)
    torch.manual_seed(3)
    fb.manual_seed(3)
    assert_same(fb.rrelu(ours_of(x, device), 0.1, 0.4, True), torch.rrelu(x, 0.1, 0.4, True), 1e-7)
    ours = ours_of(x, device)
    assert fb.rrelu_(ours, 0.1, 0.4, False) is ours
    assert_same(ours, torch.rrelu(x, 0.1, 0.4), 1e-7)


MADE = {
    "product": lambda x: x * 2,
    "view": lambda x: (x * 2).view(4),
    "view of the leaf": lambda x: x.view(4),
    "transposed": lambda x: (x * 2).t(),
    "row": lambda x: (x * 2)[0],
    "view of a view": lambda x: (x * 2).t()[0],
    "expanded": lambda x: (x * 2).expand(3, 2, 2),
    "one of several": lambda x: (x * 2).unbind()[1],
    "detached": lambda x: (x * 2).detach(),
    "detached view": lambda x: x.detach().view(4),
}


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("name", MADE)
def test_what_is_given_other_data_keeps_its_gradient(name, asked):
    found = []
    for library in (torch, fb):
        x = library.arange(4.0).view(2, 2).requires_grad_()
        y = MADE[name](x)
        node = str(y.grad_fn).split()[0].strip("<") if asked else ""
        y.data = library.full(y.shape, 3.0)
        told = [y.requires_grad, y.is_leaf, str(y.grad_fn).split()[0].strip("<"), node, y.tolist()]
        if y.requires_grad:
            (y * y).sum().backward()
            told.append(x.grad.tolist())
        found.append(told)
    assert found[0] == found[1]


RESULTS = {
    "a product": lambda t, b: b * 2,
    "a square": lambda t, b: b.square(),
    "a sum": lambda t, b: b.sum(),
    "a cast": lambda t, b: b.double(),
    "a copy": lambda t, b: b.clone(),
    "a concatenation": lambda t, b: t.cat([b, b]),
    "one of two": lambda t, b: (b * 2).split(3)[1],
    "a slice": lambda t, b: (b * 2)[1:],
    "a view": lambda t, b: (b * 2).view(1, 5),
    "an expansion": lambda t, b: (b * 2).expand(3, 5),
    "a view of a leaf": lambda t, b: b[None],
}


@pytest.mark.parametrize("shape", [(5,), (4,), (3, 5), (2, 1, 5), (2, 3), (1,), (), (0,)])
@pytest.mark.parametrize("what", RESULTS)
def test_gradients_of_results_with_other_data_fit_what_made_them_or_are_refused(what, shape):
    for dtype in ("float32", "float64"):
        found = []
        for t in (torch, fb):
            b = t.arange(5.0, requires_grad=True)
            x = RESULTS[what](t, b)
            x.data = t.ones(shape, dtype=getattr(t, dtype))
            try:
                (x * 3).sum().backward()
            except RuntimeError:
                found.append("refused")
            else:
                found.append((b.grad.tolist(), str(b.grad.dtype)))
        assert found[0] == found[1]
