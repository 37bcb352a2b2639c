"""What only moves elements, or joins few: every dtype that PyTorch takes is taken, and kept alike."""

# ruff: noqa: E501 - a table of calls

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from oracle import DEVICES  # noqa: E402

DTYPES = """bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64
complex64 complex128""".split()
CALLS = """
F.unfold(x(1, 2, 4, 4), 2, padding=1)  F.unfold(x(2, 4, 5), (3, 2), stride=2)
F.fold(x(1, 8, 9), (4, 4), 2)  F.fold(x(8, 9), (4, 4), 2)  F.fold(x(1, 8, 4), (2, 2), 2, padding=1, stride=2)
F.pixel_shuffle(x(1, 4, 3, 3), 2)  F.pixel_unshuffle(x(1, 2, 4, 4), 2)  F.channel_shuffle(x(1, 4, 3, 3), 2)
x(3, 4).roll((1, -2), (0, 1))  x(3, 4).flip((0, 1))  x(3, 4).rot90()  x(3, 8).unfold(1, 3, 2)
F.pad(x(1, 2, 4, 4), (1, 2, 0, -1))  F.pad(x(2, 4), (1, 2), value=1)
F.pad(x(2, 4), (1, 2), mode="reflect")  F.pad(x(1, 2, 4, 4), (1, 2, 1, 1), mode="reflect")
F.pad(x(2, 2, 4), (1, 2), mode="replicate")  F.pad(x(1, 2, 3, 3, 4), (1, 2, 1, 1, 1, 1), mode="replicate")
F.pad(x(2, 2, 4), (1, 2), mode="circular")  F.pad(x(1, 2, 4, 4), (1, 2, 1, 1), mode="circular")
t.take_along_dim(x(3, 4), i([[0, 2], [1, 1], [3, 0]]), 1)  x(3, 4).gather(1, i([[0, 2], [1, 1], [3, 0]]))
x(3, 4).scatter(1, i([[0, 2], [1, 1], [3, 0]]), x(3, 2))  x(3, 4).scatter(1, i([[0, 2], [1, 1], [3, 0]]), 1)
x(3, 4).scatter_add(1, i([[0, 0], [1, 1], [3, 0]]), x(3, 2))
x(3, 4).index_fill(1, i([0, 2]), 1)  x(3, 4).index_copy(1, i([0, 2]), x(3, 2))  x(3, 4).index_add(1, i([0, 0]), x(3, 2))
x(3, 4).index_select(1, i([0, 2]))  x(3, 4)[i([0, 2])]  x(3, 4)[i([True, False, True])]
x(3, 4).index_put((i([0, 2]),), x(4))  x(3, 4).index_put((i([0, 0]),), x(4), accumulate=True)
x(3, 4).masked_fill(i([True, False, True, False]), 1)  x(3, 4).masked_select(i([True, False, True, False]))
x(3, 4).masked_scatter(i([True, False, True, False]), x(12))
x(3, 4).take(i([0, 7, -1]))  x(3, 4).put(i([0, 7, -1]), x(3))  x(3, 4).put(i([0, 7, 0]), x(3), accumulate=True)
x(3, 4).tril()  x(3, 4).triu(1)  x(3).diag()  t.diag_embed(x(3, 2))  x(3, 3).diagonal_scatter(x(3))
x(3, 3).select_scatter(x(3), 0, 1)  x(3, 3).slice_scatter(x(2, 3), 0, 1)  t.block_diag(x(3, 3), x(2))
t.cat([x(3, 3), x(2, 3)])  t.stack([x(3, 3), x(3, 3)])  t.column_stack([x(2), x(2, 3)])
t.where(i([True, False, True]), x(3), x(3, 3))  t.where(i([True, False, True]), x(3), 1)
x(3).repeat(2, 2)  t.repeat_interleave(x(3, 2), i([1, 0, 2]), 0)  x(3, 2).tile((2, 2))
t.cartesian_prod(x(3), x(2))  t.combinations(x(3), 2)  t.meshgrid(x(3), x(2), indexing="ij")[0]
t.vander(x(3))  t.vander(x(3), 2, True)  t.vander(x(0), 2)  t.vander(x(1), 1)  t.trace(x(3, 3))  x(3, 4).fill_diagonal_(1)
t.nn.utils.rnn.pad_sequence([x(3), x(2)])  F.one_hot(x(4), 8)  F.embedding(i([0, 2]), x(3, 4))
F.interpolate(x(1, 2, 3), size=5)  F.interpolate(x(1, 2, 3, 3), size=(5, 2))  F.interpolate(x(1, 2, 3, 3), scale_factor=2)
F.interpolate(x(1, 2, 3, 3), size=(5, 2), mode="nearest-exact")  F.interpolate(x(1, 2, 3, 2, 2), size=(5, 3, 3))
F.interpolate(x(1, 3, 4, 4), size=(5, 2), mode="bilinear")
F.max_pool1d(x(1, 2, 6), 2)  F.max_pool2d(x(1, 2, 4, 4), 2)  F.max_pool3d(x(1, 2, 4, 4, 4), 2)
F.max_unpool2d(x(1, 1, 2, 2), i([[[[0, 2], [5, 15]]]]), 2)  F.avg_pool1d(x(1, 2, 6), 2)  F.avg_pool2d(x(1, 2, 4, 4), 2)
F.adaptive_avg_pool1d(x(1, 2, 6), 1)  F.adaptive_avg_pool1d(x(1, 2, 6), 4)  F.adaptive_avg_pool2d(x(1, 2, 6, 6), 1)
F.adaptive_avg_pool2d(x(1, 2, 6, 6), 4)  F.adaptive_avg_pool3d(x(2, 2, 3, 3), 1)  F.adaptive_max_pool2d(x(1, 2, 6, 6), 4)
F.rms_norm(x(3, 3), (3,))  F.rms_norm(x(3, 3), (3,), x(3), 0.5)
x(3, 4).cumsum(1)  x(3, 4).sum(0)  x(3, 4).prod(0)  x(3, 4).diff()  x(3, 4).mean(0)  x(3, 4).any(0)
x(3, 4).sort(stable=True)[0]  x(3, 4).topk(2)[0]  x(12).unique()  x(12, 2).unique(dim=0)  x(12).unique_consecutive()
x(3, 4).nonzero()  x(3, 4).count_nonzero(1)  x(3, 4).max(1)[0]  x(3, 4).median(1)[0]  x(3, 4).cummax(1)[1]
"""
CALLS_OF_DTYPES = [call for line in CALLS.split("\n") for call in line.split("  ") if call]


def _run(library, call, dtype, device):
    def numbers(*shape):
        n = library.arange(library.Size(shape).numel(), device=device)
        return ((n * 5 + 3) % 7).reshape(shape).to(getattr(library, dtype))

    names = {"t": library, "F": library.nn.functional, "x": numbers}
    names["i"] = lambda values: library.tensor(values, device=device)
    return eval(call, names)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("call", CALLS_OF_DTYPES)
def test_every_dtype_that_pytorch_takes_is_taken(call, device):
    compared = 0
    for dtype in DTYPES:
        try:
            theirs = _run(torch, call, dtype, "cpu")
        except (NotImplementedError, RuntimeError):
            continue
        ours = _run(fb, call, dtype, device)
        compared += 1
        assert (str(ours.dtype), ours.shape) == (str(theirs.dtype), theirs.shape), dtype
        near = 0.02 if "float16" in dtype else 1e-5
        assert ours.flatten().tolist() == pytest.approx(theirs.flatten().tolist(), near), dtype
    assert compared
