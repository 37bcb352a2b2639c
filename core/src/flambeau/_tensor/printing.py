"""How tensors print: the print options and the text of `repr`, character for character PyTorch's.

A tensor is first turned into nested lists of Python numbers (only its corners when it is too large
to print), one `_Style` per tensor then decides how every number of it is written, so that columns
line up.  Nothing here needs more of a tensor than `shape`, `dtype`, `device`, `requires_grad`,
`grad_fn`, `detach()`, `item()`, `tolist()` and slicing.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from flambeau._types import dtype as _dtype

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor

Kind = TypeVar("Kind", bound=tuple[Any, ...])

_PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


@dataclass
class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_options = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print, for the whole process.

    Args:
        precision: digits after the decimal point of floating-point numbers (at first 4).
        threshold: a tensor with more elements than this prints only its corners (1000).
        edgeitems: how many entries of each dimension a corner keeps at either end (3).
        linewidth: columns after which a row of numbers wraps (80).
        profile: ``"default"``, ``"short"`` or ``"full"`` sets the four options above at once;
            those given beside it win.  Another word changes nothing, as in PyTorch.
        sci_mode: force scientific notation on or off; None, which every call that leaves it out
            restores, chooses it per tensor by the range of its values.

    Raises:
        TypeError: an option is no number, or `precision` no integer; nothing is set then.
        ValueError: `precision` is negative.

    >>> import flambeau as fb
    >>> fb.set_printoptions(precision=2)
    >>> fb.tensor([1.12345], device="ref")
    tensor([1.12], device='ref')
    >>> fb.set_printoptions(profile="default")
    """
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    for name, value in given.items():
        kind = numbers.Integral if name == "precision" else numbers.Real
        if value is not None and not isinstance(value, kind):
            wanted = "an int" if name == "precision" else "a number"
            raise TypeError(
                f"set_printoptions(): {name} must be {wanted}, not {type(value).__name__}"
            )
    if precision is not None and precision < 0:
        raise ValueError(f"set_printoptions(): precision must not be negative, got {precision}")
    changes = _PROFILES.get(profile or "", {}) | {k: v for k, v in given.items() if v is not None}
    for name, value in changes.items():
        setattr(_options, name, value)
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The print options, as keyword arguments of `set_printoptions`.

    >>> import flambeau as fb
    >>> fb.get_printoptions()
    {'precision': 4, 'threshold': 1000, 'edgeitems': 3, 'linewidth': 80, 'sci_mode': None}
    """
    return asdict(_options)


def _level(tensor: Tensor) -> Any:
    """The transform within which a tensor lives; other libraries' tensors are printed, too."""
    return getattr(getattr(tensor, "_be", None), "level", None)


def _numbers(tensor: Tensor) -> Any:
    """What tells the numbers of a tensor that says itself what ops make of it; None of others."""
    return getattr(getattr(tensor, "_be", None), "numbers", None)


def tensor_repr(tensor: Tensor, *, tensor_contents: str | None = None) -> str:
    """The text of ``repr(tensor)``: its numbers, then what cannot be read off them.

    Args:
        tensor: any tensor; of a large one only the corners are fetched.
        tensor_contents: text to print in place of the numbers.
    """
    if tensor_contents is None and (level := _level(tensor)) is not None:
        return level.describe(tensor)
    kind = type(tensor).__name__
    plain = kind in ("Tensor", "Parameter")
    prefix = "tensor(" if plain else f"{kind}("
    numel, meta = math.prod(tensor.shape), tensor.device.type == "meta"
    if tensor_contents is not None:
        contents = tensor_contents
    elif meta:
        contents = "..."
    elif numel == 0:
        contents = "[]"
    else:
        told = tensor.detach() if _numbers(tensor) is None else tensor
        contents = _contents(told, len(prefix))
    suffixes = [*_placement(tensor, meta=meta, empty=numel == 0), *_history(tensor)]
    text = _append(prefix + contents, suffixes, len(prefix))
    # Parameter belongs to nn, which core does not import: it is known by name.
    if not plain and any(base.__name__ == "Parameter" for base in type(tensor).__mro__):
        return f"Parameter({text})"
    return text


