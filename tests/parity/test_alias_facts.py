"""What libraries ask of PyTorch's inner modules has PyTorch's answers."""

from __future__ import annotations

import importlib

import pytest

import flambeau as fb
from flambeau.compat import torch_alias
from flambeau.compat._torch import _DTYPES

torch = pytest.importorskip("torch")


def ours(path):
    with torch_alias():
        return importlib.import_module(path)


@pytest.mark.parametrize("name", sorted(_DTYPES))
def test_dtypes_that_no_tensor_has_say_what_they_are(name):
    theirs, mine = getattr(torch, name), getattr(ours("torch"), name)
    for fact in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        try:
            expected = getattr(theirs, fact)
        except RuntimeError:  # what PyTorch does not say
            continue
        assert getattr(mine, fact) == expected, fact
    assert repr(mine) == repr(theirs)


def test_tags_are_pytorchs():
    assert set(ours("torch").Tag.__members__) == set(torch.Tag.__members__)


@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 4), (2, 3, 4), (5, 1, 2, 2)])
@pytest.mark.parametrize("rows", [True, False])
def test_strides_of_contiguous_tensors(shape, rows):
    mine = ours("torch._prims_common").make_contiguous_strides_for(shape, row_major=rows)
    assert mine == torch._prims_common.make_contiguous_strides_for(shape, row_major=rows)


@pytest.mark.parametrize(
    "shape", [(2, 3, 4, 5), (2, 1, 4, 5), (1, 1, 1, 1), (2, 3, 4, 5, 6), (2, 3)]
)
@pytest.mark.parametrize("last", [True, False])
def test_the_order_that_is_suggested(shape, last):
    said = []
    for lib, common in (
        (ours("torch"), ours("torch._prims_common")),
        (torch, torch._prims_common),
    ):
        x = lib.zeros(shape)
        if last and len(shape) > 2:
            order = lib.channels_last if len(shape) == 4 else lib.channels_last_3d
            x = x.contiguous(memory_format=order)
        said.append(str(common.suggest_memory_format(x)))
    assert said[0] == said[1]


def test_ordered_sets():
    import torch.utils._ordered_set as theirs

    said = []
    for Set in (ours("torch.utils._ordered_set").OrderedSet, theirs.OrderedSet):
        a = Set([3, 1, 3, 2])
        b = a.copy()
        b.update([9, 3], [0])
        b.discard(1)
        assert Set(a) == a and 1 in a and 1 not in b
        said.append(
            (
                list(a), len(a), list(b), list(a | b), list(a & b), list(a - b), list(a ^ b),
                list(reversed(list(a))), list(a.union([7], {1: 2})), list(a.intersection([2, 3])),
                list(a.difference([3])), a.issubset([1, 2, 3, 4]), a.issuperset([1]), bool(Set()),
            )
        )  # fmt: skip
    assert said[0] == said[1]


def test_helpers_of_optimisers():
    said = []
    for lib, helpers in (
        (fb, ours("flambeau.compat._torch.optim.optimizer")),
        (torch, importlib.import_module("torch.optim.optimizer")),
    ):
        x, z = lib.ones(2), lib.ones(2, dtype=lib.complex64)
        lists = [x, z], [x, z]
        helpers._view_as_real(*lists)
        said.append(
            (
                [[tuple(t.shape) for t in each] for each in lists],
                helpers._get_value(lib.tensor(2.0)),
                helpers._get_value(3),
                tuple(helpers._to_scalar(lib.ones(1)).shape),
                helpers._default_to_fused_or_foreach([x, None], False),
                helpers._default_to_fused_or_foreach([x], False, use_fused=True),
                helpers._default_to_fused_or_foreach([x.long()], False, use_fused=True),
                helpers._default_to_fused_or_foreach([x], True),
                str(helpers._get_scalar_dtype()),
                helpers._get_capturable_supported_devices(False)[0],
            )
        )
    assert said[0] == said[1]


def test_steps_record_graphs_where_they_are_told_to():
    for lib, helpers in (
        (fb, ours("flambeau.compat._torch.optim.optimizer")),
        (torch, importlib.import_module("torch.optim.optimizer")),
    ):
        recorded = helpers._use_grad_for_differentiable(lambda self, lib=lib: lib.is_grad_enabled())
        Own = type("Own", (lib.optim.Optimizer,), {"step": recorded})
        for told in (False, True):
            optimiser = Own([lib.ones(1, requires_grad=True)], {"differentiable": told})
            assert optimiser.step() is told
