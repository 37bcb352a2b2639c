"""Kernels of device ``jax``; each is traceable, unless its result's shape depends on values.

XLA compiles for every shape, so what takes several steps is compiled as one program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from flambeau_jax.backend import TO_JAX

Array = jax.Array

SAME = (
    "exp expm1 log log1p sin cos tan sinh cosh tanh sqrt reciprocal abs isfinite add maximum "
    "minimum bitwise_and bitwise_or bitwise_xor where flip"
)
OTHER = {
    "neg": "negative",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "atan2": "arctan2",
    "bitwise_not": "invert",
    "sub": "subtract",
    "mul": "multiply",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "cat": "concatenate",
    "permute": "transpose",
    "view": "reshape",
    "expand": "broadcast_to",
    "diagonal": "diagonal",
    "clone": "copy",
}
ROUNDING = {"floor": jnp.floor, "ceil": jnp.ceil, "trunc": jnp.trunc, "round": jnp.rint}
DIVISION = {"remainder": jnp.remainder, "fmod": jnp.fmod, "floor_divide": jnp.floor_divide}
EXTREMA = {"amax": jnp.max, "amin": jnp.min, "all": jnp.all, "any": jnp.any}


@partial(jax.jit, static_argnums=1)
def cast(a: Array, dtype: Any) -> Array:
    """C's conversion; a complex number loses its imaginary part."""
    kind = TO_JAX[dtype]
    return (a.real if a.dtype.kind == "c" and kind.kind not in "cb" else a).astype(kind)


@jax.jit
def sign(a: Array) -> Array:
    """-1, 0 or 1; 0 for NaN."""
    return jnp.where(a == a, jnp.sign(a), jnp.zeros_like(a))


@jax.jit
def power(a: Array, b: Array) -> Array:
    """a to the b; of integers to negative powers, only those of 1 and -1 are not 0."""
    if a.dtype.kind not in "iu":
        return jnp.power(a, b)
    whole = _whole_power(a, jnp.where(b < 0, b % 2, b))
    return jnp.where((b < 0) & (abs(a) != 1), 0, whole).astype(a.dtype)


def _whole_power(a: Array, b: Array) -> Array:
    """By repeated squaring; JAX's own stops at exponents of six bits."""
    result = jnp.ones(jnp.broadcast_shapes(a.shape, b.shape), a.dtype)
    for bit in range(8 * a.dtype.itemsize):
        result = jnp.where((b >> bit) & 1 == 1, result * a, result)
        a = a * a
    return result


