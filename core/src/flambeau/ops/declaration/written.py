"""What an op does with its arguments, written out as source for this op alone.

A loop over the inputs of an op takes longer than most small kernels, and one call per value that is
kept a third of the cost of recording a small op.  Each op has functions without loops instead, made
from the texts below when they are first asked for: of ops that plugins declare too, so they are not
generated beforehand as the methods of tensors are.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import recording
from flambeau._autograd.node import Out, next_seq
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.dispatch import elsewhere, kernel_error, new
from flambeau._memory.views import edge
from flambeau.ops.declaration.nodes import (
    Saved,
    SavedList,
    SavedResult,
    joined,
    narrowed,
    saved_result,
)
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
    if (wanted := g and op.differentiable and recording()) and has_modes():
        t = wrapped(be, r)
        op.record(({args},), t)
        return t[0]
    t = new(Tensor)
    t._a = a = r[0] if type(r[0]) is be.array else be.to_array(r[0])
    t._be = be
    t.dtype = be.dtype_of(a)
    t._rg = False
    if wanted:
        op.record_head(({args},), r, t)
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
        "has_modes": _has_modes,
        "kernel_error": kernel_error,
        "new": new,
        "op": op,
        "recording": recording,
        "wrapped": wrapped,
    }
    return compiled(text, names_of_run, op.name)


# New random numbers, of which there is no tensor to start from.
_DRAW = """\
def draw(be, {args}):
    try:
        a = be.{name}({args})
    except be.error as error:
        raise kernel_error("{name}", error, ({args},)) from error
    t = new(Tensor)
    t._a = a if type(a) is be.array else be.to_array(a)
    t._be = be
    t.dtype = {dtype}
    t._rg = False
    return t
"""


def drawing(op: Op) -> Callable[..., Tensor]:
    """``draw(be, *arguments)``: a tensor of what the kernel of a random op makes."""
    names = [f"a{i}" for i in range(len(op.params))]
    dtype = names[list(op.params).index("dtype")]
    text = _DRAW.format(name=op.name, args=", ".join(names), dtype=dtype)
    names_of_draw = {"Tensor": _dispatch.Tensor_, "kernel_error": kernel_error, "new": new}
    return compiled(text, names_of_draw, f"{op.name}, draw")


def _has_modes() -> bool:
    return bool(_dispatch.modes)


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
    rows = " and ".join([f"is_contiguous(a{i})" for i in op.ordered_by])
    text = _ORDERED.format(args=", ".join(names), rows=rows)
    names_of_kept = {"kernel": kernel, "otherwise": otherwise, "is_contiguous": is_contiguous}
    return compiled(text, names_of_kept, f"{op.name}, in order")


# What formulas keep of the edges `e`, the arguments `a` and the result `r`.
_KEEP = """\
def keep(a, r):
    return {kept}
"""
_SAVED = {
    "Saved": Saved,
    "SavedList": SavedList,
    "SavedResult": SavedResult,
    "saved_result": saved_result,
}


def keeping(rule: Rule) -> Callable[[tuple[Any, ...], Any], tuple[Any, ...]]:
    """``keep(arguments, result)``: what the formula of a rule keeps."""
    return compiled(_KEEP.format(kept=_kept(rule)), _SAVED, f"{rule.op.name}, keep")


# The history of a result: what `Op.record` does for an op without lists of tensors.
_RECORD = """\
def record(a, r{more}):{edges}
    if {no_edge} and not ({required}):
        return
    n = node()
    n._hooks = None
    n.edges = ({names},)
    kept = {kept}
    {place}
    n.seq = next_seq(){result}
