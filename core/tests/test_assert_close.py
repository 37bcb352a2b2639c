"""`assert_close`: what counts as close, and what the error says."""

from __future__ import annotations

import math
from typing import Any

import pytest

import flambeau as fb
from flambeau.testing import assert_close


def ref(values: Any, dtype: fb.dtype | None = None) -> fb.Tensor:
    return fb.tensor(values, dtype=dtype, device="ref")


@pytest.mark.parametrize(
    ("dtype", "near", "far"),
    [
        (fb.float16, 1.0009765625, 1.0029296875),
        (fb.bfloat16, 1.015625, 1.03125),
        (fb.float32, 1.00001, 1.00002),
        (fb.float64, 1.0000001, 1.0000003),
        (fb.complex64, 1.00001 + 0j, 1.00002 + 0j),
        (fb.complex128, 1.0 + 1e-7j, 1.0 + 3e-7j),
        (fb.int32, 1, 2),
        (fb.bool, True, False),
    ],
)
def test_tolerances_follow_the_dtype(dtype: fb.dtype, near: Any, far: Any) -> None:
    one = ref([1], dtype)
    assert_close(ref([near], dtype), one)
    with pytest.raises(AssertionError, match="Tensor-likes are not (close|equal)!"):
        assert_close(ref([far], dtype), one)


def test_the_larger_tolerance_of_two_dtypes_holds() -> None:
    assert_close(ref([1.0009765625], fb.float16), ref([1.0]), check_dtype=False)
    assert_close(ref([1]), ref([1.0]), check_dtype=False)


def test_the_error_shows_number_size_and_place_of_differences() -> None:
    actual = ref([[1.0, 2.0, 3.0], [4.0, 5.5, 8.0]])
    expected = ref([[1.0, 2.0, 3.0], [4.0, 5.0, 4.0]])
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected)
    assert str(caught.value) == (
        "Tensor-likes are not close!\n\n"
        "Mismatched elements: 2 / 6 (33.3%)\n"
        "Greatest absolute difference: 4.0 at index (1, 2) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 1.0 at index (1, 2) (up to 1.3e-06 allowed)"
    )


def test_absolute_and_relative_differences_have_their_own_place() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_close(ref([1.0, 101.0]), ref([0.5, 100.0]))
    assert "absolute difference: 1.0 at index (1,)" in str(caught.value)
    assert "relative difference: 1.0 at index (0,)" in str(caught.value)


def test_exact_comparisons_say_equal_and_allow_nothing() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_close(ref([1, 2]), ref([1, 4]))
    assert str(caught.value) == (
        "Tensor-likes are not equal!\n\n"
        "Mismatched elements: 1 / 2 (50.0%)\n"
        "Greatest absolute difference: 2 at index (1,)\n"
        "Greatest relative difference: 0.5 at index (1,)"
    )


@pytest.mark.parametrize("actual", [2.5, ref(2.5)], ids=["number", "0-d tensor"])
def test_scalars_are_shown_themselves(actual: Any) -> None:
    expected = ref(2.0) if isinstance(actual, fb.Tensor) else 2.0
    with pytest.raises(
        AssertionError, match=r"Scalars are not close!\n\nExpected 2.0 but got 2.5."
    ):
        assert_close(actual, expected)


def test_infinities_are_close_to_themselves_only() -> None:
    assert_close(ref([math.inf, -math.inf]), ref([math.inf, -math.inf]))
    for other in (-math.inf, 3e38, math.nan):
        with pytest.raises(AssertionError):
            assert_close(ref([math.inf]), ref([other]), rtol=1.0, atol=1.0)
        with pytest.raises(AssertionError):
            assert_close(ref([other]), ref([math.inf]), rtol=1.0, atol=1.0)


def test_nan_is_close_to_nan_on_request() -> None:
    with pytest.raises(AssertionError, match="Greatest absolute difference: nan"):
        assert_close(ref([math.nan]), ref([math.nan]))
    assert_close(ref([math.nan]), ref([math.nan]), equal_nan=True)
    with pytest.raises(AssertionError, match="Expected 1.0 but got nan"):
        assert_close(math.nan, 1.0, equal_nan=True)


@pytest.mark.parametrize(
    ("option", "name", "make"),
    [
        ("check_dtype", "dtype", lambda: (ref([1.0]), ref([1.0], fb.float64))),
        ("check_device", "device", lambda: (ref([1.0]), fb.zeros(1, device="meta"))),
        ("check_stride", r"stride\(\)", lambda: (ref([[1.0], [2.0]]).t(), ref([[1.0, 2.0]]))),
    ],
)
def test_attributes_are_compared_unless_switched_off(option: str, name: str, make: Any) -> None:
    with pytest.raises(AssertionError, match=f"values for attribute '{name}' do not match: "):
        assert_close(*make(), **{option: True})
    assert_close(*make(), **{option: False})


def test_shapes_never_broadcast() -> None:
    with pytest.raises(AssertionError, match=r"'shape' do not match: .*\[2\]\) != .*\[1, 2\]\)"):
        assert_close(ref([1.0, 1.0]), ref([[1.0, 1.0]]))


def test_empty_tensors_and_histories_do_not_matter() -> None:
    assert_close(ref([]), ref([]))
    x = ref([1.0]).requires_grad_()
    assert_close(x * 1, ref([1.0]))


def test_containers_are_compared_item_by_item() -> None:
    assert_close({"a": [ref(1.0), (2, None)], "b": True}, {"b": True, "a": (ref(1.0), [2, None])})
    with pytest.raises(AssertionError, match=r"Expected 3 but got 2.(.|\n)*for item \['a'\]\[1\]$"):
        assert_close({"a": [1, 2]}, {"a": [1, 3]})
    with pytest.raises(AssertionError, match="length of the sequences mismatch: 1 != 2"):
        assert_close([1], [1, 2])
    with pytest.raises(AssertionError) as caught:
        assert_close({"a": 1}, {"b": 1})
    assert "Missing keys in the actual mapping: ['b']" in str(caught.value)
    assert "Additional keys in the actual mapping: ['a']" in str(caught.value)


def test_numbers_have_one_type_unless_dtypes_are_not_checked() -> None:
    with pytest.raises(AssertionError, match="<class 'int'> != <class 'float'>"):
        assert_close(1, 1.0)
    assert_close(1, 1.0, check_dtype=False)
    with pytest.raises(AssertionError, match="Booleans mismatch: True is not False"):
        assert_close(True, False)
    with pytest.raises(AssertionError, match="None mismatch"):
        assert_close(None, 1.0)


def test_one_tolerance_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="both be specified or both be omitted, got rtol=1"):
        assert_close(1.0, 1.0, rtol=1)


@pytest.mark.parametrize(("actual", "expected"), [("a", "a"), (ref(1.0), 1.0), ({1}, {1})])
def test_what_cannot_be_compared_is_refused(actual: Any, expected: Any) -> None:
    with pytest.raises(TypeError, match="cannot compare <class"):
        assert_close(actual, expected)


def test_the_message_can_be_replaced_or_built_upon() -> None:
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match="^step 3: Scalars are not equal!"):
        assert_close(1, 2, msg=lambda text: f"step 3: {text}")
