"""The samples: repeatable, in range, exact in every dtype, and as laid out as they say."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from flambeau._types.dtype import ALL, bool_, complex64, dtype, float32, float64, int64, uint8
from flambeau.testing.reference import RefArray, rounded
from flambeau.testing.reference.array import offsets, row_major
from flambeau.testing.samples import (
    ANY_SHAPE,
    DTYPE,
    DTYPES,
    GENERATOR,
    LAYOUTS,
    SAMPLES,
    SPECIAL,
    Arr,
    Sample,
    arrange,
    arranged,
    lay_out,
    realise,
    special_values,
)


def descriptions(value: Any) -> Iterator[Arr]:
    if isinstance(value, Arr):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from descriptions(item)


def every() -> list[Any]:
    return [
        pytest.param(name, sample, id=f"{name}-{sample.name}")
        for name, samples in SAMPLES.items()
        for sample in samples
    ]


@pytest.mark.parametrize("table", [SAMPLES, SPECIAL], ids=["samples", "special"])
def test_names_of_samples_are_unique_within_an_op(table: dict[str, list[Sample]]) -> None:
    for name, samples in table.items():
        names = [sample.name for sample in samples]
        assert len(set(names)) == len(names) > 0, name


def test_tables_speak_about_ops_that_have_samples() -> None:
    assert set(SPECIAL) <= set(SAMPLES)
    assert set(DTYPES) == set(SAMPLES)
    assert set(SAMPLES) > ANY_SHAPE


@pytest.mark.parametrize(("name", "sample"), every())
def test_values_are_exact_in_every_dtype_of_the_op(name: str, sample: Sample) -> None:
    for d in DTYPES[name]:
        for array in descriptions(sample.args):
            own = array.dtype or d
            values = array.values(d)
            assert len(values) == math.prod(array.shape)
            assert list(rounded(values, own)) == values


@pytest.mark.parametrize(("name", "sample"), every())
def test_values_stay_in_their_range(name: str, sample: Sample) -> None:
    for array in descriptions(sample.args):
        values = array.values(float64)
        if array.dtype is complex64:  # of each part the same is so
            values = [part for v in values for part in (v.real, v.imag)]
        if array.kind == "uniform" and array.dtype is not bool_:
            assert all(array.low <= v <= array.high for v in values)
        elif array.kind == "nonzero":
            assert all(array.low <= abs(v) <= max(array.high, 1) for v in values)
        elif array.kind == "distinct":
            assert len(set(values)) == len(values)
            assert all(array.low <= v <= array.high for v in values)


def test_the_same_description_gives_the_same_numbers_and_a_seed_others() -> None:
    assert Arr((4,)).values(float32) == Arr((4,)).values(float32)
    assert Arr((4,)).values(float32) != Arr((4,), seed=1).values(float32)


def test_a_range_without_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no number of torch\.int64 lies in \[0\.25, 0\.75\]"):
        Arr((1,), low=0.25, high=0.75).values(int64)


@pytest.mark.parametrize("d", ALL, ids=str)
def test_special_values_are_exact_and_divisors_of_integers_are_not_zero(d: dtype) -> None:
    values = special_values(d)
    assert len(values) == 16
    assert repr(rounded(values, d)) == repr(tuple(values))
    if d.category == 1:
        assert 0 in values
        assert 0 not in special_values(d, zeros=False)
        assert max(values) == (255 if d is uint8 else 2 ** (8 * d.itemsize - 1) - 1)
    if d.is_floating_point:
        assert any(v != v for v in values)
        assert {math.inf, -math.inf} < set(values)
        assert "-0.0" in map(repr, values)


def test_realising_replaces_markers_and_nested_descriptions() -> None:
    def make(values: list[Any], shape: tuple[int, ...], d: dtype) -> tuple[int, ...]:
        return shape

    args = ([Arr((2,)), Arr(())], (None, Arr((3,), int64)), DTYPE, GENERATOR, 4)
    found = realise(args, make, float32, generator="bits")
    assert found == ([(2,), ()], (None, (3,)), float32, "bits", 4)


class Strided:
    """As much of a tensor as the layouts use, with its strides to be looked at."""

    def __init__(
        self,
        data: list[Any],
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        start: int = 0,
    ) -> None:
        self.data, self.shape, self.start = data, tuple(shape), start
        self.strides = row_major(shape) if strides is None else strides

    def permute(self, *dims: int) -> Strided:
        shape = tuple(self.shape[d] for d in dims)
        return Strided(self.data, shape, tuple(self.strides[d] for d in dims), self.start)

    def expand(self, shape: tuple[int, ...]) -> Strided:
        pairs = zip(self.shape, shape, self.strides, strict=True)
        return Strided(self.data, shape, tuple(s if n == m else 0 for n, m, s in pairs), self.start)

    def __getitem__(self, item: Any) -> Strided:
        if item == (Ellipsis, slice(None, None, 2)):
            shape = (*self.shape[:-1], (self.shape[-1] + 1) // 2)
            return Strided(self.data, shape, (*self.strides[:-1], 2 * self.strides[-1]), self.start)
        assert item == slice(1, None)
        start = self.start + self.strides[0]
        return Strided(self.data, (self.shape[0] - 1, *self.shape[1:]), self.strides, start)

    def values(self) -> list[Any]:
        return [self.data[p] for p in offsets(self.shape, self.strides, self.start)]


def strided(values: list[Any], shape: tuple[int, ...], d: dtype) -> Strided:
    assert len(values) == math.prod(shape)
    return Strided(values, shape)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 3), (3, 1, 2), (0, 3), (3, 0)], ids=str)
def test_a_layout_has_the_values_that_it_says(layout: str, shape: tuple[int, ...]) -> None:
    array = Arr(shape, seed=3)
    tensor = lay_out(array, layout, strided, float32)
    expected = arranged(array, layout)
    assert tensor.shape == expected.shape
    assert tensor.values() == expected.values(float32)


@pytest.mark.parametrize(
    ("layout", "shape", "strides", "start"),
    [
        ("contiguous", (2, 3), (3, 1), 0),
        ("transposed", (2, 3), (1, 2), 0),
        ("sliced", (2, 3), (6, 2), 0),
        ("expanded", (2, 3), (0, 1), 0),
        ("offset", (2, 3), (3, 1), 3),
        ("empty", (2, 0), (0, 1), 0),
        ("scalar", (), (), 0),
    ],
)
def test_a_layout_is_what_its_name_says(
    layout: str, shape: tuple[int, ...], strides: tuple[int, ...], start: int
) -> None:
    tensor = lay_out(Arr((2, 3)), layout, strided, float32)
    assert (tensor.shape, tensor.strides, tensor.start) == (shape, strides, start)


def test_indices_keep_their_values_in_expanded_memory() -> None:
    index = Arr((2, 3), int64, 0, 5)
    assert arranged(index, "expanded") is index
    (data, where) = arrange((Arr((2, 3)), index), "expanded")
    assert data.equal_rows
    assert where is index


def test_an_unknown_layout_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown layout 'diagonal'; known: contiguous, "):
        lay_out(Arr(()), "diagonal", strided, float32)


def test_ops_of_any_shape_take_empty_and_scalar_layouts() -> None:
    from flambeau.testing.reference import KERNELS

    def make(values: list[Any], shape: tuple[int, ...], d: dtype) -> RefArray:
        return RefArray(shape, d, rounded(values, d))

    for name in ANY_SHAPE & set(KERNELS):
        for sample in SAMPLES[name]:
            for layout in ("empty", "scalar"):
                args = realise(arrange(sample.args, layout), make, DTYPES[name][0])
                result = KERNELS[name](*args)
                assert 0 in result.shape or result.shape == (), (name, sample.name, layout)
