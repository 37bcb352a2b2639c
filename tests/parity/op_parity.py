"""Documented functions and methods on both libraries, over dtypes, layouts and argument variants.

An `Entry` says how to call some names: ``Entry("add sub", "x, y; x, y, alpha=2")``, or by programs,
``Entry("gather", programs=[lambda f, x, i: f(x, 1, i)])``.  Its forms (function, method, in-place
method, ``out=``) are those that PyTorch has; `cases` is their product with dtypes and layouts,
`compare` runs one case and says how the libraries differ.

Operands are letters: `SHAPES` has their usual shapes, an entry may say others.  Lengths of 3 become
0 in the layout ``empty``.  Where a call makes no sense for a layout, both must refuse it alike.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import math
import random
import re
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import flambeau as fb
from oracle import flattened

torch = pytest.importorskip("torch")

DTYPES = "float64 float32 float16 bfloat16 int64 int32 uint8 bool complex128".split()
REAL = "float64 float32 float16 bfloat16 int64 int32 uint8 bool".split()
FLOATING = "float64 float32 float16 bfloat16".split()
LAPACK = "float64 float32 complex128".split()
DOUBLE = ["float64", "float32"]
LAYOUTS = "contiguous transposed sliced expanded offset empty scalar special".split()
OUTS = "empty same strided wrong-shape wrong-dtype wider-dtype narrower-dtype".split()
OUTS += "input overlapping expanded grad".split()
VIEWS = (
    "narrowed transposed offset every-second selected as-many-elsewhere others-elsewhere".split()
)
"""Kinds of ``out=`` that are views; the memory around them is compared too."""

SHAPES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys("xyz", (2, 3)),
    **{"r": (3,), "c": (2, 1), "s": ()},  # broadcast against x
    **{"a": (2, 3), "b": (3, 4), "e": (2, 4), "v": (3,), "w": (2,), "u": (4,)},  # matrices, vectors
    **{"q": (3, 3), "h": (3, 3), "k": (2, 3, 3)},  # square; positive definite; a batch
    **{"A": (2, 2, 3), "B": (2, 3, 4), "E": (2, 2, 4)},  # batches of matrices
}
_FREE = set("xyzrscnio")  # operands that have a 0-dimensional form


@dataclass(frozen=True)
class Index:
    """An operand of int64 numbers in ``[low, high)``, whatever the dtype under test."""

    shape: tuple[int, ...]
    high: int
    low: int = 0
    distinct: bool = False


@dataclass(frozen=True)
class Entry:
    """How to call some names that take the same arguments; see the module.

    `programs` are lambdas of operands, of the library ``t`` and of the dtype ``d``.  Where the
    first parameter is ``f``, a lambda is a call of it and stands for all forms of a name; else it
    is the case itself.
    """

    names: str
    arguments: str = ""
    calls: str = ""  # whole expressions, for what is not `name(x, ...)`
    programs: list[Callable[..., Any]] = field(default_factory=list)
    values: str = "any"
    dtypes: list[str] = field(default_factory=lambda: DTYPES)
    layouts: list[str] = field(default_factory=lambda: LAYOUTS[:7])
    shapes: dict[str, Any] = field(default_factory=dict)
    out: bool = False
    gradient: bool = True
    tolerance: float = 1.0  # a factor, for ill-conditioned results
    inplace: bool = True


@dataclass(frozen=True)
class Case:
    """One call with one dtype and layout; `out` names a kind of ``out=`` argument."""

    entry: Entry = field(repr=False)
    name: str
    call: str
    dtype: str
    layout: str
    out: str = ""

    def __str__(self) -> str:
        return f"{self.call} [{self.dtype}, {self.layout}{self.out and ', out ' + self.out}]"


def calls_of(entry: Entry, name: str) -> Iterator[str]:
    """The expressions of an entry for one of its names, in every form that PyTorch has."""
    for call in filter(None, map(str.strip, entry.calls.split(";"))):
        yield call.replace("NAME", name)
    lists = [text.strip() for text in entry.arguments.split(";") if text.strip()]
    for program in entry.programs:
        text = _body(program)
        if program.__code__.co_varnames[0] == "f":
            lists.append(text.removeprefix("f(").removesuffix(")"))
        else:
            yield text
    for text in lists:
        first, _, rest = text.partition(", ")
        if hasattr(torch, name):
            yield f"t.{name}({text})"
        if first.isidentifier() and hasattr(torch.Tensor, name):
            yield f"{first}.{name}({rest})"
        if first.isidentifier() and entry.inplace and hasattr(torch.Tensor, name + "_"):
            yield f"{first}.{name}_({rest})"
            if hasattr(torch, name + "_"):
                yield f"t.{name}_({text})"


def _body(program: Callable[..., Any]) -> str:
    """The expression of a lambda, in one line."""
    code = program.__code__
    parts = [part for part in code.co_positions() if part[2:] != (0, 0)]  # without its frame's
    first, start = min((line, column) for line, _, column, _ in parts)
    last, end = max((line, column) for _, line, _, column in parts)
    lines = linecache.getlines(code.co_filename)[first - 1 : last]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return ast.unparse(ast.parse(f"({''.join(lines)})", mode="eval"))


def cases(entry: Entry, name: str) -> Iterator[Case]:
    """The full product of calls, dtypes and layouts."""
    for call in calls_of(entry, name):
        letters = set(_letters(call))
        for dtype, layout in itertools.product(entry.dtypes, entry.layouts):
            if layout == "scalar" and not letters <= _FREE:
                continue
            if layout == "special" and dtype not in FLOATING:
                continue
            yield Case(entry, name, call, dtype, layout)
        if entry.out and call.startswith(f"t.{name}("):
            for dtype, kind in itertools.product(("float64", "int64", "complex128"), OUTS):
                if dtype in entry.dtypes:
                    yield Case(entry, name, call, dtype, "contiguous", kind)


@functools.cache
def _letters(call: str) -> tuple[str, ...]:
    return tuple(sorted(set(re.findall(r"(?<![\w.])([a-ce-su-zABEin])(?![\w=(])", call))))


@functools.cache
def _code(call: str) -> Any:
    return compile(call, call, "eval")


def _numbers(count: int, dtype: str, kind: str, seed: random.Random) -> list[Any]:
    """Numbers that every floating dtype has exactly (eighths)."""
    if dtype == "bool":
        return [seed.random() < 0.6 for _ in range(count)]
    if dtype.startswith(("int", "uint")):
        low = 0 if dtype == "uint8" else -5
        low = 1 if kind == "positive" else low
        return [seed.randint(low, 1 if kind == "unit" else 6) for _ in range(count)]
    low, high = {"any": (-24, 24), "positive": (1, 24), "unit": (-7, 7), "above": (9, 30)}[kind]
    if kind == "any" or kind == "unit":
        drawn = [seed.choice([v for v in range(low, high + 1) if v % 4]) for _ in range(count)]
    else:
        drawn = [seed.randint(low, high) for _ in range(count)]
    if dtype.startswith("complex"):
        return [complex(v / 8, seed.randint(-10, 10) / 8) for v in drawn]
    return [v / 8 for v in drawn]


def _values(letter: str, case: Case) -> Any:
    """A row-major PyTorch tensor."""
    shape = case.entry.shapes.get(letter, SHAPES.get(letter, ()))
    seed = random.Random(zlib.crc32(f"{case.name}{letter}{case.dtype}".encode()))
    if letter == "n" and not isinstance(shape, Index):
        shape = _shrunk(shape or (2, 3), case.layout)
        flags = [seed.random() < 0.5 for _ in range(math.prod(shape))]
        return torch.tensor(flags, dtype=torch.bool).reshape(shape)
    if isinstance(shape, Index):
        size = _shrunk(shape.shape, case.layout)
        count = math.prod(size)
        drawn = (
            seed.sample(range(shape.low, shape.high), count)
            if shape.distinct
            else [seed.randrange(shape.low, shape.high) for _ in range(count)]
        )
        return torch.tensor(drawn, dtype=torch.int64).reshape(size)
    shape = _shrunk(shape, case.layout)
    dtype = getattr(torch, case.dtype)
    drawn = _numbers(math.prod(shape), case.dtype, case.entry.values, seed)
    made = torch.tensor(drawn, dtype=dtype).reshape(shape)
    if case.layout == "special" and made.numel() > 3:
        made.view(-1)[:4] = torch.tensor([math.nan, math.inf, -math.inf, -0.0], dtype=dtype)
    if letter == "h":
        made = made @ made.mH + 3 * torch.eye(shape[-1], dtype=dtype)
    return made


def _shrunk(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    if layout == "scalar":
        return ()
    return tuple([0 if n == 3 else n for n in shape]) if layout == "empty" else shape


def _base(values: Any, layout: str) -> Any:
    """The memory under a layout of `values`."""
    if layout == "transposed" and values.ndim > 1:
        return values.transpose(-1, -2).contiguous()
    if layout == "sliced" and values.ndim:
        return torch.stack([values, torch.ones_like(values)], -1).flatten(-2)
    if layout == "expanded" and values.ndim:
        return values[:1]
    if layout == "offset" and values.ndim:
        return torch.cat([torch.ones_like(values[:1]), values])
    return values


def _laid_out(base: Any, layout: str, shape: tuple[int, ...]) -> Any:
    if layout == "transposed" and len(shape) > 1:
        return base.transpose(-1, -2)
    if layout == "sliced" and shape:
        return base[..., ::2]
    if layout == "expanded" and shape:
        return base.expand(shape)
    if layout == "offset" and shape:
        return base[1:]
    return base


def to_ours(tensor: Any) -> Any:
    """PyTorch's tensor as ours, row-major."""
    dtype = getattr(fb, str(tensor.dtype).removeprefix("torch."))
    if not tensor.numel():
        return fb.empty(tuple(tensor.shape), dtype=dtype)
    return fb.tensor(tensor.tolist(), dtype=dtype)


