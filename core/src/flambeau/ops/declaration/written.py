"""What an op does with its arguments, written out as source for this op alone.

A loop over the inputs of an op takes longer than most small kernels, and one call per value that is
kept a third of the cost of recording a small op.  Each op has functions without loops instead, made
from the texts below when they are first asked for: of ops that plugins declare too, so they are not
generated beforehand as the methods of tensors are.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import recording
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.dispatch import elsewhere, kernel_error, new
from flambeau.ops.declaration.nodes import Saved, SavedList, SavedResult, joined
from flambeau.ops.declaration.parameters import PLAIN, TENSOR, TENSORS

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor
    from flambeau.ops.declaration.rule import Rule
    from flambeau.ops.declaration.table import Op


def compiled(text: str, names: dict[str, Any], label: str) -> Callable[..., Any]:
    """The one function that a text defines.

    Args:
        text: the source of the function.
        names: the globals that it uses.
        label: whose it is, for tracebacks, which show its lines like those of any file.
    """
    place = f"{__file__} ({label})"  # a part of the package, to whom asks whose a frame is
    linecache.cache[place] = len(text), None, text.splitlines(keepends=True), place
    made: dict[str, Any] = {}
    exec(compile(text, place, "exec"), {"__name__": __name__, **names}, made)
    (function,) = made.values()
    return function


# The arguments as native arrays, the kernel, and the result as a tensor with its history.
_RUN = """\
def run({args}):
    x = {first}
    if x is None:
        return op._run({args}){part}
    be = x._be
    g = x._rg{inputs}{checks}
    kernel = be.{name}
    try:
        r = kernel({native})
    except be.error as error:
        raise kernel_error(op.name, error, ({args},)) from error{end}
"""
_END = """
    {several}if type(r) is tuple:
        t = wrapped(be, r)
    else:
        if type(r) is not be.array:
            r = be.to_array(r)
        t = new(Tensor)
        t._a = r
        t._be = be
        t.dtype = dtype = {dtype}
        t._rg = False
        if not dtype.fp:
            return t
    if g and op.differentiable and recording():
        op.record(({args},), t)
    return t"""
# What `wrapped` does, without its loop.
_SEVERAL = """if type(r) is tuple and len(r) == {count}:
        dtype_of = be.dtype_of
        try:{each}
            t = {tensors}
        except KeyError:
            t = wrapped(be, r)
    el"""
_EACH = """
            t{k} = new(Tensor)
            t{k}._a = a = r[{k}] if type(r[{k}]) is be.array else be.to_array(r[{k}])
            t{k}._be = be
            t{k}.dtype = dtype_of(a)
            t{k}._rg = False"""
# Of several results the first, and the others only if its history wants them.
_END_OF_HEAD = """
    if g and op.differentiable and recording():
        t = wrapped(be, r)
        op.record(({args},), t)
        return t[0]
    t = new(Tensor)
    t._a = r = r[0] if type(r[0]) is be.array else be.to_array(r[0])
    t._be = be
    t.dtype = be.dtype_of(r)
    t._rg = False
    return t"""
_ONE = """
    if a{i} is None:
        n{i} = None
    elif a{i}._be is be:
        n{i} = a{i}._a
        if a{i}._rg:
            g = True
    else:
        return elsewhere(op, ({args},)){part}"""
_LIST = """
    n{i} = []
    for t in a{i}:
        if t is None:
            n{i}.append(None)
        elif t._be is be:
            n{i}.append(t._a)
            if t._rg:
                g = True
        else:
            return elsewhere(op, ({args},)){part}
    n{i} = tuple(n{i})"""


def running(op: Op, head: bool = False) -> Callable[..., Any]:
    """``run(*arguments)``: `Op._run` for the inputs of one op, of which the first is there.

    With `head` what `Op.head` does instead.
    """
    names = [f"a{i}" for i in range(len(op.params))]
    args = ", ".join(names)
    native = list(names)
    inputs, part = "", "[0]" if head else ""
    place, kind = op.inputs_at[0]
    first = names[place] if kind is TENSOR else f"{names[place]}[0] if {names[place]} else None"
    for i, kind in op.inputs_at:
        if i == place and kind is TENSOR:
            native[i] = "x._a"
            continue
        native[i] = f"n{i}"
        inputs += (_ONE if kind is TENSOR else _LIST).format(i=i, args=args, part=part)
    several, count = "", op.results
    if count > 1:
        each = "".join([_EACH.format(k=k) for k in range(count)])
        tensors = ", ".join([f"t{k}" for k in range(count)])
        several = _SEVERAL.format(count=count, each=each, tensors=tensors)
    end = (_END_OF_HEAD if head else _END).format(
        args=args,
        several=several,
        dtype={"same": "x.dtype", None: "be.dtype_of(r)"}.get(op.out, "op.out"),
    )
    text = _RUN.format(
        name=op.name,
        args=args,
        first=first,
        inputs=inputs,
        checks=f"\n    op.checks({args})" if op.checks else "",
        native=", ".join(native),
        part=part,
        end=end,
    )
    names_of_run = {
        "Tensor": _dispatch.Tensor_,
        "elsewhere": elsewhere,
        "kernel_error": kernel_error,
        "new": new,
        "op": op,
        "recording": recording,
        "wrapped": wrapped,
    }
    return compiled(text, names_of_run, op.name)


def wrapped(be: BoundBackend, arrays: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """The results of a kernel as tensors without history.

    Raises:
        NotImplementedError: one has a dtype that the backend does not know.
    """
    found = []
    for a in arrays:
        t = new(_dispatch.Tensor_)
        t._a = a = a if type(a) is be.array else be.to_array(a)
        t._be = be
        try:
            t.dtype = be.dtype_of(a)
        except KeyError as error:  # what the library computes, and the backend has no name for
            raise NotImplementedError(
                f"device {be.device.type!r} has no dtype for its library's {error.args[0]}"
            ) from error
        t._rg = False
        found.append(t)
    return tuple(found)


# A kernel where the first operands are row-major, which of most ops all are.
_ORDERED = """\
def kept({args}):
    if {rows}:
        return kernel({args})
    return otherwise({args})