"""
_EDGE = """
    e{i} = None
    if (x{i} := a[{place}]) is not None and (g := x{i}._rg):
        e{i} = (x{i}._fn or x{i}) if g is True else edge(x{i})"""
# A view made under no_grad requires a gradient and has nowhere to send it.
_REQUIRED = "x{i} is not None and x{i}._rg and x{i}.requires_grad"
_AS_IT_IS = """
    if r.dtype.fp:
        r._fn = n
        r._rg = True"""
_IN_TURN = """
    for i, t in enumerate(r):
        if t.dtype.fp:
            t._fn = Out(n, i)
            t._rg = True"""
_ONLY_THE_FIRST = """
    if t.dtype.fp:
        t._fn = Out(n, 0)
        t._rg = True"""
_MODES = """
    if has_modes():
        after_record(n, r)"""


def recording_of(op: Op, head: bool = False) -> Callable[..., None]:
    """``record(arguments, result)``: give a result its history, if an argument has one.

    Of ops without lists of tensors.  With `head`, ``record(arguments, arrays, first)``, where of
    several results there is only the first as a tensor.
    """
    places = op.places or ()
    names = [f"e{i}" for i in range(len(places))]
    parts = []
    for rule in op.rules:
        wanted = " or ".join([f"e{i} is not None" for i in rule.at or ()])
        parts.append(f"{_kept(rule, head)} if {wanted} else None")
    result = _ONLY_THE_FIRST if head else (_IN_TURN if op.results > 1 else _AS_IT_IS) + _MODES
    text = _RECORD.format(
        more=", t" if head else "",
        edges="".join([_EDGE.format(i=i, place=place) for i, place in enumerate(places)]),
        no_edge=" and ".join([f"{name} is None" for name in names]),
        required=" or ".join([_REQUIRED.format(i=i) for i in range(len(places))]),
        names=", ".join(names),
        kept=_tuple(parts),
        place=_PLACES[op.keeps_tensors],
        result=result,
    )

    names_of_record = {
        **_SAVED,
        "Out": Out,
        "after_record": _dispatch.after_record,
        "edge": edge,
        "has_modes": _has_modes,
        "next_seq": next_seq,
        "node": op.node,
    }
    return compiled(text, names_of_record, f"{op.name}, record")


# Where a node has what is kept: with its arguments if it may stay there, else where it is freed.
_PLACES = {
    True: "n.args = None, None\n    n.saved = kept",
    False: "n.args = None, kept\n    n.saved = ()",
}


def _kept(rule: Rule, head: bool = False) -> str:
    return _tuple([_kept_for(rule.op, want, head) for want in rule.wants])


def _kept_for(op: Op, want: str, head: bool) -> str:
    """What is kept for one parameter of a formula; of results arrays if `head`."""
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
        if head:
            return f"saved_result(t._be, r[{i}], {i})"
        return f"SavedResult(r{f'[{i}]' if op.results > 1 else ''}, {i})"
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
def call(self, F, g, kept, needs):
    found = formula({given}){joint}
    return found
"""
# The backward pass of a node: its formulas, one after the other, with what was kept for them.
_APPLY = """\
def apply(self, F, g, edges=None):
    kept = self.args{second}
    if kept is None and (kept := self.saved) is None:
        raise self.freed(){grads}{edges}
    {none} = None
    {all}, = kept{rules}
    return ({found},)
"""
_GRADS = """
    if type(g) is dict:
        get = g.get
        g = ({each},)"""
_SOME_EDGES = """
    if edges is not None:
        kept = narrowed(self, F, kept, edges)"""
_ALL_EDGES = """
    else:
        edges = self.edges"""
_RULE = """
    if k{i} is not None:{values}
        found = formula{i}({given}){joint}
        {targets} = found"""
_JOINT = """
{indent}if not F.native:
{indent}    found = joined(self, found)"""


def calling(rule: Rule) -> Callable[..., Any]:
    """``call(node, F, g, kept, needs)``: the gradients that the formula of a rule gives.

    Of ops with lists of tensors; `applying` is for the others.
    """
    values = [f"kept[{i}]" for i in range(len(rule.wants))]
    joint = _JOINT.format(indent=" " * 4) if rule.op.joint else ""
    text = _CALL.format(given=_given(rule, values, "needs"), joint=joint)
    return compiled(text, {"formula": rule.formula, "joined": joined}, f"{rule.op.name}, call")


def applying(op: Op, single: bool) -> Callable[..., tuple[Any, ...]]:
    """``apply(node, F, g)``, the method of its nodes, `SingleNode`s or others.

    Of ops without lists of tensors.
    """
    count = len(op.places or ())
    rules = ""
    for i, rule in enumerate(op.rules):
        at = rule.at or ()
        values = [f"v{j}" for j in range(len(rule.wants))]
        needs = _tuple([f"edges[{j}] is not None" for j in at])
        rules += _RULE.format(
            i=i,
            values=f"\n        {', '.join(values)}, = k{i}" if values else "",
            given=_given(rule, values, needs),
            joint=_JOINT.format(indent=" " * 8) if op.joint else "",
            targets=", ".join([f"p{j}" for j in at]),
        )
    text = _APPLY.format(
        second="" if single else "[1]",
        grads=_GRADS.format(each=", ".join([f"get({i})" for i in range(op.results)]))
        if op.results > 1
        else "",
        edges="" if single else _SOME_EDGES + _ALL_EDGES * any(rule.asks for rule in op.rules),
        none=" = ".join([f"p{j}" for j in range(count)]),
        all=", ".join([f"k{i}" for i in range(len(op.rules))]),
        rules=rules,
        found=", ".join([f"p{j}" for j in range(count)]),
    )
    formulas = {f"formula{i}": rule.formula for i, rule in enumerate(op.rules)}
    return compiled(text, {"joined": joined, "narrowed": narrowed, **formulas}, f"{op.name}, apply")


def _given(rule: Rule, values: Sequence[str], needs: str) -> str:
    """What a formula is called with, of the values that were kept for its parameters."""
    given = ["F", "g"]
    for want, value in zip(rule.wants, values, strict=True):
        if want == "needs":
            given.append(needs)
        elif rule.keeps_tensor(want):
            given.append(f"None if {value} is None else {value}.get(self, F, {want!r})")
        else:
            given.append(value)
    return ", ".join(given)