def to_theirs(tensor: Any) -> Any:
    """Our tensor as PyTorch's, row-major."""
    dtype = getattr(torch, str(tensor.dtype).removeprefix("torch."))
    shape = tuple(tensor.shape)
    return torch.tensor(tensor.detach().flatten().tolist(), dtype=dtype).reshape(shape)


@dataclass
class Outcome:
    """What a library did with a case."""

    error: BaseException | None = None
    results: list[Any] = field(default_factory=list)
    operands: dict[str, Any] = field(default_factory=dict)
    bases: dict[str, Any] = field(default_factory=dict)
    gradients: list[Any] = field(default_factory=list)
    warned: list[type[Warning]] = field(default_factory=list)
    backward_error: BaseException | None = None


def compare(case: Case) -> str:
    """How the libraries differ in a case: an empty text if they do not."""
    values = {letter: _values(letter, case) for letter in _letters(case.call) if letter != "d"}
    differentiate = (
        case.entry.gradient
        and case.dtype in ("float64", "complex128")
        and case.layout != "special"
        and not case.out
    )
    theirs = _run(torch, case, values, lambda x: x.clone(), differentiate)
    ours = _run(fb, case, values, to_ours, differentiate)
    return _difference(theirs, ours, case)


def runs(case: Case) -> bool:
    """Whether PyTorch has an answer to a case, whatever ours is."""
    values = {letter: _values(letter, case) for letter in _letters(case.call) if letter != "d"}
    return _run(torch, case, values, lambda x: x.clone(), False).error is None