"""


def by_order(
    op: Op,
    kernel: Callable[..., Any],
    otherwise: Callable[..., Any],
    is_contiguous: Callable[..., bool],
) -> Callable[..., Any]:
    """`kernel`, but `otherwise` where one of the operands that order the results has gaps."""
    names = [f"a{i}" for i in range(len(op.params))]
    rows = " and ".join([f"is_contiguous({name})" for name in names[: op.ordered_by]])
    text = _ORDERED.format(args=", ".join(names), rows=rows)
    names_of_kept = {"kernel": kernel, "otherwise": otherwise, "is_contiguous": is_contiguous}
    return compiled(text, names_of_kept, f"{op.name}, in order")


# What formulas keep of the edges `e`, the arguments `a` and the result `r`.
_KEEP = """\
def keep(a, r):
    return {kept}
"""
_KEEP_ALL = """\
def keep(e, a, r):
    return {kept}
"""
_SAVED = {"Saved": Saved, "SavedList": SavedList, "SavedResult": SavedResult}


def keeping(rule: Rule) -> Callable[[tuple[Any, ...], Any], tuple[Any, ...]]:
    """``keep(arguments, result)``: what the formula of a rule keeps."""
    return compiled(_KEEP.format(kept=_kept(rule)), _SAVED, f"{rule.op.name}, keep")


def keeping_all(op: Op) -> Callable[..., tuple[Any, ...]]:
    """``keep(edges, arguments, result)``: what each rule keeps, None if nobody wants it.

    Of ops without lists of tensors.
    """
    parts = []
    for rule in op.rules:
        wanted = " or ".join([f"e[{i}] is not None" for i in rule.at or ()])
        parts.append(f"{_kept(rule)} if {wanted} else None")
    return compiled(_KEEP_ALL.format(kept=_tuple(parts)), _SAVED, f"{op.name}, keep all")


def _kept(rule: Rule) -> str:
    return _tuple([_kept_for(rule.op, want) for want in rule.wants])


def _kept_for(op: Op, want: str) -> str:
    """What is kept for one parameter of a formula."""
    if want == "needs":
        return "None"
    if want in op.params:
        i = op.params.index(want)
        return {
            TENSOR: f"None if a[{i}] is None else Saved(a[{i}])",
            TENSORS: f"SavedList([None if t is None else Saved(t) for t in a[{i}]])",
            PLAIN: f"a[{i}]",
        }[op.kinds[i]]
    if want.startswith("result"):
        i = 0 if want == "result" else int(want[6:])
        return f"SavedResult(r[{i}] if type(r) is tuple else r, {i})"
    if want.startswith("_"):
        return "None"
    i = op.params.index(want[:-6])
    fact = "_a.shape" if want.endswith("_shape") else "dtype"
    if op.kinds[i] is TENSORS:
        return f"[None if t is None else t.{fact} for t in a[{i}]]"
    return f"None if a[{i}] is None else a[{i}].{fact}"


def _tuple(parts: Iterable[str]) -> str:
    return f"({''.join([f'{part}, ' for part in parts])})"


# The call of a formula, in the backward pass, with what was kept for it.
_CALL = """\
def call(node, F, g, kept, needs):
    return formula({given})
"""
_CALL_JOINT = """\
def call(node, F, g, kept, needs):
    found = formula({given})
    return found if F.native else joined(node, found)
"""


def calling(rule: Rule) -> Callable[..., Any]:
    """``call(node, F, g, kept, needs)``: the gradients that the formula of a rule gives."""
    given = ["F", "g"]
    for i, want in enumerate(rule.wants):
        if want == "needs":
            given.append("needs")
        elif rule.keeps_tensor(want):
            given.append(f"None if kept[{i}] is None else kept[{i}].get(node, F, {want!r})")
        else:
            given.append(f"kept[{i}]")
    text = (_CALL_JOINT if rule.op.joint else _CALL).format(given=", ".join(given))
    return compiled(text, {"formula": rule.formula, "joined": joined}, f"{rule.op.name}, call")
