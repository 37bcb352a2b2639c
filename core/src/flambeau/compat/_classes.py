"""Classes with ``__torch_function__`` that programs for PyTorch make, and where Tensor is from."""

from __future__ import annotations

import builtins
import contextlib
import sys
from collections.abc import Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any

from flambeau._tensor.overrides import intercept_functions
from flambeau._tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


class _Noticing:
    """What makes classes: Python's own function, found after a look at the class statement.

    No frame stands between the statement and the class's body.  Decorators and metaclasses look
    there: for the names of the bases, for types that annotations name.
    """

    def __init__(self, build: Callable[..., Any]) -> None:
        self._build = build
        self._seen: CodeType | None = None

    @property
    def __call__(self) -> Callable[..., Any]:
        code = sys._getframe(1).f_code
        if code is not self._seen:
            self._seen = code
            if any(_wants_calls(c) for c in code.co_consts if isinstance(c, CodeType)):
                intercept_functions()
        return self._build


def _wants_calls(body: CodeType) -> bool:
    """Whether this is the body of a class with ``__torch_function__``."""
    return "__torch_function__" in body.co_names and "__qualname__" in body.co_names


@contextlib.contextmanager
def classes_noticed() -> Iterator[None]:
    """A block in which functions look for ``__torch_function__`` once any class has it.

    Subclasses of Tensor are noticed where they are made; libraries have others: lazy matrices,
    expressions, proxies.
    """
    build = builtins.__build_class__
    builtins.__build_class__ = noticing = _Noticing(build)
    try:
        yield
    finally:
        if builtins.__build_class__ is noticing:
            builtins.__build_class__ = build


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
