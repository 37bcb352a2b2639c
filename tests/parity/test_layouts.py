"""Results lie in memory in the order in which PyTorch's do: strides of dimensions that move."""

# ruff: noqa: E501 - a table of calls

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, of old functions

import flambeau as fb  # noqa: E402
from op_parity import to_ours  # noqa: E402
from oracle import flattened  # noqa: E402

SORTING = """
t.sort(x, 0); t.sort(x, 1); t.sort(x, 2, True); t.argsort(x, 0); t.msort(x); t.topk(x, 2, 0); t.topk(x, 1, 1)
t.kthvalue(x, 1, 0); t.kthvalue(x, 2, 1); t.kthvalue(x, 1, 1, True); t.median(x, 0); t.median(x, 1, True)
t.nanmedian(x, 1); t.mode(x, 0); t.mode(x, 1, True); t.unique(x, dim=1); t.unique(x, dim=2)
t.unique(x); t.unique_consecutive(x, dim=1); t.nonzero(x); t.nonzero(x, as_tuple=True); t.argwhere(x)
t.where(x > 0); t.searchsorted(s, x)
"""
INDEXING = """
x[[1, 0]]; x[:, [1, 0]]; x[:, :, [1, 0]]; x[[1, 0], [1, 0]]; x[[1, 0], :, [1, 0]]; x[:, [1, 0], [1, 0]]
x[x > 0]; x[n]; x[0, [1, 0]]; x[[1, 0], 0]; x[None, [1, 0]]; x[True]; x[k]; x[:, k]; x[:, k, k]; x[k, :, k]
x[..., k]; x[1:, [0, 1]]; t.index_select(x, 0, i); t.index_select(x, 1, i); t.index_select(x, 2, i)
t.gather(x, 1, g); t.take(x, k); t.take_along_dim(x, g, 1); t.index_fill(x, 1, i, 2); t.index_add(x, 1, i, z)
t.index_copy(x, 1, i, z); t.index_put(x, (i,), x[i]); t.scatter(x, 1, g, x); t.scatter_add(x, 1, g, x)
t.scatter_reduce(x, 1, g, x, 'amax'); t.index_reduce(x, 1, i, z, 'amax'); t.put(x, i, s[:2])
t.masked_scatter(x, x > 0, y); t.masked_select(x, x > 0)
"""
MOVEMENT = """
t.flip(x, (0,)); t.flip(x, (1, 2)); t.flip(x, ()); t.fliplr(x); t.rot90(x); t.rot90(x, 2); t.rot90(x, 0)
t.rot90(x, 1, (1, 2)); t.roll(x, 1); t.roll(x, 1, 0); t.roll(x, 2, 0); t.roll(x, 0, 0); t.roll(x, (1, 1), (0, 1))
t.cat([x, x]); t.cat([x, x], 1); t.cat([x, y], 2); t.stack([x, x], 1); t.narrow_copy(x, 1, 0, 2); t.ravel(x)
x.unfold(1, 2, 1); x.repeat(2, 1, 1); t.tile(x, (2, 1, 1)); t.tril(x); t.diag_embed(x); t.clone(x); x.contiguous()
"""
REDUCTIONS = """
t.cumsum(x, 0); t.cumprod(x, 1); t.cummax(x, 1); t.logcumsumexp(x, 1); t.sum(x, 1, True); t.mean(x, 0); t.amax(x, 1)
t.max(x, 0); t.argmax(x, 1); t.std(x, 1); t.var_mean(x, 1); t.logsumexp(x, 1); t.softmax(x, 1); t.renorm(x, 2, 0, 1)
t.quantile(x, 0.5, 1); t.diff(x, dim=1)
"""
SPECTRAL = """
t.fft.fft(x); t.fft.fft(x, dim=0); t.fft.fft(x, dim=1); t.fft.fft2(x); t.fft.fftn(x); t.fft.fftn(x, dim=(0, 2))
t.fft.rfft(x); t.fft.rfft(x, dim=0); t.fft.rfft2(x); t.fft.irfft(x); t.fft.irfft(x, dim=0); t.fft.irfft2(x)
t.fft.hfft(x); t.fft.ihfft(x); t.fft.ihfft2(x); t.fft.fft(x, 6); t.fft.fftshift(x); t.fft.ifft(x, dim=1)
t.stft(x[0], 4, return_complex=True); t.stft(x[0], 4, center=False, onesided=False, return_complex=True)
"""
MATRICES = """
t.linalg.qr(a); t.linalg.qr(a, 'complete'); t.linalg.qr(a, 'r'); t.geqrf(a); t.linalg.inv(q); t.linalg.solve(q, b)
t.linalg.solve(q, b.mT, left=False); t.linalg.cholesky(h); t.linalg.cholesky(h, upper=True); t.cholesky_inverse(h)
t.cholesky_solve(b, h); t.linalg.lu_factor(a); t.linalg.lu(a); t.linalg.ldl_factor(h)
t.linalg.ldl_solve(*t.linalg.ldl_factor(h), b); t.linalg.svd(a); t.linalg.svd(a, False); t.svd(a); t.linalg.eigh(h)
t.linalg.eig(q); t.linalg.pinv(a); t.linalg.solve_triangular(q, b, upper=True); t.triangular_solve(b, q)
t.linalg.solve_triangular(q, b.mT, upper=True, left=False); t.matrix_power(q, 0); t.matrix_power(q, 1)
t.matrix_power(q, 3); t.matrix_power(q, -1); t.lu_unpack(*t.linalg.lu_factor(a)); t.linalg.matrix_exp(q)
t.linalg.lu_solve(*t.linalg.lu_factor(q), b); t.linalg.lu_solve(*t.linalg.lu_factor(q), b, adjoint=True)
t.linalg.lu_solve(*t.linalg.lu_factor(q), b.mT, left=False); t.linalg.householder_product(q, v)
t.ormqr(q, v, b); t.ormqr(q, v, b.mT, left=False); t.tensordot(a, b, 0); t.einsum('...ij,...jk->...ki', a, b)
"""


