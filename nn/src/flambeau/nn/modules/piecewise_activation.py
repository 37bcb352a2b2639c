"""Activation functions made of straight pieces, and the shrinkage functions, as layers."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.module import Module
from flambeau.overrides import warn


class Threshold(Module):
    """x where x > `threshold`, else `value`.

    >>> import flambeau as fb
    >>> fb.nn.Threshold(1.0, -3.0)(fb.tensor([0.5, 2.0]))
    tensor([-3.,  2.])
    """

    threshold: float
    value: float
    inplace: bool

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """`functional.threshold`."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        suffix = ", inplace=True" if self.inplace else ""
        return f"threshold={self.threshold}, value={self.value}{suffix}"


class Hardtanh(Module):
    """x limited to [`min_val`, `max_val`]; `min_value` and `max_value` are older names of these.

    Raises:
        ValueError: `min_val` is not below `max_val`.

    >>> import flambeau as fb
    >>> fb.nn.Hardtanh(-2, 2)(fb.tensor([-3.0, 1.0]))
    tensor([-2.,  1.])
    """

    min_val: float
    max_val: float
    inplace: bool

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None:
            _warn_renamed("min_value", "min_val")
            min_val = min_value
        if max_value is not None:
            _warn_renamed("max_value", "max_val")
            max_val = max_value
        if max_val <= min_val:
            raise ValueError(f"max_val must be larger than min_val, got {max_val} and {min_val}")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """`functional.hardtanh`."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        suffix = ", inplace=True" if self.inplace else ""
        return f"min_val={self.min_val}, max_val={self.max_val}{suffix}"


def _warn_renamed(old: str, new: str) -> None:
    warn(f"keyword argument `{old}` is deprecated and rename to `{new}`", FutureWarning)


class ReLU6(Hardtanh):
    """min(max(0, x), 6).

    >>> import flambeau as fb
    >>> fb.nn.ReLU6()(fb.tensor([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Hardsigmoid(Module):
    """relu6(x + 3) / 6.

    >>> import flambeau as fb
    >>> fb.nn.Hardsigmoid()(fb.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """`functional.hardsigmoid`."""
        return F.hardsigmoid(input, self.inplace)


class Hardswish(Module):
    """x·relu6(x + 3) / 6.

    >>> import flambeau as fb
    >>> fb.nn.Hardswish()(fb.tensor([1.0, 4.0]))
    tensor([0.6667, 4.0000])
    """

    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """`functional.hardswish`."""
        return F.hardswish(input, self.inplace)


class Hardshrink(Module):
    """x where abs(x) > `lambd`, else 0.

    >>> import flambeau as fb
    >>> fb.nn.Hardshrink()(fb.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """

    lambd: float

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """`functional.hardshrink`."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(Module):
    """x moved towards 0 by `lambd`, and 0 where abs(x) <= `lambd`.

    >>> import flambeau as fb
    >>> fb.nn.Softshrink()(fb.tensor([-2.0, 0.2]))
    tensor([-1.5000,  0.0000])
    """

    lambd: float

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """`functional.softshrink`."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Tanhshrink(Module):
    """x - tanh(x).

    >>> import flambeau as fb
    >>> fb.nn.Tanhshrink()(fb.tensor([1.0]))
    tensor([0.2384])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.tanhshrink`."""
        return F.tanhshrink(input)
