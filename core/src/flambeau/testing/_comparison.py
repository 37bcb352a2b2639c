"""`assert_close`: tensors, numbers and containers of them compared within tolerances.

Tensors are compared as Python numbers, so that the comparison asks nothing of the backend whose
results it judges but to hand them out.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flambeau as fb
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType

_DEFAULTS = {
    D.float16: (1e-3, 1e-5),
    D.bfloat16: (1.6e-2, 1e-5),
    D.float32: (1.3e-6, 1e-5),
    D.float64: (1e-7, 1e-7),
}
_NUMBERS = (bool, int, float, complex)


def assert_close(
    actual: object,
    expected: object,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Assert that `actual` and `expected` are equal within tolerances.

    Finite numbers are close if ``|actual - expected| <= atol + rtol * |expected|``; infinities are
    close to themselves, NaN is if `equal_nan`.  Sequences and mappings are compared item by item,
    arrays that are no tensors as tensors, None with None.

    Args:
        allow_subclasses: compare objects of related types; False asks for one type.
        rtol, atol: tolerances, both or neither; by default those of the dtype: (1e-3, 1e-5) for
            float16, (1.6e-2, 1e-5) for bfloat16, (1.3e-6, 1e-5) for float32, (1e-7, 1e-7) for
            float64, zero for the others; of two dtypes, the larger ones.
        equal_nan: whether NaN equals NaN.
        check_device: whether tensors must be on one device.
        check_dtype: whether they must have one dtype, and numbers one type.
        check_layout: whether they must have one layout.
        check_stride: whether they must have the same strides.
        msg: what the error says, or a function of its text.

    Raises:
        AssertionError: they are not close, or an attribute differs.
        ValueError: only one tolerance is given.
        TypeError: the objects cannot be compared.

    >>> import flambeau as fb
    >>> fb.testing.assert_close(fb.tensor([1.0, 2.0]), fb.tensor([1.0, 2.0 + 1e-6]))
    >>> fb.testing.assert_close(fb.tensor([1.0, 2.0]), fb.tensor([1.0, 2.5]))
    Traceback (most recent call last):
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
    Greatest relative difference: 0.2 at index (1,) (up to 1.3e-06 allowed)
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            "assert_close: rtol and atol must both be specified or both be omitted, got "
            f"rtol={rtol}, atol={atol}"
        )
    tolerances = None if rtol is None or atol is None else (rtol, atol)
    attributes = {
        "device": check_device,
        "dtype": check_dtype,
        "layout": check_layout,
        "stride()": check_stride,
    }
    comparison = _Comparison(tolerances, equal_nan, allow_subclasses, attributes)
    text = comparison.compare(actual, expected, ())
    if text is not None:
        shown = text if msg is None else msg if isinstance(msg, str) else msg(text)
        raise AssertionError(shown)


@dataclass(frozen=True)
class _Comparison:
    tolerances: tuple[float, float] | None
    equal_nan: bool
    allow_subclasses: bool
    attributes: Mapping[str, bool]

    def compare(self, actual: Any, expected: Any, path: tuple[Any, ...]) -> str | None:
        """The first difference, in words; None if there is none."""
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            return self._mappings(actual, expected, path)
        if _is_sequence(actual) and _is_sequence(expected):
            if len(actual) != len(expected):
                text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
                return _located(text, path)
            return self._items(enumerate(zip(actual, expected, strict=True)), path)
        text = self._leaves(actual, expected)
        return None if text is None else _located(text, path)

    def _mappings(
        self, actual: Mapping[Any, Any], expected: Mapping[Any, Any], path: tuple[Any, ...]
    ) -> str | None:
        missing = [key for key in expected if key not in actual]
        additional = [key for key in actual if key not in expected]
        if missing or additional:
            text = (
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {missing}\n"
                f"Additional keys in the actual mapping: {additional}"
            )
            return _located(text, path)
        return self._items(((key, (actual[key], expected[key])) for key in expected), path)

    def _items(self, items: Any, path: tuple[Any, ...]) -> str | None:
        for key, (actual, expected) in items:
            if (text := self.compare(actual, expected, (*path, key))) is not None:
                return text
        return None

    def _leaves(self, actual: object, expected: object) -> str | None:
        if actual is None or expected is None:
            if actual is expected:
                return None
            return f"None mismatch: {actual} is not {expected}"
        if isinstance(actual, bool) and isinstance(expected, bool):
            return None if actual is expected else f"Booleans mismatch: {actual} is not {expected}"
        if isinstance(actual, _NUMBERS) and isinstance(expected, _NUMBERS):
            return self._numbers(actual, expected)
        return self._tensors(*self._as_tensors(actual, expected))

    def _as_tensors(self, actual: object, expected: object) -> tuple[fb.Tensor, fb.Tensor]:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if isinstance(actual, fb.Tensor) and isinstance(expected, fb.Tensor):
            related = True
        if not self.allow_subclasses:
            related = type(actual) is type(expected)
        if related and isinstance(actual, fb.Tensor) and isinstance(expected, fb.Tensor):
            return actual, expected
        if related and hasattr(actual, "__array__") and hasattr(expected, "__array__"):
            return fb.as_tensor(actual), fb.as_tensor(expected)
        raise TypeError(
            f"assert_close: cannot compare {type(actual)} with {type(expected)}; expected two "
            "tensors, two arrays of one type, two numbers, or containers of them"
        )

    def _numbers(self, actual: object, expected: object) -> str | None:
        if self.attributes["dtype"] and type(actual) is not type(expected):
            return f"The (d)types do not match: {type(actual)} != {type(expected)}."
        inexact = isinstance(actual, (float, complex)) or isinstance(expected, (float, complex))
        rtol, atol = self._limits(D.float64 if inexact else D.int64)
        if _close(actual, expected, rtol, atol, self.equal_nan):
            return None
        return _scalar_text(actual, expected, rtol, atol)

    def _tensors(self, actual: fb.Tensor, expected: fb.Tensor) -> str | None:
        facts = {"shape": True, **self.attributes}
        for name, wanted in facts.items():
            method = name.endswith("()")
            a, b = (getattr(t, name.removesuffix("()")) for t in (actual, expected))
            a, b = (a(), b()) if wanted and method else (a, b)
            if wanted and a != b:
                return f"The values for attribute {name!r} do not match: {a} != {b}."
        if actual.is_meta or expected.is_meta:
            return None
        rtol, atol = self._limits(actual.dtype, expected.dtype)
        a, b = (_flat(t) for t in (actual, expected))
        wrong = [
            i
            for i, (x, y) in enumerate(zip(a, b, strict=True))
            if not _close(x, y, rtol, atol, self.equal_nan)
        ]
        if not wrong:
            return None
        if not expected.shape:
            return _scalar_text(a[0], b[0], rtol, atol)
        return _tensor_text(a, b, wrong, tuple(expected.shape), rtol, atol)

    def _limits(self, *dtypes: DType) -> tuple[float, float]:
        if self.tolerances is not None:
            return self.tolerances
        found = [_DEFAULTS.get(d.to_real(), (0.0, 0.0)) for d in dtypes]
        return max(r for r, _ in found), max(a for _, a in found)


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _flat(t: fb.Tensor) -> list[Any]:
    values = t.detach().reshape(-1).tolist()
    return [int(v) for v in values] if t.dtype is D.bool_ else values


def _close(a: Any, b: Any, rtol: float, atol: float, equal_nan: bool) -> bool:
    if a == b:
        return True
    if cmath.isnan(a) or cmath.isnan(b):
        return equal_nan and cmath.isnan(a) and cmath.isnan(b)
    return cmath.isfinite(a) and cmath.isfinite(b) and abs(a - b) <= atol + rtol * abs(b)


def _relative(difference: float, expected: Any) -> float:
    size = abs(expected)
    if size == 0:
        return float("inf") if difference else 0.0
    return difference / size if size != float("inf") else float("nan")


def _allowed(limit: float, exact: bool) -> str:
    return "" if exact else f" (up to {limit or 0} allowed)"


def _scalar_text(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    exact = rtol == atol == 0
    difference = abs(actual - expected)
    return (
        f"Scalars are not {'equal' if exact else 'close'}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{_allowed(atol, exact)}\n"
        f"Relative difference: {_relative(difference, expected)}{_allowed(rtol, exact)}"
    )


def _tensor_text(
    actual: list[Any],
    expected: list[Any],
    wrong: list[int],
    shape: tuple[int, ...],
    rtol: float,
    atol: float,
) -> str:
    exact = rtol == atol == 0
    absolute = {i: abs(actual[i] - expected[i]) for i in wrong}
    relative = {i: _relative(absolute[i], expected[i]) for i in wrong}
    lines = [
        f"Tensor-likes are not {'equal' if exact else 'close'}!\n",
        f"Mismatched elements: {len(wrong)} / {len(actual)} ({len(wrong) / len(actual):.1%})",
    ]
    for kind, found, limit in (("absolute", absolute, atol), ("relative", relative, rtol)):
        worst = max(wrong, key=lambda i: math.inf if math.isnan(found[i]) else found[i])
        lines.append(
            f"Greatest {kind} difference: {found[worst]} at index {_position(worst, shape)}"
            f"{_allowed(limit, exact)}"
        )
    return "\n".join(lines)


def _position(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    found = []
    for n in reversed(shape):
        flat, i = divmod(flat, n)
        found.append(i)
    return tuple(reversed(found))


def _located(text: str, path: tuple[Any, ...]) -> str:
    if not path:
        return text
    return f"{text}\n\nThe failure occurred for item {''.join(f'[{key!r}]' for key in path)}"
