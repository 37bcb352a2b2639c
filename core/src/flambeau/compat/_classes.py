"""Classes with ``__torch_function__`` that programs for PyTorch make, and where Tensor is from."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flambeau._tensor.attributes import ShowsAttributes
from flambeau._tensor.overrides import intercept_functions
from flambeau._tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


@contextlib.contextmanager
def classes_noticed() -> Iterator[None]:
    """A block in which functions look for ``__torch_function__`` once any class has it.

    Subclasses of Tensor are noticed where they are made; libraries have others: lazy matrices,
    expressions, proxies.
    """
    build = builtins.__build_class__

    def noticing(body: Callable[..., Any], name: str, /, *bases: object, **kwargs: object) -> type:
        made = build(body, name, *_showing(bases), **kwargs)
        if isinstance(made, type) and "__torch_function__" in vars(made):
            intercept_functions()
        return made

    builtins.__build_class__ = noticing
    try:
        yield
    finally:
        if builtins.__build_class__ is noticing:
            builtins.__build_class__ = build


def _showing(bases: tuple[Any, ...]) -> tuple[Any, ...]:
    """The bases of a class, with one before them if they hide the ``__dict__`` of tensors."""
    tensors = [i for i, b in enumerate(bases) if isinstance(b, type) and issubclass(b, Tensor)]
    if tensors and any(
        hasattr(b, "__dictoffset__") and b.__dictoffset__ for b in bases[: tensors[0]]
    ):
        return (ShowsAttributes, *bases)
    return bases


@contextlib.contextmanager
def classes_of_torch() -> Iterator[None]:
    """A block in which tensors are, by their class, from ``torch``.

    Libraries that take arrays of several frameworks ask ``type(x).__module__`` first, in order not
    to import all of them.
    """
    before = Tensor.__module__
    Tensor.__module__ = "torch"
    try:
        yield
    finally:
        Tensor.__module__ = before
