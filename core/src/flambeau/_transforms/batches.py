"""The level of `vmap`: tensors that hide a dimension, and what each op does about it.

An op goes through its batching rule (`batching_rules`); without one a composite goes through its
decomposition, and what is left, or looks at values, through a loop over the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.dispatch import OPS, wrap
from flambeau._transforms.levels import Level, LevelArray, LevelBackend, apply, values
from flambeau.ops.declaration.parameters import PLAIN, TENSOR
from flambeau.ops.randomness.sampling import RandomOp

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor
    from flambeau.ops.declaration.table import Op
    from flambeau.ops.pointwise.complexes import RetypingView
    from flambeau.ops.shapes.movement import ViewOp

Rule = Callable[..., Any]
rules: dict[str, Rule] = {}  # by the names of ops; `batching_rules` fills it


class BatchedArray(LevelArray):
    """An array whose tensor has the batch as its first dimension, or is the same for all of it."""

    __slots__ = ("batched",)

    def __init__(self, value: Tensor, batched: bool = False) -> None:
        self.value = value
        self.batched = batched
        shape = tuple(value._a.shape)
        self.shape = shape[1:] if batched else shape

    def constant(self, value: Tensor) -> BatchedArray:
        return BatchedArray(value, self.batched)


class ValueNeededError(RuntimeError):
    """A number of a batched tensor was asked for, and there is one for each entry."""


class BatchLevel(Level):
    """One call of `vmap`.

    Attributes:
        size: entries of the batch.
        randomness: ``"error"``, ``"same"`` or ``"different"`` numbers for them.
    """

    name = "BatchedTensor"
    array = BatchedArray
    makes = False
    captured = (
        "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor "
        "`other` in extra_args that has more elements than `self`: `other` is batched by this vmap "
        "and `self` is not. Make a batched `self`, or use the out-of-place form."
    )

    def __init__(self, size: int, randomness: str) -> None:
        super().__init__()
        self.size = size
        self.randomness = randomness
        self._places: dict[int, int] = {}  # of the batch, by the ids of arguments

    def batch(self, t: Tensor, dim: int) -> Tensor:
        """A tensor below as one of this level that hides dimension `dim`."""
        value = t if dim == 0 else t.movedim(dim, 0)
        own = wrap(self.over(t._be), BatchedArray(value, True), t.dtype)
        self._arguments.append((own, t))
        self._places[id(own)] = dim
        return own

    def restored(self, own: Tensor, given: Tensor) -> Tensor:
        return self.unbatched(own, self._places[id(own)])

    def unbatched(self, t: Tensor, dim: int) -> Tensor:
        """The tensor below, with the batch as its dimension `dim`."""
        value = self.lower(t)
        if value is t or not t._a.batched:
            value = value.unsqueeze(0).expand(self.size, *value.shape)
        return value.movedim(0, dim) if dim else value

    def is_batched(self, t: Any) -> bool:
        """Whether a tensor differs along this batch."""
        return getattr(t._be, "level", None) is self and t._a.batched

    def run(self, be: LevelBackend, op: Any, args: tuple[Any, ...]) -> Any:
        if not any(a.batched for a in _arrays(op, args)):
            if op.name in _DRAWING:
                return self._draw_from(be, op, args)
            return _packed(apply(op, values(op, args)), False)
        if op.name in _DRAWING:
            return self._draw_from(be, op, args)
        if (rule := rules.get(op.name)) is not None:
            return rule(self, op, *args)
        if op.tier == "composite":
            try:
                return self.decomposed(be, op, args)
            except ValueNeededError:
                pass
        return self.loop(op, args)

    def decomposed(
        self, be: LevelBackend, op: Op, args: tuple[Any, ...]
    ) -> tuple[BatchedArray, ...] | BatchedArray:
        """A composite as its decomposition, on tensors of this level."""
        given = []
        for a, kind in zip(args, op.kinds, strict=True):
            if kind is PLAIN or a is None:
                given.append(a)
            elif kind is TENSOR:
                given.append(wrap(be, a, a.value.dtype))
            else:
                given.append(tuple([None if x is None else wrap(be, x, x.value.dtype) for x in a]))
        result = op.body(*given)
        if isinstance(result, tuple):
            return tuple([self._array_of(r) for r in result])
        return self._array_of(result)

    def _array_of(self, t: Tensor) -> BatchedArray:
        # A body may make tensors of its own, which are of no level.
        return t._a if getattr(t._be, "level", None) is self else BatchedArray(t)

    def loop(self, op: Op, args: tuple[Any, ...]) -> tuple[BatchedArray, ...] | BatchedArray:
        """Any op: once for each entry of the batch, and the results stacked."""
        if self.size == 0:
            raise RuntimeError(
                f"vmap: {op.name} has no batching rule, and a batch of size 0 tells nothing about "
                "the shape of its result"
            )
        rows = [op(*_entry(op, args, i)) for i in range(self.size)]
        if type(rows[0]) is tuple:
            return tuple([_stacked(op.name, parts) for parts in zip(*rows, strict=True)])
        return _stacked(op.name, rows)

    def _draw_from(
        self, be: LevelBackend, op: Op, args: tuple[Any, ...]
    ) -> tuple[BatchedArray, ...] | BatchedArray:
        """An op that draws numbers for tensors."""
        batched = any(a.batched for a in _arrays(op, args))
        if self.randomness == "error":
            raise RuntimeError(_random_error(op.name))
        if self.randomness == "different" or batched:
            if self.randomness == "same":
                raise RuntimeError(
                    f"vmap: randomness='same' of {op.name} with batched arguments cannot be "
                    "represented: each entry has probabilities of its own"
                )
            if op.name in ("bernoulli", "poisson"):
                full = [
                    BatchedArray(_whole(self, a), True)
                    if kind is TENSOR and a is not None and not a.batched
                    else a
                    for a, kind in zip(args, op.kinds, strict=True)
                ]
                return _packed(op(*values(op, tuple(full))), True)
            return self.loop(op, args)
        return _packed(op(*values(op, args)), False)

    def kernel(self, be: LevelBackend, name: str) -> Callable[..., Any]:
        op = OPS.get(name)
        if isinstance(op, RandomOp):
            return lambda *args: self.drawn(be, op, args)
        return super().kernel(be, name)

    def drawn(self, be: LevelBackend, op: Op, args: tuple[Any, ...]) -> BatchedArray:
        """Random numbers of a shape, for all entries or for each.

        Raises:
            RuntimeError: under ``randomness="error"``.
        """
        if self.randomness == "error":
            raise RuntimeError(_random_error(op.name))
        if self.randomness == "same":
            return BatchedArray(self._made(be.below, op, args))
        if op.name == "randperm":
            rows = [self._made(be.below, op, args) for _ in range(self.size)]
            return _stacked("randperm", rows)
        place = 2 if op.name == "randint" else 0
        shape = (self.size, *args[place])
        args = (*args[:place], shape, *args[place + 1 :])
        return BatchedArray(self._made(be.below, op, args), True)

    def drawing(self, be: BoundBackend) -> LevelBackend | None:
        if self.randomness == "error":
            raise RuntimeError(_random_error("a tensor of numbers"))
        return self.over(be) if self.randomness == "different" else None

    def item(self, array: BatchedArray) -> Any:
        if array.batched:
            raise ValueNeededError(_VALUE_NEEDED)
        return array.value.item()

    def tolist(self, array: BatchedArray) -> Any:
        if array.batched:
            raise ValueNeededError(_VALUE_NEEDED)
        return array.value.tolist()

    def detached(self, array: BatchedArray) -> BatchedArray:
        return BatchedArray(array.value.detach(), array.batched)

    def describe(self, t: Tensor) -> str:
        place = 0 if t._a.batched else None
        value = repr(t._a.value).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={self.depth}, bdim={place}, value=\n    {value}\n)"


_VALUE_NEEDED = (
    "vmap: It looks like you're calling .item() on a Tensor, or attempting to use it in some "
    "data-dependent control flow (`if`, `bool()`, an index from a value). A batched tensor has as "
    "many values as the batch has entries. If the control flow chooses between two results, "
    "compute both and use torch.where."
)
_DRAWING = frozenset(
    "bernoulli poisson multinomial standard_gamma sample_dirichlet binomial".split()
)


def _random_error(name: str) -> str:
    return (
        f"vmap: called random operation while in randomness error mode ({name}). Please either "
        "use the 'same' or 'different' randomness flags on vmap or perform the randomness "
        "operation out of vmap"
    )


def _whole(level: BatchLevel, a: BatchedArray) -> Tensor:
    return a.value if a.batched else a.value.unsqueeze(0).expand(level.size, *a.shape).clone()


def _packed(result: Any, batched: bool) -> tuple[BatchedArray, ...] | BatchedArray:
    if type(result) is tuple:
        return tuple([BatchedArray(r, batched) for r in result])
    return BatchedArray(result, batched)


def _arrays(op: Op | RetypingView | ViewOp, args: tuple[Any, ...]) -> list[BatchedArray]:
    found = []
    for i, kind in op.inputs_at:
        a = args[i]
        if a is None:
            continue
        if kind is TENSOR:
            found.append(a)
        else:
            found += [x for x in a if x is not None]
    return found


def _entry(op: Op, args: tuple[Any, ...], i: int) -> list[Any]:
    """The arguments of an op for one entry of the batch."""

    def one(a: BatchedArray) -> Tensor:
        return a if a is None else a.value[i] if a.batched else a.value

    found = []
    for a, kind in zip(args, op.kinds, strict=True):
        if kind is PLAIN or a is None:
            found.append(a)
        else:
            found.append(one(a) if kind is TENSOR else tuple([one(x) for x in a]))
    return found


def _stacked(name: str, rows: Any) -> BatchedArray:
    if len({tuple(r._a.shape) for r in rows}) > 1:
        raise ValueNeededError(
            f"vmap: It looks like you're attempting to use an operation ({name}) that gives "
            "results of different, dynamic shapes for the entries of the batch. The shape must not "
            "depend on values."
        )
    return BatchedArray(OPS["stack"](tuple(rows), 0), True)
