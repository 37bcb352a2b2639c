"""Random programs, drawn from the live state of PyTorch.

Every step is chosen by looking at the tensors that exist so far (shapes, dtypes, who views whom)
and executed at once.  The draw is weighted towards the hardest situation of a tensor library: a
view is taken, its base changes in place, and the view, now stale, is used again.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import torch

from agreement_programs import Const, Dtype, Program, Ref, Step
from agreement_state import (
    MOST_ELEMENTS,
    State,
    bounded,
    broadcasts,
    flag,
    nested,
    overlaps_itself,
    positive,
    share_memory,
    small,
)

SHAPES = [(), (1,), (3,), (4,), (2, 3), (3, 2), (3, 3), (1, 3), (4, 1), (2, 1, 3), (2, 3, 2)]
OPERATORS = {"+": 4, "-": 3, "*": 6, "/": 2, ">": 1, "<=": 0.5, "==": 0.5}
UPDATES = {"+=": 2, "-=": 1, "*=": 2, "/=": 1, ".add_": 3, ".sub_": 1, ".mul_": 4, ".div_": 1}
REDUCTIONS = ("sum", "sum", "mean", "amax", "amin", "prod", "cumsum", "var", "max", "argmax")


def draw(seed: int) -> Program:
    """The program of this seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Program(seed, tuple(_Draw(seed).program()))


