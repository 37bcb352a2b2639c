"""Helpers of the kit's tests: tensors from samples, and comparison with the reference."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flambeau import Tensor, autograd
from flambeau._dispatch.bound import bind
from flambeau._dispatch.dispatch import wrap
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau.ops import OPS
from flambeau.plugin import Expectations
from flambeau.plugin.host import host
from flambeau.testing.sample_linalg import COMPARABLE, DECOMPOSITIONS
from flambeau.testing.samples import (
    ANY_SHAPE,
    GENERATOR,
    LAYOUTS,
    SAMPLES,
    Arr,
    Sample,
    arrange,
    realise,
)

REFERENCE = "ref"

# Relative spacing of numbers, smallest normal number.
_PRECISION = {
    D.float16: (2.0**-10, 2.0**-14),
    D.bfloat16: (2.0**-7, 2.0**-126),
    D.float32: (2.0**-23, 2.0**-126),
    D.float64: (2.0**-52, 2.0**-1022),
}

UNITS = 4
"""Units in the last place by which an elementwise function may be off, unless plugins say more."""

ACCUMULATING_UNITS = 40
_ACCUMULATING = frozenset(
    [
        *("sum", "prod", "cumsum", "cumprod", "matmul", "index_put", "scatter_add", "pow"),
        *("mean", "var", "linear", "addmm", "linear_activation"),
    ]
)

ANY_ZERO = frozenset(
    [
        *("maximum", "minimum", "amax", "amin", "sort", "argmax", "argmin"),
        *("remainder", "fmod", "floor_divide", "sign", "sum", "cumsum", "matmul"),
    ]
)
"""Ops that may return a zero of either sign."""


def maker(device: str) -> Callable[[list[Any], tuple[int, ...], DType], Tensor]:
    """``make(values, shape, dtype)`` for `realise`: tensors on a device, by way of host memory."""
    be = bind(device)
    return lambda values, shape, dtype: wrap(be, be.host_array(values, shape, dtype), dtype)


def call(device: str, name: str, args: tuple[Any, ...]) -> Any:
    """The result of a canonical op, as a tensor or a tuple of tensors."""
    if any(True for _ in tensors(args)):
        return OPS[name](*args)
    be = bind(device)
    native = be.fresh(getattr(be, name)(*args))
    return wrap(be, native, be.dtype_of(native))


def wait(device: str) -> None:
    """Wait until a device has done all it was asked."""
    be = bind(device)
    be.backend.synchronize(be.device.index or 0)


def comparable(name: str, op: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """An op, or what stands for it, with all that is left to choose of its results settled."""
    call = OPS[name] if op is None else op
    settle = COMPARABLE.get(name)
    return call if settle is None else lambda *args: settle(*call(*args))


def draws(name: str) -> bool:
    """Whether an op takes a generator."""
    return any(GENERATOR in sample.args for sample in SAMPLES[name])


def tensors(value: object) -> Iterator[Tensor]:
    """All tensors in nested tuples and lists."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)


def native(value: object) -> Any:
    """`value` as a kernel gets it: native arrays in the place of tensors."""
    if isinstance(value, Tensor):
        return value._a
    return type(value)([native(v) for v in value]) if isinstance(value, (tuple, list)) else value


def native_results(value: object) -> tuple[Any, ...]:
    """What a kernel returned, as a tuple."""
    return value if isinstance(value, tuple) else (value,)


def numbers(t: Tensor) -> list[Any]:
    """The elements as Python numbers in row-major order."""
    return D.unpack(bytes(t._be.backend.to_host(t._a)), t._be.dtype_of(t._a))


def memory(t: Tensor) -> bytes:
    """All bytes of the memory that `t` is a view of."""
    root = t._a if t._st is None else t._st.buffer
    return bytes(t._be.backend.to_host(root))


def difference(found: Any, wanted: Any) -> str:
    """Where two sequences differ first; "" if they are equal.

    For long ones: pytest works out the whole difference of lists and bytes that it compares, which
    takes hours for thousands of elements.
    """
    if found == wanted:
        return ""
    if len(found) != len(wanted):
        return f"{len(found)} elements, expected {len(wanted)}"
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if a != b:
            return f"element {i} is {a!r}, expected {b!r}"
    return ""


def level(name: str) -> Callable[[Any], Any]:
    """Decorate a test that is at another level than its module."""

    def mark(test: Any) -> object:
        test.level = name
        return test

    return mark


