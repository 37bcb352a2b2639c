"""Functions of elements that one kernel writes into their first argument.

`x.hypot_(y)` is a dozen operations, each with memory of its own, where a device has no kernel
`hypot_`, and one pass over `x` where it has: `name_(dst, *operands, *numbers)`. Functions that are
no ops have such kernels, too. They give the bits of the formula, which is what is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import recording
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.dispatch import scalar_native, wrap
from flambeau._memory.record import is_tensor
from flambeau._types import dtype as D

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor

# What the functions take after the tensor: t, a tensor of its dtype and shape, or a number for
# all; n, a number; o, a number or None; b, any of these; m, a mask that is broadcast to it; s, a
# number as a native one.
_KINDS = {
    **dict.fromkeys(
        """neg abs exp log log1p tanh sqrt square erf sign rsqrt reciprocal floor ceil trunc round
        sigmoid relu silu hardsigmoid hardswish frac logical_not exp2""".split(),
        "",
    ),
    **dict.fromkeys("nextafter copysign hypot atan2 fmod remainder floor_divide pow".split(), "t"),
    **dict.fromkeys("eq ne lt le gt ge".split(), "t"),
    "leaky_relu": "n",
    "threshold": "nn",
    "elu": "nnn",
    "hardtanh": "nn",
    "clamp": "oo",
    "clamp_min": "t",
    "clamp_max": "t",
    "nan_to_num": "ooo",
    "lerp": "tn",
    "masked_fill": "ms",
    "addcmul": "ttn",
    "addcdiv": "ttn",
}
_KERNELS = {name: (f"{name}_", kinds) for name, kinds in _KINDS.items()}
_GREATEST = {D.float32: 3.4028234663852886e38, D.float64: 1.7976931348623157e308}


is_written_in_one = _KERNELS.__contains__
"""Whether there may be such a kernel for the function of a name."""


def kernel_in_place(
    self: Tensor, name: str, args: Sequence[Any]
) -> tuple[Callable[..., Any], list[Any]] | None:
    """The kernel that writes the function of that name into `self`, and its other arguments.

    None if the device has none, or `args` are not what it takes.
    """
    found, greatest = _KERNELS.get(name), _GREATEST.get(self.dtype)
    if found is None or greatest is None or _dispatch.modes:
        return None
    name_of_kernel, kinds = found
    if len(args) != len(kinds):
        return None
    be = self._be
    if not be.strided or (kernel := getattr(be, name_of_kernel, None)) is None:
        return None
    if not args:
        return kernel, []
    if name == "clamp" and args[0] is args[1] is None:
        return None
    if name == "clamp" and (is_tensor(args[0]) or is_tensor(args[1])):
        if any(x is self or x._st is self._st is not None for x in args if is_tensor(x)):
            return None  # which the first bound may change
        if not (hasattr(be, "clamp_min_") and hasattr(be, "clamp_max_")):
            return None
        kernel, kinds = partial(_clamp, be), "bb"
    given: list[Any] = []
    dtype, own, tensor = self.dtype, self._a.shape, _dispatch.Tensor_
    for kind, x in zip(kinds, args, strict=True):
        if type(x) is tensor and kind in "tb":
            shape = (a := x._a).shape
            if x._be is not be or x.dtype is not dtype or (shape and shape != own):
                return None
            if x._rg and recording() and x.requires_grad:
                return None
            given.append(a)
        elif (type(x) is float or type(x) is int) and kind != "m":
            if x != x or (abs(x) > greatest and abs(x) != _INFINITY):
                return None
            if type(x) is int and abs(x) >> 63:
                return None  # may be one that is refused
            given.append(float(x) if kind in "no" else scalar_native(be, x, dtype))
        elif x is None:
            if kind not in "ob":
                return None
            given.append(x)
        elif kind == "m":
            if not is_tensor(x) or x.dtype is not D.bool_ or x._be is not be:
                return None
            if (shape := x._a.shape) != own:
                lead = len(own) - len(shape)
                if lead < 0 or any(
                    n != 1 and n != m for n, m in zip(shape, own[lead:], strict=True)
                ):
                    return None
            given.append(x._a)
        elif kind in "tb" and is_tensor(x):
            shape = x._a.shape
            if x._be is not be or x.dtype is not dtype or (shape and shape != own):
                return None
            if x._rg and recording() and x.requires_grad:
                return None
            given.append(x._a)
        else:
            return None
    return kernel, given


_INFINITY = float("inf")


def _clamp(be: BoundBackend, a: Any, low: Any, high: Any) -> None:
    """Move elements into [low, high]."""
    if low is not None:
        be.clamp_min_(a, low)
    if high is not None:
        be.clamp_max_(a, high)


def in_one(name: str, x: object, *args: object) -> Tensor | None:
    """The function of that name by the kernel that would write it into `x`, or None."""
    if not is_tensor(x) or (x._rg and recording() and x.requires_grad):
        return None
    if (found := kernel_in_place(x, name, args)) is None:
        return None
    be = x._be
    if not be.backend.is_contiguous(x._a):
        return None
    kernel, given = found
    native = be.clone(x._a)
    kernel(native, *given)
    return wrap(be, native, x.dtype)
