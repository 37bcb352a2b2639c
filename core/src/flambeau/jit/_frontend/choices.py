"""Functions of PyTorch's Python that are one op or another, as their arguments say."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.jit import _decorators
from flambeau.jit import _types as T
from flambeau.jit._frontend.match import call_op, unpack
from flambeau.jit._frontend.values import Sugar, constant_of
from flambeau.jit._graph import Value
from flambeau.jit._parts import compiler

if TYPE_CHECKING:
    import ast

    from flambeau._types.dtype import dtype as DType
    from flambeau.jit._frontend.state import Compilation


class Chosen(Sugar):
    """A function whose op is chosen where it is called."""

    what = "function"

    def __init__(self, name: str) -> None:
        self.name = name

    def call(
        self, c: Compilation, node: Any, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        return choose(c, self.name, args, kwargs, node)


def scripted(function: Callable[..., Any]) -> Chosen | None:
    """What a public function is in a program, or None for those that are one op."""
    name = getattr(function, "__name__", "")
    if name not in CHOICES or _decorators.plain(getattr(fb, name)) is not function:
        return None
    return Chosen(name)


def choose(
    c: Compilation,
    name: str,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    at: ast.AST | None = None,
) -> Value:
    """Add the op that a call of one of these functions means.

    Raises:
        CompilationError: the arguments do not fit.
        TypeError: they are not those of the function.
    """
    function = CHOICES[name]
    given = dict(kwargs)
    if given.pop("out", None) is not None:
        c.fail(at, f"{name}() has no out= here")
    given = inspect.signature(function).bind(_Call(c, at), *args, **given).arguments
    return function(**given)


class _Call:
    """Where an op is added."""

    def __init__(self, c: Compilation, at: ast.AST | None) -> None:
        self.c, self.at = c, at

    def value(self, what: object) -> Value:
        """A value, of an object of Python if it is none yet."""
        return what if isinstance(what, Value) else constant_of(self.c, self.at, what)

    def op(self, name: str, *args: object, **kwargs: object) -> Value:
        """Add an op."""
        named = {key: self.value(each) for key, each in kwargs.items()}
        return call_op(
            self.c, f"aten::{name}", [self.value(each) for each in args], named, at=self.at
        )

    def flag(self, what: bool | Value, name: str) -> bool:
        """A switch, which has to be a constant: it says what is returned."""
        static = self.value(what).toIValue()
        if not isinstance(static, bool):
            self.c.fail(self.at, f"{name} has to be a constant")
        return static

    def ints(self, values: Sequence[int]) -> Value:
        """A list of integers."""
        parts = [self.c.constant(each, T.INT, self.at) for each in values]
        return self.c.emit("prim::ListConstruct", parts, T.list_of(T.INT), at=self.at)

    def picked(self, value: Value, wanted: Sequence[bool]) -> Value:
        """Those of the members of a tuple that a call returns: one, or a tuple of several."""
        parts = unpack(self.c, value)
        kept = [part for part, each in zip(parts, wanted, strict=True) if each]
        if len(kept) == 1:
            return kept[0]
        kind = T.tuple_of(*(part.type() for part in kept))
        return self.c.emit("prim::TupleConstruct", kept, kind, at=self.at)


def _is_none(what: object | None) -> bool:
    return what is None or (isinstance(what, Value) and what.type() is T.NONE)


def _unique(
    c: _Call,
    input: Value,
    sorted: Value | bool = True,
    return_inverse: Value | bool = False,
    return_counts: Value | bool = False,
    dim: Value | int | None = None,
) -> Value:
    inverse, counts = c.flag(return_inverse, "return_inverse"), c.flag(return_counts, "counts")
    if _is_none(dim):
        found = c.op("_unique2", input, sorted, return_inverse, return_counts)
    else:
        found = c.op("unique_dim", input, dim, sorted, return_inverse, return_counts)
    return c.picked(found, (True, inverse, counts))


def _unique_consecutive(
    c: _Call,
    input: Value,
    return_inverse: Value | bool = False,
    return_counts: Value | bool = False,
    dim: Value | int | None = None,
) -> Value:
    inverse, counts = c.flag(return_inverse, "return_inverse"), c.flag(return_counts, "counts")
    found = c.op("unique_consecutive", input, return_inverse, return_counts, dim)
    return c.picked(found, (True, inverse, counts))


def _norm(
    c: _Call,
    input: Value,
    p: object = "fro",
    dim: Value | int | None = None,
    keepdim: Value | bool = False,
    dtype: DType | None = None,
) -> Value:
    kind = c.value(p).toIValue() if c.value(p).is_constant() else None
    if kind == "nuc":
        if not _is_none(dtype):
            c.c.fail(c.at, "norm() of p='nuc' has no dtype here")
        dims = () if _is_none(dim) else (dim,)
        return c.op("nuclear_norm", input, *dims, keepdim)
    power = 2 if kind == "fro" else p
    if _is_none(dim):
        if not (c.value(keepdim).is_constant() and c.value(keepdim).toIValue() is False):
            dim = c.ints(())
        elif _is_none(dtype):
            return c.op("norm", input, power)
        else:
            return c.op("norm", input, power, dtype=dtype)
    if _is_none(dtype):
        return c.op("norm", input, power, dim, keepdim)
    return c.op("norm", input, power, dim, keepdim, dtype=dtype)


def _tensordot(c: _Call, a: object, b: object, dims: object = 2) -> Value:
    dims = c.value(dims)
    if dims.type() is T.INT:
        count = dims.toIValue()
        if not isinstance(count, int):
            c.c.fail(c.at, "dims of tensordot has to be a constant, or two lists")
        if count < 0:
            c.c.fail(c.at, f"tensordot expects dims >= 0, but got dims={count}")
        return c.op("tensordot", a, b, c.ints(range(-count, 0)), c.ints(range(count)))
    if dims.type().kind == "Tuple":
        pairs: Sequence[Value] = unpack(c.c, dims)
    else:
        pairs = [c.op("__getitem__", dims, 0), c.op("__getitem__", dims, 1)]
    return c.op("tensordot", a, b, *pairs)


def _stft(
    c: _Call,
    input: Value,
    n_fft: Value | int,
    hop_length: Value | int | None = None,
    win_length: Value | int | None = None,
    window: Value | None = None,
    center: Value | bool = True,
    pad_mode: Value | str = "reflect",
    normalized: Value | bool = False,
    onesided: Value | bool | None = None,
    return_complex: Value | bool | None = None,
) -> Value:
    given = input, n_fft, hop_length, win_length, window
    return c.op("stft", *given, center, pad_mode, normalized, onesided, return_complex)


def _assert(c: _Call, condition: Value, message: Value | str) -> Value:
    statements = compiler.statements

    def fails() -> str:
        said = c.value(message).toIValue()
        if isinstance(said, str):
            text = c.value(f"AssertionError: {said}")
        else:
            text = c.op("add", "AssertionError: ", message)
        c.c.node("prim::RaiseException", [text, c.value(None)], at=c.at)
        return statements.RAISES

    test = compiler.conditions.truth(c.c, c.at, condition)
    statements._branches(c.c, c.at, test, lambda: statements.FALLS, fails)
    return c.value(None)


CHOICES: dict[str, Callable[..., Value]] = {
    "_assert": _assert,
    "unique": _unique,
    "unique_consecutive": _unique_consecutive,
    "norm": _norm,
    "tensordot": _tensordot,
    "stft": _stft,
}