def cases(names: str, function: Callable[[str], Iterator[Any]]) -> Callable[[Any], Any]:
    """Decorate a test that runs for each of the cases that ``function(device)`` yields."""

    def mark(test: Any) -> object:
        test.cases = (names, function)
        return test

    return mark


def layouts_of(name: str) -> tuple[str, ...]:
    """The layouts in which an op can be called with any sample."""
    if name == "view":  # is asked only for what strides can express
        return ("contiguous", "offset")
    if name in ANY_SHAPE:
        return LAYOUTS
    if name in DECOMPOSITIONS:  # equal rows make a matrix singular
        return ("contiguous", "transposed", "sliced", "offset")
    return tuple([layout for layout in LAYOUTS if layout not in ("empty", "scalar")])


def gradient_layouts(device: str, name: str) -> tuple[str, ...]:
    """The layouts in which the gradients of an op are compared.

    Where arrays have no strides, the gradient of an op of a view is that of the op after that of
    the view, and the views have tests of their own.
    """
    layouts = layouts_of(name)
    if bind(device).strided:
        return layouts
    return tuple([n for n in layouts if n not in ("transposed", "sliced", "offset")])


def too_slow(device: str, name: str) -> bool:
    """Whether differences of an op would take minutes.

    A device without factorisations rotates and eliminates by the primitives, thousands of them.
    The gradients are one text for all devices, and its results are compared with the reference's.
    """
    return name in DECOMPOSITIONS and not {"svd", "eigh"} <= bind(device).kernels.keys()


_promised: dict[str, tuple[Any, Expectations]] = {}


def promised(device: str) -> Expectations:
    """What the plugins of a device expect; asked once, for thousands of cases want to know."""
    activation = host.activate(device)
    if device not in _promised or _promised[device][0] is not activation:
        _promised[device] = activation, host.expectations(device)
    return _promised[device][1]


def case(device: str, dtype: DType, *values: object, id: str) -> Any:
    """A `pytest.param`, skipped if the backend says that it does not have the dtype."""
    unsupported = promised(device).unsupported_dtypes
    reason = f"device {device!r} does not support {dtype.name}"
    marks = [pytest.mark.skip(reason=reason)] if dtype.name in unsupported else []
    return pytest.param(*values, marks=marks, id=id)


def supported(device: str, dtypes: tuple[DType, ...] = D.ALL) -> list[DType]:
    """Those of `dtypes` that the backend has."""
    unsupported = promised(device).unsupported_dtypes
    return [d for d in dtypes if d.name not in unsupported]


def for_want_of_a_dtype(device: str, error: Exception) -> bool:
    """Whether an error names a dtype that the backend says it does not have.

    Decompositions may compute in more digits than their operands have.
    """
    return any(name in str(error) for name in promised(device).unsupported_dtypes)


def descriptions(value: object) -> Iterator[Arr]:
    """All array descriptions in the arguments of a sample, in the order of realising them."""
    if isinstance(value, Arr):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from descriptions(item)


def as_function(
    device: str, op: Callable[..., Any], sample: Sample, dtype: DType, layout: str
) -> tuple[Callable[..., Any], list[Tensor]]:
    """`op` as a function of contiguous leaves, of which it makes the layout; and the leaves."""
    leaves: list[Tensor] = []
    make = maker(device)

    def leaf(values: list[Any], shape: tuple[int, ...], d: DType) -> Tensor:
        leaves.append(make(values, shape, d))
        return leaves[-1]

    realise(sample.args, leaf, dtype, layout=layout)
    for array, made in zip(descriptions(sample.args), leaves, strict=True):
        if array.dtype is None and not array.fixed:
            made.requires_grad_()

    def function(*inputs: Tensor) -> Any:
        rest = iter(inputs)
        return op(*realise(sample.args, lambda *_: next(rest), dtype, layout=layout))

    return function, leaves


def gradients(
    device: str, function: Callable[..., Any], leaves: list[Tensor]
) -> tuple[Tensor | None, ...]:
    """The gradients of the leaves for fixed gradients of the results, if anything requires one."""
    results = function(*leaves)
    results = results if isinstance(results, tuple) else (results,)
    wanted = [t for t in leaves if t.requires_grad]
    roots = [r for r in results if r.requires_grad]
    if not wanted or not roots:
        return ()
    make = maker(device)
    seeds = []
    for root in roots:
        shape = tuple(root.shape)
        seeds.append(make(Arr(shape, seed=9).values(root.dtype), shape, root.dtype))
    return autograd.grad(roots, wanted, seeds, allow_unused=True)