def calls(text: str) -> list[str]:
    return [call.strip() for line in text.strip().splitlines() for call in line.split(";")]


def laid_out(x: Any, layout: str) -> Any:
    """The numbers of `x` in another order in memory; `layout` says which."""
    if layout == "transposed":
        return x.mT.contiguous().mT
    if layout == "permuted":
        return x.permute(2, 0, 1).contiguous().permute(1, 2, 0) if x.dim() == 3 else x
    if layout == "sliced":
        return (fb if isinstance(x, fb.Tensor) else torch).stack([x, x], -1)[..., 0]
    return x[:1].expand(tuple(x.shape)) if layout == "expanded" else x


def numbers(*shape: int) -> Any:
    x = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return ((x * 2.3 + 0.4).sin() * 1.5).reshape(shape)


def agree(call: str, operands: dict[str, Any], layout: str) -> None:
    theirs = {n: laid_out(x, layout) if x.dim() > 1 else x for n, x in operands.items()}
    ours = {n: to_ours(x) for n, x in operands.items()}
    ours = {n: laid_out(x, layout) if x.dim() > 1 else x for n, x in ours.items()}
    for names in (theirs, ours):
        for index in {"i", "k", "g"} & set(names):
            names[index] = names[index].contiguous()
    expected = flattened(eval(call, {"t": torch, **theirs}))
    found = flattened(eval(call, {"t": fb, **ours}))
    for reference, mine in zip(expected, found, strict=True):
        assert tuple(mine.shape) == tuple(reference.shape)
        moving = [d for d, n in enumerate(reference.shape) if n > 1 or not reference.numel()]
        assert [mine.stride(d) for d in moving] == [reference.stride(d) for d in moving]


@pytest.mark.parametrize("layout", ["row-major", "transposed", "permuted", "sliced", "expanded"])
@pytest.mark.parametrize(
    "call", calls(SORTING) + calls(INDEXING) + calls(MOVEMENT) + calls(REDUCTIONS) + calls(SPECTRAL)
)
def test_results_have_the_strides_of_pytorchs(call: str, layout: str) -> None:
    operands = {
        **{"x": numbers(2, 3, 4), "y": numbers(2, 3, 4) + 1, "z": numbers(2, 2, 4)},
        **{"i": torch.tensor([1, 0]), "k": torch.tensor([[1, 0], [0, 1]])},
        **{"g": torch.zeros(2, 3, 4, dtype=torch.int64), "n": torch.tensor([True, False])},
        "s": torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64),
    }
    agree(call, operands, layout)


@pytest.mark.parametrize("layout", ["row-major", "transposed", "permuted", "sliced"])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("call", calls(MATRICES))
def test_results_of_linear_algebra_have_the_strides_of_pytorchs(
    call: str, batch: tuple[int, ...], layout: str
) -> None:
    square = numbers(*batch, 3, 3) + 2 * torch.eye(3, dtype=torch.float64)
    operands = {
        **{"a": numbers(*batch, 2, 3), "b": numbers(*batch, 3, 4), "q": square},
        **{"h": square @ square.mT, "v": numbers(*batch, 3)},
    }
    if batch:
        operands["v"] = operands["v"].contiguous()
    agree(call, operands, layout)


@pytest.mark.parametrize(
    "call",
    calls(
        "t.zeros(0); t.zeros(2, 0, 3); t.zeros(0, 3) + 1; t.zeros(2, 3)[:0]; t.zeros(2, 3).t()[:0];"
        "t.zeros(2, 0, 3).sum(0); t.cat([t.zeros(0, 3)] * 2); t.zeros(0, 3).clone(); t.tensor([[]]);"
        "t.full((0, 3), 1.0); t.zeros(0, 3).sort(0); t.zeros(0, 3).flip(0); t.zeros(0, 3).cumsum(1)"
    ),
)
def test_tensors_without_elements_have_the_strides_of_pytorchs(call: str) -> None:
    for reference, mine in zip(
        flattened(eval(call, {"t": torch})), flattened(eval(call, {"t": fb})), strict=True
    ):
        assert tuple(mine.stride()) == tuple(reference.stride())