def _run(library: Any, case: Case, values: dict[str, Any], convert: Any, record: bool) -> Outcome:
    outcome = Outcome()
    names: dict[str, Any] = {"t": library, "d": getattr(library, case.dtype), "math": math}
    leaves: list[Any] = []
    for letter, value in values.items():
        base = convert(_base(value, case.layout))
        tensor = _laid_out(base, case.layout, tuple(value.shape))
        if record and (value.is_floating_point() or value.is_complex()):
            leaves.append(tensor.detach().requires_grad_())
            tensor = leaves[-1] * 1 if _writes(case.call) else leaves[-1]
        outcome.bases[letter] = base
        names[letter] = tensor
    outcome.operands = {letter: names[letter] for letter in values}
    code = case.call
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if case.out:
                code = _with_out(library, case, names)
            result = eval(_code(code), names)
            outcome.results = [*flattened(result), *names.get("wholes", ())]
        except Exception as error:
            outcome.error = error
            return outcome
        finally:
            outcome.warned = [w.category for w in caught if "resized" in str(w.message)]
        if record:
            try:
                outcome.gradients = _gradients(library, outcome.results, leaves)
            except Exception as error:
                outcome.backward_error = error
    return outcome


def _writes(call: str) -> bool:
    return re.search(r"\w_\(", call) is not None


