"""Results have memory of their own where PyTorch's have, and an argument's where PyTorch's do.

A function that has nothing to do, as one that repeats once, must not hand out what it was given:
who writes to the result would change that.  Compared are all calls of the op parity suite, and
calls whose arguments leave nothing to do.
"""

# ruff: noqa: E501 - a table of calls

from __future__ import annotations

import functools
import math
import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from calls_with_operands import Operands, calls  # noqa: E402
from op_parity import _code, to_ours  # noqa: E402
from oracle import flattened  # noqa: E402

DIFFERENCES = {
    r"F\.dropout1d": "PyTorch adds a batch, and takes it away: a view, where ours is the input.",
    r"u\.addbmm_\(A, B\)": "An error, since the result does not fit into the operand.",
}
"""Patterns of ``call: theirs | ours`` with the reasons why these are not the same."""

IDLE = """
t.repeat_interleave(x, 1, 0)  x.repeat_interleave(1)  x[:1].repeat_interleave(2, 0)
x.mT.repeat_interleave(1, 1)  x[0, 0].repeat_interleave(3)  x[:, :1].repeat_interleave(3, 1)
x.repeat_interleave(t.tensor([1, 1]), 0)
x.repeat(1, 1)  x.tile(1, 1)  t.tile(x, ())  t.cat([x])  t.cat([x, x[:0]])  t.stack([x])[0]
t.hstack([x])  t.vstack([x])  t.dstack([x])  t.column_stack([x])  t.block_diag(x)
x.roll(0, 0)  x.roll((0, 0), (0, 1))  t.flip(x, ())  t.rot90(x, 0)  t.rot90(x, 4)
x.tril(9)  x.triu(-9)  x.cumsum(0)  x.diff(n=0)  x[:1].cumsum(0)  x[:1].cumprod(0)
x.clamp(min=-999)  x.clip(max=999)  x * 1  x + 0  x - 0  x / 1  x ** 1  x.mul(True)  +x
t.where(t.tensor(True), x, y)  t.maximum(x, x)  t.lerp(x, y, 0.0)  t.positive(x)
x.round()  x.floor()  x.ceil()  x.trunc()  x.fix()  x.abs()  x.nan_to_num()
k.round()  k.floor()  k.ceil()  k.trunc()  k.abs()  k.sign()  k.nan_to_num()  k | 0  k << 0
t.real(x)  t.conj(x)  x.conj_physical()  x.resolve_conj()  x.resolve_neg()  t.real(z)
t.renorm(x, 2, 0, 1e9)  t.matrix_power(q, 1)  t.chain_matmul(q)  t.einsum("ij->ij", x)
t.einsum("ij->ji", x)  t.sum(x[:1], 0)  t.mean(x[:1], 0, True)  x[:1].amax(0)  x[:1].prod(0)
x[:1].logsumexp(0)  x.sum(())  x.sort(0)[0]  x[:1].sort(0)[0]  x.topk(2, 0)[0]  x[:1].max(0)[0]
x[:1].median(0)[0]  x[:1].mode(0)[0]  x.unique(dim=0)  t.unique_consecutive(x, dim=0)
x.index_select(0, i)  x.take(i)  x.gather(0, j)  x[i]  x[b]  x.masked_select(b)  x[...]  x[:]  x[None]
x.masked_fill(t.tensor(False), 0)  x.masked_scatter(~b, y)  x.index_fill(0, i[:0], 3)
x.index_copy(0, i[:0], x[:0])  x.index_add(0, i[:0], x[:0])  x.scatter(0, j[:0], 0)
x.scatter_add(0, j[:0], x)  x.diagonal_scatter(x.diagonal())  x.slice_scatter(x)  x.select_scatter(x[0], 0, 0)
t.meshgrid(x[0], indexing="ij")[0]  t.cartesian_prod(x[0])  t.combinations(x[0], 1)
t.broadcast_tensors(x)[0]  x.expand(2, 3)  x.broadcast_to((2, 3))  x.unfold(0, 1, 1)
t.atleast_1d(x)  t.atleast_2d(x)  t.atleast_3d(x)  x.contiguous()  x.to(x.dtype)  x.to(x)
x.to(x.dtype, copy=True)  x.type_as(y)  x.type(x.dtype)  x.cpu()  x.clone()  x.detach()
t.as_tensor(x)  t.asarray(x)  t.asarray(x, copy=True)  x.new_tensor(x)  t.tensor(x)
x.double()  x.float()  x.bool()  b.bool()  k.long()  x.reshape(2, 3)  x.view(2, 3)  x.flatten()
x.flatten(0, 0)  x.unflatten(0, (2,))  x.ravel()  x.squeeze()  x.squeeze(0)  x.view_as(y)
x.reshape_as(y)  x.movedim(0, 0)  x.permute(0, 1)  x.transpose(0, 0)  x.swapaxes(1, 1)  x[0].t()
x.chunk(1)[0]  x.split(9)[0]  x.tensor_split(1)[0]  x.narrow(0, 0, 2)  t.narrow_copy(x, 0, 0, 2)
x.unbind()[0]  x.diagonal()  x[0].diag().diag()  x.select(0, 0)  t.hsplit(x, 1)[0]  t.vsplit(x, 1)[0]
t.gradient(x)[0]  t.cov(q)  t.tensordot(x, y, 0)  t.dropout(x, 0.0, True)  t.trapezoid(x)
t.index_reduce(x, 0, i[:0], x[:0], "amax")  t.select_copy(x, 0, 0)  t.view_copy(x, (2, 3))
F.dropout(x, 0.0)  F.dropout(x, 0.5, False)  F.alpha_dropout(x, 0.0)  F.alpha_dropout(x, 0.5, False)
F.feature_alpha_dropout(x, 0.5, False)  F.dropout1d(x, 0.5, False)  F.rrelu(x, 1.0, 1.0, False)
F.pad(x, (0, 0))  F.pad(x, (0, 0, 0, 0))  F.pad(g, (0, 0), "reflect")  F.pad(g, (0, 0), "replicate")
F.pad(g, (0, 0), "circular")  F.pad(x, ())  F.interpolate(g, 3)  F.interpolate(g, scale_factor=1)
F.interpolate(p, (4, 4), mode="bilinear")  F.interpolate(p, (4, 4), mode="bicubic")
F.interpolate(p, (4, 4), mode="area")  F.interpolate(p, (4, 4), mode="nearest-exact")
F.avg_pool1d(g, 1)  F.avg_pool2d(p, 1)  F.max_pool1d(g, 1)  F.max_pool2d(p, 1)  F.lp_pool1d(g, 1, 1)
F.adaptive_avg_pool1d(g, 3)  F.adaptive_avg_pool2d(p, 4)  F.adaptive_avg_pool2d(p, (None, 4))
F.adaptive_avg_pool3d(p, (2, 4, 4))  F.adaptive_max_pool1d(g, 3)  F.adaptive_max_pool2d(p, 4)
F.pixel_shuffle(p, 1)  F.pixel_unshuffle(p, 1)  F.channel_shuffle(p, 1)  F.channel_shuffle(p, 2)
F.unfold(p, 1)  F.unfold(p, (1, 4))  F.fold(p.reshape(1, 2, 16), (4, 4), 1)  F.embedding(i, x)
F.embedding(i, x, max_norm=1e9)  F.linear(x, t.eye(3, dtype=x.dtype))  F.normalize(x, dim=0)
F.relu(x)  F.relu6(x)  F.hardtanh(x, -99, 99)  F.threshold(x, -99, 0)  F.leaky_relu(x, 1.0)
F.elu(x)  F.prelu(x, t.ones(1, dtype=x.dtype))  F.hardshrink(x, 0.0)  F.softshrink(x, 0.0)  F.glu(x[:, :2])
F.one_hot(k.abs())  F.local_response_norm(p, 2, alpha=0.0)  F.grid_sample(p, p.permute(0, 2, 3, 1))
F.l1_loss(x, y, reduction="none")  F.layer_norm(x, (3,))  F.softmax(x[:, :1], 1)
"""
"""Calls whose arguments leave nothing or little to do."""


