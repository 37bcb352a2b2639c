"""Ways in which a kernel may be wrong, each as a function of the right one.

A mutator says of which ops it makes a mutant that is wrong by the contract; that the kit has no
sample that shows it is no reason to leave one out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from flambeau._dispatch.bound import bind
from flambeau.testing.backend._support import draws, maker, native, native_results
from flambeau.testing.sample_corners import BITWISE, ORDERINGS, REAL_UNARY
from flambeau.testing.samples import ANY_SHAPE, DTYPES, SAMPLES, Arr, realise

Kernel = Callable[..., Any]

VIEWS = frozenset(["slice", "permute", "view", "expand", "diagonal"])
MOVED = frozenset(["cat", "flip", "index", "gather", "where", "stack", "clone", "contiguous"])
BINARY = frozenset(
    [
        *("add", "sub", "mul", "div", "pow", "maximum", "minimum", "eq", "ne", "atan2"),
        *("remainder", "fmod", "floor_divide", *ORDERINGS, *BITWISE),
    ]
)
REDUCTIONS = frozenset(["sum", "prod", "amax", "amin", "all", "any", "mean", "logsumexp", "norm2"])
PLACES = frozenset(["argmax", "argmin", "extremum"])
ALONG = frozenset(["cumsum", "cumprod", "sort", "softmax", "log_softmax", "flip", "cat", "stack"])
WRAPPING = frozenset(
    ["add", "sub", "mul", "neg", "abs", "sum", "prod", "cumsum", "cumprod", "matmul"]
)
UNBOUNDED = "add sub mul div neg abs sqrt log maximum minimum".split()
SIGNED_ZEROS = frozenset(
    ["neg", "mul", "div", "sqrt", "clone", "where", *REAL_UNARY, "sin", "tan", "tanh", "atan"]
)


@dataclass(frozen=True)
class Mutator:
    """A fault of a kind: the ops it may befall, and the kernel that has it."""

    name: str
    befalls: Callable[[str], bool]
    mutant: Callable[[Kernel], Kernel]


MUTATORS: list[Mutator] = []


def mutator(name: str, befalls: Callable[[str], bool]) -> Callable[[Any], Any]:
    def declare(mutant: Callable[[Kernel], Kernel]) -> Any:
        MUTATORS.append(Mutator(name, befalls, mutant))
        return mutant

    return declare


def mutants(name: str) -> Iterator[tuple[str, Callable[[Kernel], Kernel]]]:
    """All mutants of the kernel of an op: what is wrong, and what makes it."""
    if name == "ldl_solve":  # LAPACK trusts the pivots, and writes where they say
        return
    for each in MUTATORS:
        if each.befalls(name):
            yield each.name, each.mutant
    if not draws(name):
        yield from _frozen(name)


def _frozen(name: str) -> Iterator[tuple[str, Callable[[Kernel], Kernel]]]:
    """For each plain argument, the kernel that takes it to be what it is in the first sample."""
    for place in range(max(len(sample.args) for sample in SAMPLES[name])):
        plain = [
            sample.args[place]
            for sample in SAMPLES[name]
            if place < len(sample.args) and isinstance(sample.args[place], (bool, int, float, str))
        ]
        if plain:

            def freeze(kernel: Kernel, place: int = place, value: Any = plain[0]) -> Kernel:
                def mutant(*args: Any) -> Any:
                    same = len(args) > place and type(args[place]) is type(value)
                    return (
                        kernel(*args[:place], value, *args[place + 1 :]) if same else kernel(*args)
                    )

                return mutant

            yield f"argument {place} is always {plain[0]!r}", freeze


def computes(name: str) -> bool:
    """Whether results are arrays of its own, of numbers."""
    return name not in VIEWS and not name.endswith("_") and not draws(name)


def floating(name: str) -> bool:
    return any(d.name == "float32" for d in DTYPES[name])


def has_dtype(dtype: str) -> Callable[[str], bool]:
    return lambda name: any(d.name == dtype for d in DTYPES[name])


def under_test(name: str) -> bool:
    """Whether an argument has the dtype under test."""
    return any(isinstance(a, Arr) and a.dtype is None for s in SAMPLES[name] for a in s.args)


def results(name: str) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Native arguments of the samples and what the right kernel gives for them."""
    be = bind("cpu")
    for sample in SAMPLES[name]:
        args = native(realise(sample.args, maker("cpu"), DTYPES[name][-1]))
        yield args, native_results(getattr(be, name)(*args))


