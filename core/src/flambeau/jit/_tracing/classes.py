"""Classes of autograd in a trace: their gradients are their own, so each call is one node."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau.jit._tracing.numbers import NUMBERS, plain


def has_own_gradient(cls: type[Any], args: tuple[Any, ...]) -> bool:
    """Whether a trace has to keep a call of a class as a whole, because ops have other gradients.

    Some of the library's consist of what a program's functions do, which a trace has to see.  It
    cannot follow tensors in containers: such a call is taken in, too.
    """
    return not cls._of_ops and not any(_holds_tensors(each) for each in args)


def _holds_tensors(each: object) -> bool:
    if isinstance(each, dict):
        each = list(each.values())
    if not isinstance(each, (tuple, list)):
        return False
    return any(isinstance(part, fb.Tensor) or _holds_tensors(part) for part in each)


class Applied:
    """A call of a class of autograd: what changes from run to run has places, the rest is kept.

    It returns the tensors of the result alone.
    """

    def __init__(self, cls: type[Any], args: tuple[Any, ...]) -> None:
        self.places = [
            i for i, each in enumerate(args) if isinstance(each, fb.Tensor) or type(each) in NUMBERS
        ]
        self.__name__ = cls.__name__
        self._cls = cls
        self._args = [None if i in self.places else plain(each) for i, each in enumerate(args)]

    def __call__(self, *given: object) -> Any:
        args = list(self._args)
        for place, each in zip(self.places, given, strict=True):
            args[place] = each
        result = self._cls.apply(*args)
        if not isinstance(result, tuple):
            return result
        return tuple(part for part in result if isinstance(part, fb.Tensor))