def _with_out(library: Any, case: Case, names: dict[str, Any]) -> str:
    """The call with an ``out=`` argument of the kind of the case, which is put into `names`."""
    plain = flattened(eval(_code(case.call), names))
    made = []
    if case.out in VIEWS:
        made, wholes = zip(*[_view_for(library, result, case.out) for result in plain], strict=True)
        names["wholes"] = wholes
    for place, result in enumerate(plain if not made else ()):
        shape, dtype = tuple(result.shape), result.dtype
        if case.out == "empty":
            out = library.empty(0, dtype=dtype)
        elif case.out == "strided":
            out = library.zeros(*shape, 2, dtype=dtype)[..., 0]
        elif case.out == "wrong-shape":
            out = library.zeros(5, 2, dtype=dtype)
        elif case.out == "wrong-dtype":
            out = library.zeros(shape, dtype=library.int32 if place == 0 else dtype)
        elif case.out == "wider-dtype":
            out = library.zeros(shape, dtype=library.complex128 if place == 0 else dtype)
        elif case.out == "narrower-dtype":
            narrower = {"float64": library.float32, "int64": library.int16}
            narrower |= {"complex128": library.complex64, "float32": library.float16}
            kind = narrower.get(str(dtype).removeprefix("torch."), dtype)
            out = library.zeros(shape, dtype=kind)
        elif case.out == "input" and place == 0 and "x" in names:
            out = names["x"]
        elif case.out == "overlapping" and place == 0:
            flat = library.zeros(max(result.numel(), 1) + 1, dtype=dtype)
            out = flat[1:].reshape(shape) if result.numel() else flat
            for letter in "xa":
                other = names.get(letter)
                if other is not None and other.dtype == dtype and tuple(other.shape) == shape:
                    names[letter] = flat[:-1].reshape(shape)
        elif case.out == "expanded" and place == 0 and shape:
            out = library.zeros((1, *shape[1:]), dtype=dtype).expand(shape)
        elif case.out == "grad" and dtype.is_floating_point and place == 0:
            out = library.zeros(shape, dtype=dtype, requires_grad=True)
        else:
            out = library.zeros(shape, dtype=dtype)
        made.append(out)
    names["outs"] = made[0] if len(made) == 1 else tuple(made)
    return f"{case.call[:-1]}, out=outs)"


