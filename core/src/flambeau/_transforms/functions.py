"""`autograd.Function` on levels: its own rules in place of those of its ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flambeau._autograd.modes import recording, set_recording
from flambeau._tensor.tensor import Tensor
from flambeau._transforms.batches import BatchLevel
from flambeau._transforms.duals import DualLevel, by_gradients
from flambeau._transforms.levels import Level, deepest, now
from flambeau.autograd import function as _function
from flambeau.autograd.function import Function


class VmapInfo(NamedTuple):
    """What the ``vmap`` of a Function is told about the call."""

    batch_size: int
    randomness: str


def applied(cls: type[Function], args: tuple[Any, ...]) -> Callable[..., Any]:
    """``cls.apply(*args)`` with tensors of levels among the arguments.

    Raises:
        RuntimeError: the function has no `setup_context`, or no rule for `vmap`.
    """
    level = deepest([a for a in args if isinstance(a, Tensor)])
    if level is None:
        return NotImplemented
    if isinstance(level, DualLevel):
        return _dual(level, cls, args)
    if cls.setup_context is Function.setup_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
            "jacrev, ...), it must override the setup_context staticmethod. For more details, "
            "please see https://pytorch.org/docs/main/notes/extending.func.html"
        )
    if isinstance(level, BatchLevel):
        return _batched(level, cls, args)
    result = _below(level, lambda: cls.apply(*[_lowered(level, a) for a in args]))
    own = [level.lift(a) if _foreign(level, a) else a for a in args]
    return _function.recorded(cls, tuple(own), _each(result, level.lift))


def _below(level: Level, function: Callable[[], Any]) -> Any:
    before, depth = recording(), now.depth
    try:
        if level.records is not None:
            set_recording(level.records)
        now.depth = min(depth, level.depth - 1)
        return function()
    finally:
        now.depth = depth
        set_recording(before)


def _foreign(level: Level, a: object) -> bool:
    return isinstance(a, Tensor) and getattr(a._be, "level", None) is not level


def _lowered(level: Level, a: object) -> Tensor | object:
    return level.lower(a) if isinstance(a, Tensor) else a


def _each(result: object, function: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(result, (tuple, list)):
        return type(result)([function(r) if isinstance(r, Tensor) else r for r in result])
    return function(result) if isinstance(result, Tensor) else result


def _batched(level: BatchLevel, cls: Any, args: tuple[Any, ...]) -> Any:
    dims = tuple([0 if isinstance(a, Tensor) and level.is_batched(a) else None for a in args])
    given = [_lowered(level, a) for a in args]
    if all(d is None for d in dims):
        return _each(_below(level, lambda: cls.apply(*given)), level.lift)
    if cls.vmap is not Function.vmap:
        if cls.generate_vmap_rule:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True "
                "and an overriden vmap staticmethod. Please set generate_vmap_rule=False or delete "
                "the overriden vmap staticmethod to avoid ambiguity."
            )
        info = VmapInfo(level.size, level.randomness)
        result, out_dims = _below(level, lambda: cls.vmap(info, dims, *given))
        if not isinstance(result, (tuple, list)):
            return result if out_dims is None else level.batch(result, out_dims)
        each = out_dims if isinstance(out_dims, (tuple, list)) else [out_dims] * len(result)
        return type(result)(
            [r if d is None else level.batch(r, d) for r, d in zip(result, each, strict=True)]
        )
    if not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please "
            "override and implement the vmap staticmethod or set generate_vmap_rule=True."
        )
    result = _below(level, lambda: _generated(level, cls, dims).apply(*given))
    return _each(result, lambda r: level.batch(r, 0))


class _Context:
    """The context of one entry's call, over the whole batch's."""

    def __init__(self) -> None:
        self.saved_tensors: tuple[Any, ...] = ()
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: object) -> None:
        """Keep tensors for backward."""
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: object) -> None:
        """Keep tensors for `jvp`."""

    def mark_non_differentiable(self, *tensors: object) -> None:
        """Accepted: what is not differentiable gets no gradient anyway."""

    def set_materialize_grads(self, value: bool) -> None:
        """Accepted: gradients are always there."""


def _generated(outer: BatchLevel, cls: Any, dims: tuple[Any, ...]) -> type[Function]:
    """A Function of whole batches whose forward and backward are those of `cls` under `vmap`."""

    def inside(function: Callable[[BatchLevel], Any]) -> object:
        with BatchLevel(outer.size, outer.randomness) as level:
            return function(level)

    def entries(level: BatchLevel, values: Any, at: Any) -> list[Any]:
        return [
            level.batch(v, 0) if isinstance(v, Tensor) and d == 0 else v
            for v, d in zip(values, at, strict=True)
        ]

    class Batched(Function):
        _of_ops = True  # of those of `cls`, on tensors that only the transform knows

        @staticmethod
        def forward(*args: object) -> Any:
            def run(level: BatchLevel) -> Any:
                result = cls.forward(*entries(level, args, dims))
                return _each(result, lambda r: level.unbatched(r, 0).clone())

            return inside(run)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: object) -> None:
            def run(level: BatchLevel) -> None:
                own = _Context()
                results = _each(output, lambda r: level.batch(r, 0))
                cls.setup_context(own, tuple(entries(level, inputs, dims)), results)
                kept = own.saved_tensors
                ctx.at = tuple([0 if t is not None and level.is_batched(t) else None for t in kept])
                ctx.save_for_backward(*[_lowered(level, t) for t in kept])
                ctx.own = own

            inside(run)

        @staticmethod
        def backward(ctx: Any, *grads: object) -> Any:
            def run(level: BatchLevel) -> Any:
                own = ctx.own
                own.saved_tensors = tuple(entries(level, ctx.saved_tensors, ctx.at))
                own.needs_input_grad = ctx.needs_input_grad
                found = cls.backward(own, *entries(level, grads, [0] * len(grads)))
                parts = found if isinstance(found, tuple) else (found,)
                whole = [None if p is None else level.unbatched(p, 0) for p in parts]
                return tuple(
                    [
                        p if p is None or d == 0 else p.sum(0)
                        for p, d in zip(whole, dims, strict=True)
                    ]
                )

            return inside(run)

    Batched.__name__ = f"Vmapped{cls.__name__}"
    return Batched


def _dual(level: DualLevel, cls: Any, args: tuple[Any, ...]) -> Any:
    both = [level.parts(a) if isinstance(a, Tensor) else (a, None) for a in args]
    given, tangents = [p for p, _ in both], [t for _, t in both]
    if all(t is None for t in tangents):
        return _each(_below(level, lambda: cls.apply(*given)), level.lift)
    if cls.jvp is Function.jvp:
        return _below(level, lambda: by_gradients(level, cls.apply, given, tangents))
    result, context = _below(level, lambda: _called(cls, given))
    found = _below(level, lambda: cls.jvp(context, *tangents))
    if not isinstance(result, (tuple, list)):
        return level.dual(result, found)
    return type(result)([level.dual(r, t) for r, t in zip(result, found, strict=True)])


def _called(cls: Any, given: list[Any]) -> tuple[Any, _Context]:
    """What a call gives, and the context that `jvp` receives."""
    context = _Context()
    if cls.setup_context is not Function.setup_context:
        result = cls.apply(*given)
        kept: list[Any] = []
        context.save_for_forward = lambda *tensors: kept.extend(tensors)  # type: ignore[method-assign]
        cls.setup_context(context, tuple(given), result)
        context.saved_tensors = tuple(kept) or context.saved_tensors
        return result, context
    seen: list[Any] = []

    class Called(cls):
        @staticmethod
        def forward(ctx: Any, *args: object) -> Any:
            seen.append(ctx)
            return cls.forward(ctx, *args)

    Called.__name__ = cls.__name__
    result = Called.apply(*given)
    (ctx,) = seen
    own = {k: v for k, v in vars(ctx).items() if not k.startswith("_call_")}
    vars(context).update(own)
    context.saved_tensors = ctx._call_to_show or ctx._call_to_save
    context.needs_input_grad = ctx.needs_input_grad
    return result, context


def register() -> None:
    """Let `Function.apply` look for tensors of levels from now on."""
    _function.applied = applied
