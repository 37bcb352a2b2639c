"""Chains of elementwise ops in one launch: of composites, and of gradient formulas.

A `Deferred` is a result that is not computed yet.  `Fusion.apply` makes one of an op whose operands
are deferred; `Fusion.settle` computes several by one kernel each for those of one shape.

A composite whose decomposition consists of elementwise ops is traced once for each signature and is
one kernel from then on.  What a gradient formula computes is put off until the formula ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from flambeau import plugin
from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.fusion.elementwise import Elementwise
from flambeau_cupy.fusion.expressions import (
    MOST_OPERANDS,
    MOST_STEPS,
    Expression,
    alone,
    expression,
    literal,
)
from flambeau_cupy.fusion.steps import NUMBER, TO_BOOL, TYPES, supported

_BOOL = np.dtype(np.bool_)
_PLAIN = (bool, int, float, str, plugin.dtype, type(None))
_ATTEMPTS, _SIGNATURES = 3, 1024


class Deferred:
    """An elementwise result that is not computed yet, or an input of a trace.

    Attributes:
        step: the step of `flambeau_cupy.fusion.steps`, or "" for an input.
        operands: deferred results, arrays and floats.
        made: the array, once it is computed.
    """

    __slots__ = ("dtype", "made", "operands", "shape", "step")

    def __init__(
        self, step: str, dtype: np.dtype, shape: tuple[int, ...], operands: tuple[Any, ...] = ()
    ) -> None:
        self.step, self.dtype, self.shape, self.operands = step, dtype, shape, operands
        self.made: Array | None = None

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __array__(self, *args: object, **options: object) -> Any:
        raise TypeError("the elements of this array are not computed yet")

    def __bool__(self) -> bool:
        raise TypeError("the elements of this array are not computed yet")


class Fusion:
    """Fuses elementwise ops on the arrays of a layer.

    Args:
        run: what runs expressions.
    """

    def __init__(self, run: Elementwise) -> None:
        self.elementwise = run
        self._array = run.layer.array

    def apply(
        self, step: str, *operands: Any, dtype: np.dtype | None = None, out: Array | None = None
    ) -> Any:
        """A step on operands: at once if they are arrays, else as something deferred.

        Args:
            step: its name.
            operands: arrays, deferred results, and floats.
            dtype: of the result, if it is that of no operand (casts).
            out: where the result goes, in its dtype.
        """
        kinds = []
        for a in operands:
            if type(a) is Deferred:
                if out is not None:
                    raise TypeError(f"{step}: a deferred array cannot be written")
                return self.deferred(step, *operands, dtype=dtype)
            kinds.append(NUMBER if type(a) is float else TYPES[a.dtype])
        kind = _result(step, operands) if dtype is None else dtype
        into = kind if out is None else out.dtype
        key = (step, *kinds, kind, into)
        expression = _SINGLE.get(key)
        if expression is None:
            expression = _SINGLE[key] = alone(step, kinds, TYPES[kind], TYPES[into])
        given = [a if type(a) is float else self.held(a) for a in operands]
        return self.elementwise.run(expression, given, out)[0]

    def deferred(self, step: str, *operands: Any, dtype: np.dtype | None = None) -> Deferred:
        """A step on operands, to be computed later."""
        kind = _result(step, operands) if dtype is None else dtype
        shapes = [a.shape for a in operands if not isinstance(a, (int, float))]
        shape = shapes[0]
        if any(s != shape for s in shapes):
            shape = np.broadcast_shapes(*shapes)
        known = [a.made if type(a) is Deferred and a.made is not None else a for a in operands]
        return Deferred(step, kind, shape, tuple(known))

    def held(self, a: object) -> Any:
        """What a kernel returned, as an array or deferred result."""
        return a if type(a) is Deferred else self.elementwise.layer.held(a)

    def kernel(self, step: str, plain: Kernel | None = None) -> Kernel:
        """A step as a kernel; `plain` serves the dtypes that the step is not defined for.

        Its attribute ``late`` is the same put off, which returns NotImplemented for those.
        """
        kinds = frozenset(kind for kind in TYPES if supported(step, kind))
        first = 1 if step == "where" else 0

        def run(*args: Any) -> Any:
            if args[first].dtype in kinds:
                return self.apply(step, *[a if hasattr(a, "dtype") else float(a) for a in args])
            if plain is None:
                raise TypeError(f"{step}: not defined for {args[first].dtype}")
            return plain(*args)

        def late(*args: Any) -> Any:
            if args[first].dtype not in kinds:
                return NotImplemented
            given = [self.held(a) if hasattr(a, "dtype") else float(a) for a in args]
            return self.deferred(step, *given)

        run.late = late  # type: ignore[attr-defined]
        return run

    def writer(self, step: str, plain: Kernel) -> Kernel:
        """A step that writes its result into its first operand."""
        kinds = frozenset(kind for kind in TYPES if supported(step, kind))

        def run(a: Array, *rest: object) -> None:
            if a.dtype in kinds:
                self.apply(step, a, *rest, out=a)
            else:
                a[...] = plain(a, *rest)

        return run

    def settle(self, results: Sequence[Any]) -> list[Any]:
        """`results` with arrays in place of what is deferred."""
        waiting: dict[tuple[int, ...], dict[int, Deferred]] = {}
        for r in results:
            if type(r) is Deferred and r.made is None:
                waiting.setdefault(r.shape, {})[id(r)] = r
        for each in waiting.values():
            roots = [*each.values()]
            traced = _linear(roots)
            if traced is None:
                made: Sequence[Array] = [self._piecewise(root) for root in roots]
            else:
                made = self.elementwise.run(*traced)
            for root, array in zip(roots, made, strict=True):
                root.made = array
        return [r.made if type(r) is Deferred else r for r in results]

    def settled(self, value: Any) -> Any:
        """An argument of a kernel without anything deferred."""
        if type(value) is Deferred:
            return self.settle((value,))[0]
        if type(value) in (tuple, list) and any(type(v) is Deferred for v in value):
            return type(value)(self.settle(value))
        return value

    def _piecewise(self, root: Deferred) -> Array:
        """A result whose expression is too long for one kernel."""
        done: dict[int, Any] = {}
        for node in _in_order([root]):
            operands = [done[id(o)] if type(o) is Deferred else o for o in node.operands]
            done[id(node)] = self.apply(node.step, *operands, dtype=node.dtype)
        return done[id(root)]

    def compiled(self, op: str, decomposition: Callable[..., Any]) -> Kernel:
        """`decomposition` as one kernel where that is possible."""
        known: dict[Any, tuple[Expression, list[Any]] | None] = {}
        failures = 0

        def run(*args: object) -> Any:
            nonlocal failures
            if failures >= _ATTEMPTS:
                return decomposition(*args)
            key = _signature(args, self._array)
            if key is None:
                return decomposition(*args)
            try:
                found = known[key]
            except KeyError:
                if len(known) >= _SIGNATURES:
                    known.clear()
                found = known[key] = self._traced(decomposition, args)
                failures = -1 if found is not None or failures < 0 else failures + 1
            if found is None:
                return decomposition(*args)
            expression, leaves = found
            given = [args[a.operands[0]] if type(a) is Deferred else a for a in leaves]
            return self.elementwise.run(expression, given)[0]

        return run

    def _traced(
        self, decomposition: Callable[..., Any], args: tuple[Any, ...]
    ) -> tuple[Expression, list[Any]] | None:
        array = self._array
        inputs = [
            Deferred("", a.dtype, a.shape, (i,)) if type(a) is array else a
            for i, a in enumerate(args)
        ]
        try:
            result = decomposition(*inputs)
        except Exception:
            # Either it is not elementwise, or the arguments are wrong: then it raises again.
            return None
        if type(result) is not Deferred or not result.step:
            return None
        traced = _linear([result], array)
        if traced is None:
            return None
        expression, leaves = traced
        # Other arrays than numbers may have been written to since the trace read them.
        if any(type(a) is array and a.size != 1 for a in leaves):
            return None
        if not any(type(a) is Deferred for a in leaves):
            return None
        return expression, leaves

    def formulas(self, ops: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
        """The ops as gradient formulas see them: elementwise ones put off."""
        made = {}
        for name, op in ops.items():
            late = getattr(op, "late", None)
            made[name] = self._on_arrays(op) if late is None else _late(late, self._on_arrays(op))
        return made

    def _on_arrays(self, op: Callable[..., Any]) -> Callable[..., Any]:
        settled = self.settled

        def run(*args: object) -> Any:
            return op(*[settled(a) for a in args])

        return run


_SINGLE: dict[Any, Expression] = {}


def _result(step: str, operands: Sequence[Any]) -> np.dtype:
    """The dtype of a step's result."""
    return _BOOL if step in TO_BOOL else operands[1 if step == "where" else 0].dtype