def _view_for(library: Any, result: Any, kind: str) -> tuple[Any, Any]:
    """A view that takes a result, and the tensor of zeros that it is part of."""
    shape, dtype, count = tuple(result.shape), result.dtype, result.numel()
    if kind == "narrowed":
        out = whole = library.zeros(tuple(n + 2 for n in shape), dtype=dtype)
        for d, n in enumerate(shape):
            out = out.narrow(d, 1, n)
    elif kind == "transposed":
        whole = library.zeros(shape[::-1], dtype=dtype)
        out = whole.permute(*range(len(shape))[::-1]) if shape else whole
    elif kind == "offset":
        whole = library.zeros(count + 3, dtype=dtype)
        out = whole[2 : 2 + count].view(shape)
    elif kind == "every-second":
        whole = library.zeros(tuple(2 * n for n in shape), dtype=dtype)
        out = whole[tuple(slice(None, None, 2) for _ in shape)]
    elif kind == "selected":
        whole = library.zeros((*shape, 3), dtype=dtype)
        out = whole.select(-1, 1)
    elif kind == "as-many-elsewhere":
        whole = library.zeros(count + 2, 3, dtype=dtype)
        out = whole[1 : 1 + count, 1:2]
    else:
        whole = library.zeros(4, 5, dtype=dtype)
        out = whole[1:3, 1:4:2]
    return out, whole


def _gradients(library: Any, results: list[Any], leaves: list[Any]) -> list[Any]:
    """The gradients of a sum of results, every element weighted in its own way."""
    total = None
    for place, result in enumerate(results):
        if not isinstance(result, library.Tensor) or not result.requires_grad:
            continue
        count = [math.cos(1.3 * n + place) for n in range(result.numel())]
        weights = library.tensor(count, dtype=library.float64).reshape(tuple(result.shape))
        term = (result * weights).sum()
        term = term.abs() if term.is_complex() else term
        total = term if total is None else total + term
    if total is None:
        return [None for _ in leaves]
    return list(library.autograd.grad(total, leaves, allow_unused=True))


_TOLERANCES = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-5, "float16": 4e-3}
_TOLERANCES |= {"bfloat16": 3e-2, "complex64": 2e-5}


_LINALG_ERRORS = {torch.linalg.LinAlgError, fb.linalg.LinAlgError}


def _difference(theirs: Outcome, ours: Outcome, case: Case) -> str:
    a, b = theirs.error, ours.error
    if a is not None and b is not None:
        if type(a) is type(b) or {type(a), type(b)} == _LINALG_ERRORS:
            return ""
        return f"error: {type(b).__name__} ({_short(b)}) for {type(a).__name__} ({_short(a)})"
    if a is not None:
        if isinstance(a, NotImplementedError) or "not implemented for" in str(a):
            return ""  # PyTorch has no kernel; a result is no disagreement
        return f"accepts: {type(a).__name__} ({_short(a)})"
    if b is not None:
        return f"refuses: {type(b).__name__} ({_short(b)})"
    return (
        _structure(theirs.results, ours.results, case)
        or _operands(theirs, ours)
        or _backward(theirs, ours, case)
        or _layouts(theirs, ours)
        or (f"warning: {ours.warned} for {theirs.warned}" if theirs.warned != ours.warned else "")
    )


def _structure(theirs: list[Any], ours: list[Any], case: Case) -> str:
    if len(theirs) != len(ours):
        return f"count: {len(ours)} for {len(theirs)}"
    for reference, mine in zip(theirs, ours, strict=True):
        if not isinstance(reference, torch.Tensor):
            if not _same_plain(reference, mine):
                return f"plain value: {mine!r} for {reference!r}"
            continue
        if not isinstance(mine, fb.Tensor):
            return f"kind: {type(mine).__name__} for a tensor"
        if str(mine.dtype) != str(reference.dtype):
            return f"dtype: {mine.dtype} for {reference.dtype}"
        if tuple(mine.shape) != tuple(reference.shape):
            return f"shape: {tuple(mine.shape)} for {tuple(reference.shape)}"
        if mine.requires_grad != reference.requires_grad:
            return f"requires_grad: {mine.requires_grad} for {reference.requires_grad}"
        if "empty" in case.name and not case.name.endswith("_"):
            continue  # whatever was in memory
        if not _close(mine, reference, case):
            return f"value: {mine.tolist()} for {reference.tolist()}"
    return ""


