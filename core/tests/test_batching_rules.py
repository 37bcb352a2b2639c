"""Every op gives a batch what it gives its entries one by one; forward mode agrees with reverse."""

from __future__ import annotations

import pytest

import flambeau as fb
from flambeau._transforms import batches, batching_rules, duals
from flambeau._transforms.batches import BatchLevel
from flambeau._transforms.duals import DualLevel
from flambeau.ops import OPS
from flambeau.ops.declaration.parameters import PLAIN, TENSOR
from flambeau.ops.randomness.sampling import RandomOp
from flambeau.testing.samples import DTYPES, SAMPLES, realise

batching_rules.register()
# What draws numbers, writes into its arguments, or has a shape that depends on values.
OTHERS = {*batches._DRAWING, "dropout", "nonzero"}
NAMES = [
    name
    for name, op in OPS.items()
    if op.inputs_at
    and not name.endswith("_")
    and not isinstance(op, RandomOp)
    and name not in OTHERS
    and SAMPLES.get(name)
]
SCALES = (1.0, 0.5)


def make(values, shape, dtype):
    whole = fb.tensor(values, dtype=dtype, device="ref")
    return whole.reshape(shape) if values else fb.zeros(shape, dtype=dtype, device="ref")


def calls(name):
    op = OPS[name]
    dtypes = DTYPES[name]
    for sample in SAMPLES[name]:
        dtype = fb.float64 if fb.float64 in dtypes else dtypes[0]
        args = realise(sample.args, make, dtype, generator=None)
        tensors = [
            t
            for a, kind in zip(args, op.kinds, strict=True)
            if kind is not PLAIN and a is not None
            for t in ([a] if kind is TENSOR else a)
            if t is not None
        ]

        def put(given, args=args):
            rest = iter(given)
            return op(
                *[
                    a
                    if kind is PLAIN or a is None
                    else next(rest)
                    if kind is TENSOR
                    else tuple(None if t is None else next(rest) for t in a)
                    for a, kind in zip(args, op.kinds, strict=True)
                ]
            )

        yield sample, tensors, put


def several(result):
    return result if type(result) is tuple else (result,)


def rows(t):
    return [t * s if t.dtype.fp else t for s in SCALES]


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_its_entries_one_by_one(name):
    slow = name in ("igamma", "igammac")
    for sample, tensors, put in list(calls(name))[: 1 if slow else 2]:
        count = len(tensors)
        patterns = [(True,) * count]
        if count > 1:
            patterns += [tuple(i == j for i in range(count)) for j in range(min(count, 2))]
        for pattern in patterns:
            chosen = [
                rows(t) if p else [t] * len(SCALES) for t, p in zip(tensors, pattern, strict=True)
            ]
            each = [several(put([r[i] for r in chosen])) for i in range(len(SCALES))]
            with BatchLevel(len(SCALES), "error") as level:
                own = [
                    level.batch(fb.stack(r), 0) if p else r[0]
                    for r, p in zip(chosen, pattern, strict=True)
                ]
                found = [level.unbatched(r, 0) for r in several(put(own))]
            for place, whole in enumerate(found):
                wanted = fb.stack([one[place] for one in each])
                where = f"{sample.name}, batched {pattern}, result {place}"
                assert whole.dtype is wanted.dtype and whole.shape == wanted.shape, where
                if wanted.numel():
                    close = fb.allclose(whole, wanted, rtol=1e-6, atol=1e-9, equal_nan=True)
                    assert close, where


FORMULAS = sorted(
    duals.LINEAR | duals.ELEMENTWISE | {"add", "sub", "mul", "matmul", "cat", "stack"}
)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_rule_of_forward_mode_agrees_with_two_backward_passes(name, monkeypatch):
    if fb.float64 not in DTYPES[name]:
        pytest.skip("takes complex numbers only")
    for sample, tensors, put in list(calls(name))[:3]:
        tangents = [t * 0.75 + 0.5 if t.dtype.fp else None for t in tensors]
        found = []
        for rules in (True, False):
            if not rules:
                monkeypatch.setattr(DualLevel, "_rule", lambda self, op, given: None)
            with DualLevel() as level:
                own = [level.dual(t, d) for t, d in zip(tensors, tangents, strict=True)]
                found.append([level.parts(r) for r in several(put(own))])
            monkeypatch.undo()
        for (value, fast), (again, slow) in zip(*found, strict=True):
            assert fb.equal(value, again) or value.isnan().any()
            if slow is None:
                assert fast is None or not fast.count_nonzero(), sample.name
            else:
                close = fb.allclose(fast, slow, rtol=1e-9, atol=1e-9, equal_nan=True)
                assert close, sample.name
