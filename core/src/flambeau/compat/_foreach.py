"""``torch._foreach_…``: one op on each tensor of a list, as foreign optimisers call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau as fb

_UNARY = """abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p
    log2 neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc""".split()
_BINARY = "add sub mul div pow clamp_max clamp_min maximum minimum".split()


def _lists(tensors: Sequence[fb.Tensor], *others: object) -> list[list[Any]]:
    """The arguments of each call: from lists one each, numbers and tensors for all.

    Raises:
        RuntimeError: there is no tensor, or the lists differ in length.
    """
    count = len(tensors)
    if not count:
        raise RuntimeError("Tensor list must have at least one tensor.")
    rows: list[list[Any]] = []
    for other in others:
        if not isinstance(other, list | tuple):
            rows.append([other] * count)
        elif len(other) == count:
            rows.append(list(other))
        elif other and isinstance(other[0], fb.Tensor):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {count} and {len(other)}"
            )
        else:
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
    return rows


def _unary(name: str) -> Callable[..., Any]:
    def each(self: Sequence[fb.Tensor]) -> tuple[fb.Tensor, ...]:
        _lists(self)
        return tuple(getattr(t, name)() for t in self)

    return each


def _binary(name: str) -> Callable[..., Any]:
    def one(t: fb.Tensor, other: Any, options: dict[str, Any]) -> fb.Tensor:
        if name in _CLAMPS:
            return t.clamp(**{_CLAMPS[name]: other})
        return getattr(t, name)(other, **options)

    def each(self: Any, other: Any, *, alpha: object = 1) -> tuple[fb.Tensor, ...]:
        options = {} if isinstance(alpha, int) and alpha == 1 else {"alpha": alpha}
        if not isinstance(self, list | tuple):  # pow of a number
            return tuple(fb.pow(self, each) for each in other)
        (others,) = _lists(self, other)
        return tuple(one(t, o, options) for t, o in zip(self, others, strict=True))

    return each


_CLAMPS = {"clamp_max": "max", "minimum": "max", "clamp_min": "min", "maximum": "min"}


def _pointwise(name: str) -> Callable[..., Any]:
    def each(
        self: Sequence[fb.Tensor],
        tensor1: Sequence[fb.Tensor],
        tensor2: Sequence[fb.Tensor],
        value: object = 1,
        *,
        scalars: object = None,
    ) -> tuple[fb.Tensor, ...]:
        value = value if scalars is None else scalars
        if isinstance(value, fb.Tensor):
            value = value.tolist()
        first, second, values = _lists(self, tensor1, tensor2, value)
        rows = zip(self, first, second, values, strict=True)
        return tuple(getattr(t, name)(a, b, value=v) for t, a, b, v in rows)

    return each


def _lerp(
    self: Sequence[fb.Tensor], tensors1: Sequence[fb.Tensor], weight: object = None, **named: object
) -> tuple[fb.Tensor, ...]:
    weight = next(iter(named.values())) if weight is None else weight
    ends, weights = _lists(self, tensors1, weight)
    return tuple(t.lerp(e, w) for t, e, w in zip(self, ends, weights, strict=True))


def _norm(
    self: Sequence[fb.Tensor], ord: Any = 2, dtype: fb.dtype | None = None
) -> tuple[fb.Tensor, ...]:
    _lists(self)
    return tuple(fb.linalg.vector_norm(t, ord, dtype=dtype) for t in self)


def _powsum(
    self: Sequence[fb.Tensor], ord: Any = 2, dtype: fb.dtype | None = None
) -> tuple[fb.Tensor, ...]:
    _lists(self)
    return tuple(t.abs().pow(ord).sum(dtype=dtype) for t in self)


def _max(self: Sequence[fb.Tensor]) -> tuple[fb.Tensor, ...]:
    _lists(self)
    return tuple(t.max() for t in self)


def _mm(self: Sequence[fb.Tensor], mat2: Sequence[fb.Tensor]) -> tuple[fb.Tensor, ...]:
    (others,) = _lists(self, mat2)
    return tuple(t.mm(other) for t, other in zip(self, others, strict=True))


def _clone(self: Sequence[fb.Tensor], **options: Any) -> tuple[fb.Tensor, ...]:
    _lists(self)
    return tuple(t.clone(**options) for t in self)


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def each(self: list[fb.Tensor], *args: object, **kwargs: object) -> list[fb.Tensor]:
        for t, made in zip(self, function(self, *args, **kwargs), strict=True):
            if fb.promote_types(t.dtype, made.dtype) != t.dtype and not fb.can_cast(
                made.dtype, t.dtype
            ):
                raise RuntimeError(
                    f"result type {made.dtype} can't be cast to the desired output type {t.dtype}"
                )
            t.copy_(made)
        return self

    return each


def _copy(
    self: list[fb.Tensor], src: Sequence[fb.Tensor], non_blocking: bool = False
) -> list[fb.Tensor]:
    (sources,) = _lists(self, src)
    for t, source in zip(self, sources, strict=True):
        t.copy_(source, non_blocking=non_blocking)
    return self


def _zero(self: list[fb.Tensor]) -> list[fb.Tensor]:
    _lists(self)
    for t in self:
        t.zero_()
    return self


def _made() -> dict[str, Callable[..., Any]]:
    fresh = {
        **{name: _unary(name) for name in _UNARY},
        **{name: _binary(name) for name in _BINARY},
        "addcdiv": _pointwise("addcdiv"),
        "addcmul": _pointwise("addcmul"),
        "lerp": _lerp,
    }
    found: dict[str, Callable[..., Any]] = {
        **fresh,
        **{f"{name}_": _in_place(function) for name, function in fresh.items()},
        "clone": _clone,
        "copy_": _copy,
        "max": _max,
        "mm": _mm,
        "norm": _norm,
        "powsum": _powsum,
        "zero_": _zero,
    }
    for name, function in found.items():
        function.__name__ = function.__qualname__ = f"_foreach_{name}"
    return {f"_foreach_{name}": function for name, function in found.items()}


FOREACH = _made()
"""The functions by their names in ``torch``."""