def _same_plain(reference: Any, mine: Any) -> bool:
    if isinstance(reference, float) and isinstance(mine, float):
        return mine == pytest.approx(reference, rel=1e-6, nan_ok=True)
    if isinstance(reference, complex):
        return mine == pytest.approx(reference, rel=1e-6)
    if isinstance(reference, (int, bool, str, tuple, type(None))):
        return type(reference) is type(mine) and reference == mine
    return str(reference) == str(mine)


def _close(mine: Any, reference: Any, case: Case) -> bool:
    if reference.is_sparse:
        mine, reference = mine.to_dense(), reference.to_dense()
    reference = reference.detach()
    dtype = str(reference.dtype).removeprefix("torch.")
    loose = _TOLERANCES.get(dtype, 0) * case.entry.tolerance
    if case.out and case.dtype not in ("float64", "complex128"):
        loose = max(loose, _TOLERANCES["float32"])  # in which a wider `out` was computed
    return torch.allclose(to_theirs(mine), reference.resolve_conj(), loose, loose, equal_nan=True)


def _operands(theirs: Outcome, ours: Outcome) -> str:
    """What the call did to the memory of its operands."""
    for letter, base in theirs.bases.items():
        mine = ours.bases[letter]
        if tuple(mine.shape) != tuple(base.shape):
            return f"operand {letter}: shape {tuple(mine.shape)} for {tuple(base.shape)}"
        if not torch.allclose(to_theirs(mine), base, 3e-2, 3e-2, equal_nan=True):
            return f"operand {letter}: {mine.tolist()} for {base.tolist()}"
        same = [r is theirs.operands[letter] for r in theirs.results]
        if same != [r is ours.operands[letter] for r in ours.results]:
            return f"identity: the result is operand {letter} in one library only"
    return ""


def _backward(theirs: Outcome, ours: Outcome, case: Case) -> str:
    a, b = theirs.backward_error, ours.backward_error
    if a is not None:
        return ""  # PyTorch has no gradient there
    if b is not None:
        return f"gradient: {type(b).__name__} ({_short(b)})"
    for reference, mine in zip(theirs.gradients, ours.gradients, strict=True):
        if reference is None or mine is None:
            if (reference is None) != (mine is None):
                present = mine if reference is None else reference
                if bool(present.detach().ne(0).any()):
                    return "gradient: of one library only"
            continue
        if tuple(mine.shape) != tuple(reference.shape) or not _close(mine, reference, case):
            return f"gradient: {mine.tolist()} for {reference.tolist()}"
    return ""


def _layouts(theirs: Outcome, ours: Outcome) -> str:
    """Strides of dimensions that have a next element, and which results share memory."""
    for reference, mine in zip(theirs.results, ours.results, strict=True):
        if not isinstance(reference, torch.Tensor) or reference.is_sparse:
            continue
        for letter, operand in theirs.operands.items():
            shared = _shares(reference, operand)
            if shared != _shares(mine, ours.operands[letter]):
                return f"aliasing: {'not' if shared else ''} a view of operand {letter}"
        if not reference.numel():
            continue
        moving = [d for d, n in enumerate(reference.shape) if n > 1]
        wanted = [reference.stride(d) for d in moving]
        found = [mine.stride(d) for d in moving]
        if wanted != found:
            return f"strides: {tuple(mine.stride())} for {tuple(reference.stride())}"
    return ""


def _shares(result: Any, operand: Any) -> bool:
    if not result.numel() or not operand.numel():
        return False
    return result.untyped_storage().data_ptr() == operand.untyped_storage().data_ptr()


def _short(error: BaseException) -> str:
    return str(error).split("\n")[0][:90]