def sparse_repr(indices: Tensor, values: Tensor, facts: list[str], history: Tensor) -> str:
    """The text of a sparse tensor: positions and values, then what cannot be read off them."""
    parts = [("indices", indices), ("values", values)]
    lines = []
    for head, (name, t) in zip(("tensor(", " " * 7), parts, strict=True):
        indent = 7 + len(name) + 1
        if 0 in t.shape:
            size = f", size={tuple(t.shape)}"
            text = f"tensor([]{size})"
        else:
            text = f"tensor({_contents(t, indent + 7)})"
        lines.append(f"{head}{name}={text}")
    return _append(",\n".join([*lines, "       " + ", ".join(facts)]), _history(history), 7)


def tensor_format(tensor: Tensor, spec: str) -> str:
    """The text of ``format(tensor, spec)``: one number's own formatting, else `repr`.

    Raises:
        TypeError: `spec` is not empty and `tensor` is not a plain 0-d tensor with a value.

    >>> import flambeau as fb
    >>> f"{fb.tensor(2.5, device='ref'):.3f}"
    '2.500'
    """
    kind = type(tensor).__name__
    if kind == "Tensor" and not tensor.shape and tensor.device.type != "meta":
        return format(tensor.item(), spec)
    if spec:
        raise TypeError(
            f"unsupported format string passed to {kind}.__format__: {spec!r} formats one number, "
            f"this tensor has shape {tuple(tensor.shape)}; format its .item() or .tolist()"
        )
    return str(tensor)


def _placement(tensor: Tensor, *, meta: bool, empty: bool) -> Iterator[str]:
    """Device, size and dtype, each only where the printed numbers do not imply it."""
    dtype, default = str(tensor.dtype), str(_dtype.get_default_dtype())
    if tensor.device.type != "cpu":
        yield f"device='{tensor.device}'"
    if meta or (empty and len(tensor.shape) != 1) or not (empty or _options.edgeitems):
        yield f"size={tuple(tensor.shape)}"
    implied = {default}
    if not (meta or empty):  # no element shows an integer, a bool or a j
        default_complex = "complex128" if default == "torch.float64" else "complex64"
        implied |= {"torch.int64", "torch.bool", f"torch.{default_complex}"}
    if dtype not in implied:
        yield f"dtype={dtype}"


def _history(tensor: Tensor) -> Iterator[str]:
    """How the tensor takes part in autograd."""
    try:
        node = tensor.grad_fn
        name = None if node is None else node.name()
    except RuntimeError:  # a view whose history may not be rebuilt; printing must still work
        name = "Invalid"
    if name is not None:
        yield f"grad_fn=<{name}>"
    elif tensor.requires_grad:
        yield "requires_grad=True"


def _append(text: str, suffixes: Iterable[str], indent: int) -> str:
    """`text` closed by its suffixes, each on a new line if the current one has no room."""
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > _options.linewidth:
            text += f",\n{' ' * indent}{suffix}"
            column = indent + len(suffix)
        else:
            text += f", {suffix}"
            column += len(suffix) + 2
    return text + ")"


def _contents(tensor: Tensor, indent: int) -> str:
    """The numbers of a tensor that has some, in brackets, corners only if it is too large."""
    shape, edge = tuple(tensor.shape), _options.edgeitems
    summarise = math.prod(shape) > _options.threshold
    if summarise and shape and not edge:
        return "[...]"
    cut = tuple(summarise and size > 2 * edge for size in shape)
    values = _corners(tensor, 0, cut, edge)
    style = _style(list(_flat(values, len(shape))), tensor.dtype)
    if not shape:
        return style.text(values)
    return _brackets(values, cut, indent, style)


def _corners(tensor: Tensor, dim: int, cut: tuple[bool, ...], edge: int) -> Any:
    """Nested lists of the tensor, with the middle left out of every dimension that is cut."""
    while dim < len(cut) and not cut[dim]:
        dim += 1
    if dim == len(cut):
        numbers = _numbers(tensor)
        return tensor.tolist() if numbers is None else numbers(tensor)
    before, size = (slice(None),) * dim, tensor.shape[dim]
    head = _corners(tensor[(*before, slice(None, edge))], dim + 1, cut, edge)
    tail = _corners(tensor[(*before, slice(size - edge, None))], dim + 1, cut, edge)
    return _join(head, tail, dim)


def _join(head: list, tail: list, depth: int) -> list:
    """Two nested lists joined along the dimension at `depth`."""
    if depth == 0:
        return head + tail
    return [_join(a, b, depth - 1) for a, b in zip(head, tail, strict=True)]


