"""Products in groups and their gradients are PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as fb
from flambeau.compat._grouped import grouped_mm as ours

torch = pytest.importorskip("torch")

CASES = {
    "rows": ((7, 8), (3, 8, 16), [2, 2, 7]),
    "rows left over": ((7, 8), (3, 8, 16), [2, 3, 5]),
    "batches": ((3, 8, 16), (3, 16, 8), None),
    "inner": ((8, 16), (16, 8), [2, 2, 16]),
    "columns": ((3, 16, 8), (8, 16), [2, 2, 16]),
}


def products(lib, function, a, b, offs, dtype):
    x, y = (lib.from_numpy(each.copy()).to(getattr(lib, dtype)).requires_grad_() for each in (a, b))
    ends = None if offs is None else lib.tensor(offs, dtype=lib.int32)
    result = function(x, y, offs=ends)
    # PyTorch leaves memory as it was where no group is.
    end = len(x) if offs is None or offs[-1] > 7 else offs[-1]
    used = result[:end]
    used.float().square().sum().backward()
    return [used.detach().float(), x.grad[:end].float(), y.grad.float()]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_groups_are_multiplied_as_by_pytorch(case, dtype):
    first, second, offs = case
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in (first, second))
    theirs = products(torch, torch.nn.functional.grouped_mm, a, b, offs, dtype)
    for mine, its in zip(products(fb, ours, a, b, offs, dtype), theirs, strict=True):
        size = np.abs(its.numpy()).max()
        near = 1e-5 if dtype == "float32" else 2e-2
        np.testing.assert_allclose(mine.numpy(), its.numpy(), atol=near * size)


@pytest.mark.parametrize(
    "call",
    [
        lambda f, t, a, w, o: f(a, w),
        lambda f, t, a, w, o: f(a, w, offs=o.long()),
        lambda f, t, a, w, o: f(a, w[:2], offs=o),
        lambda f, t, a, w, o: f(a, w[:, :4], offs=o),
        lambda f, t, a, w, o: f(a.double(), w.double(), offs=o),
        lambda f, t, a, w, o: f(a.long(), w.long(), offs=o),
        lambda f, t, a, w, o: f(a[0], w, offs=o),
        lambda f, t, a, w, o: f(w, w.transpose(1, 2), offs=o),
        lambda f, t, a, w, o: f(w[:1], w.transpose(1, 2)),
        lambda f, t, a, w, o: f(a, w, offs=o, out_dtype=t.bfloat16),
        lambda f, t, a, w, o: f(a, w, offs=o, bias=t.zeros(16)),
        lambda f, t, a, w, o: f(a, w.bfloat16(), offs=o),
    ],
)
def test_operands_that_do_not_go_together_are_refused_as_by_pytorch(call):
    for lib, function in ((torch, torch.nn.functional.grouped_mm), (fb, ours)):
        a, w = lib.ones(7, 8), lib.ones(3, 8, 16)
        with pytest.raises(RuntimeError):
            call(function, lib, a, w, lib.tensor([2, 2, 7], dtype=lib.int32))
