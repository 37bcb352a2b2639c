"""Shape and argument rules that ops share."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import recording
from flambeau._dispatch import dispatch as _dispatch
from flambeau._memory.views import edge
from flambeau._types.spec import Spec

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor

_MANY = 1 << 20
"""Elements whose places in memory are looked at before the elements are."""


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape to which all `shapes` broadcast.

    Raises:
        RuntimeError: two sizes of one dimension differ and neither is 1.
    """
    out: list[int] = list(shapes[0]) if shapes else []
    for shape in shapes[1:]:
        a, b = (out, list(shape)) if len(out) >= len(shape) else (list(shape), out)
        merged = list(a)
        for i in range(1, len(b) + 1):
            if a[-i] == b[-i] or b[-i] == 1:
                continue
            if a[-i] != 1:
                first, second = (out, shape)
                raise RuntimeError(
                    f"The size of tensor a ({first[-i]}) must match the size of tensor b "
                    f"({second[-i]}) at non-singleton dimension {len(merged) - i}"
                )
            merged[-i] = b[-i]
        out = merged
    return tuple(out)


def broadcast(*specs: Any) -> Spec:
    """The spec of an elementwise op: the common shape, the dtype of the first operand."""
    return Spec(broadcast_shapes(*[s.shape for s in specs]), specs[0].dtype)


def reduced(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> tuple[int, ...]:
    """The shape after a reduction over `dims`."""
    if keepdim:
        return tuple(1 if i in dims else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in dims)


def dim_of(dim: Any, ndim: int, *, scalar_as_vector: bool = True) -> int:
    """A dimension as a non-negative int; 0-d tensors accept 0 and -1.

    Raises:
        IndexError: it is out of range.
        TypeError: it is no integer.
    """
    if type(dim) is int and -ndim <= dim < ndim:
        return dim + ndim if dim < 0 else dim
    try:
        d = int(operator.index(dim))  # bools and enumerations, too, become plain
    except TypeError:
        raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}") from None
    n = ndim if ndim or not scalar_as_vector else 1
    if not -n <= d < n:
        if n == 0:
            raise IndexError(f"Dimension specified as {d} but tensor has no dimensions")
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})"
        )
    return d + n if d < 0 else d


_EVERY = tuple([tuple(range(n)) for n in range(8)])


def dims_of(dim: object, ndim: int, *, empty_is_all: bool = True) -> tuple[int, ...]:
    """One, several or all (None) dimensions as ascending non-negative ints.

    Raises:
        IndexError: one is out of range.
        RuntimeError: one appears twice.
    """
    if dim is None:
        return _EVERY[ndim] if ndim < len(_EVERY) else tuple(range(ndim))
    if not isinstance(dim, (list, tuple)):
        d = dim_of(dim, ndim)
        return (d,) if ndim else ()
    if not dim and empty_is_all:
        return tuple(range(ndim))
    found = [dim_of(d, ndim) for d in dim]
    for d in found:
        if found.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return tuple(sorted(found)) if ndim else ()


