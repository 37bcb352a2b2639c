"""Calls of a plan that others replace: numbers known before, gradients of parts of an array."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from flambeau.plugin import float32, float64, int64
from flambeau.plugin.plan import Plan, Slot, Step
from flambeau_native.extension import native
from flambeau_native.fusion.layouts import VIEWS, asks, is_dense
from flambeau_native.kernels import KERNELS
from flambeau_native.kernels.convolution import conv2d, conv2d_of
from flambeau_native.kernels.linalg import linear, linear_of, matrices, matrices_of
from flambeau_numpy.extending import KERNELS as NUMPY
from flambeau_numpy.extending import Array, empty, offered
from flambeau_numpy.extending.parts import SMALL, is_left

__all__ = ["simplified"]

# Of these kernels the checks: a captured call has passed them, and strides are as they were.
_METHODS: dict[str, Any] = {
    "view": np.ndarray.reshape,
    "permute": np.ndarray.transpose,
    "slice": operator.getitem,
}
_FEW = 4096  # numbers of an array that is kept, and not made anew
Part = tuple[Slot, tuple[slice, ...]]


def simplified(plan: Plan) -> tuple[Sequence[Step], dict[int, Any]]:
    """Steps that give the same by fewer calls, and constants that these read."""
    steps, constants = _folded(plan, plan.steps)
    steps = _rectified(plan, _placed(plan, steps))
    return [_direct(plan, step) for step in steps], {**plan.constants, **constants}


def _direct(plan: Plan, step: Step) -> Step:
    """A step whose kernel need not ask what is known of a plan."""
    op, kernel, args = step.op, step.kernel, step.args
    if kernel is NUMPY.get(op) and op in _METHODS and plan.specs[step.results][0]:
        return _with_kernel(step, _METHODS[op])
    if op == "checked_index" and plan.specs[args[0]][1] is int64:
        return _with_kernel(step, _checked(plan, args[0], kernel))
    if op in _LAYERS:
        return _with_kernel(step, _LAYERS[op](plan, step) or kernel)
    if op in _PRODUCTS:
        return _with_kernel(step, _PRODUCTS[op](plan, step) or kernel)
    return step


def _rectified(plan: Plan, steps: Sequence[Step]) -> Sequence[Step]:
    """The calls with layers that nobody but their relu reads as one call with it."""
    uses = Counter([slot for step in steps for slot in step.reads])
    uses.update(plan.outputs)
    made: dict[int, int] = {}  # the places of layers by their results, since the last effect
    replaced: dict[int, Step] = {}
    needless: set[int] = set()
    for i, step in enumerate(steps):
        if step.effect:  # it may write to what a layer reads
            made.clear()
        elif step.op in _LAYERS and uses[step.results] == 1:
            made[step.results] = i
        elif step.op == "relu" and step.args[0] in made and step.kernel is KERNELS["relu"]:
            layer = steps[made[step.args[0]]]
            if (kernel := _LAYERS[layer.op](plan, layer, relu=True)) is not None:
                needless.add(made[step.args[0]])
                replaced[i] = Step(f"{layer.op}_relu", kernel, layer.args, step.results)
    return [replaced.get(i, step) for i, step in enumerate(steps) if i not in needless]


def _linear(plan: Plan, step: Step, relu: bool = False) -> Callable[..., Any] | None:
    """The kernel of `linear` for these layouts; None where it has to ask."""
    if not asks("linear", step.kernel) or offered.linear is not linear:
        return None
    shape, weight, *bias = [plan.specs[slot][0] for slot in step.reads]
    if not is_dense(plan, *step.reads) or len(weight) != 2 or shape[-1:] != weight[1:]:
        return None
    return linear_of(shape, weight[0], relu=relu) if all(b == weight[:1] for b in bias) else None


def _conv2d(plan: Plan, step: Step, relu: bool = False) -> Callable[..., Any] | None:
    """The kernel of `conv2d` for these layouts; None where it has to ask."""
    if not asks("conv2d", step.kernel) or offered.conv2d is not conv2d:
        return None
    if not is_dense(plan, *step.reads):
        return None
    image, weight, *bias = [plan.specs[slot][0] for slot in step.reads]
    if any(b != weight[:1] for b in bias):
        return None
    return conv2d_of(image, weight, *step.args[3:], relu=relu)


_LAYERS: dict[str, Callable[..., Callable[..., Any] | None]] = {
    "linear": _linear,
    "conv2d": _conv2d,
}
"""What makes a kernel for the layouts of a plan, with relu behind it if that is asked for."""


def _matmul(plan: Plan, step: Step) -> Callable[..., Any] | None:
    """The kernel of `matmul` for these layouts; None where it has to ask."""
    return _product(plan, *step.reads) if asks("matmul", step.kernel) else None


def _addmm(plan: Plan, step: Step) -> Callable[..., Any] | None:
    """The kernel of `addmm` for these layouts; None where it has to ask."""
    bias, a, b, *factors = step.args
    if not asks("addmm", step.kernel) or factors != [1, 1] or not is_dense(plan, bias):
        return None
    product = _product(plan, a, b)
    if product is None or plan.specs[bias][0] != plan.specs[b][0][1:]:
        return None

    def addmm(bias: Array, a: Array, b: Array, beta: object, alpha: object) -> Array:
        return product(a, b, bias)

    return addmm


def _product(plan: Plan, a: int, b: int) -> Callable[..., Array] | None:
    """The product of such arrays by the compiled function; None where others may do better."""
    (shape, _), (other, _) = plan.specs[a], plan.specs[b]
    if offered.matrices is not matrices or len(shape) < 2 or len(other) != 2 or shape[-1] < 2:
        return None
    layouts = [_layout_of(plan, slot) for slot in (a, b)]
    if max(prod(shape), prod(other)) < SMALL or None in layouts or (len(shape) > 2 and layouts[0]):
        return None
    if not is_left(prod(shape[:-1]), prod(shape) * other[1], bool(layouts[1])):
        return None
    return matrices_of(shape, other[1], *map(bool, layouts))


_PRODUCTS = {"matmul": _matmul, "addmm": _addmm}


def _layout_of(plan: Plan, slot: int) -> bool | None:
    """Whether a float32 array is a matrix stored column by column; None of what is not dense."""
    if is_dense(plan, slot):
        return False
    (shape, dtype), strides = plan.specs[slot], plan.strides[slot]
    turned = len(shape) == 2 and strides == (1, shape[0]) and dtype is float32
    return True if turned else None


def _with_kernel(step: Step, kernel: Any) -> Step:
    return Step(step.op, kernel, step.args, step.results, step.converted, step.effect)


def _checked(plan: Plan, slot: int, kernel: Any) -> Callable[..., Any]:
    """The kernel of `checked_index`, which is asked only where an index is not in order."""
    count, in_range, row_major = (
        prod(plan.specs[slot][0]),
        native.in_range_i64,
        np.ascontiguousarray,
    )

    def checked_index(a: Array, size: int, *more: object) -> Array:
        try:
            in_range(row_major(a), count, size)
        except IndexError:
            return kernel(a, size, *more)
        return a

    return checked_index


def _folded(plan: Plan, steps: Sequence[Step]) -> tuple[Sequence[Step], dict[int, Any]]:
    """The calls without those that give the same number, or few equal ones, in every run.

    These become constants, and so do views of them.
    """
    fixed = _held_by_others(plan, steps)
    known, constants, kept = dict(plan.constants), {}, []
    for step in steps:
        made = step.results
        if (
            type(made) is Slot
            and made not in fixed
            and _is_constant(plan, step)
            and all(type(a) is not Slot or a in known for a in step.args)
        ):
            found = step.kernel(*[known[a] if type(a) is Slot else a for a in step.args])
            known[made] = constants[made] = np.asarray(found)
        else:
            kept.append(step)
    return kept, constants


def _is_constant(plan: Plan, step: Step) -> bool:
    """Whether a call gives a constant if all arrays that it reads are constants."""
    if step.numbers or len(step.reads) != sum(type(a) is Slot for a in step.args):
        return False
    shape, _ = plan.specs[step.results]
    if not step.reads or step.op in VIEWS:
        return (step.op == "full" or step.op in VIEWS) and prod(shape) <= _FEW
    return not shape and all(type(a) in (Slot, int, float, bool) for a in step.args)


def _held_by_others(plan: Plan, steps: Sequence[Step]) -> set[int]:
    """The arrays that the program gets hold of, or that are written to, with all their views."""
    found = set(plan.outputs)
    for step in steps:
        if step.effect:
            found.update(step.reads, step.makes)
    views = [step for step in steps if step.op in VIEWS]
    for step in reversed(views):
        if not found.isdisjoint(step.makes):
            found.update(step.reads)
    for step in views:
        if not found.isdisjoint(step.reads):
            found.update(step.makes)
    return found


def _placed(plan: Plan, steps: Sequence[Step]) -> Sequence[Step]:
    """Sums of the gradients of slices that cover an array: the slices are put beside each other.

    What lies beside a slice is zero there; adding zeros changes negative zeros only, hence the
    calls of the step add one too.
    """
    uses = Counter([s for step in steps for s in step.reads])
    uses.update(plan.outputs)
    parts: dict[int, list[Part]] = {}
    gone: dict[int, list[int]] = {}  # steps that a sum makes needless
    for i, step in enumerate(steps):
        made = step.results
        if type(made) is not Slot:
            continue
        if step.op == "slice_backward" and type(step.args[0]) is Slot and _spans(*step.args[1:]):
            parts[made], gone[made] = [(step.args[0], step.args[2])], [i]
        elif step.op == "add" and len(step.args) == 2:
            a, b = step.args
            both = a in parts and b in parts and uses[a] == uses[b] == 1 and a != b
            if both and plan.specs[a] == plan.specs[b]:
                parts[made], gone[made] = parts[a] + parts[b], [*gone[a], *gone[b], i]
                del parts[a], parts[b]
    replaced: dict[int, Step] = {}
    needless: set[int] = set()
    for made, found in parts.items():
        shape, dtype = plan.specs[made]
        first, last = min(gone[made]), gone[made][-1]
        if any(step.effect for step in steps[first:last]):  # it may write to what is put together
            continue
        if len(found) > 1 and dtype in (float32, float64) and _cover(found, shape):
            needless.update(gone[made])
            args = tuple([slot for slot, _ in found]), tuple([index for _, index in found])
            replaced[last] = Step("placed", _placing(shape), args, Slot(made))
    return [replaced.get(i, s) for i, s in enumerate(steps) if i in replaced or i not in needless]


def _spans(shape: tuple[int, ...], index: tuple[Any, ...]) -> dict[int, tuple[int, int]] | None:
    """Where a slice begins and ends in the dimensions that it does not have whole."""
    if len(index) > len(shape) or any(
        type(x) is not slice or x.step not in (None, 1) for x in index
    ):
        return None
    found = {d: (x.start or 0, shape[d] if x.stop is None else x.stop) for d, x in enumerate(index)}
    return {d: span for d, span in found.items() if span != (0, shape[d])}


def _cover(parts: Sequence[Part], shape: tuple[int, ...]) -> bool:
    """Whether slices along one dimension are all of it, once."""
    found = [_spans(shape, index) for _, index in parts]
    dims = {d for spans in found for d in (spans or {})}
    if len(dims) != 1 or not all(found):
        return False
    (dim,) = dims
    spans = sorted(spans[dim] for spans in found if spans)
    ends = [0, *(stop for _, stop in spans)]
    return [start for start, _ in spans] == ends[:-1] and ends[-1] == shape[dim]


def _placing(shape: tuple[int, ...]) -> Callable[..., Any]:
    """The kernel of `placed`: the sum of the gradients of slices."""

    def placed(arrays: Sequence[Array], indices: Sequence[tuple[slice, ...]]) -> Array:
        out = empty(shape, arrays[0].dtype)
        for a, index in zip(arrays, indices, strict=True):
            np.add(a, 0.0, out[index], dtype=a.dtype)
        return out

    return placed