class _Draw(State):
    """Families of steps; each emits one step, or none if no tensor suits it."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.families: list[tuple[float, Callable[[], None]]] = [
            (16, self.arithmetic),
            (6, self.unary),
            (24, self.view),
            (20, self.inplace_arithmetic),
            (6, self.inplace_unary),
            (9, self.assignment),
            (7, self.overwrite),
            (6, self.autograd_flag),
            (5, self.reduction),
            (3, self.joined),
            (2, self.advanced_index),
            (2, self.conversion),
            (1.5, self.matrix_product),
            (1.5, self.softmax),
            (1, self.leaf),
        ]

    def program(self) -> list[Step]:
        for _ in range(self.random.choice((1, 2, 2, 3))):
            self.leaf()
        for number in list(
            self.tensors
        ):  # only what is no leaf may change in place and keep its history
            if self.tensors[number].requires_grad and self.chance(0.7):
                self.emit("*", Ref(number), self.random.choice((1, 2, 0.5)))
        weights = [weight for weight, _ in self.families]
        for _ in range(self.random.randint(5, 25)):
            if not self.no_grad_left and self.chance(0.05):
                self.no_grad_left = self.random.randint(1, 3)
            family = self.random.choices(self.families, weights)[0][1]
            family()
            if family in (self.inplace_arithmetic, self.inplace_unary, self.assignment):
                self.use_stale_view()
            self.no_grad_left = max(0, self.no_grad_left - 1)
        self.no_grad_left = 0
        again = self.chance(0.35)
        self.backward(retain=0.85 if again else 0.2)
        if again:
            self.backward(retain=0.2)
        return self.steps

    def leaf(self) -> None:
        dtype = self.random.choices(("float64", "float32", "int64"), (8, 2, 1.2))[0]
        shape = self.random.choice(SHAPES) if self.chance(0.97) else (0,)
        floating = dtype != "int64"
        value = (
            (lambda: round(self.random.uniform(-2, 2), 2))
            if floating
            else (lambda: self.random.randint(-3, 3))
        )
        requires_grad = self.chance(0.7 if floating else 0.02)
        self.emit("tensor", nested(shape, value), dtype=Dtype(dtype), requires_grad=requires_grad)

    def arithmetic(self) -> None:
        if (left := self.pick(bounded)) is None:
            return
        kind = self.random.random()
        if kind < 0.3:
            operands: list[Any] = [left, self.scalar()]
            if self.chance(0.3):
                operands.reverse()
        else:
            right = self.pick_partner(tuple(self.tensors[left.number].shape)) or self.scalar()
            operands = [left, right]
        if kind > 0.85 and isinstance(operands[1], Ref):
            op = self.random.choice(
                ("torch.add", "torch.sub", ".mul", "torch.maximum", "torch.minimum")
            )
            alpha = {"alpha": 2} if op in ("torch.add", "torch.sub") and self.chance(0.5) else {}
            self.emit(op, *operands, **alpha)
        elif kind > 0.8:
            self.emit("**", left, self.random.choice((2, 3, 1)))
        else:
            op = self.random.choices(list(OPERATORS), list(OPERATORS.values()))[0]
            self.emit(op, *operands)

    def unary(self) -> None:
        op = self.random.choice(
            ("exp", "tanh", "relu", "sigmoid", "sin", "cos", "neg", "abs", "sqrt")
        )
        if ref := self.pick(positive if op == "sqrt" else small if op == "exp" else bounded):
            self.emit(f".{op}", ref)

    def view(self) -> None:
        if (ref := self.pick()) is None:
            return
        x = self.tensors[ref.number]
        dim = self.dim(x)
        length = x.shape[dim] if -x.dim() <= dim < x.dim() else 0
        start = self.random.randrange(max(length, 1))
        choose = self.random.choice
        kinds: dict[str, tuple[float, Callable[[], tuple[Any, ...]]]] = {
            "getitem": (4, lambda: (self.basic_index(x),)),
            ".select": (1, lambda: (dim, start - 1)),
            ".narrow": (1, lambda: (dim, start, self.random.randint(0, max(length - start, 0)))),
            ".transpose": (1, lambda: (dim, self.dim(x))),
            ".permute": (1, lambda: (tuple(self.random.sample(range(x.dim()), x.dim())),)),
            ".t": (1, tuple),
            ".view": (1, lambda: (self.new_shape(x.numel()),)),
            ".reshape": (1, lambda: (self.new_shape(x.numel()),)),
            ".flatten": (1, tuple),
            ".expand": (1, lambda: (self.expanded(x),)),
            ".diagonal": (1, lambda: (choose((0, 0, 1, -1)), *self.two_dims(x))),
            ".unsqueeze": (1, lambda: (self.random.randint(-x.dim() - 1, x.dim()),)),
            ".squeeze": (1, lambda: (dim,) if self.chance(0.6) else ()),
            ".split": (0.7, lambda: (choose((1, 2)), dim)),
            ".chunk": (0.7, lambda: (choose((1, 2)), dim)),
            ".unbind": (0.7, lambda: (dim,)),
            ".detach": (1, tuple),
            ".unfold": (0.4, lambda: (dim, self.random.randint(1, max(length, 1)), choose((1, 2)))),
            ".as_strided": (0.4, lambda: ((min(x.numel(), 2),), (1,), choose((0, 0, 1)))),
        }
        op = self.random.choices(list(kinds), [weight for weight, _ in kinds.values()])[0]
        self.emit(op, ref, *kinds[op][1]())

    def expanded(self, x: torch.Tensor) -> tuple[int, ...]:
        sizes = [self.random.choice((2, 3)) if n == 1 else -1 for n in x.shape]
        return tuple([2] * self.chance(0.4) + sizes)

    def two_dims(self, x: torch.Tensor) -> list[int]:
        return self.random.sample(range(x.dim()), 2) if x.dim() > 1 else [0, 1]

    def new_shape(self, numel: int) -> tuple[int, ...]:
        shapes: list[tuple[int, ...]] = [(numel,), (-1,), (1, numel), (numel, 1)]
        shapes += [(n, numel // n) for n in (2, 3) if numel and numel % n == 0]
        return self.random.choice([*shapes, (numel + 1,)] if self.chance(0.05) else shapes)

    def use_stale_view(self) -> None:
        """Every other time: arithmetic, a view or a change of a view that is stale now."""
        stale = [n for n in self.tensors if self.is_stale(n) and bounded(self.tensors[n])]
        if not stale or self.chance(0.5):
            return
        ref = Ref(self.random.choice(stale))
        kind = self.random.choice(("*", "*", "getitem", ".mul_"))
        if kind == ".mul_" and overlaps_itself(self.tensors[ref.number]):
            return
        index_or_factor = self.basic_index(self.tensors[ref.number]) if kind == "getitem" else 2
        self.emit(kind, ref, index_or_factor)

    def inplace_arithmetic(self) -> None:
        if (target := self.pick_target(bounded)) is None:
            return
        x = self.tensors[target.number]
        other: Any = None if self.chance(0.4) else self.pick_source(x)
        op = self.random.choices(list(UPDATES), list(UPDATES.values()))[0]
        if other is None:
            other = self.random.choice((2, -1, 0.5, 1.5, 3))
        elif op == ".add_" and self.chance(0.3):
            self.emit(op, target, other, alpha=2)
            return
        self.emit(op, target, other)

    def inplace_unary(self) -> None:
        op = self.random.choice(("exp_", "tanh_", "relu_", "sigmoid_", "sin_", "neg_", "abs_"))
        if target := self.pick_target(small if op == "exp_" else bounded):
            self.emit(f".{op}", target)

    def assignment(self) -> None:
        if (target := self.pick_target()) is None:
            return
        x = self.tensors[target.number]
        kind = self.random.random()
        if kind < 0.75 or not x.dim() or not x.shape[0]:
            index = self.basic_index(x)
        elif kind < 0.9:
            index = Const([self.random.randrange(x.shape[0]) for _ in range(2)], "int64")
            if index.data[0] == index.data[1]:  # which of two values wins is undefined
                return
        else:
            index = Const([self.chance(0.5) for _ in range(x.shape[0])], "bool")
        if self.chance(0.5):
            self.emit("setitem", target, index, self.random.choice((0, 1.5, -2, True)))
            return
        try:
            region = x[index.tensor(torch)] if isinstance(index, Const) else x[index]
        except (IndexError, RuntimeError):
            region = x
        source = self.pick_source(region)
        if source and isinstance(index, Const) and share_memory(x, self.tensors[source.number]):
            return  # refused for dense tensors, undefined for others
        self.emit("setitem", target, index, source or 0.5)

    def overwrite(self) -> None:
        if (target := self.pick_target()) is None:
            return
        kind = self.random.random()
        if kind < 0.55:
            if source := self.pick_source(self.tensors[target.number]):
                self.emit(".copy_", target, source)
        elif kind < 0.8:
            scalars = self.pick(lambda tensor: not tensor.dim() and bounded(tensor))
            self.emit(".fill_", target, scalars if scalars and self.chance(0.3) else self.scalar())
        else:
            self.emit(".zero_", target)

    def autograd_flag(self) -> None:
        op = self.random.choices(
            ("detach", "clone", "detach_", "requires_grad_", "contiguous"), (4, 4, 1, 3, 1)
        )[0]
        if op == "requires_grad_":
            if ref := self.pick(lambda tensor: bool(flag(tensor, "is_leaf"))):
                self.emit(".requires_grad_", ref, *([False] if self.chance(0.15) else []))
        elif ref := self.pick():
            self.emit(f".{op}", ref)

    def reduction(self) -> None:
        if (ref := self.pick(bounded)) is None:
            return
        x = self.tensors[ref.number]
        op = self.random.choice(REDUCTIONS)
        if op == "cumsum" or (x.dim() and self.chance(0.6)):
            dim: Any = self.dim(x)
            if op in ("sum", "mean", "amax") and x.dim() > 1 and self.chance(0.3):
                dim = (0, 1)
            keep = {"keepdim": True} if op != "cumsum" and self.chance(0.3) else {}
            self.emit(f".{op}", ref, dim, **keep)
        elif op not in ("amax", "amin"):
            self.emit(f".{op}", ref)

    def joined(self) -> None:
        if (ref := self.pick(bounded)) is None:
            return
        x = self.tensors[ref.number]
        if self.chance(0.4) and (condition := self.pick(lambda tensor: tensor.dtype is torch.bool)):
            if broadcasts(x.shape, self.tensors[condition.number].shape, False):
                other = self.pick_partner(tuple(x.shape)) or 0.0
                self.emit("torch.where", condition, ref, other)
            return
        same = self.pick(lambda tensor: tensor.shape == x.shape) or ref
        if x.numel() * 2 <= MOST_ELEMENTS:
            self.emit(self.random.choice(("torch.cat", "torch.stack")), [ref, same], self.dim(x))

    def advanced_index(self) -> None:
        if (ref := self.pick(lambda tensor: tensor.dim() > 0 and tensor.shape[0] > 0)) is None:
            return
        size = self.tensors[ref.number].shape[0]
        if self.chance(0.6):
            low = -size if self.chance(0.97) else -size - 1
            index = Const([self.random.randrange(low, size) for _ in range(3)], "int64")
        else:
            index = Const([self.chance(0.5) for _ in range(size)], "bool")
        self.emit("getitem", ref, index)

    def conversion(self) -> None:
        if ref := self.pick(bounded):
            dtype = self.random.choice(("float32", "float64", "float64", "int64", "bool"))
            self.emit(".to", ref, Dtype(dtype))

    def matrix_product(self) -> None:
        if (left := self.pick(lambda tensor: tensor.dim() in (1, 2) and small(tensor))) is None:
            return
        inner = self.tensors[left.number].shape[-1]
        right = self.pick(lambda t: t.dim() in (1, 2) and small(t) and t.shape[0] == inner)
        if right := right or self.pick(small):
            self.emit("@", left, right)

    def softmax(self) -> None:
        if ref := self.pick(bounded):
            op = self.random.choice((".softmax", ".log_softmax"))
            self.emit(op, ref, self.dim(self.tensors[ref.number]))

    def backward(self, retain: float) -> None:
        """One to three tensors, mostly ones that require grad; each element's gradient differs.

        Three in four times roots are taken whose backward does not raise, if a few tries find some.
        """
        able = [n for n, t in self.tensors.items() if flag(t, "requires_grad")]
        numbers = able if able and self.chance(0.97) else list(self.tensors)
        numbers = [n for n in numbers if self.tensors[n].numel() <= MOST_ELEMENTS]
        if not numbers:
            return
        weights = [
            6.0 if self.is_stale(n) else 0.3 if flag(self.tensors[n], "is_leaf") else 2.0
            for n in numbers
        ]
        tries = 4 if self.chance(0.75) else 1
        while True:
            drawn = self.random.choices(numbers, weights, k=self.random.choice((1, 1, 2, 3)))
            roots = list(dict.fromkeys(drawn))
            gradients = [self.gradient(self.tensors[number]) for number in roots]
            tries -= 1
            if not tries or self.can_go_back(roots, gradients):
                break
        given = [gradients] if self.chance(0.97) else []
        options = {"retain_graph": True} if self.chance(retain) else {}
        self.emit("backward", [Ref(number) for number in roots], *given, **options)

    def gradient(self, tensor: torch.Tensor) -> Const:
        counter = itertools.count()
        data = nested(tuple(tensor.shape), lambda: (next(counter) % 7 + 1) / 4)
        dtype = str(tensor.dtype).removeprefix("torch.")
        return Const(data, dtype, None if tensor.numel() else tuple(tensor.shape))

    def can_go_back(self, roots: list[int], gradients: list[Const]) -> bool:
        """Whether backward from these roots raises nothing; leaves no trace in any `.grad`."""
        leaves = [t for t in self.tensors.values() if flag(t, "is_leaf") and t.requires_grad]
        try:
            torch.autograd.grad(
                [self.tensors[number] for number in roots],
                leaves,
                [gradient.tensor(torch) for gradient in gradients],
                retain_graph=True,
                allow_unused=True,
            )
        except (RuntimeError, ValueError):
            return False
        return True
