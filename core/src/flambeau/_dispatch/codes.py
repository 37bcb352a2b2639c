"""Functions that stay the objects they are and run other code.

Who holds a function (``from flambeau import matmul``), or calls a method that the interpreter has
cached, does not see another one under its name; its code he sees.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType
from typing import Any

stand_ins: dict[FunctionType, FunctionType] = {}
"""Functions whose code leads elsewhere, and those that do what they did."""

_PLACE = "the callee"  # a constant that is replaced by the object itself


def code_that_calls(
    code: CodeType, parameters: str, given: str, callee: Callable[..., Any]
) -> CodeType:
    """Code that a function with `code` can take: with these parameters it calls the callee.

    >>> from flambeau._dispatch.codes import code_that_calls
    >>> def f(x): return x
    >>> f.__code__ = code_that_calls(f.__code__, "*args", "args", len)
    >>> f(5, 6)
    2
    """
    plain = _caller(code.co_freevars, parameters, given)
    return plain.replace(
        co_consts=tuple(callee if c == _PLACE else c for c in plain.co_consts),
        co_name=code.co_name,
        co_filename=code.co_filename,
        co_qualname=code.co_qualname,
        co_firstlineno=code.co_firstlineno,
    )


@cache
def _caller(free: tuple[str, ...], parameters: str, given: str) -> CodeType:
    # A function takes no code with other free variables than its own: they are named, in what
    # the compiler then leaves out.
    text = (
        f"def outer({', '.join(free)}):\n"
        f"    def inner({parameters}):\n"
        f"        if 0: ({''.join(f'{n}, ' for n in free)})\n"
        f"        return {_PLACE!r}({given})\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a string is no function
        module = compile(text, "<caller>", "exec", dont_inherit=True)
    outer = next(c for c in module.co_consts if isinstance(c, CodeType))
    return next(c for c in outer.co_consts if isinstance(c, CodeType))


def twin(function: FunctionType) -> FunctionType:
    """Another function that runs what this one runs now."""
    made = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made
