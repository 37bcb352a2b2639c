"""Matrix products against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from torch_oracle import COMPLEX, FLOATS, INTEGERS, agree, draw, tensor, torch

from flambeau_numpy.kernels.linalg import KERNELS

SHAPES = [
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((6, 1, 3, 4), (2, 4, 5)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, *COMPLEX])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_matmul_agrees(left: tuple[int, ...], right: tuple[int, ...], dtype: str) -> None:
    a, b = draw(left, dtype, scale=1), draw(right, dtype, 1, scale=1)
    agree(KERNELS["matmul"](a, b), torch.matmul(tensor(a), tensor(b)), scale=4)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("left", "right"),
    [((200, 130), (130, 90)), ((8, 70, 64), (8, 64, 30)), ((8, 70, 64), (64, 30))],
)
def test_large_matmul_agrees_in_every_layout(
    left: tuple[int, ...], right: tuple[int, ...], dtype: str
) -> None:
    a, b = draw(left, dtype, scale=0.3), draw(right, dtype, 1, scale=0.3)
    expected = torch.matmul(tensor(a), tensor(b))
    for x in (
        a,
        np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2),
        np.repeat(a, 2, -1)[..., ::2],
    ):
        agree(KERNELS["matmul"](x, b), expected, scale=10)


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((5000,), (5000,)),
        ((5000,), (5000, 3)),
        ((3, 5000), (5000,)),
        ((5000,), (2, 5000, 3)),
        ((600, 1), (1, 500)),
        ((3, 1, 60, 1), (2, 1, 50)),
        ((5000, 1), (1,)),
        ((1,), (1, 5000)),
    ],
)
def test_large_products_of_vectors_and_of_depth_1_agree(
    left: tuple[int, ...], right: tuple[int, ...], dtype: str
) -> None:
    a, b = draw(left, dtype, scale=0.3), draw(right, dtype, 1, scale=0.3)
    agree(KERNELS["matmul"](a, b), torch.matmul(tensor(a), tensor(b)), scale=40)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "bfloat16"])
@pytest.mark.parametrize("rows", [4, 500])
def test_linear_of_one_feature_agrees(rows: int, dtype: str) -> None:
    x, weight, bias = draw((rows, 1), dtype), draw((600, 1), dtype, 1), draw((600,), dtype, 2)
    expected = torch.nn.functional.linear(*map(tensor, (x, weight, bias)))
    agree(KERNELS["linear"](x, weight, bias), expected, scale=4)
    agree(KERNELS["addmm"](bias, x, weight.T, 1, 1), expected, scale=4)


def test_matmul_of_mismatched_shapes_raises_value_error() -> None:
    for left, right in (((2, 3), (4, 2)), ((4, 1), (4, 2)), ((2, 5), (3,) * 4), ((3,), (1, 3))):
        with pytest.raises(ValueError, match="mismatch"):
            KERNELS["matmul"](np.ones(left), np.ones(right))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "complex64"])
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0, 1), (2, -1), (1, 3)])
def test_addmm_agrees(beta: int, alpha: int, dtype: str) -> None:
    bias, a, b = draw((5,), dtype), draw((3, 4), dtype, 1), draw((4, 5), dtype, 2)
    for shift in (bias, draw((3, 5), dtype, 3)):
        expected = torch.addmm(tensor(shift), tensor(a), tensor(b), beta=beta, alpha=alpha)
        agree(KERNELS["addmm"](shift, a, b, beta, alpha), expected, scale=10)


@pytest.mark.parametrize("rows", [1, 40, 200])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_products_of_few_rows_agree(dtype: str, rows: int) -> None:
    x, weight = draw((rows, 150), dtype, scale=0.3), draw((60, 150), dtype, 1, scale=0.3)
    bias = draw((60,), dtype, 2)
    expected = torch.nn.functional.linear(*map(tensor, (x, weight, bias)))
    agree(KERNELS["linear"](x, weight, bias), expected, scale=10)
    agree(KERNELS["linear"](np.ascontiguousarray(x.T).T, weight, bias), expected, scale=10)
    agree(KERNELS["addmm"](bias, x, weight.T, 1, 1), expected, scale=10)
    agree(KERNELS["addmm"](bias, x, np.ascontiguousarray(weight.T), 1, 1), expected, scale=10)


def test_addmm_with_beta_zero_ignores_nan() -> None:
    bias = np.full(2, np.nan)
    assert np.isfinite(KERNELS["addmm"](bias, np.ones((2, 2)), np.ones((2, 2)), 0, 1)).all()


@pytest.mark.parametrize("dtype", [*FLOATS, "complex64"])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4)])
def test_linear_agrees(shape: tuple[int, ...], dtype: str) -> None:
    x, weight, bias = draw(shape, dtype), draw((5, 4), dtype, 1), draw((5,), dtype, 2)
    linear = torch.nn.functional.linear
    agree(KERNELS["linear"](x, weight, None), linear(tensor(x), tensor(weight)), scale=10)
    found = KERNELS["linear"](x, weight, bias)
    agree(found, linear(tensor(x), tensor(weight), tensor(bias)), scale=10)
    vector = KERNELS["linear"](x, weight[0], None)
    agree(vector, linear(tensor(x), tensor(weight[0])), scale=10)