def cancelled(name: str, gradients: tuple[Tensor | None, ...]) -> float:
    """What may be left of terms that cancel: some units in the last place of the largest gradient.

    Attention to equal keys does not depend on the query; what is left there is rounding.  Of other
    ops nothing may be left.
    """
    largest = 0.0
    if name != "attention":
        return largest
    for gradient in gradients:
        if gradient is not None and gradient.dtype in _PRECISION:
            units = ACCUMULATING_UNITS * _PRECISION[gradient.dtype][0]
            values = (abs(v) for v in numbers(gradient) if _finite(v))
            largest = max(largest, units * max(values, default=0.0))
    return largest


class Outcome:
    """What an op gave for some arguments: its results, or the exception that it raised."""

    def __init__(self, device: str, name: str, args: tuple[Any, ...]) -> None:
        self.args = args
        self.results: tuple[Tensor, ...] = ()
        self.error: Exception | None = None
        before = [memory(t) for t in tensors(args)]
        try:
            result = call(device, name, args)
            self.results = result if isinstance(result, tuple) else (result,)
            wait(device)  # work that was put off is refused as late as this
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            self.error = error
            with contextlib.suppress(RuntimeError, IndexError, TypeError, ValueError):
                wait(device)  # what failed behind it
        after = [memory(t) for t in tensors(args)]
        self.changed = [i for i, b in enumerate(before) if after[i] != b]


def observed(device: str, name: str, sample: Sample, dtype: DType, layout: str) -> Outcome:
    """The outcome of an op on the device under test."""
    return Outcome(device, name, realise(sample.args, maker(device), dtype, layout=layout))


def expected(name: str, sample: Sample, dtype: DType, layout: str) -> Outcome:
    """The outcome of an op on the reference, for the same values in contiguous memory."""
    kept = layout in ("expanded", "empty", "scalar")  # the others have the same values
    return _expected(name, sample, dtype, layout if kept else "contiguous")


@functools.lru_cache(128)  # the cases of one op follow each other
def _expected(name: str, sample: Sample, dtype: DType, layout: str) -> Outcome:
    return Outcome(REFERENCE, name, realise(arrange(sample.args, layout), maker(REFERENCE), dtype))


def tolerance(device: str, name: str, dtype: DType) -> float:
    """The relative error that an op may have."""
    if dtype.category < 2:
        return 0.0
    units = ACCUMULATING_UNITS if name in _ACCUMULATING else UNITS
    told = promised(device).tolerances.get((name, dtype.name), 0.0)
    return max(units * _PRECISION[dtype.to_real()][0], told)


def complaints(
    device: str, name: str, found: Outcome, wanted: Outcome, dtype: DType, *, strict: bool = False
) -> list[str]:
    """What is wrong with the outcome of an op; with `strict`, zeros have their sign."""
    if found.error is not None or wanted.error is not None:
        if type(found.error) is type(wanted.error):
            return []
        return [f"gave {told(found.error)}, expected {told(wanted.error)}"]
    wrong = [f"input {i} was changed" for i in found.changed]
    if len(found.results) != len(wanted.results):
        return [*wrong, f"{len(found.results)} results, expected {len(wanted.results)}"]
    rtol = tolerance(device, name, dtype)
    for i, (t, e) in enumerate(zip(found.results, wanted.results, strict=True)):
        which = f"result {i}: " if len(found.results) > 1 else ""
        signed = strict and name not in ANY_ZERO
        slack = rtol if name in _ACCUMULATING and not strict else 0.0
        texts = differences(t, e, rtol, slack, signed, operands=wanted.args)
        wrong += [which + text for text in texts]
    return wrong


def told(error: BaseException | None) -> str:
    """An exception as a complaint names it, with what was raised first: what a library said."""
    first = error
    while first is not None and (before := first.__cause__ or first.__context__) is not None:
        first = before
    if error is None or first is error:
        return repr(error) if error else "a result"
    return f"{error!r} for {first!r}"


