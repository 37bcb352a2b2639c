"""The level of forward mode: numbers with a derivative in one direction.

An op on dual tensors gives the op of the values and, beside it, J t for the tangents t.  Linear ops
apply themselves to the tangents, elementwise ones use the formula of their gradient (for them J is
diagonal, hence Jᵀt = J t), and for any other op J t is the derivative, by w, of Jᵀw: two
applications of its own gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.dispatch import wrap
from flambeau._transforms.gradients import GradLevel
from flambeau._transforms.levels import Level, LevelArray, LevelBackend, apply, values
from flambeau.ops.creation.creation import zeros_like
from flambeau.ops.declaration.namespace import TENSORS
from flambeau.ops.declaration.parameters import PLAIN, TENSOR

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau.ops.declaration.table import Op
    from flambeau.ops.pointwise.complexes import RetypingView
    from flambeau.ops.shapes.movement import ViewOp

LINEAR = frozenset(
    """cast clone contiguous neg slice permute view expand diagonal flip roll sum mean cumsum tril
    triu slice_backward diagonal_backward real imag conj view_as_real view_as_complex
    as_strided_region as_strided_backward boundary_pad_nd boundary_pad_nd_backward""".split()
)
"""Ops of one tensor that are linear in it."""

ELEMENTWISE = frozenset(
    """exp expm1 log log1p sin cos tan asin acos atan sinh cosh tanh sqrt rsqrt reciprocal erf
    floor ceil trunc round sign log2 log10 square clamp relu threshold leaky_relu elu sigmoid
    silu log_sigmoid softplus gelu bessel_j0 bessel_j1 bessel_y0 bessel_y1 i0 i1 i0e i1e erfc
    erfinv lgamma digamma erfcx ndtri log_ndtr polygamma asinh acosh atanh hardtanh hardsigmoid
    hardswish hardshrink softshrink""".split()
)
"""Ops of one tensor, element by element, with a complex derivative where they take such numbers."""

BILINEAR = frozenset({"mul", "matmul"})


class DualArray(LevelArray):
    """A tensor and its tangent, None for zero."""

    __slots__ = ("tangent",)

    def __init__(self, value: Tensor, tangent: Tensor | None = None) -> None:
        super().__init__(value)
        self.tangent = tangent


class DualLevel(Level):
    """One call of `jvp`, or one level of `autograd.forward_ad`."""

    name = "DualTensor"
    array = DualArray

    def dual(self, primal: Tensor, tangent: Tensor | None) -> Tensor:
        """A tensor of this level with a tangent.

        Raises:
            RuntimeError: the shapes differ.
        """
        if tangent is not None and tuple(tangent._a.shape) != tuple(primal._a.shape):
            raise RuntimeError(
                f"Expected the tangent to have the shape {list(primal.shape)} of its primal, got "
                f"{list(tangent.shape)}"
            )
        own = wrap(self.over(primal._be), DualArray(primal, tangent), primal.dtype)
        self._arguments.append((own, primal))
        return own

    def parts(self, t: Tensor) -> tuple[Tensor, Tensor | None]:
        """The value and the tangent of a tensor; None where it does not depend on the inputs."""
        if getattr(t._be, "level", None) is not self:
            return t, None
        return t._a.value, t._a.tangent

    def run(self, be: LevelBackend, op: Any, args: tuple[Any, ...]) -> Any:
        given = values(op, args)
        tangents = [
            None
            if kind is PLAIN or a is None
            else a.tangent
            if kind is TENSOR
            else [None if x is None else x.tangent for x in a]
            for a, kind in zip(args, op.kinds, strict=True)
        ]
        there = [t for group in tangents for t in (group if type(group) is list else [group])]
        if not op.differentiable or all(t is None for t in there):
            result = apply(op, given)
            return tuple(map(DualArray, result)) if type(result) is tuple else DualArray(result)
        if (rule := self._rule(op, given)) is not None:
            result = apply(op, given)
            if not result.dtype.fp:
                return DualArray(result)
            return DualArray(result, rule(op, given, tangents, result))
        return _by_gradients(op, given, tangents)

    def _rule(
        self, op: Op | RetypingView | ViewOp, given: list[Any]
    ) -> Callable[..., Tensor] | None:
        name = op.name
        if name in LINEAR:
            return _linear
        if name in ELEMENTWISE:
            return _elementwise
        if name in ("add", "sub"):
            return _sum
        if name in BILINEAR:
            return _product
        if name in ("cat", "stack"):
            return _joined
        return None

    def detached(self, array: DualArray) -> DualArray:
        return DualArray(array.value.detach())


def _linear(op: object, given: list[Any], tangents: list[Any], result: Tensor) -> Tensor:
    return apply(op, [tangents[0], *given[1:]])


def _elementwise(op: Op, given: list[Any], tangents: list[Any], result: Tensor) -> Tensor:
    (rule,) = op.rules
    saved = dict(zip(op.params, given, strict=True), result=result, result0=result)
    kept = [
        given[0]._a.shape
        if want.endswith("_shape")
        else given[0].dtype
        if want.endswith("_dtype")
        else saved[want]
        for want in rule.wants
    ]
    return rule.formula(TENSORS, tangents[0], *kept)


def _sum(op: Op, given: list[Any], tangents: list[Any], result: Tensor) -> Tensor:
    s, t = tangents
    if s is not None and t is not None:
        return op(s, t)
    part: Any = t if s is None else s
    if s is None and op.name != "add":
        part = -part
    return part if part._a.shape == result._a.shape else part.expand(result.shape)


def _product(op: Op, given: list[Any], tangents: list[Any], result: Tensor) -> Tensor:
    (x, y), (s, t) = given, tangents
    if s is None:
        return op(x, t)
    if t is None:
        return op(s, y)
    return op(s, y) + op(x, t)


def _joined(op: Op, given: list[Any], tangents: list[Any], result: Tensor) -> Tensor:
    parts, dim = given
    filled = [zeros_like(p) if t is None else t for p, t in zip(parts, tangents[0], strict=True)]
    return op(tuple(filled), dim)


def _by_gradients(
    op: Op | RetypingView | ViewOp, given: list[Any], tangents: list[Any]
) -> tuple[DualArray, ...] | DualArray:
    """An op and its J t."""
    flat: list[Any] = []
    lists: list[int | None] = []
    value: Any
    tangent: Any
    for value, tangent, kind in zip(given, tangents, op.kinds, strict=True):
        several = kind is not PLAIN and kind is not TENSOR and value is not None
        lists.append(len(value or ()) if several else None)
        flat += zip(value or (), tangent or (), strict=True) if several else [(value, tangent)]

    def call(*args: object) -> Any:
        rest = iter(args)
        return apply(
            op, [next(rest) if n is None else tuple([next(rest) for _ in range(n)]) for n in lists]
        )

    results, found = derivatives(call, [v for v, _ in flat], [t for _, t in flat])
    duals = tuple(map(DualArray, results if type(results) is tuple else (results,), found))
    return duals if type(results) is tuple else duals[0]


def by_gradients(
    level: DualLevel, function: Callable[..., Any], given: list[Any], tangents: list[Any]
) -> Any:
    """A differentiable function and its J t, as tensors of a level of forward mode."""
    results, found = derivatives(function, given, tangents)
    several = isinstance(results, (tuple, list))
    duals = [
        level.dual(r, t) if hasattr(r, "_be") else r
        for r, t in zip(results if several else (results,), found, strict=True)
    ]
    return type(results)(duals) if several else duals[0]


def derivatives(
    function: Callable[..., Any], given: list[Any], tangents: list[Any]
) -> tuple[Any, list[Tensor | None]]:
    """A function's results and its J t: the derivative by w of what its gradient makes of w."""
    with GradLevel() as level:
        inputs: list[Tensor] = []
        directions: list[Tensor] = []
        args: list[Any] = []
        for value, tangent in zip(given, tangents, strict=True):
            if tangent is None:
                args.append(level.lift(value) if hasattr(value, "_be") else value)
                continue
            own = level.lift(value)
            own.requires_grad_()
            args.append(own)
            inputs.append(own)
            directions.append(tangent)
        result = function(*args)
        several = isinstance(result, (tuple, list))
        results = list(result) if several else [result]
        smooth = [r for r in results if hasattr(r, "_be") and r.requires_grad]
        weights = [level.lift(level.lower(zeros_like(r))) for r in smooth]
        for w in weights:
            w.requires_grad_()
        rows = level.gradients(smooth, inputs, weights, create_graph=True)
        there = [(row, t) for row, t in zip(rows, directions, strict=True) if row is not None]
        parts = level.gradients([row for row, _ in there], weights, [t for _, t in there])
        derivative = {id(r): g for r, g in zip(smooth, parts, strict=True)}
        lowered = [level.lower(r) if hasattr(r, "_be") else r for r in results]
    found = [derivative.get(id(r)) for r in results]
    return (type(result)(lowered) if several else lowered[0]), found
