"""Arguments of convolutions: their forms, and what is refused."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from flambeau._dispatch.arguments import need_number, need_tensor
from flambeau._tensor.tensor import Tensor
from flambeau.ops.spatial.image_windows import Sizes


def sizes(value: Any, count: int, name: str) -> tuple[int, ...]:
    """One value per dimension from a number, a list of one, or a list of all.

    Raises:
        TypeError: a value is no whole number.
        RuntimeError: a list of another length.
    """
    if type(value) is int:
        return (value,) * count
    given = value if isinstance(value, (tuple, list)) else (value,)
    try:
        values = tuple([operator.index(each) for each in given])
    except TypeError:
        bad = next((x for x in given if not hasattr(x, "__index__")), given[0])
        raise TypeError(
            f"argument {name!r} must be a tuple of ints, got {type(bad).__name__}"
        ) from None
    if len(values) not in (1, count):
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {count} values to match "
            f"the convolution dimensions, but got {name}={list(values)}"
        )
    return values if len(values) == count else values * count


Geometry = tuple[Sizes, Sizes, Sizes, Sizes]
_settled: dict[Any, Geometry] = {}
_KEPT = 512


def known(
    count: int, x: Tensor, w: Tensor, bias: Tensor | None, *settings: object
) -> Geometry | None:
    """What was found for such shapes and settings before, if nothing else is to be looked at.

    A network convolves by the same few: looking at them takes as long as a small product.
    """
    if w.dtype is not x.dtype or (bias is not None and getattr(bias, "dtype", None) is not x.dtype):
        return None
    key = _key(count, x, w, bias, settings)
    return None if key is None else _settled.get(key)


def keep(
    found: Geometry, count: int, x: Tensor, w: Tensor, bias: Tensor | None, *settings: object
) -> None:
    """Remember what was found, for `known`."""
    if (key := _key(count, x, w, bias, settings)) is not None:
        if len(_settled) >= _KEPT:
            _settled.clear()
        _settled[key] = found


def _key(
    count: int, x: Tensor, w: Tensor, bias: Tensor | None, settings: Any
) -> tuple[Any, ...] | None:
    for value in settings:  # a float equals an integer that was good
        kind = type(value)
        if (
            kind is not int
            and kind is not str
            and (kind is not tuple or {*map(type, value)} != _INT)
        ):
            return None
    shape = None if bias is None else tuple(bias._a.shape)
    return count, tuple(x._a.shape), tuple(w._a.shape), shape, settings


_INT = {int}


def named_padding(
    padding: str, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The zeros before and after each dimension that ``"same"`` or ``"valid"`` means.

    Raises:
        RuntimeError: another name, or ``"same"`` with a stride.
    """
    if padding == "valid":
        return (0,) * len(kernel), (0,) * len(kernel)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: {padding!r}; known are 'same' and 'valid'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)


def check_ranks(where: str, x: Tensor, w: Tensor, count: int) -> None:
    """Refuse an input or a weight of another rank than `count` spatial dimensions ask for."""
    if x.dim() not in (count + 1, count + 2):
        raise RuntimeError(
            f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {where}, "
            f"but got input of size: {list(x.shape)}"
        )
    if w.dim() != count + 2:
        raise RuntimeError(
            f"{where}: expected a weight of {count + 2} dimensions, got size {list(w.shape)}"
        )


def _least(numbers: Sequence[int], argument: str) -> int:
    try:
        return need_number(min(numbers), "convolution", argument)
    except TypeError:  # some cannot be compared
        for number in numbers:
            need_number(number, "convolution", argument)
        raise


def check_settings(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> None:
    """Refuse differing dtypes, and settings that no convolution has."""
    for name, other in (("weight", w), ("bias", bias)):
        if other is not None and need_tensor(other, "convolution", name).dtype is not x.dtype:
            raise RuntimeError(
                f"Input type ({x.dtype}) and {name} type ({other.dtype}) should be the same"
            )
    if _least(padding, "padding") < 0:
        raise RuntimeError(f"negative padding is not supported, got {list(padding)}")
    if _least(stride, "stride") <= 0:
        raise RuntimeError(f"non-positive stride is not supported, got {list(stride)}")
    if _least(dilation, "dilation") <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")
    try:
        groups = operator.index(groups)
    except TypeError:
        raise TypeError(f"argument 'groups' must be int, got {type(groups).__name__}") from None
    if groups <= 0:
        raise RuntimeError(f"non-positive groups is not supported, got {groups}")


def check_bias(w: Tensor, bias: Tensor | None, features: int, given: str) -> None:
    """Refuse a bias that is not one number per feature."""
    if bias is not None and tuple(bias._a.shape) != (features,):
        raise RuntimeError(
            f"{given}weight of size {list(w.shape)}, expected bias to be 1-dimensional with "
            f"{features} elements, but got bias of size {list(bias.shape)} instead"
        )


def check_channels(given: Sequence[int], filters: Sequence[int], groups: int, count: int) -> None:
    """Refuse a weight whose channels or features do not fit the input and the groups."""
    if filters[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, "
            f"but got weight of size {list(filters)} instead"
        )
    if filters[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size {list(filters)} instead"
        )
    channels = given[-count - 1]
    if channels != filters[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(filters)}, expected input{list(given)} "
            f"to have {filters[1] * groups} channels, but got {channels} channels instead"
        )


def check_room(
    size: Sequence[int],
    kernel: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
    dilation: Sequence[int],
) -> None:
    """Refuse a kernel that reaches beyond the padded input."""
    for n, k, b, a, d in zip(size, kernel, before, after, dilation, strict=True):
        if n + b + a <= d * (k - 1):
            break
    else:
        return
    padded = [n + a + b for n, a, b in zip(size, before, after, strict=True)]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    raise RuntimeError(
        f"Calculated padded input size per channel: ({times(padded)}). Kernel size: "
        f"({times(reach)}). Kernel size can't be greater than actual input size"
    )


def lifted(stride: Sizes, dilation: Sizes, *paddings: Sizes) -> tuple[Sizes, ...]:
    """The settings of a signal for an image of height 1."""
    return (1, *stride), (1, *dilation), *((0, *padding) for padding in paddings)


def times(sizes: Sequence[int]) -> str:
    """Sizes as messages show them."""
    return " x ".join(map(str, sizes))
