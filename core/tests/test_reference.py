"""The reference backend: exact values of every dtype, the corners of its kernels, its samples."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

from flambeau._types.dtype import (
    ALL,
    FLOATING,
    INTEGER,
    bfloat16,
    bool_,
    complex64,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
)
from flambeau.ops import OPS
from flambeau.plugin.host import PluginHost
from flambeau.testing.reference import KERNELS, RefArray, plugin, rounded
from flambeau.testing.reference.backend import RefBackend
from flambeau.testing.reference.meanings import MEANINGS
from flambeau.testing.samples import DTYPES, SAMPLES, SPECIAL, Arr, Sample, realise

INF, NAN = math.inf, math.nan


def ref(values: Any, d: dtype = float64) -> RefArray:
    """An array of nested lists."""
    shape: list[int] = []
    level = values
    while isinstance(level, list):
        shape.append(len(level))
        level = level[0] if level else None

    def flat(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            for item in value:
                yield from flat(item)
        else:
            yield value

    return RefArray(tuple(shape), d, rounded(flat(values), d))


def same(a: Any, b: Any) -> bool:
    """Equality that sees the sign of zero and takes NaN for itself."""
    return repr(a) == repr(b)


def test_an_array_cannot_be_changed() -> None:
    a = ref([1.0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        a.shape = (2,)  # type: ignore[misc]
    with pytest.raises(TypeError):
        a.data[0] = 2.0  # type: ignore[index]


def test_an_array_needs_as_many_elements_as_its_shape() -> None:
    with pytest.raises(ValueError, match=r"shape \(2, 2\) has 4 elements, got 3"):
        RefArray((2, 2), int64, (1, 2, 3))


@pytest.mark.parametrize(
    ("shape", "nested"),
    [
        ((), 0),
        ((2,), [0, 1]),
        ((2, 1, 2), [[[0, 1]], [[2, 3]]]),
        ((0, 2), []),
        ((2, 0), [[], []]),
        ((2, 0, 3), [[], []]),
        ((1, 2, 0), [[[], []]]),
    ],
)
def test_nested_lists_follow_the_shape(shape: tuple[int, ...], nested: Any) -> None:
    assert RefArray(shape, int64, tuple(range(math.prod(shape)))).nested() == nested


@pytest.mark.parametrize(
    ("d", "value", "stored"),
    [
        (bool_, NAN, True),
        (bool_, -0.0, False),
        (int8, 128, -128),
        (int8, -129, 127),
        (uint8, -1, 255),
        (int64, 1 << 63, -(1 << 63)),
        (float32, 16777217.0, 16777216.0),
        (float32, 1e39, INF),
        (float32, -0.0, -0.0),
        (float16, 65519.0, 65504.0),
        (float16, 65520.0, INF),
        (float16, -1e300, -INF),
        (float16, 2.0**-25, 0.0),
        (float16, NAN, NAN),
        (bfloat16, 1.00390625, 1.0),  # a tie goes to the even neighbour
        (bfloat16, 1.01171875, 1.015625),
        (bfloat16, 3.4e38, INF),
        (bfloat16, NAN, NAN),
        (complex64, complex(16777217.0, -0.0), complex(16777216.0, -0.0)),
    ],
)
def test_rounding_stores_what_the_dtype_stores(d: dtype, value: Any, stored: Any) -> None:
    (result,) = rounded([value], d)
    assert same(result, stored)


def cases() -> list[Any]:
    return [
        pytest.param(name, sample, id=f"{name}-{sample.name}")
        for name in KERNELS
        for sample in [*SAMPLES[name], *SPECIAL.get(name, [])]
    ]


def make(values: list[Any], shape: tuple[int, ...], d: dtype) -> RefArray:
    return RefArray(shape, d, rounded(values, d))


@pytest.mark.parametrize(("name", "sample"), cases())
def test_results_are_representable_in_their_dtype(name: str, sample: Sample) -> None:
    for d in DTYPES[name]:
        result = KERNELS[name](*realise(sample.args, make, d))
        for array in result if isinstance(result, tuple) else (result,):
            assert type(array.data) is tuple
            kind = (bool, int, float, complex)[array.dtype.category]
            assert all(type(v) is kind for v in array.data)
            assert same(rounded(array.data, array.dtype), array.data)


@pytest.mark.parametrize(
    ("d", "values", "total"),
    [
        (float16, [2048.0] + [1.0] * 10, 2058.0),
        (bfloat16, [256.0] + [1.0] * 4, 260.0),
        (float32, [16777216.0, 1.0, 1.0], 16777218.0),
        (int8, [100, 100], -56),
        (bool_, [True, True], True),
    ],
)
def test_sums_are_wide_and_rounded_once(d: dtype, values: list[Any], total: Any) -> None:
    assert KERNELS["sum"](ref(values, d), (0,), False).data == (total,)
    assert KERNELS["cumsum"](ref(values, d), 0).data[-1] == total
    ones = RefArray((len(values), 1), d, rounded([1] * len(values), d))
    assert KERNELS["matmul"](ref([values], d), ones).data == (total,)


@pytest.mark.parametrize("d", ALL, ids=str)
def test_the_empty_sum_is_zero_and_the_empty_product_one(d: dtype) -> None:
    empty = RefArray((2, 0), d, ())
    assert KERNELS["sum"](empty, (1,), False).data == (0, 0)
    assert KERNELS["prod"](empty, (1,), True).data == (1, 1)
    assert KERNELS["sum"](empty, (1,), True).shape == (2, 1)


def test_extremes_are_nan_where_an_element_is() -> None:
    a = ref([[1.0, NAN, 3.0], [1.0, 2.0, 3.0]])
    assert same(KERNELS["amax"](a, (1,), False).data, (NAN, 3.0))
    assert same(KERNELS["amin"](a, (1,), False).data, (NAN, 1.0))
    pairs = ref([NAN, 1.0, 2.0]), ref([1.0, NAN, 1.0])
    assert same(KERNELS["maximum"](*pairs).data, (NAN, NAN, 2.0))
    assert same(KERNELS["minimum"](*pairs).data, (NAN, NAN, 1.0))


def test_the_position_of_an_extreme_is_the_first_and_nan_wins() -> None:
    assert KERNELS["argmax"](ref([3.0, 5.0, 5.0]), 0, False).data == (1,)
    assert KERNELS["argmin"](ref([[3.0, 1.0, 1.0]]), 1, True).nested() == [[1]]
    assert KERNELS["argmax"](ref([INF, NAN, NAN]), 0, False).data == (1,)
    assert KERNELS["argmin"](ref([-INF, NAN]), 0, False).data == (1,)


@pytest.mark.parametrize(
    ("descending", "values", "sources"),
    [
        (False, [-INF, 1.0, 2.0, 2.0, INF, NAN, NAN], [4, 3, 1, 6, 5, 0, 2]),
        (True, [NAN, NAN, INF, 2.0, 2.0, 1.0, -INF], [0, 2, 5, 1, 6, 3, 4]),
    ],
)
def test_sorting_is_stable_and_takes_nan_for_the_largest(
    descending: bool, values: list[float], sources: list[int]
) -> None:
    a = ref([NAN, 2.0, float("nan"), 1.0, -INF, INF, 2.0])
    ordered, where = KERNELS["sort"](a, 0, descending, False)
    assert same(list(ordered.data), values)
    assert list(where.data) == sources


@pytest.mark.parametrize(
    ("name", "argument", "result"),
    [
        ("exp", 1000.0, INF),
        ("expm1", 1000.0, INF),
        ("log", 0.0, -INF),
        ("log", -1.0, NAN),
        ("log1p", -1.0, -INF),
        ("log1p", -2.0, NAN),
        ("sqrt", -1.0, NAN),
        ("sqrt", -0.0, -0.0),
        ("rsqrt", -0.0, -INF),
        ("reciprocal", -0.0, -INF),
        ("reciprocal", INF, 0.0),
        ("sin", INF, NAN),
        ("acos", 1.5, NAN),
        ("sinh", -1000.0, -INF),
        ("cosh", -1000.0, INF),
        ("sign", NAN, 0.0),
        ("sign", -0.0, 0.0),
        ("round", 2.5, 2.0),
        ("round", -0.5, -0.0),
        ("ceil", -0.5, -0.0),
        ("trunc", -0.0, -0.0),
        ("floor", -INF, -INF),
        ("abs", -0.0, 0.0),
    ],
)
def test_unary_functions_at_their_corners(name: str, argument: float, result: float) -> None:
    assert same(KERNELS[name](ref(argument)).data, (result,))
    assert same(KERNELS[name](ref(argument, float32)).data, (result,))


@pytest.mark.parametrize(
    ("name", "x", "y", "result"),
    [
        ("div", 1.0, -0.0, -INF),
        ("div", 0.0, 0.0, NAN),
        ("floor_divide", -7.0, 2.0, -4.0),
        ("floor_divide", -1.0, INF, -1.0),
        ("floor_divide", INF, 2.0, NAN),
        ("floor_divide", -1.0, 0.0, -INF),
        ("floor_divide", -0.0, 3.0, -0.0),
        ("remainder", -7.0, 3.0, 2.0),
        ("remainder", 7.0, -3.0, -2.0),
        ("remainder", -1.0, INF, INF),
        ("remainder", 1.0, 0.0, NAN),
        ("fmod", -7.0, 3.0, -1.0),
        ("fmod", INF, 3.0, NAN),
        ("pow", 0.0, -1.0, INF),
        ("pow", -0.0, -3.0, -INF),
        ("pow", -8.0, 1 / 3, NAN),
        ("pow", NAN, 0.0, 1.0),
        ("pow", 1.0, NAN, 1.0),
        ("pow", -1e200, 3.0, -INF),
        ("atan2", -0.0, -1.0, -math.pi),
    ],
)
def test_binary_functions_at_their_corners(name: str, x: float, y: float, result: float) -> None:
    assert same(KERNELS[name](ref(x), ref(y)).data, (result,))


@pytest.mark.parametrize(
    ("name", "x", "y", "result"),
    [
        ("floor_divide", -7, 2, -4),
        ("floor_divide", -128, -1, -128),
        ("remainder", -7, 3, 2),
        ("remainder", 7, -3, -2),
        ("fmod", -7, 3, -1),
        ("fmod", 7, -3, 1),
        ("pow", 2, -1, 0),
        ("pow", 0, -1, 0),
        ("pow", -1, -3, -1),
        ("pow", 3, 7, -117),
        ("mul", 64, 4, 0),
        ("bitwise_xor", -1, 1, -2),
    ],
)
def test_integers_wrap_and_divide_towards_the_floor(name: str, x: int, y: int, result: int) -> None:
    assert KERNELS[name](ref(x, int8), ref(y, int8)).data == (result,)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
@pytest.mark.parametrize("d", INTEGER, ids=str)
def test_integer_division_by_zero_raises(name: str, d: dtype) -> None:
    with pytest.raises(ZeroDivisionError):
        KERNELS[name](ref(1, d), ref(0, d))


def test_bools_add_as_or_and_multiply_as_and() -> None:
    a, b = ref([True, True, False], bool_), ref([True, False, False], bool_)
    assert KERNELS["add"](a, b).data == (True, True, False)
    assert KERNELS["mul"](a, b).data == (True, False, False)
    assert KERNELS["bitwise_not"](b).data == (False, True, True)
    for name in ("sub", "pow", "remainder"):
        with pytest.raises(TypeError, match=f"{name}: not defined for torch.bool"):
            KERNELS[name](a, b)


def test_casts_truncate_wrap_and_drop_the_imaginary_part() -> None:
    assert KERNELS["cast"](ref([-1.75, 300.5]), int8).data == (-1, 44)
    assert KERNELS["cast"](ref([-1.75, 300.5]), uint8).data == (255, 44)
    assert KERNELS["cast"](ref([1.5 + 2j], complex64), int32).data == (1,)
    assert KERNELS["cast"](ref([2j, 0j, NAN], complex64), bool_).data == (True, False, True)
    assert KERNELS["cast"](ref([True], bool_), complex64).data == (1 + 0j,)
    assert KERNELS["cast"](ref([NAN, INF, 1e300]), int64).data == (-(1 << 63),) * 3


def test_index_dimensions_stay_together_or_come_first() -> None:
    a = RefArray((2, 3, 4), int64, tuple(range(24)))
    pair, triple = ref([0, 1], int64), ref([[0], [1], [2]], int64)
    assert KERNELS["index"](a, (None, triple, pair)).shape == (2, 3, 2)
    apart = KERNELS["index"](a, (pair, None, pair))
    assert apart.shape == (2, 3)
    assert apart.nested() == [[0, 4, 8], [13, 17, 21]]
    b = RefArray((2, 3, 4, 5), int64, tuple(range(120)))
    assert KERNELS["index"](b, (None, pair, None, pair)).shape == (2, 2, 4)
    assert KERNELS["index"](b, (None, triple, None, pair)).shape == (3, 2, 2, 4)


def test_repeated_positions_accumulate_or_keep_the_last() -> None:
    a, twice = ref([0.0, 0.0]), ref([1, 1], int64)
    assert KERNELS["index_put"](a, (twice,), ref([1.0, 2.0]), False).data == (0.0, 2.0)
    assert KERNELS["index_put"](a, (twice,), ref([1.0, 2.0]), True).data == (0.0, 3.0)
    assert KERNELS["scatter"](a, 0, twice, ref([1.0, 2.0])).data == (0.0, 2.0)
    assert KERNELS["scatter_add"](a, 0, twice, ref([1.0, 2.0])).data == (0.0, 3.0)


A, ROW = ref([[1.0, 2.0], [3.0, 4.0]]), ref([1.0, 2.0, 3.0])
INDEX = ref([0, 1], int64)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("add", (A, ROW)),
        ("eq", (A, ROW)),
        ("where", (ref([True] * 3, bool_), A, A)),
        ("sum", (A, (0, 0), False)),
        ("amax", (RefArray((2, 0), float64, ()), (1,), False)),
        ("argmin", (RefArray((2, 0), float64, ()), 1, False)),
        ("matmul", (A, ROW)),
        ("matmul", (A, ref(1.0))),
        ("cat", ([A, ROW], 0)),
        ("cat", ([A, ref([[1.0]])], 0)),
        ("cat", ([], 0)),
        ("cat", ([ref(1.0)], 0)),
        ("slice", (ROW, (0, 0, 0))),
        ("slice", (ROW, (slice(2, 0, -1),))),
        ("permute", (A, (0, 0))),
        ("view", (A, (3,))),
        ("expand", (A, (2, 3))),
        ("expand", (A, (2,))),
        ("diagonal", (A, 0, 1, 1)),
        ("diagonal", (ROW, 0, 0, 0)),
        ("index", (A, (INDEX, ref([0, 1, 0], int64)))),
        ("index_put", (A, (INDEX,), ROW, False)),
        ("gather", (A, 0, INDEX)),
        ("gather", (A, 0, ref([[0, 0, 0]], int64))),
        ("scatter", (A, 0, ref([[0, 1]], int64), ref([[1.0]]))),
    ],
)
def test_shapes_that_do_not_fit_raise_value_error(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        KERNELS[name](*args)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("index", (A, (ref([2], int64),))),
        ("index", (A, (ref([-1], int64),))),
        ("index", (A, (INDEX, INDEX, INDEX))),
        ("index_put", (A, (ref([5], int64),), ref(1.0), True)),
        ("gather", (A, 1, ref([[-1]], int64))),
        ("scatter_add", (A, 1, ref([[2]], int64), ref([[1.0]]))),
        ("slice", (A, (2, 0))),
        ("slice", (A, (-1, 0))),
        ("sum", (A, (2,), False)),
        ("cumsum", (A, -1)),
        ("sort", (A, 2, False, True)),
        ("flip", (A, (2,))),
        ("cat", ([A], 2)),
    ],
)
def test_positions_out_of_range_raise_index_error(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(IndexError, match=r".+"):
        KERNELS[name](*args)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("add", (A, ref([[1, 2]], int64))),
        ("cat", ([A, ref([[1, 2]], int64)], 0)),
        ("where", (A, A, A)),
        ("gather", (A, 0, ref([[0]], int32))),
        ("bitwise_and", (A, A)),
        ("lt", (ref([1j], complex64), ref([1j], complex64))),
        ("sort", (ref([1j], complex64), 0, False, True)),
        ("amax", (ref([1j], complex64), (0,), False)),
        ("erf", (ref([1j], complex64),)),
    ],
)
def test_dtypes_that_do_not_fit_raise_type_error(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r".+"):
        KERNELS[name](*args)


@pytest.mark.parametrize("d", ALL, ids=str)
def test_values_survive_the_way_through_host_bytes(d: dtype) -> None:
    backend = RefBackend()
    a = make(Arr((4, 4), kind="special").values(d), (4, 4), d)
    data = backend.to_host(a)
    assert len(data) == 16 * d.itemsize
    back = backend.from_host(bytearray(data), (4, 4), d, 0)
    assert back.dtype is d
    assert same(back, a)


def test_the_backend_refuses_bytes_of_another_shape() -> None:
    with pytest.raises(ValueError, match=r"shape \(3,\) has 3 elements, got 2"):
        RefBackend().from_host(bytes(16), (3,), float64, 0)
    with pytest.raises(ValueError, match=r"one element, got shape \(2, 2\)"):
        RefBackend().item(A)


@pytest.mark.parametrize("d", FLOATING, ids=str)
def test_scalars_are_rounded_to_the_dtype(d: dtype) -> None:
    scalar = RefBackend().scalar(1 / 3, d)
    assert scalar.shape == ()
    assert RefBackend().item(scalar) == rounded([1 / 3], d)[0]


def test_the_plugin_serves_device_type_ref_and_no_other() -> None:
    assert isinstance(plugin.flambeau_backend("ref"), RefBackend)
    kernels = plugin.flambeau_kernels("ref")
    assert kernels is not None
    assert dict(kernels.kernels) == KERNELS
    for hook in (plugin.flambeau_backend, plugin.flambeau_kernels, plugin.flambeau_report):
        assert hook("cpu") is None


def test_a_plugin_host_activates_every_kernel() -> None:
    host = PluginHost(entry_points=list)
    host.register_builtin("ref", "flambeau.testing.reference.plugin")
    activation = host.activate("ref")
    assert isinstance(activation.backend, RefBackend)
    assert set(activation.kernels) == set(KERNELS)


def test_every_primitive_has_its_meaning_in_words() -> None:
    assert MEANINGS.keys() == {name for name, op in OPS.items() if op.tier == "primitive"}
    for name, text in MEANINGS.items():
        assert text.endswith("."), name
        for word in re.findall(r"`(\w+)`", text):
            assert word in {*OPS[name].params, *MEANINGS, "part", "ZeroDivisionError"}, (name, word)