@cache
def gives_none(name: str) -> bool:
    """Whether results without dimensions are among those of the samples' shapes."""
    return computes(name) and any(not r.ndim for _, found in results(name) for r in found)


@cache
def gives_its_like(name: str) -> bool:
    """Whether a result may have the shape and dtype of an argument."""
    return computes(name) and any(
        len(found) == 1 and a.shape == found[0].shape and a.dtype == found[0].dtype and a.size
        for args, found in results(name)
        for a in args
        if isinstance(a, np.ndarray)
    )


@cache
def gives(name: str, dtype: str) -> bool:
    """Whether arguments of a dtype give results of this dtype."""
    of = next((d for d in DTYPES[name] if d.name == dtype), None)
    if of is None or not computes(name) or not under_test(name):
        return False
    be = bind("cpu")
    for sample in SAMPLES[name]:
        args = realise(sample.args, maker("cpu"), of)
        found = native_results(getattr(be, name)(*native(args)))
        if any(be.dtype_of(be.fresh(r)) is of for r in found):
            return True
    return False


def elementwise(name: str) -> bool:
    return name in BINARY or name in ANY_SHAPE


def on_results(change: Callable[[Any], Any]) -> Callable[[Kernel], Kernel]:
    """The mutator that changes each array that a kernel returns."""

    def mutant(kernel: Kernel) -> Kernel:
        def run(*args: Any) -> Any:
            found = kernel(*args)
            if isinstance(found, tuple):
                return tuple([change(r) if isinstance(r, np.ndarray) else r for r in found])
            return change(np.asarray(found))

        return run

    return mutant


