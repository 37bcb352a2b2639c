"""Sums of products written with indices (Einstein's convention)."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import flambeau as fb
from flambeau._dispatch.arguments import dim_of, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public

_ELLIPSIS = "..."


@public(method=False)
def einsum(equation: object, *operands: object) -> Tensor:
    """The sum of products that an equation of subscripts names, as in ``"bij,bjk->bik"``.

    Every operand names its dimensions by letters. Equal letters are multiplied elementwise, letters
    that the result does not name are summed, a letter repeated in one operand takes its diagonal,
    and ``...`` stands for dimensions that broadcast. Without ``->`` the result has the letters that
    occur once, in alphabetical order, after those of ``...``. Operands are contracted from left to
    right.

    Subscripts may also be lists of numbers after each operand: ``einsum(a, [0, 1], b, [1, 2], [0,
    2])``.

    Raises:
        RuntimeError: the equation is malformed, or does not fit the operands.
        ValueError: there is no operand, or a number is outside of [0, 52).

    >>> import flambeau as fb
    >>> fb.einsum("ij,j->i", fb.tensor([[1, 2], [3, 4]]), fb.tensor([1, 10]))
    tensor([21, 43])
    """
    if isinstance(equation, str):
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            # Through the public name: classes see operands, not lists of them.
            return fb.einsum(equation, *operands[0])
        tensors = [need_tensor(x, "einsum", "operands") for x in operands]
        if len(tensors) == 2:
            x, y = tensors
            if (product := _product(equation, tuple(x._a.shape), tuple(y._a.shape))) is not None:
                return product.of(x, y)
        inputs, output = _parsed(equation)
    else:
        tensors, inputs, output = _from_lists((equation, *operands))
    if not tensors:
        raise ValueError("einsum(): must provide at least one operand")
    if len(inputs) != len(tensors):
        fewer = "fewer" if len(inputs) > len(tensors) else "more"
        raise RuntimeError(
            f"einsum(): {fewer} operands were provided than specified in the equation: "
            f"{len(tensors)} operands, {len(inputs)} lists of subscripts"
        )
    return _contracted(tensors, inputs, output)


@dataclass(frozen=True)
class _Product:
    """A matrix product of two operands: what each is arranged and reshaped to, and the result.

    None stands for what is right as it is.  Where nothing is summed it is one of elements.
    """

    is_turned: bool
    is_outer: bool
    orders: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    shapes: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    shape: tuple[int, ...] | None
    order: tuple[int, ...]

    def of(self, x: Tensor, y: Tensor) -> Tensor:
        if self.is_turned:
            x, y = y, x
        if (order := self.orders[0]) is not None:
            x = x.permute(order)
        if (order := self.orders[1]) is not None:
            y = y.permute(order)
        if (shape := self.shapes[0]) is not None:
            x = x.reshape(shape)
        if (shape := self.shapes[1]) is not None:
            y = y.reshape(shape)
        found = x * y if self.is_outer else x @ y
        if self.shape is not None:
            found = found.reshape(self.shape)
        return found.permute(self.order)  # a view, as of all equations


@lru_cache(1024)  # programs have few equations, of few shapes
def _product(equation: str, first: tuple[int, ...], second: tuple[int, ...]) -> _Product | None:
    """How two operands are multiplied, of which all that is summed is in both; None of others."""
    inputs, output = _parsed(equation)
    if output is None or len(inputs) != 2:
        return None
    x, y = inputs
    rests = [
        len(shape) - len(names) + 1 if _ELLIPSIS in names else 0
        for names, shape in ((x, first), (y, second))
    ]
    dots = [f".{i}" for i in range(max(0, *rests))]
    x, y = (_without_dots(n, dots, rest) for n, rest in zip((x, y), rests, strict=True))
    output = _without_dots(output, dots, len(dots))
    kinds = Counter((*x, *y)), Counter(output)
    if len(x) != len(first) or len(y) != len(second):
        return None
    if any(name in kinds[0] and name not in kinds[1] for name in dots):
        return None
    once = len({*x}) == len(x) and len({*y}) == len(y) and len(kinds[1]) == len(output)
    alone = {name for name, count in kinds[0].items() if count == 1}
    if not once or not alone <= {*output} <= {*kinds[0]}:
        return None
    sizes = dict(zip(x, first, strict=True))
    if any(sizes.setdefault(name, n) != n for name, n in zip(y, second, strict=True)):
        return None
    is_turned = _follows(x, y, output)
    if is_turned:
        x, y = y, x
    batch = [name for name in x if name in y and name in output]
    inner = [name for name in x if name in y and name not in output]
    rows, columns = [n for n in x if n not in y], [n for n in y if n not in x]
    head = tuple(sizes[name] for name in batch)

    def together(names: list[str]) -> int:
        return math.prod(sizes[name] for name in names)

    def arranged(names: list[str], wanted: list[str]) -> tuple[int, ...] | None:
        return None if names == wanted else tuple(names.index(name) for name in wanted)

    made = [*batch, *rows, *columns]
    order = tuple(made.index(name) for name in output)
    if not inner:
        orders = arranged(x, [*batch, *rows]), arranged(y, [*batch, *columns])
        high = (*head, *(sizes[name] for name in rows), *(1,) * len(columns))
        wide = (*head, *(1,) * len(rows), *(sizes[name] for name in columns))
        shapes = high if columns else None, wide if rows else None
        return _Product(is_turned, True, orders, shapes, None, order)
    depth = together(inner)
    plain = [len(part) == 1 for part in (rows, inner, columns)]
    return _Product(
        is_turned,
        False,
        (arranged(x, [*batch, *rows, *inner]), arranged(y, [*batch, *inner, *columns])),
        (
            None if plain[0] and plain[1] else (*head, together(rows), depth),
            None if plain[1] and plain[2] else (*head, depth, together(columns)),
        ),
        None if plain[0] and plain[2] else tuple(sizes[name] for name in made),
        order,
    )


def _without_dots(names: list[str], dots: list[str], rest: int) -> list[str]:
    """Subscripts with the last `rest` of `dots` in the place of an ellipsis."""
    found: list[str] = []
    for name in names:
        found += dots[len(dots) - rest :] if name == _ELLIPSIS and rest >= 0 else [name]
    return found


def _parsed(equation: str) -> tuple[list[list[str]], list[str] | None]:
    left, arrow, right = equation.partition("->")
    inputs = [_letters(part, equation) for part in left.split(",")]
    return inputs, _letters(right, equation) if arrow else None


def _letters(part: str, equation: str) -> list[str]:
    found: list[str] = []
    text = part.replace(" ", "")
    i = 0
    while i < len(text):
        if text.startswith(_ELLIPSIS, i):
            if _ELLIPSIS in found:
                raise RuntimeError(
                    f"einsum(): found '.' for operand for which an ellipsis was already found in "
                    f"{equation!r}"
                )
            found.append(_ELLIPSIS)
            i += 3
        elif text[i].isascii() and text[i].isalpha():
            found.append(text[i])
            i += 1
        else:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {i} of {part!r} in {equation!r}: "
                "subscripts are letters and '...'"
            )
    return found


def _from_lists(args: tuple[Any, ...]) -> tuple[list[Tensor], list[list[str]], list[str] | None]:
    output = _numbers(args[-1]) if len(args) % 2 else None
    pairs = args[: len(args) // 2 * 2]
    tensors = [need_tensor(x, "einsum", "operands") for x in pairs[::2]]
    return tensors, [_numbers(sub) for sub in pairs[1::2]], output


def _numbers(subscripts: Any) -> list[str]:
    found = []
    for s in subscripts:
        if s is Ellipsis:
            found.append(_ELLIPSIS)
            continue
        n = operator.index(s)
        if not 0 <= n < 52:
            raise ValueError(f"einsum(): subscripts must be in the range [0, 52), got {n}")
        found.append(chr(ord("A") + n) if n < 26 else chr(ord("a") + n - 26))
    return found


def _contracted(tensors: list[Tensor], inputs: list[list[str]], output: list[str] | None) -> Tensor:
    broadcast = max(
        (
            x.dim() - len(sub) + 1
            for x, sub in zip(tensors, inputs, strict=True)
            if _ELLIPSIS in sub
        ),
        default=0,
    )
    dots = [f".{i}" for i in range(broadcast)]
    labels = [_labels(i, x, s, dots) for i, (x, s) in enumerate(zip(tensors, inputs, strict=True))]
    if output is None:
        once = sorted(_single(inputs))
        wanted = [*dots, *once]
    else:
        wanted = _output_labels(output, dots, labels)
    sizes: dict[str, int] = {}
    terms = []
    for i, (x, names) in enumerate(zip(tensors, labels, strict=True)):
        x, names = _diagonals(i, x, names)
        for name, n in zip(names, x.shape, strict=True):
            if sizes.get(name, 1) == 1:
                sizes[name] = n
            elif n not in (1, sizes[name]):
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {n} for operand {i} which does not "
                    f"broadcast with previously seen size {sizes[name]}"
                )
        terms.append((x, names))
    return _reduced(terms, wanted)


def _single(inputs: list[list[str]]) -> list[str]:
    letters = [name for sub in inputs for name in sub if name != _ELLIPSIS]
    return [name for name in set(letters) if letters.count(name) == 1]


def _labels(place: int, x: Tensor, subscripts: list[str], dots: list[str]) -> list[str]:
    named = len(subscripts) - (_ELLIPSIS in subscripts)
    rest = x.dim() - named
    if rest < 0 or (rest and _ELLIPSIS not in subscripts):
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({named}) does not match the "
            f"number of dimensions ({x.dim()}) for operand {place}"
            + ("" if _ELLIPSIS in subscripts or rest < 0 else " and no ellipsis was given")
        )
    found: list[str] = []
    for name in subscripts:
        found += dots[len(dots) - rest :] if name == _ELLIPSIS else [name]
    return found


def _output_labels(output: list[str], dots: list[str], labels: list[list[str]]) -> list[str]:
    known = {name for names in labels for name in names}
    wanted: list[str] = []
    for name in output:
        if name == _ELLIPSIS:
            wanted += dots
        elif name in wanted:
            raise RuntimeError(
                f"einsum(): output subscript {name} appears more than once in the output"
            )
        elif name not in known:
            raise RuntimeError(
                f"einsum(): output subscript {name} does not appear in the equation for any input "
                "operand"
            )
        else:
            wanted.append(name)
    return wanted


def _diagonals(place: int, x: Tensor, names: list[str]) -> tuple[Tensor, list[str]]:
    """`x` with each repeated name replaced by one dimension, the diagonal of its dimensions."""
    names = list(names)
    for name in sorted({n for n in names if names.count(n) > 1}):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            a, b = x.shape[first], x.shape[second]
            if a != b:
                raise RuntimeError(
                    f"einsum(): subscript {name} is repeated for operand {place} but the sizes "
                    f"don't match, {b} != {a}"
                )
            x = x.diagonal(0, first, second)
            del names[second], names[first]
            names.append(name)
    return x, names


def _reduced(terms: list[tuple[Tensor, list[str]]], wanted: list[str]) -> Tensor:
    x, names = terms[0]
    for i, (y, others) in enumerate(terms[1:], 1):
        later = {*wanted, *(name for _, more in terms[i + 1 :] for name in more)}
        if _follows(names, others, wanted):
            x, names = _pair(y, others, x, names, later)
        else:
            x, names = _pair(x, names, y, others, later)
    gone = tuple(i for i, name in enumerate(names) if name not in wanted)
    if gone:  # only a lone operand has names left to sum
        x, names = x.sum(gone), [name for name in names if name in wanted]
    missing = [name for name in wanted if name not in names]  # dimensions of '...' no operand has
    order = [names.index(name) for name in wanted if name not in missing]
    x = x.permute(tuple(order))
    for place, name in enumerate(wanted):
        if name in missing:
            x = x.unsqueeze(place)
    return x


def _follows(left: list[str], right: list[str], wanted: list[str]) -> bool:
    """Whether what `right` alone has comes first in the result, which is then its rows."""
    alone = [name for name in wanted if (name in left) != (name in right)]
    return bool(alone) and alone[0] in right


def _summed(x: Tensor, names: list[str], keep: set[str]) -> tuple[Tensor, list[str]]:
    gone = [i for i, name in enumerate(names) if name not in keep]
    if gone:
        x = x.sum(tuple(gone))
    return x, [name for name in names if name in keep]


def _pair(
    x: Tensor, x_names: list[str], y: Tensor, y_names: list[str], later: set[str]
) -> tuple[Tensor, list[str]]:
    """The product of two operands, summed over the names that nobody needs later.

    Names fall into four kinds: of the batch (in both, kept), contracted (in both, summed), of the
    left and of the right alone.  Size-1 dimensions that broadcast are left to the side that has the
    size.
    """
    left_dtype, right_dtype = x.dtype, y.dtype
    x, x_names = _summed(x, x_names, {*later, *y_names})
    y, y_names = _summed(y, y_names, {*later, *x_names})
    for name in [n for n in x_names if n in y_names]:
        i, j = x_names.index(name), y_names.index(name)
        m, n = x.shape[i], y.shape[j]
        if m != n:
            if m == 1:
                x, x_names = x.squeeze(i), [*x_names[:i], *x_names[i + 1 :]]
            else:
                y, y_names = y.squeeze(j), [*y_names[:j], *y_names[j + 1 :]]
    x, x_names = _summed(x, x_names, {*later, *y_names})
    y, y_names = _summed(y, y_names, {*later, *x_names})
    both = [n for n in x_names if n in y_names]
    batch = [n for n in both if n in later]
    inner = [n for n in both if n not in later]
    left = [n for n in x_names if n not in both]
    right = [n for n in y_names if n not in both]
    if not inner:  # an outer product: no sum, so no matrix product
        a = _arranged(x, x_names, [*batch, *left])
        b = _arranged(y, y_names, [*batch, *right])
        a = a.reshape((*a.shape, *(1,) * len(right)))
        b = b.reshape((*b.shape[: len(batch)], *(1,) * len(left), *b.shape[len(batch) :]))
        return a * b, [*batch, *left, *right]
    # Sums of integers are int64, which the other operand of a matrix product need not be.
    a = cast(_arranged(x, x_names, [*batch, *left, *inner]), left_dtype)
    b = cast(_arranged(y, y_names, [*batch, *inner, *right]), right_dtype)
    nb, nl, ni = len(batch), len(left), len(inner)
    head, rows = a.shape[:nb], a.shape[nb : nb + nl]
    depth, columns = math.prod(a.shape[nb + nl :]), b.shape[nb + ni :]
    product = a.reshape((*head, math.prod(rows), depth)) @ b.reshape(
        (*head, depth, math.prod(columns))
    )
    return product.reshape((*head, *rows, *columns)), [*batch, *left, *right]


def _arranged(x: Tensor, names: list[str], order: list[str]) -> Tensor:
    return x if names == order else x.permute(tuple(names.index(n) for n in order))


@public(method=False)
def tensordot(
    a: Tensor,
    b: Tensor,
    dims: int | Sequence[int] | Sequence[Sequence[int]] | Tensor = 2,
    out: Tensor | None = None,
) -> Tensor:
    """The product of two tensors summed over pairs of dimensions.

    `dims` is a number n (the last n dimensions of `a` with the first n of `b`) or two lists.

    Raises:
        RuntimeError: the sizes of a pair differ, or the lists have different lengths.

    >>> import flambeau as fb
    >>> fb.tensordot(fb.ones(2, 3, 4), fb.ones(3, 4, 5)).shape
    torch.Size([2, 5])
    """
    x, y = need_tensor(a, "tensordot", "a"), need_tensor(b, "tensordot", "b")
    given: Any = dims.tolist() if isinstance(dims, Tensor) else dims
    if isinstance(given, (list, tuple)):
        mine, its = ([d] if isinstance(d, int) else list(d) for d in given)
    else:
        dims = operator.index(given)
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(x.dim(), y.dim()):
            raise RuntimeError(
                f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims} for tensors of "
                f"{x.dim()} and {y.dim()} dimensions"
            )
        mine, its = list(range(x.dim() - dims, x.dim())), list(range(dims))
    if len(mine) != len(its):
        raise RuntimeError(
            f"both dimension lists should have same length, got {len(mine)} and {len(its)}"
        )
    mine, its = [dim_of(d, x.dim()) for d in mine], [dim_of(d, y.dim()) for d in its]
    for i, j in zip(mine, its, strict=True):
        if x.shape[i] != y.shape[j] and 1 not in (x.shape[i], y.shape[j]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {x.shape[i]} in dim {i} "
                f"and second has size {y.shape[j]} in dim {j}"
            )
    x_names = [f"x{i}" for i in range(x.dim())]
    y_names = [f"y{j}" for j in range(y.dim())]
    for k, (i, j) in enumerate(zip(mine, its, strict=True)):
        x_names[i] = y_names[j] = f"k{k}"
    wanted = [n for n in (*x_names, *y_names) if not n.startswith("k")]
    return deliver(
        _reduced([(x, x_names), (y, y_names)], wanted).contiguous(),
        out,
        a,
        b,
        exact=True,
        share="anything",
    )