def _flat(values: Any, depth: int) -> Iterator[Any]:
    """The numbers inside `depth` levels of lists."""
    if depth == 0:
        yield values
    else:
        for entry in values:
            yield from _flat(entry, depth - 1)


def _brackets(values: list, cut: tuple[bool, ...], indent: int, style: _Style) -> str:
    """Nested lists as text: rows wrap at the line width, deeper blocks stand further apart."""
    if len(cut) == 1:
        entries = [style.text(value) for value in values]
        ellipsis = " ..."  # PyTorch pads it inside a row, not between rows
        per_line = max(1, math.floor((_options.linewidth - indent) / (style.width + 2)))
    else:
        entries = [_brackets(value, cut[1:], indent + 1, style) for value in values]
        ellipsis = "..."
        per_line = 1
    if cut[0]:
        entries.insert(_options.edgeitems, ellipsis)
    lines = [", ".join(entries[i : i + per_line]) for i in range(0, len(entries), per_line)]
    separator = "," + "\n" * max(1, len(cut) - 1) + " " * (indent + 1)
    return "[" + separator.join(lines) + "]"


@dataclass(frozen=True)
class _Style:
    """How every number of one tensor is written, and the columns one takes."""

    text: Callable[[Any], str]
    width: int


def _style(values: list, dtype: _dtype.dtype) -> _Style:
    """The style that fits all of `values`."""
    if dtype.is_complex:
        return _complex_style(values)
    if dtype.is_floating_point:
        return _float_style(values)
    width = max(len(str(value)) for value in values)
    return _Style(lambda value: str(value).rjust(width), width)


def _float_style(values: Iterable[float]) -> _Style:
    """Fixed point, scientific, or whole numbers with a bare point.

    Only nonzero finite numbers decide, the width included: PyTorch lets ``nan`` and ``inf``
    stick out of narrow columns.
    """
    deciding = [value for value in values if value and math.isfinite(value)]
    whole = all(value.is_integer() for value in deciding)
    scientific = bool(deciding) and _is_scientific(deciding)
    digits = _options.precision
    spec = f".{digits}e" if scientific else ".0f" if whole else f".{digits}f"
    point = "." if whole and not scientific else ""
    width = max((len(format(value, spec) + point) for value in deciding), default=1)

    def text(value: float) -> str:
        return (format(value, spec) + (point if math.isfinite(value) else "")).rjust(width)

    return _Style(text, width)


def _is_scientific(values: list[float]) -> bool:
    """Whether the sizes of nonzero finite numbers are too many or too extreme for fixed point."""
    if _options.sci_mode is not None:
        return _options.sci_mode
    smallest, largest = min(map(abs, values)), max(map(abs, values))
    return largest / smallest > 1000 or largest > 1e8 or smallest < 1e-4


def _complex_style(values: list[complex]) -> _Style:
    """Real and imaginary parts, each in a style of its own; only the real part is padded."""
    real = _float_style(value.real for value in values)
    imag = _float_style(value.imag for value in values)

    def text(value: complex) -> str:
        part = imag.text(value.imag).lstrip()
        sign = "" if part.startswith(("+", "-")) else "+"
        return f"{real.text(value.real)}{sign}{part}j"

    return _Style(text, real.width + imag.width + 1)


def named_tuple(kind: type[Kind]) -> type[Kind]:
    """Make a class one of `flambeau.return_types`.

    It has PyTorch's `repr`, and is also called with one sequence, as PyTorch's are.
    """
    kind.__repr__ = _shown
    kind.__new__ = _made
    return kind


def _shown(self: Any) -> str:
    name = type(self).__name__.removesuffix("_return")
    fields = ",\n".join(f"{n}={v!r}" for n, v in zip(self._fields, self, strict=True))
    return f"torch.return_types.{name}(\n{fields})"


def _made(kind: Any, *parts: Any, **named: object) -> Any:
    fields = kind._fields
    if named:
        parts += tuple([named.pop(name) for name in fields[len(parts) :] if name in named])
    elif len(parts) == 1 != len(fields):
        parts = tuple(parts[0])
    if named or len(parts) != len(fields):
        name = kind.__name__.removesuffix("_return")
        raise TypeError(
            f"torch.return_types.{name}() takes a {len(fields)}-sequence "
            f"({len(parts)}-sequence given)"
        )
    return tuple.__new__(kind, parts)