def differences(
    t: Tensor,
    e: Tensor,
    rtol: float,
    slack: float = 0.0,
    signed: bool = False,
    floor: float = 0.0,
    operands: tuple[Any, ...] = (),
) -> list[str]:
    """How `t` differs from `e` in dtype, shape or values; at most one text.

    An element may be off by ``rtol`` of itself plus ``slack`` of the largest one plus ``floor``.
    The text names the first that is off by more, what was computed with there if the op's tensors
    are in `operands` and broadcast, and how many are.
    """
    if not isinstance(t._a, t._be.array):
        return [f"an object of class {type(t._a).__name__}, expected {t._be.array.__name__}"]
    try:
        native = t._be.dtype_of(t._a)
    except Exception as error:  # a backend's code may raise anything: a fault that it has
        return [f"an array of which dtype_of says {type(error).__name__}: {error}"]
    if native is not e.dtype or t.dtype is not e.dtype:
        return [f"dtype {native}, expected {e.dtype}"]
    if not isinstance(t._a.shape, tuple) or t._a.shape != e._a.shape:
        return [f"shape {t._a.shape}, expected {e._a.shape}"]
    values, wanted = numbers(t), numbers(e)
    atol = floor + slack * max((abs(v) for v in wanted if _finite(v)), default=0.0)
    tiny = 2 * _PRECISION[e.dtype.to_real()][1] if e.dtype.fp else 0
    pairs = zip(values, wanted, strict=True)
    wrong = [i for i, (v, w) in enumerate(pairs) if not _close(v, w, rtol, atol + tiny, signed)]
    if not wrong:
        return []
    i, shape = wrong[0], tuple(e._a.shape)
    text = f"element {i} of shape {shape} is {values[i]!r}, expected {wanted[i]!r}"
    given = operands_at(operands, shape, i)
    if given:
        text += f", for {', '.join(map(repr, given))}"
    return [f"{text}; {len(wrong)} of {len(values)} differ"]


def operands_at(args: tuple[Any, ...], shape: tuple[int, ...], place: int) -> list[Any]:
    """The elements of the tensors in `args` from which the element `place` of a result comes.

    Empty if not all of them broadcast to `shape`, as of ops that are not elementwise.

    >>> import flambeau as fb
    >>> from flambeau.testing.backend._support import operands_at
    >>> operands_at((fb.tensor([[1.0], [2.0]]), fb.tensor([3.0, 4.0])), (2, 2), 3)
    [2.0, 4.0]
    """
    found = []
    for tensor in tensors(args):
        lengths = (1,) * (len(shape) - tensor.ndim) + tuple(tensor.shape)
        if len(lengths) != len(shape) or any(
            n not in (1, m) for n, m in zip(lengths, shape, strict=True)
        ):
            return []
        rest, flat, step = place, 0, 1
        for n, m in zip(reversed(lengths), reversed(shape), strict=True):
            rest, index = divmod(rest, m)
            flat, step = flat + (index * step if n > 1 else 0), step * n
        found.append(numbers(tensor)[flat])
    return found


def _finite(value: complex) -> bool:
    return math.isfinite(value.real) and math.isfinite(value.imag)


def _close(v: Any, w: Any, rtol: float, atol: float, signed: bool) -> bool:
    if isinstance(w, (bool, int)):
        return v == w
    if not _finite(v) or not _finite(w):
        return repr(v) == repr(w)
    if signed and v == w == 0:
        return repr(v) == repr(w)
    return abs(v - w) <= rtol * abs(w) + atol


def shared_memory(results: tuple[Tensor, ...], args: tuple[Any, ...]) -> list[str]:
    """Which results share memory with an argument, or with themselves; they are written to."""
    found = []
    for i, result in enumerate(results):
        be = result._be
        if not be.strided or not result.numel():
            continue
        before = [memory(t) for t in tensors(args)]
        for value in (0, 1):
            be.assign(result._a, be.full((), value, result.dtype))
            if [memory(t) for t in tensors(args)] != before:
                found.append(f"result {i} shares memory with an argument")
                break
        strides = be.backend.strides(result._a)
        if any(s == 0 and n > 1 for n, s in zip(result._a.shape, strides, strict=True)):
            found.append(f"elements of result {i} share memory; writing to it would be refused")
    return found


def fail_with(wrong: list[str]) -> None:
    """Fail with the first few complaints and the number of all."""
    if wrong:
        more = f"\n... and {len(wrong) - 8} more" if len(wrong) > 8 else ""
        pytest.fail("\n".join(wrong[:8]) + more, pytrace=False)
