"""Classes with ``__torch_function__`` that programs for PyTorch make."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Iterator
from typing import Any

from flambeau._tensor.overrides import intercept_functions


@contextlib.contextmanager
def classes_noticed() -> Iterator[None]:
    """A block in which functions look for ``__torch_function__`` once any class has it.

    Subclasses of Tensor are noticed where they are made; libraries have others: lazy matrices,
    expressions, proxies.
    """
    build = builtins.__build_class__

    def noticing(*args: Any, **kwargs: Any) -> Any:
        made = build(*args, **kwargs)
        if isinstance(made, type) and "__torch_function__" in vars(made):
            intercept_functions()
        return made

    builtins.__build_class__ = noticing
    try:
        yield
    finally:
        if builtins.__build_class__ is noticing:
            builtins.__build_class__ = build
