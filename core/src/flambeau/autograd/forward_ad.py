"""Forward mode: tensors that carry a derivative in one direction through a program.

The machinery is that of `flambeau.func.jvp`.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import NamedTuple

from flambeau._tensor.tensor import Tensor
from flambeau._transforms.duals import DualLevel
from flambeau._transforms.levels import now

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class _Block(DualLevel):
    """The level of a block of a program, in which new tensors are ordinary ones."""

    makes = False


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, None where it does not depend on a dual tensor."""

    primal: Tensor
    tangent: Tensor | None


def _current() -> _Block | None:
    return next((level for level in reversed(now.stack) if isinstance(level, _Block)), None)


def __getattr__(name: str) -> int:
    if name == "_current_level":  # by which libraries ask whether there is one
        return -1 if _current() is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level() -> int:
    """Begin a level of forward mode, and give its number, which is 0.

    Raises:
        RuntimeError: there is one; they do not nest (`flambeau.func.jvp` does).
    """
    if _current() is not None:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment; flambeau.func.jvp nests"
        )
    _Block().__enter__()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level of forward mode.

    Raises:
        RuntimeError: there is none, or not of that number.
    """
    current = _current()
    if current is None or level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This "
            "is not supported."
        )
    current.__exit__(None, None, None)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """`tensor` with a tangent of its shape, which the ops of this level follow.

    Both stay differentiable backwards.

    Raises:
        RuntimeError: no level has begun, or the shapes differ.
        ValueError: one is not of floating or complex numbers.

    >>> import flambeau as fb
    >>> from flambeau.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(fb.tensor(3.0), fb.tensor(1.0))
    ...     forward_ad.unpack_dual(x * x)
    UnpackedDualTensor(primal=tensor(9.), tangent=tensor(6.))
    """
    current = _current()
    if current is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for name, given in (("primal", tensor), ("tangent", tangent)):
        if not given.dtype.fp:
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {given.dtype}"
            )
    return current.dual(tensor, tangent)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor; without a tangent it is itself and None."""
    current = _current()
    if current is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*current.parts(tensor))


class dual_level(ContextDecorator):  # noqa: N801 - PyTorch's name
    """Context manager and decorator: a level of forward mode.

    Dual tensors lose their tangents at its end: unpack what is wanted before.
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()
