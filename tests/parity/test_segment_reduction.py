"""Segments of a dimension are reduced as PyTorch reduces them, with its gradients."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import flambeau as fb

inf, nan = float("inf"), float("nan")

DATA = {
    "ordinary": [[1.0, 2], [3, 4], [5, 6], [7, 8]],
    "zeros": [[0.0, 2], [0, 3], [4, 0], [2, 5]],
    "equal": [[2.0, 2], [2, 3], [2, 3], [3, 3]],
    "nan": [[nan, 2], [2, 2], [2, nan], [2, nan]],
    "infinite": [[-inf, inf], [-inf, inf], [-inf, 1], [-inf, -inf]],
    "none": np.zeros((0, 2)),
}
PLACES = {
    "lengths": {"lengths": [0, 3, 1]},
    "one": {"lengths": [4]},
    "offsets": {"offsets": [0, 0, 3, 4]},
    "inner": {"offsets": [1, 3]},
    "unsafe": {"lengths": [1, 0, 2], "unsafe": True},
    "columns": {"lengths": [[1, 1], [2, 0], [1, 1], [0, 2]], "axis": 1},
    "columns by offsets": {"offsets": [[0, 1], [0, 2], [1, 1], [1, 2]], "axis": 1},
    "nothing": {"lengths": [0, 0]},
    "beyond": {"lengths": [4, 1], "unsafe": False},
    "negative": {"lengths": [5, -1]},
    "axis": {"lengths": [4], "axis": 1},
    "floats": {"lengths": [4.0]},
    "neither": {},
    "indices": {"indices": [0, 0, 1, 1]},
}


def outcome(library, data, reduce, dtype, initial, facts):
    x = library.tensor(data, dtype=getattr(library, dtype), requires_grad=True)
    facts = {k: library.tensor(v) if isinstance(v, list) else v for k, v in facts.items()}
    y = library.segment_reduce(x, reduce, initial=initial, **facts)
    if y.numel():
        y.backward(library.arange(1, y.numel() + 1).reshape(tuple(y.shape)).to(y.dtype))
    grad = np.zeros(()) if x.grad is None else x.grad.double().numpy()
    return str(y.dtype).rpartition(".")[2], y.detach().double().numpy(), grad


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("kind", DATA)
def test_segments_have_pytorchs_reductions_and_gradients(kind, reduce, dtype):
    tolerance = {"float16": 2e-3, "bfloat16": 1e-2}.get(dtype, 1e-6)
    for (name, facts), initial in itertools.product(PLACES.items(), (None, 2, 0.0, nan, inf)):
        if kind == "none" and name not in ("nothing", "neither", "negative", "floats"):
            continue  # places that are not there, which PyTorch reads all the same
        arguments = (DATA[kind], reduce, dtype, initial, facts)
        try:
            wanted = outcome(torch, *arguments)
        except (RuntimeError, IndexError) as error:
            with pytest.raises(type(error)):
                outcome(fb, *arguments)
            continue
        got = outcome(fb, *arguments)
        assert got[0] == wanted[0]
        np.testing.assert_allclose(got[1], wanted[1], rtol=tolerance, err_msg=f"{name} {initial}")
        if reduce == "prod" and (kind == "infinite" or initial == inf):
            continue  # PyTorch divides products by what is infinite
        np.testing.assert_allclose(got[2], wanted[2], rtol=tolerance, err_msg=f"{name} {initial}")


@pytest.mark.parametrize("dtype", ["int64", "bool", "complex64", "uint8"])
def test_numbers_without_fraction_are_refused(dtype):
    for library in (torch, fb):
        x = library.ones(3, dtype=getattr(library, dtype))
        with pytest.raises(NotImplementedError, match="_segment_reduce_cpu"):
            library.segment_reduce(x, "sum", lengths=library.tensor([3]))


def test_unknown_reductions_are_refused():
    for library in (torch, fb):
        with pytest.raises(RuntimeError, match="either sum, prod, mean, amax or amin, got foo"):
            library.segment_reduce(library.ones(3), "foo", lengths=library.tensor([3]))


def test_rows_without_elements_have_segments_without_where_pytorch_ends_with_a_signal():
    x = fb.zeros(4, 0, requires_grad=True)
    for reduce in ("sum", "mean", "max", "min", "prod"):
        y = fb.segment_reduce(x, reduce, lengths=fb.tensor([3, 1]))
        y.sum().backward()
        assert y.shape == (2, 0) and x.grad.shape == (4, 0)


def test_segments_outside_of_the_data_are_refused_where_pytorch_reads_foreign_memory():
    x = fb.ones(3)
    for facts in (
        {"offsets": fb.tensor([0, 4])},
        {"offsets": fb.tensor([-1, 3])},
        {"offsets": fb.tensor([2, 1])},
        {"lengths": fb.tensor([4]), "unsafe": True},
        {"lengths": fb.tensor([[1, 2]]), "axis": 1},
    ):
        with pytest.raises((RuntimeError, IndexError)):
            fb.segment_reduce(x, "sum", **facts)


def test_second_derivatives_of_segments():
    x = fb.tensor([1.0, 2.0, 3.0, 4.0], dtype=fb.float64, requires_grad=True)
    for reduce in ("sum", "mean", "max", "min", "prod"):
        assert fb.autograd.gradgradcheck(
            lambda t, reduce=reduce: fb.segment_reduce(t, reduce, lengths=fb.tensor([3, 0, 1]))[
                ::2
            ],
            (x,),
        )
