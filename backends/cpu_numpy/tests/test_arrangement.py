"""Views, movement, indexing and sorting against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch_oracle import DTYPES, FLOATS, INTEGERS, agree, draw, layouts, tensor, torch

from flambeau_numpy.kernels.indexing import KERNELS as INDEXING
from flambeau_numpy.kernels.movement import KERNELS as MOVEMENT

ORDERED = (*FLOATS, *INTEGERS, "bool")


@pytest.mark.parametrize(
    ("items", "shape"),
    [
        ((1, 2), ()),
        ((slice(0, 4, 2), 3), (2,)),
        ((None, slice(1, 1, 1), slice(0, 6, 5)), (1, 0, 2)),
        ((slice(0, 4, 1), None, slice(2, 6, 1)), (4, 1, 4)),
    ],
)
def test_slice_aliases_even_a_single_element(
    items: tuple[Any, ...], shape: tuple[int, ...]
) -> None:
    a = draw((4, 6), "float32")
    r = MOVEMENT["slice"](a, items)
    assert type(r) is np.ndarray
    assert r.shape == shape
    if r.size:
        r[...] = 77
        assert (a == 77).sum() == r.size


def test_view_aliases_or_refuses() -> None:
    a = draw((4, 6), "float32")
    for source, shape in ((a, (2, 12)), (a[:, :3], (4, 3, 1)), (a.T, (6, 4)), (a.T, (3, 2, 4))):
        r = MOVEMENT["view"](source, shape)
        assert r.shape == shape
        assert np.shares_memory(r, a)
        np.testing.assert_array_equal(r, source.reshape(shape))
    for source, shape in ((a.T, (24,)), (a[:, :3], (12,)), (a, (5, 5))):
        with pytest.raises(ValueError, match="cannot (view|reshape)"):
            MOVEMENT["view"](source, shape)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool"])
def test_expand_aliases_with_strides_of_zero(dtype: str) -> None:
    a = draw((3, 1, 2), dtype)
    for source in (a, a[::2], a[:, :, :1], a[:0], a.T):
        shape = (5, *(7 if n == 1 else n for n in source.shape))
        r = MOVEMENT["expand"](source, shape)
        agree(r, tensor(source).expand(shape))
        assert r.strides[0] == 0
        if source.size:
            assert np.shares_memory(r, a)
            assert r.flags.writeable
    with pytest.raises(ValueError, match="cannot expand"):
        MOVEMENT["expand"](a, (4, 1, 2))


@pytest.mark.parametrize("offset", [-2, 0, 1, 9])
def test_diagonal_is_a_writable_alias_at_the_end(offset: int) -> None:
    a = draw((3, 4, 5), "float64")
    for dims in ((0, 1), (2, 0), (1, 2)):
        r = MOVEMENT["diagonal"](a, offset, *dims)
        agree(r, torch.diagonal(tensor(a), offset, *dims))
        r[...] = 5.0
        assert (torch.diagonal(tensor(a), offset, *dims) == 5).all()


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_cat_and_flip_agree(dtype: str) -> None:
    a, b = draw((2, 3), dtype), draw((2, 5), dtype, 1)
    agree(MOVEMENT["cat"]((a, b, a[:, :0]), 1), torch.cat([*map(tensor, (a, b))], 1))
    for dims in ((0,), (1,), (0, 1)):
        for _, x in layouts(a):
            if x.ndim:
                agree(MOVEMENT["flip"](x, dims), torch.flip(tensor(x), dims))


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_gradients_of_views_put_back_what_the_view_selects(dtype: str) -> None:
    a = draw((4, 5, 6), dtype)
    for items in ((2, slice(1, 5, 2), slice(0, 6, 1)), (None, slice(0, 0, 1), 1, 2), (1, 2, 3)):
        part = MOVEMENT["slice"](a, items)
        put = MOVEMENT["slice_backward"](part.copy(), a.shape, items)
        np.testing.assert_array_equal(MOVEMENT["slice"](put, items), part)
        assert np.count_nonzero(put) == np.count_nonzero(part)
    part = MOVEMENT["diagonal"](a, 1, 2, 0)
    put = MOVEMENT["diagonal_backward"](part.copy(), a.shape, 1, 2, 0)
    np.testing.assert_array_equal(MOVEMENT["diagonal"](put, 1, 2, 0), part)
    assert np.count_nonzero(put) == np.count_nonzero(part)
    for name in ("tril", "triu"):
        agree(INDEXING[name](a, -1), getattr(torch, name)(tensor(a), -1))


def test_large_cat_agrees() -> None:
    a, b = draw((200, 300), "float32"), draw((100, 300), "float32", 1)
    agree(MOVEMENT["cat"]((a, b), 0), torch.cat([*map(tensor, (a, b))], 0))
    with pytest.raises(ValueError, match="must match exactly"):
        MOVEMENT["cat"]((a, b[:, 1:]), 0)


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_index_agrees(dtype: str) -> None:
    a = draw((4, 5, 6), dtype)
    i, j = np.array([[0, 3], [1, 1]]), np.array([2, 0])
    for indices in ((i,), (i, j), (None, i), (i, None, j), (None, None, j), (np.array(2),)):
        full = tuple(slice(None) if x is None else tensor(x) for x in indices)
        found = INDEXING["index"](a, indices)
        agree(found, tensor(a)[full])
        assert not np.shares_memory(found, a)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_index_put_agrees_and_leaves_its_input(dtype: str, accumulate: bool) -> None:
    a = draw((4, 5, 6), dtype)
    repeated = np.array([0, 3, 3] if accumulate else [0, 3, 1])
    before = a.copy()
    for indices in ((repeated,), (None, repeated), (repeated, None, np.array([2, 0, 0]))):
        full = tuple(slice(None) if x is None else tensor(x) for x in indices)
        for values in (draw(tensor(a)[full].shape, dtype, 3), draw((), dtype, 4)):
            places = [None if x is None else tensor(x) for x in indices]
            expected = torch.ops.aten.index_put(tensor(a), places, tensor(values), accumulate)
            agree(INDEXING["index_put"](a, indices, values, accumulate), expected, scale=4)
    np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("rows", [20, 3000])
def test_large_accumulation_sums_rows(rows: int, dtype: str) -> None:
    a, values = draw((rows, 8), dtype, scale=0.1), draw((700, 8), dtype, 1, scale=0.1)
    index = np.random.default_rng(0).integers(0, rows, 700)
    expected = tensor(a).index_put((tensor(index),), tensor(values), True)
    agree(INDEXING["index_put"](a, (index,), values, True), expected, scale=20)
    column = draw((5000,), dtype, 2, scale=0.1)
    places = np.random.default_rng(1).integers(0, 50, 5000)
    exact = np.zeros(50, np.complex128)
    np.add.at(exact, places, column.astype(np.complex128))
    found = INDEXING["index_put"](np.zeros(50, column.dtype), (places,), column, True)
    scale = {"float16": 1e-2, "bfloat16": 6e-2}.get(dtype, 1e-4)
    np.testing.assert_allclose(found.astype(np.complex128), exact, atol=scale)


@pytest.mark.parametrize("dtype", list(DTYPES))
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gather_and_scatter_agree(dim: int, dtype: str) -> None:
    rng = np.random.default_rng(dim)
    a = draw((4, 5, 6), dtype)
    for x in (a, np.ascontiguousarray(a.T).T):
        index = rng.permuted(np.broadcast_to(np.arange(3).reshape(-1, 1, 1), (3, 3, 3)), axis=0)
        index = np.ascontiguousarray(np.moveaxis(index, 0, dim))
        src = draw((4, 5, 6), dtype, 7)
        i, s = tensor(index), tensor(src)
        agree(INDEXING["gather"](x, dim, index), torch.gather(tensor(x), dim, i))
        agree(INDEXING["scatter"](x, dim, index, src), torch.scatter(tensor(x), dim, i, s))
        if dtype != "bool":
            repeated = index // 2
            expected = torch.scatter_add(tensor(x), dim, tensor(repeated), s)
            agree(INDEXING["scatter_add"](x, dim, repeated, src), expected, scale=4)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16"])
def test_large_scatter_add_sums(dtype: str) -> None:
    index = np.random.default_rng(0).integers(0, 30, (60, 50))
    src = draw((60, 50), dtype, scale=0.1)
    a = np.zeros((30, 50), src.dtype)
    expected = torch.scatter_add(tensor(a), 0, tensor(index), tensor(src))
    agree(INDEXING["scatter_add"](a, 0, index, src), expected, scale=20)
    turned = np.zeros((50, 30), src.dtype).T
    INDEXING["scatter_add_"](turned, 0, index, src)
    agree(np.ascontiguousarray(turned), expected, scale=20)


def test_gather_and_scatter_on_scalars() -> None:
    a, i = np.array(2.0), np.array(0)
    assert INDEXING["gather"](a, 0, i) == 2
    assert INDEXING["gather"](a, 0, np.array([0])).tolist() == [2]
    assert INDEXING["scatter"](a, 0, i, np.array(3.0)) == 3
    assert INDEXING["scatter_add"](a, 0, i, np.array(3.0)) == 5


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_nonzero_agrees(dtype: str) -> None:
    a = draw((4, 6), dtype)
    a[1] = 0
    for _, x in layouts(a):
        agree(INDEXING["nonzero"](x), torch.nonzero(tensor(x)))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ORDERED)
def test_sort_is_stable_with_nan_largest(dtype: str, descending: bool) -> None:
    a = draw((5, 40), dtype)
    a = np.round(a.astype(np.float32)).astype(a.dtype) if dtype in FLOATS else a
    if dtype in FLOATS:
        a[0, 3] = a[0, 9] = a[2, 0] = np.nan
        a[1, 4], a[1, 5] = np.inf, -np.inf
    for _, x in layouts(a):
        for dim in range(max(x.ndim, 1)):
            values, order = INDEXING["sort"](x, dim, descending, True)
            expected = torch.sort(tensor(x), dim=dim, descending=descending, stable=True)
            agree(values, expected.values)
            agree(order, expected.indices)