def rounded(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Integers are whole already."""
    return lambda a: a if a.dtype.kind in "iub" else function(a)


def divided(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """Integers are not divided by zero; asking is what keeps this from being traced."""
    quotient = in_float32(function)

    def kernel(a: Array, b: Array) -> Array:
        if b.dtype.kind in "iu" and not bool(b.all()):
            raise ZeroDivisionError("integer division by zero")
        return quotient(a, b)

    return kernel


def in_float32(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """XLA multiplies by the reciprocal of b, which float16 may not hold."""

    @jax.jit
    def kernel(a: Array, b: Array) -> Array:
        if b.dtype == np.float16:
            return function(a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
        return function(a, b)

    return kernel


def reduced(function: Callable[..., Array]) -> Callable[..., Array]:
    """One number of those along `dims`."""
    return lambda a, dims, keepdim: function(a, axis=tuple(dims), keepdims=keepdim)


def kept(function: Callable[..., Array]) -> Callable[..., Array]:
    """The same in the dtype of `a`; of bools, whether the number is not 0."""

    @partial(jax.jit, static_argnums=(1, 2))
    def kernel(a: Array, dims: tuple[int, ...], keepdim: bool) -> Array:
        return function(a, axis=tuple(dims), keepdims=keepdim, dtype=_numeric(a)).astype(a.dtype)

    return kernel


def scanned(function: Callable[..., Array]) -> Callable[[Array, int], Array]:
    """The same for all beginnings along `dim`."""

    @partial(jax.jit, static_argnums=1)
    def kernel(a: Array, dim: int) -> Array:
        found = function(jnp.atleast_1d(a), axis=dim, dtype=_numeric(a))
        return found.astype(a.dtype).reshape(a.shape)

    return kernel


def _numeric(a: Array) -> Any:
    return np.dtype(np.int64) if a.dtype == np.bool_ else a.dtype


def place(function: Callable[..., Array]) -> Callable[..., Array]:
    """Where along `dim` the extremum is."""

    @partial(jax.jit, static_argnums=(1, 2))
    def kernel(a: Array, dim: int, keepdim: bool) -> Array:
        if not a.ndim:
            return jnp.zeros((), np.int64)
        return function(a, axis=dim, keepdims=keepdim)

    return kernel


def take(a: Array, items: Sequence[int | slice | None]) -> Array:
    """The window of a view; one program serves every position of a window of one form."""
    lengths, ranges, shape = iter(a.shape), [], []
    named = sum(item is not None for item in items)
    for item in (*items, *[slice(None)] * (a.ndim - named)):
        if item is None:
            shape.append(1)
        elif isinstance(item, int):
            ranges.append(range(next(lengths))[item : item + 1])
        else:
            ranges.append(range(next(lengths))[item])
            shape.append(len(ranges[-1]))
    return _window(
        a,
        tuple([r.start if r else 0 for r in ranges]),
        tuple([r.step for r in ranges]),
        tuple([len(r) for r in ranges]),
        tuple(shape),
    )


@partial(jax.jit, static_argnums=(2, 3, 4))
def _window(
    a: Array, starts: Any, steps: tuple[int, ...], sizes: tuple[int, ...], shape: tuple[int, ...]
) -> Array:
    spans = [max((n - 1) * step + 1, 0) for n, step in zip(sizes, steps, strict=True)]
    window = jax.lax.dynamic_slice(a, starts, spans)
    return jax.lax.slice(window, [0] * a.ndim, spans, steps).reshape(shape)


def nonzero(a: Array) -> Array:
    """Where the elements are that are not 0; their number is the shape of the result."""
    return _places(a, int(_count(a)))


_count = jax.jit(jnp.count_nonzero)


@partial(jax.jit, static_argnums=1)
def _places(a: Array, count: int) -> Array:
    return jnp.argwhere(a, size=count)


def key(indices: Sequence[Array | None]) -> tuple[Any, ...]:
    """JAX's index for flambeau's, where None stands for a whole dimension."""
    return tuple([slice(None) if i is None else i for i in indices])


def along(dim: int, index: Array) -> tuple[Any, ...]:
    """JAX's index of the elements that `index` names along `dim`."""
    found: list[Any] = list(np.indices(index.shape, sparse=True))
    found[dim : dim + 1] = [index] if index.ndim else []
    return tuple(found)


def put(a: Array, where: tuple[Any, ...], values: Array, accumulate: bool) -> Array:
    """A copy of `a` with `values` there; repeated places keep the last, or all are added."""
    if not accumulate:
        return a.at[where].set(values)
    if a.dtype == np.bool_:
        return a.at[where].max(values)
    return a.at[where].add(values)


@jax.jit
def index(a: Array, indices: Sequence[Array | None]) -> Array:
    """The elements at flambeau's index."""
    return a[key(indices)]


@partial(jax.jit, static_argnums=1)
def gather(a: Array, dim: int, index: Array) -> Array:
    """The elements that `index` names along `dim`."""
    return a[along(dim, index)]


@partial(jax.jit, static_argnums=3)
def index_put(a: Array, indices: Any, values: Array, accumulate: bool) -> Array:
    """`put` at flambeau's index."""
    return put(a, key(indices), values, accumulate)


@partial(jax.jit, static_argnums=(1, 4))
def scatter(a: Array, dim: int, index: Array, src: Array, accumulate: bool = False) -> Array:
    """A copy of `a` with elements of `src` where `index` says."""
    corner = src[tuple([slice(n) for n in index.shape])]
    return put(a, along(dim, index), corner, accumulate)


@partial(jax.jit, static_argnums=(1, 2, 3))
def sort(a: Array, dim: int, descending: bool, stable: bool) -> tuple[Array, Array]:
    """The order along `dim`, and where each came from; equal elements keep their order."""
    rows = jnp.moveaxis(jnp.atleast_1d(a), dim, -1)
    step = -1 if descending else 1  # backwards twice
    order = jnp.argsort(rows[..., ::step], axis=-1, stable=True)[..., ::step]
    order = rows.shape[-1] - 1 - order if descending else order
    values = jnp.take_along_axis(rows, order, -1)
    first, second = (jnp.moveaxis(x, -1, dim).reshape(a.shape) for x in (values, order))
    return first, second


def full(shape: tuple[int, ...], value: Any, dtype: Any) -> Array:
    """`value` everywhere."""
    if not isinstance(value, jax.core.Tracer):  # which is a number of a compiled plan
        value = np.asarray(value)
    return jnp.full(tuple(shape), value.astype(TO_JAX[dtype]))


@partial(jax.jit, static_argnums=(2, 3))
def arange(start: Any, step: Any, length: int, dtype: Any) -> Array:
    """start + step·i."""
    return (start + step * jnp.arange(length)).astype(TO_JAX[dtype])


def matmul(a: Array, b: Array) -> Array:
    """The matrix product, at full precision where the hardware has a choice."""
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)


KERNELS: dict[str, Callable[..., Any]] = {
    **{name: getattr(jnp, name) for name in SAME.split()},
    **{ours: getattr(jnp, theirs) for ours, theirs in OTHER.items()},
    **{name: rounded(function) for name, function in ROUNDING.items()},
    **{name: divided(function) for name, function in DIVISION.items()},
    **{name: reduced(function) for name, function in EXTREMA.items()},
    "cast": cast,
    "div": in_float32(jnp.true_divide),
    "sign": sign,
    "pow": power,
    "rsqrt": jax.jit(lambda a: 1 / jnp.sqrt(a)),
    "erf": jax.scipy.special.erf,
    "sum": kept(jnp.sum),
    "prod": kept(jnp.prod),
    "argmax": place(jnp.argmax),
    "argmin": place(jnp.argmin),
    "cumsum": scanned(jnp.cumsum),
    "cumprod": scanned(jnp.cumprod),
    "slice": take,
    "nonzero": nonzero,
    "index": index,
    "index_put": index_put,
    "gather": gather,
    "scatter": scatter,
    "scatter_add": lambda a, dim, index, src: scatter(a, dim, index, src, True),
    "sort": sort,
    "full": full,
    "arange": arange,
    "matmul": matmul,
}