def need_list(value: object, function: str, argument: str) -> Any:
    """`value` if it is a tuple or list.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, (tuple, list)):
        raise TypeError(
            f"{function}(): argument {argument!r} must be tuple of ints, not {type(value).__name__}"
        )
    return value


def sizes(args: tuple[Any, ...], name: str = "size") -> tuple[int, ...]:
    """``f(2, 3)`` and ``f((2, 3))`` as one tuple of ints.

    Raises:
        TypeError: an entry is no integer.
    """
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = tuple(args[0])
    try:
        return tuple(map(operator.index, args))
    except TypeError:
        bad = next((n for n in args if not hasattr(n, "__index__")), args[0])
        raise TypeError(
            f"argument {name!r} must be a tuple of ints, but found element of type "
            f"{type(bad).__name__}"
        ) from None


def infer_size(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """`shape` with its -1, if any, replaced so that it holds `numel` elements.

    Raises:
        RuntimeError: no size fits, or there are several -1.
    """
    unknown = [i for i, n in enumerate(shape) if n == -1]
    if len(unknown) > 1:
        raise RuntimeError("only one dimension can be inferred")
    known = 1
    for n in shape:
        if n < -1:
            raise RuntimeError(f"invalid shape dimension {n}")
        if n != -1:
            known *= n
    if unknown:
        if known == 0:
            if numel == 0:
                raise RuntimeError(
                    f"cannot reshape tensor of 0 elements into shape {list(shape)} because the "
                    "unspecified dimension size -1 can be any value and is ambiguous"
                )
        elif numel % known == 0:
            i = unknown[0]
            return (*shape[:i], numel // known, *shape[i + 1 :])
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    if known != numel:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return tuple(shape)


def checked_sizes(shape: Sequence[int]) -> tuple[int, ...]:
    """`shape` if no entry is negative or beyond int64.

    Raises:
        RuntimeError: an entry is, or their product.
    """
    if len(shape) == 1 and 0 <= shape[0] <= _MANY and type(shape) is tuple:
        return shape
    count = 1
    for n in shape:
        if n < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {n}: {list(shape)}"
            )
        count *= n
        if n >= 1 << 63:
            raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    if count >= 1 << 63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    return tuple(shape)


def pair(value: Any, name: str, count: int = 2) -> tuple[int, ...]:
    """One int for every spatial dimension, or one each.

    Raises:
        RuntimeError: the number of values is neither 1 nor `count`.
    """
    if isinstance(value, (tuple, list)):
        if len(value) == 1:
            return tuple(value) * count
        if len(value) != count:
            raise RuntimeError(
                f"{name}: expected a single integer or a list of {count} values, got {list(value)}"
            )
        return tuple(operator.index(v) for v in value)
    return (operator.index(value),) * count


def is_within(index: Tensor, size: int) -> bool:
    """Whether the device finds at once that an int64 tensor's elements are in [0, size)."""
    look = getattr(index._be.backend, "lies_within", None)
    return look is not None and look(index._a, size) is True


def checked(
    index: Tensor,
    size: int,
    error: type[Exception],
    text: str,
    facts: tuple[Any, ...],
    *,
    wrap: bool = False,
    allowed: int | None = None,
) -> Tensor:
    """`index`, int64, as one whose elements are in [0, size), or `allowed`.

    With `wrap`, negative ones count from the end.  A device that finds out by itself is not waited
    for: it raises when it next is (see `flambeau.plugin.Accelerator.checked_index`).

    Raises:
        error: an element is out of range, with ``text.format(*facts, index=...)`` as message.

    >>> import flambeau as fb
    >>> from flambeau.overrides import checked
    >>> checked(fb.tensor([0, -1]), 3, IndexError, "{index} is no row of {}", (3,), wrap=True)
    tensor([0, 2])
    """
    be, a = index._be, index._a
    if is_within(index, size) or 0 in a.shape or be.device.type == "meta":
        return index
    if (check := getattr(be.backend, "checked_index", None)) is not None:
        late = check(a, size, wrap, allowed, error, text.format(*facts, index="{index}"))
        if late is not None:
            return _dispatch.wrap(be, late, index.dtype)
    low, high = extent(index)
    below = low < (-size if wrap else 0)
    if below or high >= size:
        bad = low if below else high
        if allowed is not None:
            wrong = ((index < 0) | (index >= size)) & (index != allowed)
            if not wrong.any().item():
                return index
            bad = index[wrong][0].item()
        raise error(text.format(*facts, index=bad))
    return (index + (index < 0) * size).detach() if low < 0 else index