def _late(late: Kernel, at_once: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: object) -> Any:
        found = late(*args)
        return at_once(*args) if found is NotImplemented else found

    return run


def _signature(args: tuple[Any, ...], array: type) -> tuple[Any, ...] | None:
    """What a trace depends on; None if there is something that cannot be told."""
    found: list[Any] = []
    for a in args:
        if type(a) is array:
            found.append((a.shape, a.dtype))
        elif isinstance(a, _PLAIN):
            found.append((type(a), repr(a) if type(a) is float else a))  # tells 0.0 from -0.0
        elif isinstance(a, tuple) and all(type(x) is int for x in a):
            found.append(a)
        else:
            return None
    return tuple(found)


def _in_order(roots: Sequence[Deferred]) -> list[Deferred]:
    """The steps that `roots` need, each after those it needs."""
    order: list[Deferred] = []
    seen: set[int] = set()
    stack: list[tuple[Deferred, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            if node.step:
                stack.append((node, True))
                stack.extend((o, False) for o in reversed(node.operands) if type(o) is Deferred)
    return order


def _linear(
    roots: Sequence[Deferred], array: type | None = None
) -> tuple[Expression, list[Any]] | None:
    """The expression whose outputs are `roots`, and its inputs; None if it is too long.

    Arrays of the class `array` with one element, which are constants then, stand in its text.
    """
    order = _in_order(roots)
    if len(order) > MOST_STEPS:
        return None
    places: dict[int, int] = {}
    leaves: list[Any] = []
    constants: list[tuple[Any, str]] = []
    for node in order:
        for o in node.operands:
            if (type(o) is Deferred and o.step) or id(o) in places:
                continue
            places[id(o)] = -1
            text = literal(o) if type(o) is array and prod(o.shape) == 1 else ""
            if text:
                constants.append((o, text))
            else:
                leaves.append(o)
    if len(leaves) > MOST_OPERANDS:
        return None
    places = {id(o): i for i, o in enumerate([*leaves, *(o for o, _ in constants), *order])}
    steps = [(text, TYPES[o.dtype], ()) for o, text in constants]
    steps += [
        (node.step, TYPES[node.dtype], tuple([places[id(o)] for o in node.operands]))
        for node in order
    ]
    kinds = tuple([NUMBER if isinstance(a, (int, float)) else TYPES[a.dtype] for a in leaves])
    outputs = tuple([(places[id(root)], TYPES[root.dtype]) for root in roots])
    return expression(kinds, tuple(steps), outputs), leaves