def _idle() -> Iterator[tuple[str, Operands]]:
    draw = torch.Generator().manual_seed(0)
    x, y, q, g, p, z = (
        torch.randn(shape, generator=draw, dtype=torch.float64)
        for shape in ((2, 3), (2, 3), (3, 3), (1, 2, 3), (1, 2, 4, 4), (2, 3))
    )
    operands = {
        **{"x": x, "y": y, "q": q, "g": g, "p": p, "z": torch.complex(z, z)},
        **{"k": torch.arange(6).reshape(2, 3), "i": torch.arange(2), "b": torch.ones(2, 3).bool()},
        "j": torch.zeros(2, 3, dtype=torch.int64),
    }
    for call in re.split(r"\s{2,}|\n", IDLE.strip()):
        names = set(re.findall(r"\b[a-z]\b", call)) & operands.keys()
        yield call, {name: operands[name] for name in sorted(names)}


def _shared(library: Any, call: str, operands: Operands) -> str:
    """The operands, in order, in whose memory results are; of which a result is one, marked.

    Raises:
        Exception: the library cannot do the call.
    """
    given = {k: v.clone() if library is torch else to_ours(v) for k, v in operands.items()}
    names = {"t": library, "F": library.nn.functional, "d": library.float64, "math": math}
    library.manual_seed(0)
    results = flattened(eval(_code(call), {**names, **given}))
    results = [r for r in results if isinstance(r, library.Tensor) and r.numel()]
    told = []
    for letter, tensor in given.items():
        place = _place(tensor)
        if any(_place(result) == place for result in results):
            told.append(f"{letter}{'!' if any(r is tensor for r in results) else ''}")
    return " ".join(told)


def _place(tensor: Any) -> int:
    return tensor.untyped_storage().data_ptr()


@functools.cache
def differing() -> tuple[str, ...]:
    """The calls in which the libraries differ."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call, operands in [*_idle(), *calls()]:
            try:
                theirs = _shared(torch, call, operands)
            except Exception:
                continue  # op parity has errors
            try:
                ours = _shared(fb, call, operands)
            except Exception as error:
                ours = type(error).__name__
            if ours != theirs:
                found.append(f"{call}: {theirs or 'none'} | {ours or 'none'}")
    return tuple(found)


def test_results_share_memory_with_arguments_where_pytorchs_do():
    assert [case for case in differing() if not any(re.search(p, case) for p in DIFFERENCES)] == []


@pytest.mark.parametrize("pattern", DIFFERENCES)
def test_recorded_differences_are_there(pattern):
    assert any(re.search(pattern, case) for case in differing())


def test_the_calls_that_have_nothing_to_do_are_done_by_pytorch():
    failed = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call, operands in _idle():
            try:
                _shared(torch, call, operands)
            except Exception as error:
                failed.append(f"{call}: {error}")
    assert failed == []


if __name__ == "__main__":
    print(*differing(), sep="\n")