def on_arrays(change: Callable[[Any], Any]) -> Callable[[Kernel], Kernel]:
    """The mutator that changes each array that a kernel gets."""

    def changed(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return change(value)
        return type(value)(map(changed, value)) if type(value) in (list, tuple) else value

    return lambda kernel: lambda *args: kernel(*map(changed, args))


def is_float(a: Any) -> bool:
    return a.dtype.kind in "fV" or a.dtype.name == "bfloat16"


def _with(a: Any, where: Any, value: Any) -> Any:
    changed = np.array(a)
    changed[where] = value
    return changed


mutator("NaN of results lost", lambda n: gives(n, "float32"))(
    on_results(lambda r: _with(r, np.isnan(r), 0) if is_float(r) else r)
)
mutator("NaN taken for 0", lambda n: elementwise(n) and floating(n) and n != "sign")(
    on_arrays(lambda a: _with(a, np.isnan(a), 0) if is_float(a) else a)
)
mutator("NaN taken for -inf", lambda n: n in {*PLACES, "amax", "sort", "maximum", "topk"})(
    on_arrays(lambda a: _with(a, np.isnan(a), -np.inf) if is_float(a) else a)
)
mutator("NaN taken for inf", lambda n: n in {*PLACES, "amin", "minimum", "median"})(
    on_arrays(lambda a: _with(a, np.isnan(a), np.inf) if is_float(a) else a)
)
mutator("infinities clipped", lambda n: n in {*MOVED, *UNBOUNDED})(
    on_arrays(lambda a: _with(a, np.isinf(a), 3e4 * np.sign(a[np.isinf(a)])) if is_float(a) else a)
)
mutator("sign of zero lost", lambda n: n in SIGNED_ZEROS)(
    on_results(lambda r: _with(r, r == 0, 0) if is_float(r) else r)
)
mutator("float64 in place of float32", lambda n: gives(n, "float32"))(
    on_results(lambda r: r.astype(np.float64) if r.dtype == np.float32 else r)
)
mutator("int32 in place of int64", lambda n: gives(n, "int64"))(
    on_results(lambda r: r.astype(np.int32) if r.dtype == np.int64 else r)
)
mutator(
    "bytes in place of bools", lambda n: n in {*ORDERINGS, "eq", "ne", "isfinite", "all", "any"}
)(on_results(lambda r: r.astype(np.uint8) if r.dtype == np.bool_ else r))
mutator("in half precision", lambda n: gives(n, "float32") and n != "sign")(
    on_results(lambda r: r.astype(np.float16).astype(np.float32) if r.dtype == np.float32 else r)
)
mutator(
    "doubles in single precision",
    lambda n: gives(n, "float64") and n != "sign",
)(on_results(lambda r: r.astype(np.float32).astype(np.float64) if r.dtype == np.float64 else r))
mutator("integers through doubles", lambda n: n in WRAPPING | MOVED | BINARY - {"div", "atan2"})(
    on_arrays(lambda a: a.astype(np.float64).astype(np.int64) if a.dtype == np.int64 else a)
)
mutator(
    "unsigned taken for signed",
    lambda n: (
        has_dtype("uint8")(n)
        and n in {*ORDERINGS, *PLACES, "maximum", "minimum", "amax", "amin", "sort", "sign", "topk"}
    ),
)(on_arrays(lambda a: a.view(np.int8) if a.dtype == np.uint8 else a))
mutator("conjugated", lambda n: gives(n, "complex64"))(
    on_results(lambda r: np.conj(r) if r.dtype.kind == "c" else r)
)
mutator("dimensions of none lost", lambda n: gives_none(n))(
    on_results(lambda r: r if r.ndim else r.reshape(1))
)
mutator("last element is the one before", lambda n: computes(n))(
    on_results(lambda r: _stale(r) if r.size > 1 else r)
)
mutator(
    "end of a vector forgotten",
    lambda n: elementwise(n) or n in {*REDUCTIONS, "cumsum", "cumprod", "sort", "matmul"},
)(on_arrays(lambda a: _cut(a)))
mutator("empty refused", lambda n: computes(n) and any(_empty(s.args) for s in SAMPLES[n]))(
    on_arrays(lambda a: a if a.size else a[0, ..., 1])
)
mutator("memory read as it lies", lambda n: computes(n) and under_test(n))(
    on_arrays(lambda a: a.ravel(order="K").reshape(a.shape))
)
mutator("offset ignored", lambda n: computes(n) and under_test(n))(on_arrays(lambda a: _root(a)))


def _stale(r: Any) -> Any:
    changed = np.array(r, order="C")
    flat = changed.reshape(-1)
    flat[-1] = flat[-2] if flat[-1] != flat[-2] else flat[-2] + np.ones((), flat.dtype)
    return changed


def _cut(a: Any) -> Any:
    if a.size <= 16 or not a.ndim:
        return a
    changed = np.array(a, order="K")
    changed[..., a.shape[-1] // 16 * 16 or a.shape[-1] :] = 0
    return changed


def _empty(value: Any) -> bool:
    if isinstance(value, Arr):
        return 0 in value.shape
    return isinstance(value, (list, tuple)) and any(map(_empty, value))


def _root(a: Any) -> Any:
    base = a.base
    if not isinstance(base, np.ndarray) or base.dtype != a.dtype or not base.flags.c_contiguous:
        return a
    return base.reshape(-1)[: a.size].reshape(a.shape) if base.size > a.size else a


@mutator("returns its argument, written to", lambda n: gives_its_like(n))
def _(kernel: Kernel) -> Kernel:
    def run(*args: Any) -> Any:
        found = kernel(*args)
        found = np.asarray(found) if isinstance(found, np.generic) else found
        for a in args:
            if isinstance(a, np.ndarray) and isinstance(found, np.ndarray):
                if a.shape == found.shape and a.dtype == found.dtype and a.flags.writeable:
                    a[...] = found
                    return a
        return found

    return run


@mutator("leaves zeros in its argument", lambda n: computes(n) and under_test(n))
def _(kernel: Kernel) -> Kernel:
    def run(*args: Any) -> Any:
        found = np.copy(r) if isinstance(r := kernel(*args), np.ndarray) else r
        for a in args:
            if isinstance(a, np.ndarray) and a.size and a.flags.writeable:
                a[(-1,) * a.ndim] = 0
        return found

    return run


@mutator("operands swapped", lambda n: n in {"sub", "div", "pow", "atan2", "fmod", *ORDERINGS})
def _(kernel: Kernel) -> Kernel:
    return lambda a, b: kernel(b, a)


@mutator("no scalar operand", lambda n: n in BINARY)
def _(kernel: Kernel) -> Kernel:
    def run(a: Any, b: Any) -> Any:
        if bool(a.ndim) != bool(b.ndim):
            a, b = (np.zeros_like(x) if not x.ndim else x for x in (a, b))
        return kernel(a, b)

    return run


@mutator("lengths of 1 do not broadcast", lambda n: n in BINARY)
def _(kernel: Kernel) -> Kernel:
    def run(a: Any, b: Any) -> Any:
        if a.shape != b.shape and a.ndim == b.ndim:
            n = [min(x, y) for x, y in zip(a.shape, b.shape, strict=True)]
            part = tuple([slice(k) for k in n])
            return kernel(a[part], b[part])
        return kernel(a, b)

    return run


@mutator("saturates", lambda n: n in WRAPPING)
def _(kernel: Kernel) -> Kernel:
    def run(*args: Any) -> Any:
        first = args[0]
        if first.dtype.kind not in "iu" or first.dtype == np.int64:
            return kernel(*args)
        wide = [a.astype(np.int64) if isinstance(a, np.ndarray) else a for a in args]
        limits = np.iinfo(first.dtype)
        return np.asarray(np.clip(kernel(*wide), limits.min, limits.max).astype(first.dtype))

    return run


@mutator("keepdim ignored", lambda n: n in REDUCTIONS | {"argmax", "argmin", "var"})
def _(kernel: Kernel) -> Kernel:
    return lambda *args: kernel(*args[:-1], False)


def _dims(kernel: Kernel, turned: Callable[[int, int], int]) -> Kernel:
    """The kernel with another dimension for the one that it is told."""

    def run(a: Any, dim: Any, *rest: Any) -> Any:
        ndim = a[0].ndim if isinstance(a, (list, tuple)) else a.ndim
        if not ndim:
            return kernel(a, dim, *rest)
        if isinstance(dim, tuple):
            return kernel(a, tuple(sorted({turned(d, ndim) for d in dim})), *rest)
        return kernel(a, turned(dim, ndim), *rest)

    return run


@mutator("always along the last", lambda n: n in ALONG | REDUCTIONS | {"argmax", "argmin"})
def _(kernel: Kernel) -> Kernel:
    return lambda *args: _dims(kernel, lambda dim, ndim: ndim - 1)(*args)


@mutator("always along the first", lambda n: n in ALONG | REDUCTIONS | {"argmax", "argmin"})
def _(kernel: Kernel) -> Kernel:
    return lambda *args: _dims(kernel, lambda dim, ndim: 0)(*args)


@mutator("along the wrong dimension if transposed", lambda n: n in ALONG | REDUCTIONS)
def _(kernel: Kernel) -> Kernel:
    def run(a: Any, *rest: Any) -> Any:
        first = a[0] if isinstance(a, (list, tuple)) else a
        if first.ndim > 1 and not first.flags.c_contiguous and first.strides[-1] != first.itemsize:
            return _dims(kernel, lambda dim, ndim: ndim - 1 - dim)(a, *rest)
        return kernel(a, *rest)

    return run


@mutator("last of equals", lambda n: n in {"argmax", "argmin"})
def _(kernel: Kernel) -> Kernel:
    def run(a: Any, dim: int, keepdim: bool) -> Any:
        if not a.ndim:
            return kernel(a, dim, keepdim)
        return a.shape[dim] - 1 - kernel(np.flip(a, dim), dim, keepdim)

    return run


def _backwards(a: Any, dim: int, kernel: Kernel, *rest: Any) -> Any:
    values, places = kernel(np.flip(a, dim), dim, *rest)
    return values, a.shape[dim] - 1 - places


@mutator("unstable", lambda n: n == "sort")
def _(kernel: Kernel) -> Kernel:
    return lambda a, dim, *rest: (
        _backwards(a, dim, kernel, *rest) if a.ndim else kernel(a, dim, *rest)
    )


@mutator("unstable beyond 16", lambda n: n == "sort")
def _(kernel: Kernel) -> Kernel:
    return lambda a, dim, *rest: (
        _backwards(a, dim, kernel, *rest) if a.ndim and a.shape[dim] > 16 else kernel(a, dim, *rest)
    )


@mutator("unstable unless asked", lambda n: n == "sort")
def _(kernel: Kernel) -> Kernel:
    return lambda a, dim, descending, stable: (
        _backwards(a, dim, kernel, descending, True)
        if a.ndim and not stable
        else kernel(a, dim, descending, stable)
    )


@mutator("falling order is the rising one reversed", lambda n: n == "sort")
def _(kernel: Kernel) -> Kernel:
    def run(a: Any, dim: int, descending: bool, stable: bool) -> Any:
        found = kernel(a, dim, False, stable)
        return tuple(np.flip(r, dim).copy() for r in found) if descending and a.ndim else found

    return run


@mutator("first of duplicates stays", lambda n: n == "scatter")
def _(kernel: Kernel) -> Kernel:
    def run(a: Any, dim: int, index: Any, src: Any) -> Any:
        if not a.ndim:
            return kernel(a, dim, index, src)
        src = src[tuple(slice(n) for n in index.shape)]
        return kernel(a, dim, np.flip(index, dim), np.flip(src, dim))

    return run


@mutator("duplicates overwrite", lambda n: n in {"scatter_add", "index_put"})
def _(kernel: Kernel) -> Kernel:
    def run(a: Any, place: Any, index: Any, last: Any) -> Any:
        result = a.copy()
        if last is True or last is False:  # of index_put
            key = tuple([slice(None) if i is None else i for i in place])
            result[key] = result[key] + index if last else index
        elif a.ndim:
            part = last[tuple(slice(n) for n in index.shape)]
            before = np.take_along_axis(a, index, place) if index.size else part
            grid = list(np.indices(index.shape))
            grid[place] = index
            result[tuple(grid)] = before + part
        else:
            return kernel(a, place, index, last)
        return result

    return run


@mutator("first of duplicates stays", lambda n: n == "index_put")
def _(kernel: Kernel) -> Kernel:
    def run(a: Any, indices: Any, values: Any, accumulate: bool) -> Any:
        arrays = [i for i in indices if i is not None]
        if accumulate or len(arrays) != len(indices) or arrays[0].ndim != 1 or not values.ndim:
            return kernel(a, indices, values, accumulate)
        turned = tuple([i[::-1] for i in indices])
        return kernel(a, turned, np.flip(values, 0), accumulate)

    return run


@mutator("half up", lambda n: n == "round")
def _(kernel: Kernel) -> Kernel:
    return lambda a: np.floor(a + a.dtype.type(0.5)) if a.dtype.kind == "f" else kernel(a)


@mutator("half up, zeros with their sign", lambda n: n == "round")
def _(kernel: Kernel) -> Kernel:
    def run(a: Any) -> Any:
        if a.dtype.kind != "f":
            return kernel(a)
        return np.asarray(np.copysign(np.floor(a + a.dtype.type(0.5)), a))

    return run


@mutator("half away from zero", lambda n: n == "round")
def _(kernel: Kernel) -> Kernel:
    def run(a: Any) -> Any:
        if a.dtype.kind != "f":
            return kernel(a)
        return np.asarray(np.copysign(np.floor(np.abs(a) + a.dtype.type(0.5)), a).astype(a.dtype))

    return run


def _strict(one: str, other: str) -> None:
    @mutator("strictness flipped", lambda n: n == one)
    def _(kernel: Kernel) -> Kernel:
        function = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
        return lambda a, b: np.asarray(function[other](a, b))


for pair in (("lt", "le"), ("le", "lt"), ("gt", "ge"), ("ge", "gt")):
    _strict(*pair)


@mutator("naive near zero", lambda n: n in {"expm1", "log1p", "sinh", "tanh"})
def _(kernel: Kernel) -> Kernel:
    formula = {
        "expm1": lambda a: np.exp(a) - 1,
        "log1p": lambda a: np.log(1 + a),
        "sinh": lambda a: (np.exp(a) - np.exp(-a)) / 2,
        "tanh": lambda a: (np.exp(a) - np.exp(-a)) / (np.exp(a) + np.exp(-a)),
    }

    def run(a: Any) -> Any:
        name = run.op  # type: ignore[attr-defined]
        return np.asarray(formula[name](a), a.dtype)

    return run


@mutator("arange begins late", lambda n: n == "arange")
def _(kernel: Kernel) -> Kernel:
    return lambda start, step, length, dtype: kernel(start + step, step, length, dtype)


@mutator("arange sums its steps", lambda n: n == "arange")
def _(kernel: Kernel) -> Kernel:
    def run(start: Any, step: Any, length: int, dtype: Any) -> Any:
        if isinstance(start, int) and isinstance(step, int):
            return kernel(start, step, length, dtype)
        like = kernel(start, step, length, dtype)
        steps = np.full(length, step, like.dtype)
        if length:
            steps[0] = start
        return np.cumsum(steps, dtype=like.dtype)

    return run


@mutator("arange of integers in doubles", lambda n: n == "arange")
def _(kernel: Kernel) -> Kernel:
    return lambda start, step, *rest: kernel(float(start), float(step), *rest)


@mutator("casts round", lambda n: n == "cast")
def _(kernel: Kernel) -> Kernel:
    return lambda a, dtype: kernel(
        np.rint(a) if a.dtype.kind == "f" and dtype.category == 1 else a, dtype
    )


@mutator("casts saturate", lambda n: n == "cast")
def _(kernel: Kernel) -> Kernel:
    def run(a: Any, dtype: Any) -> Any:
        if a.dtype.kind in "iu" and dtype.category == 1:
            limits = np.iinfo(dtype.name)
            a = np.clip(a.astype(np.int64), limits.min, limits.max)
        return kernel(a, dtype)

    return run


@mutator("True only from 1", lambda n: n == "cast")
def _(kernel: Kernel) -> Kernel:
    return lambda a, dtype: a == 1 if dtype.category == 0 else kernel(a, dtype)


@mutator("casts of long integers round twice", lambda n: n == "cast")
def _(kernel: Kernel) -> Kernel:
    def run(a: Any, dtype: Any) -> Any:
        twice = a.dtype == np.int64 and dtype.name == "float32"
        return kernel(a.astype(np.float64) if twice else a, dtype)

    return run


def of(kernel: Kernel, name: str, make: Callable[[Kernel], Kernel]) -> Kernel:
    """The mutant of a kernel; it knows its op."""
    run = make(kernel)
    run.op = name  # type: ignore[attr-defined]
    return run