def check_values(x: Tensor, low: float, high: float, text: str) -> None:
    """See to it that the elements of a real tensor are in [low, high], in which NaN is not.

    A device that looks by itself is not waited for: it raises when it next is (see
    `flambeau.plugin.Accelerator.check_values`).

    Raises:
        RuntimeError: an element is elsewhere, with `text` as message.

    >>> import flambeau as fb
    >>> from flambeau.overrides import check_values
    >>> check_values(fb.tensor([0.5, 1.0]), 0, 1, "no probability")
    """
    be, a = x._be, x._a
    if 0 in a.shape or be.device.type == "meta":
        return
    a = _without_repeats(be, a)
    check = getattr(be.backend, "check_values", None)
    if check is not None and check(a, low, high, RuntimeError, text):
        return
    shape = a.shape
    if not shape or (len(shape) == 1 and shape[0] <= 32):
        values = be.backend.tolist(a)
        for value in values if shape else (values,):
            if not low <= value <= high:
                raise RuntimeError(text)
        return
    dims, item = tuple(range(len(shape))), be.backend.item
    inside = low <= item(be.fresh(be.amin(a, dims, False)))
    if inside and high < math.inf:
        inside = item(be.fresh(be.amax(a, dims, False))) <= high
    if not inside:
        raise RuntimeError(text)


def _without_repeats(be: BoundBackend, a: Any) -> Any:
    """The elements of an array that lie in different places, where it is large by expansion."""
    if math.prod(a.shape) <= _MANY or not be.strided or hasattr(be, "level"):
        return a
    steps = zip(a.shape, be.backend.strides(a), strict=True)
    return be.slice(a, tuple([slice(0, n if step else 1, 1) for n, step in steps]))


def extent(index: Tensor) -> tuple[int, int]:
    """The smallest and the largest element of an integer tensor that is not empty."""
    be = index._be
    a = _without_repeats(be, index._a)
    shape = a.shape
    if len(shape) == 1 and shape[0] <= 32:
        values = be.backend.tolist(a)
        return min(values), max(values)
    if len(shape) == 2 and shape[0] * shape[1] <= 32:
        rows = be.backend.tolist(a)
        values = rows[0] if len(rows) == 1 else [v for row in rows for v in row]
        return min(values), max(values)
    dims, item = tuple(range(len(shape))), be.backend.item
    return item(be.fresh(be.amin(a, dims, False))), item(be.fresh(be.amax(a, dims, False)))


def need_tensor(value: Any, function: str, argument: str) -> Tensor:
    """`value` if it is a tensor.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, _dispatch.Tensor_):
        raise TypeError(
            f"{function}(): argument {argument!r} must be Tensor, not {type(value).__name__}"
        )
    return value


def need_self(given: object, method: str) -> None:
    """A method was taken from the class: what it was given is a tensor.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(given, _dispatch.Tensor_):
        raise TypeError(
            f"descriptor {method!r} for 'torch.Tensor' objects doesn't apply to a "
            f"{type(given).__name__!r} object"
        ) from None


def need_tensors(values: tuple[Any, ...], function: str) -> list[Tensor]:
    """The tensors of a call in either form: ``f(a, b)`` or ``f([a, b])``.

    Raises:
        TypeError: one is none.
    """
    if len(values) == 1 and isinstance(values[0], (list, tuple)):
        values = tuple(values[0])
    return [need_tensor(x, function, "tensors") for x in values]


def need_number(value: Any, function: str, argument: str) -> Any:
    """`value` if it is a real number, or becomes one.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, (float, int)):  # a trace's numbers are; asked, they warn
        try:
            float(value)
        except (TypeError, ValueError):
            raise TypeError(
                f"{function}(): argument {argument!r} must be float, not {type(value).__name__}"
            ) from None
    return value


def need_input(value: object, function: str, argument: str) -> Tensor:
    """As `need_tensor`, for differentiable functions: refuses views that must not be followed.

    Raises:
        TypeError: it is no tensor.
        RuntimeError: it is a view whose history a write to its base has made ambiguous.
    """
    x = need_tensor(value, function, argument)
    if x._made is not None and recording():
        edge(x)
    return x
