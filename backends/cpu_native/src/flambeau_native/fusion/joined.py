"""Calls of a plan that loops make at every step, as one call for all steps.

A cell that is written out multiplies a slice of its input at every step, and its gradients are
sums over the steps: of products for a weight, of lines for a bias.  Such sums have the bits that
the calls one by one have, as the sum of each step is over before it is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from flambeau.plugin import float32
from flambeau.plugin.plan import Plan, Slot, Step
from flambeau_native.extension import native
from flambeau_native.fusion.layouts import VIEWS, asks, is_dense
from flambeau_native.kernels import KERNELS
from flambeau_native.kernels._common import FLOAT32, maker
from flambeau_native.kernels.linalg import (
    is_pair,
    linear,
    linear_of,
    matrices,
    matrices_of,
    pair,
)
from flambeau_numpy.extending import KERNELS as NUMPY
from flambeau_numpy.extending import Array, offered
from flambeau_numpy.extending.parts import SMALL, is_left

__all__ = ["joined"]

_FEWEST = 3  # steps, from which on arrays are put together
_MOST = 1 << 18  # elements that are put together: they wait until all steps are over
_DEEPEST = 256  # rows of a step: of more, libraries sum in parts
_SUMMED = 512  # elements from which on lines are summed by the compiled kernel


def joined(plan: Plan) -> Plan:
    """The plan with one call for what steps of a loop do alike; `plan` itself if nothing is."""
    joiner = _Joiner(plan)
    for i, step in enumerate(plan.steps):
        joiner.take(i, step)
    joiner.finish()
    return joiner.result()


class _Chain:
    """A sum of terms, each of which one call makes.

    Attributes:
        kind: what the terms are: "matmul" or "sum", and their shapes.
        terms: the steps that make them, in the order in which they are added.
        calls: the places of these steps and of the additions.
        last: the place of the last addition.
    """

    def __init__(self, kind: tuple[Any, ...], terms: list[Step], calls: list[int]) -> None:
        self.kind = kind
        self.terms = terms
        self.calls = calls

    @property
    def last(self) -> int:
        return self.calls[-1]


class _Joiner:
    """What is known of the calls so far."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.uses = Counter([slot for step in plan.steps for slot in step.reads])
        self.uses.update(plan.outputs)
        self.kept = _returned(plan)
        self.turned: dict[int, Slot] = {}  # of which array a slot is the transpose
        self.sliced: dict[int, tuple[Slot, int]] = {}  # of which array a slot is which part
        self.terms: dict[int, _Chain] = {}
        self.sums: dict[int, _Chain] = {}
        self.layers: dict[tuple[Any, ...], dict[int, int]] = {}  # the place of each part's
        self.replaced: dict[int, list[Step]] = {}
        self.needless: set[int] = set()
        self.made: dict[Any, Slot] = {}  # arrays that were put together, and sums of them
        self.specs = dict(plan.specs)
        self.strides = dict(plan.strides)

    def take(self, place: int, step: Step) -> None:
        """Look at a call."""
        if step.effect:  # it may write to what others read
            self.finish()
            return
        made, args = step.results, step.args
        if type(made) is not Slot:
            return
        if step.op == "permute" and args[1] == (1, 0) and is_dense(self.plan, args[0]):
            self.turned[made] = args[0]
        elif step.op == "slice" and len(args[1]) == 1 and type(args[1][0]) is int:
            self.sliced[made] = args[0], args[1][0]
        elif step.op == "linear":
            self._layer(place, step)
        elif step.op == "add":
            self._add(place, step)
        elif (kind := self._kind(step)) is not None and self.uses[made] == 1:
            self.terms[made] = _Chain(kind, [step], [place])

    def finish(self) -> None:
        """Replace what is complete; nothing that comes later is joined with it."""
        for chain in self.sums.values():
            if len(chain.terms) >= _FEWEST:
                self._sum(chain)
        for key, places in self.layers.items():
            self._layers(key, places)
        self.terms, self.sums, self.layers, self.made = {}, {}, {}, {}

    def result(self) -> Plan:
        """The plan."""
        if not self.replaced:
            return self.plan
        plan, steps = self.plan, []
        for i, step in enumerate(plan.steps):
            if i in self.replaced:
                steps += self.replaced[i]
            elif i not in self.needless:
                steps.append(step)
        held, numbers = plan.constants, plan.numbers
        return Plan(steps, plan.inputs, plan.outputs, held, self.specs, self.strides, numbers)

    def _new(self, shape: tuple[int, ...]) -> Slot:
        slot = Slot(max(self.specs) + 1)
        self.specs[slot] = shape, float32
        self.strides[slot] = tuple([prod(shape[i + 1 :]) for i in range(len(shape))])
        return slot

    def _kind(self, step: Step) -> tuple[Any, ...] | None:
        """What a term is, if sums of such terms are made here."""
        plan, args = self.plan, step.args
        if step.op == "sum":
            if args[1:] != ((0,), False) or step.kernel is not KERNELS["sum"]:
                return None
            shape = plan.specs[args[0]][0]
            fits = is_dense(plan, args[0]) and len(shape) == 2 and prod(shape) >= _SUMMED
            return ("sum", shape) if fits else None
        if step.op != "matmul" or not asks("matmul", step.kernel) or args[0] not in self.turned:
            return None
        if offered.matrices is not matrices or not is_dense(plan, args[1]):
            return None
        (depth, rows), other = plan.specs[self.turned[args[0]]][0], plan.specs[args[1]][0]
        if len(other) != 2 or not 1 <= depth <= _DEEPEST:
            return None
        if not _is_made_here(rows, other[1], depth):
            return None
        return ("matmul", (depth, rows), other) if self.turned[args[0]] != args[1] else None

    def _add(self, place: int, step: Step) -> None:
        """A sum becomes longer by a term, or begins."""
        if step.kernel is not KERNELS.get("add", NUMPY["add"]) or len(step.args) != 2:
            return
        a, b = step.args
        if type(a) is not Slot or type(b) is not Slot or a == b:
            return
        if a in self.terms and b in self.sums:
            a, b = b, a
        first, second = self.sums.get(a) or self.terms.get(a), self.terms.get(b)
        if first is None or second is None or first.kind != second.kind or self.uses[a] != 1:
            return
        size = sum(map(prod, first.kind[1:]))
        if (len(first.terms) + 1) * size > _MOST:
            return
        chain = _Chain(first.kind, first.terms + second.terms, [*first.calls, *second.calls, place])
        self.sums.pop(a, None)
        self.terms.pop(a, None)
        del self.terms[b]
        self.sums[step.results] = chain

    def _sum(self, chain: _Chain) -> None:
        """Replace a sum by calls at the place of its last addition."""
        steps: list[Step] = []
        made = self.plan.steps[chain.last].results
        kind, shape, *more = chain.kind
        if kind == "sum":
            whole = self._stacked([step.args[0] for step in chain.terms], shape, steps)
            key = "sum", whole
            if key in self.made:
                steps.append(Step("clone", np.ndarray.copy, (self.made[key],), made))
            else:
                count = len(chain.terms)
                kernel = _sum_of_steps((count, *shape), chain.terms[0].kernel)
                steps.append(Step("sums_of_steps", kernel, (whole,), made))
                self.made[key] = made
        else:
            given = [self.turned[step.args[0]] for step in chain.terms]
            a = self._stacked(given, shape, steps)
            b = self._stacked([step.args[1] for step in chain.terms], more[0], steps)
            kernel = _products_of_steps(shape[1], more[0][1], shape[0], len(chain.terms))
            steps.append(Step("products_of_steps", kernel, (a, b), made))
        self.needless.update(chain.calls)
        self.replaced[chain.last] = steps

    def _stacked(self, slots: Sequence[Slot], shape: tuple[int, ...], steps: list[Step]) -> Slot:
        """The slot of arrays below each other, which are put together once."""
        key = tuple(slots)
        if key not in self.made:
            self.made[key] = whole = self._new((len(slots) * shape[0], *shape[1:]))
            steps.append(Step("cat", _stack(self.specs[whole][0]), (list(slots),), whole))
        return self.made[key]

    def _layer(self, place: int, step: Step) -> None:
        """A layer of a part of an array."""
        x, made = step.args[0], step.results
        if x not in self.sliced or not asks("linear", step.kernel) or made in self.kept:
            return
        whole, number = self.sliced[x]
        key = whole, *step.args[1:]
        self.layers.setdefault(key, {}).setdefault(number, place)

    def _layers(self, key: tuple[Any, ...], places: dict[int, int]) -> None:
        """Replace layers of all parts of an array by one of the array."""
        whole, weight, bias = key
        shape, lines = self.plan.specs[whole][0], self.plan.specs[weight][0]
        count, given = shape[0], [slot for slot in key if slot is not None]
        if len(shape) < 3 or count < _FEWEST or sorted(places) != list(range(count)):
            return
        if offered.linear is not linear or not is_dense(self.plan, *given):
            return
        if len(lines) != 2 or lines[1] != shape[-1] or prod(shape[:-1]) * lines[0] > _MOST:
            return
        if bias is not None and self.plan.specs[bias][0] != lines[:1]:
            return
        outputs = lines[0]
        if None in (linear_of(shape[1:], outputs), linear_of(shape, outputs)):
            return
        first = min(places.values())
        step = self.plan.steps[first]
        made = self._new((*shape[:-1], outputs))
        parts = tuple([self.plan.steps[places[i]].results for i in range(count)])
        self.needless.update(places.values())
        self.replaced[first] = [
            Step("linear", step.kernel, (whole, *step.args[1:]), made),
            Step("parts", tuple, (made,), parts),
        ]


def _is_made_here(rows: int, columns: int, depth: int) -> bool:
    """Whether a compiled kernel makes such a product, with the first operand turned.

    It adds the terms of each element in order, which libraries need not do.
    """
    if is_pair(rows, columns, depth):
        return offered.pair is pair
    if depth * max(rows, columns) < SMALL or not is_left(rows, rows * columns * depth, False):
        return False
    return matrices_of((rows, depth), columns, True, False) is not None


def _returned(plan: Plan) -> set[int]:
    """The slots of which the function returns something: the array or a view of it."""
    found = set(plan.outputs)
    for step in reversed(plan.steps):
        if step.op in VIEWS and not found.isdisjoint(step.makes):
            found.update(step.reads)
    return found


def _stack(shape: tuple[int, ...]) -> Callable[..., Array]:
    """Arrays below each other."""
    put, _empty = np.concatenate, maker(prod(shape), FLOAT32)

    def stack(arrays: Sequence[Array]) -> Array:
        return put(arrays, 0, _empty(shape, FLOAT32))

    return stack


def _products_of_steps(rows: int, columns: int, depth: int, steps: int) -> Callable[..., Array]:
    """The sum of aᵀ @ b over steps whose `depth` lines lie below each other."""
    run, shape, _empty = native.products_of_steps, (rows, columns), maker(rows * columns, FLOAT32)

    def products_of_steps(a: Array, b: Array) -> Array:
        out = _empty(shape, FLOAT32)
        run(out, a, b, rows, columns, depth, steps)
        return out

    return products_of_steps


def _sum_of_steps(shape: tuple[int, ...], kernel: Callable[..., Array]) -> Callable[..., Array]:
    """The sum of the lines of each step, added up over the steps in order."""
    add_up = np.add.reduce

    def sums_of_steps(a: Array) -> Array:
        return add_up(kernel(a.reshape(shape), (1,), False), 0)

    return sums_of_steps
