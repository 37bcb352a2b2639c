"""The table of canonical ops and the class of its entries."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import set_recording
from flambeau._autograd.node import (
    Binary,
    Node,
    Out,
    SavesInput,
    SavesNothing,
    SavesResult,
    at_save,
    next_seq,
)
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.dispatch import OPS, device_error, kernel_error, new, recording, wrap
from flambeau._memory.views import edge, storage_of
from flambeau._types import dtype as D

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor

_TENSOR, _TENSORS, _PLAIN = "tensor", "tensors", "plain"


class Op:
    """One canonical op: its schema, its meaning and its gradient.

    Attributes:
        name: the name under which backends offer kernels.
        tier: ``"primitive"`` (a backend owes it) or ``"composite"`` (it decomposes).
        body: the shape rule on `Spec`s of a primitive, the decomposition on tensors of a composite.
        out: dtype of the result: ``"same"`` as the first tensor, a dtype, None to ask the backend.
        promotes: ``"float"`` if integers become the default float first, ``"any"``, or None.
    """

    def __init__(
        self,
        body: Callable[..., Any],
        tier: str,
        *,
        out: Any = "same",
        promotes: str | None = None,
        differentiable: bool = True,
        title: str | None = None,
        refuses_bool: str | None = None,
        refuses_complex: str | None = None,
        results: int = 1,
    ) -> None:
        self.body = body
        self.name = body.__name__.lstrip("_")
        self.tier = tier
        self.out = out
        self.promotes = promotes
        self.differentiable = differentiable
        self.refuses_bool = refuses_bool
        self.refuses_complex = refuses_complex
        self.results = results
        self.missing_reason: str | None = None
        self.params = parameters(body)
        annotations = body.__annotations__
        self.kinds = tuple([_kind(annotations.get(name)) for name in self.params])
        self.inputs_at = tuple([(i, k) for i, k in enumerate(self.kinds) if k != _PLAIN])
        self.inputs = tuple([self.params[i] for i, _ in self.inputs_at])
        self.sides = tuple([(self.params[i], i, kind) for i, kind in self.inputs_at])
        # Where single tensors stand among the arguments; None if an argument is a list of tensors.
        lists = _TENSORS in self.kinds
        self.places = None if lists else tuple([i for i, _ in self.inputs_at])
        self.alone = self.places == (0,) and results == 1 and type(self)._run is Op._run
        plain = self.inputs_at and type(self)._run is Op._run
        self.run: Callable[..., Any] = self._first if plain else self._run
        self.rules: list[Rule] = []
        self.keeps_tensors = False
        self.title = title or "".join(w.capitalize() for w in self.name.split("_")) + "Backward0"
        self._form: tuple[type[Node], dict[str, Any]] = GenericNode, {"op": self, "n_out": results}
        self.__doc__ = body.__doc__
        if self.name in OPS:
            raise TypeError(f"op {self.name!r} is declared twice")
        OPS[self.name] = self

    def __repr__(self) -> str:
        return f"<{self.tier} op {self.name}({', '.join(self.params)})>"

    # Declaration.

    def gradient(self, *inputs: Any) -> Any:
        """Declare the gradient of some inputs (of all, without arguments) by a formula.

        The formula's parameter names after ``F, g`` say what is saved: an input, ``result`` (or
        ``result0`` ...), a plain argument, ``<input>_shape``, ``<input>_dtype``, ``needs``.  In
        broadcasting binary ops it takes both operands, with an underscore before one it does not
        use.

        Raises:
            TypeError: a name that is neither.
        """
        if len(inputs) == 1 and callable(inputs[0]):
            return self.gradient()(inputs[0])
        names = inputs or self.inputs
        if unknown := set(names) - set(self.inputs):
            raise TypeError(f"{self.name}: gradient of unknown inputs {sorted(unknown)}")

        def declare(formula: Callable[..., Any]) -> Callable[..., Any]:
            self.rules.append(Rule(self, names, formula))
            self.keeps_tensors = any(rule.keeps_tensors for rule in self.rules)
            covered = [n for r in self.rules for n in r.inputs]
            if len(covered) != len(set(covered)):
                raise TypeError(f"{self.name}: two gradients for one input")
            self._specialise(set(covered))
            self.__dict__.pop("node", None)
            self.__dict__.pop("keep", None)
            return formula

        return declare

    def gradient_missing(self, reason: str) -> None:
        """Declare that the gradient is not implemented; backward raises `reason`."""
        self.missing_reason = reason

    def _specialise(self, covered: set[str]) -> None:
        """Choose the base of the nodes where the op has one of the simple forms."""
        if covered != set(self.inputs):
            return
        rules = {name: rule.formula for rule in self.rules for name in rule.inputs}
        if self.params == ("self", "other") and self.kinds == (_TENSOR, _TENSOR):
            if len(self.rules) != 2:
                return
            f0, f1 = rules["self"], rules["other"]
            u0, u1 = _used(self, f0), _used(self, f1)
            keep = (0, u0, u1, u0 | u1)
            space = {"f0": staticmethod(f0), "f1": staticmethod(f1), "keep": keep}
            self._form = Binary, {**space, "__slots__": ()}
        elif self.params == ("self",) and self.kinds == (_TENSOR,):
            formula = rules["self"]
            saved = parameters(formula)[2:]
            base = {(): SavesNothing, ("self",): SavesInput, ("result",): SavesResult}.get(saved)
            if base is not None:
                self._form = base, {"formula": staticmethod(formula), "__slots__": ()}
                return
        if self.alone and "needs" not in self.rules[0].wants:
            self._form = SingleNode, {"op": self, "__slots__": ()}

    @cached_property
    def node(self) -> type[Node]:
        """The class of the nodes that record this op: made when one first does."""
        base, facts = self._form
        return type(self.title, (base,), {"title": self.title, **facts})

    @cached_property
    def keep(self) -> Callable[..., tuple[Any, ...]]:
        """``keep(edges, arguments, result)``: what each rule keeps, None if nobody wants it.

        Of ops without lists of tensors.
        """
        parts = []
        for rule in self.rules:
            wanted = " or ".join([f"e[{i}] is not None" for i in rule.at or ()])
            parts.append(f"{rule.text} if {wanted} else None, ")
        return eval(f"lambda e, a, r: ({''.join(parts)})", globals())

    # Facts that the plugin host asks for.

    @property
    def overridable(self) -> bool:
        """Whether a backend may offer a kernel: an override must not lose the gradient."""
        return not self.why_not

    @property
    def why_not(self) -> str:
        """Why no kernel may be offered; empty if one may."""
        if self.tier == "primitive" or self.gradient_state != "undeclared":
            return ""
        return f"composite op {self.name!r} has no explicit gradient, which overriding needs"

    @property
    def gradient_state(self) -> str:
        """``"given"``, ``"not differentiable"``, ``"missing: <reason>"`` or ``"undeclared"``."""
        if not self.differentiable:
            return "not differentiable"
        if not issubclass(self.__dict__.get("node", self._form[0]), GenericNode):
            return "given"
        if self.missing_reason:
            return f"missing: {self.missing_reason}"
        covered = {name for rule in self.rules for name in rule.inputs}
        return "given" if covered else "undeclared"

    def public(self) -> Callable[..., Any]:
        """The public function of this name, for ``__torch_function__``."""
        import flambeau

        return getattr(flambeau, self.name, self)

    def check_dtype(self, dtype: Any, operands: tuple[Any, ...]) -> None:
        """Refuse dtypes that PyTorch refuses whatever the backend."""
        if self.refuses_complex and dtype.is_complex:
            raise NotImplementedError(self.refuses_complex)
        if self.refuses_bool:
            for x in operands:
                if (type(x) is bool) if not hasattr(x, "dtype") else x.dtype is D.bool_:
                    raise RuntimeError(self.refuses_bool)

    # Execution.

    def decomposed(self, be: Any) -> Callable[..., Any]:
        """The decomposition as a kernel: native arrays in, native arrays out."""
        body, kinds = self.body, self.kinds

        def run(*args: Any) -> Any:
            before = recording()
            set_recording(False)
            try:
                result = body(*[_lift(be, a, k) for a, k in zip(args, kinds, strict=True)])
            finally:
                set_recording(before)
            return tuple(r._a for r in result) if isinstance(result, tuple) else result._a

        return run

    def taken(self, *args: Any) -> bool:
        """Whether the device has one kernel for the whole of these arguments.

        That is what a kernel's attribute ``takes`` says, which is called with its arguments.  It is
        asked where the parts of a composite serve as well, or better, without such a kernel.
        """
        be = args[0]._be
        takes = self.chooser(args[0])
        if takes is None:
            return False
        given = []
        for a, kind in zip(args, self.kinds, strict=True):
            if kind is _TENSOR and a is not None and a._be is not be:
                return False
            if kind is _TENSORS and any(t._be is not be for t in a or () if t is not None):
                return False
            given.append(_lowered(a, kind))
        return takes(*given)

    def chooser(self, x: Tensor) -> Callable[..., bool] | None:
        """What the kernel of a tensor's device says about arguments; None if it is not to be asked.

        See `taken`; this is for callers who would have to look for the arguments first.
        """
        return getattr(getattr(x._be, self.name), "takes", None)

    def __call__(self, *args: Any) -> Any:
        """Run on tensors and canonical arguments, and record if an input requires a gradient."""
        return self.run(*args)

    def _first(self, *args: Any) -> Any:
        """The first call, which writes `_run` out for the op's inputs.

        The loop over them takes longer than most small kernels.
        """
        names = [f"a{i}" for i in range(len(self.params))]
        native, given = list(names), ", ".join(names)
        more = ""
        for i, kind in self.inputs_at:
            native[i] = f"n{i}"
            more += (_ONE if kind is _TENSOR else _LIST).format(i=i, args=given)
        place, kind = self.inputs_at[0]
        first = names[place]
        if kind is _TENSOR:
            native[place], more = "x._a", more.removeprefix(_ONE.format(i=place, args=given))
        text = _RUN.format(
            name=self.name,
            args=given,
            first=first if kind is _TENSOR else f"{first}[0] if {first} else None",
            inputs=more,
            native=", ".join(native),
            dtype={"same": "x.dtype", None: "be.dtype_of(r)"}.get(self.out, "op.out"),
        )
        space = {**globals(), "op": self, "Tensor": _dispatch.Tensor_}
        exec(compile(text, f"{__file__} ({self.name})", "exec"), space)
        self.run = space["run"]
        return self.run(*args)

    def _run(self, *args: Any) -> Any:
        """Run on any arguments: the first input may be absent."""
        be = first = None
        record = False
        native = list(args)
        for i, kind in self.inputs_at:
            a = args[i]
            if a is None:
                continue
            if kind is _TENSOR:
                native[i] = a._a
                if first is None:
                    first, be = a, a._be
                elif a._be is not be:
                    raise device_error(self.name, self.tensors(args))
                if a._rg:
                    record = True
                continue
            native[i] = tuple([None if t is None else t._a for t in a])
            for t in a:
                if t is None:
                    continue
                if first is None:
                    first, be = t, t._be
                elif t._be is not be:
                    raise device_error(self.name, self.tensors(args))
                if t._rg:
                    record = True
        assert be is not None and first is not None, self.name
        try:
            r = getattr(be, self.name)(*native)
        except be.error as error:
            raise kernel_error(self.name, error, args) from error
        result: Any
        if type(r) is tuple:
            result = wrapped(be, r)
        else:
            out = self.out
            if out is None:
                r = be.fresh(r)
                out = be.dtype_of(r)
            result = wrap(be, r, first.dtype if out == "same" else out)
        if record and self.differentiable and recording():
            if type(result) is tuple or result.dtype.fp:
                self.record(args, result)
        return result

    def slots(self, args: tuple[Any, ...]) -> dict[str, Any]:
        """Which edges each input has: a number, or a range for a list of tensors."""
        found: dict[str, Any] = {}
        i = 0
        for name, place, kind in self.sides:
            if kind is _TENSOR:
                found[name] = i
                i += 1
            else:
                n = i + len(args[place])
                found[name] = range(i, n)
                i = n
        return found

    def tensors(self, args: tuple[Any, ...]) -> list[Tensor]:
        """The tensors among canonical arguments, lists flattened."""
        found = []
        for a, kind in zip(args, self.kinds, strict=True):
            if kind is _TENSOR and a is not None:
                found.append(a)
            elif kind is _TENSORS and a is not None:
                found.extend(t for t in a if t is not None)
        return found

    def record(self, args: tuple[Any, ...], result: Any) -> None:
        """Give `result` the history of this op on `args`, if they have one."""
        node_type: Any = self.node
        base = node_type.__base__
        if base is SingleNode:
            x = args[0]
            e = (x._fn or x) if x._rg is True else edge(x)
            if e is None and not x.requires_grad:
                return
            n = node_type()
            n._hooks = None
            n.edges = (e,)
            if self.keeps_tensors:
                n.args = None
                n.saved = (self.rules[0].keep(args, result),)
            else:
                n.args = (self.rules[0].keep(args, result),)
                n.saved = ()
            n.seq = next_seq()
            result._fn = n
            result._rg = True
            if _dispatch.modes:
                _dispatch.after_record(n)
            return
        if self.places is not None:
            inputs = [args[i] for i in self.places]
        else:
            inputs = []
            for i, kind in self.inputs_at:
                if kind is _TENSOR:
                    inputs.append(args[i])
                else:
                    inputs += args[i]
        edges: list[Any] = []
        wanted = False
        for t in inputs:
            e = None
            if t is not None and (g := t._rg):
                e = (t._fn or t) if g is True else edge(t)
                if e is not None:
                    wanted = True
            edges.append(e)
        if not wanted and not any(t._rg and t.requires_grad for t in inputs if t is not None):
            return
        n = node_type()
        n._hooks = None
        n.edges = tuple(edges)
        if base is GenericNode:
            n.save(args, result)
        elif issubclass(node_type, Binary):
            x, y = args
            keep = node_type.keep[(edges[0] is not None) + 2 * (edges[1] is not None)]
            n.shapes = None if x._a.shape == y._a.shape else (x._a.shape, y._a.shape)
            left = (x, x._a, x._version) if keep & 1 else (None, None, 0)
            right = (y, y._a, y._version) if keep & 2 else (None, None, 0)
            n.saved = (*left, *right) if keep else ()
        elif base is SavesInput:
            n.saved = (args[0], args[0]._a, args[0]._version)
        elif base is SavesResult:
            n.saved = (result._a, None, 0)
        else:
            n.saved = ()
        n.seq = next_seq()
        if type(result) is tuple:
            for i, t in enumerate(result):
                if t.dtype.fp:
                    t._fn = Out(n, i)
                    t._rg = True
        elif result.dtype.fp:
            result._fn = n
            result._rg = True
        if _dispatch.modes:
            _dispatch.after_record(n)


_RUN = """
def run({args}):
    x = {first}
    if x is None:
        return op._run({args})
    be = x._be
    g = x._rg{inputs}
    kernel = be.{name}
    try:
        r = kernel({native})
    except be.error as error:
        raise kernel_error(op.name, error, ({args},)) from error
    if type(r) is tuple:
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
    return t
"""
_ONE = """
    if a{i} is None:
        n{i} = None
    elif a{i}._be is be:
        n{i} = a{i}._a
        if a{i}._rg:
            g = True
    else:
        raise device_error(op.name, op.tensors(({args},)))"""
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
            raise device_error(op.name, op.tensors(({args},)))
    n{i} = tuple(n{i})"""


class Rule:
    """One gradient formula: the inputs it serves and what it needs saved.

    Attributes:
        at: the edges of the inputs; None if the op takes lists of tensors.
        keep: ``keep(arguments, result)`` gives the values to keep for the formula, as a tuple.
        run: ``run(node, F, g, kept, needs)`` calls the formula with them.
        keeps_tensors: whether tensors are among what it keeps.
    """

    def __init__(self, op: Op, inputs: tuple[str, ...], formula: Callable[..., Any]) -> None:
        self.op = op
        self.inputs = inputs
        self.at = op.places and tuple(op.inputs.index(name) for name in inputs)
        self.formula = formula
        self.wants = parameters(formula)[2:]
        self.asks = "needs" in self.wants
        if unknown := [want for want in self.wants if not _legal(op, want)]:
            forms = [f"{name}{end}" for name in op.inputs for end in ("_shape", "_dtype")]
            known = [*op.params, *forms, "result", "result0", "needs"]
            raise TypeError(
                f"{op.name}: gradient saves unknown names {sorted(unknown)}; known are {known}"
            )
        self.keeps_tensors = any(_is_tensor(op, want) for want in self.wants)

    # All are written out as source when the op is first recorded or visited: a call per value kept
    # is a third of the cost of recording a small op.

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """What is kept for each parameter of the formula, as source text."""
        return tuple(_kept(self.op, want) for want in self.wants)

    @property
    def text(self) -> str:
        """The tuple of what is kept, as source text."""
        return f"({''.join(f'{text}, ' for text in self.kept)})"

    @cached_property
    def keep(self) -> Callable[[tuple[Any, ...], Any], tuple[Any, ...]]:
        return eval(f"lambda a, r: {self.text}", globals())

    @cached_property
    def run(self) -> Callable[..., Any]:
        given = [
            "needs"
            if want == "needs"
            else f"None if kept[{i}] is None else kept[{i}].get(node, F, {want!r})"
            if "Saved" in text
            else f"kept[{i}]"
            for i, (want, text) in enumerate(zip(self.wants, self.kept, strict=True))
        ]
        text = f"lambda node, F, g, kept, needs: formula({', '.join(['F', 'g', *given])})"
        return eval(text, {"formula": self.formula})


def _legal(op: Op, want: str) -> bool:
    if want in op.params or want in ("needs", "result"):
        return True
    if want.startswith("result") and want[6:].isdigit():
        return True
    name = want[1:] if want.startswith("_") else want[:-6]
    return name in op.inputs and (want.startswith("_") or want.endswith(("_shape", "_dtype")))


def _is_tensor(op: Op, want: str) -> bool:
    if want in op.params:
        return op.kinds[op.params.index(want)] is not _PLAIN
    return want.startswith("result")


def _kept(op: Op, want: str) -> str:
    """What is kept for a parameter of a formula: source text on arguments `a` and result `r`."""
    if want == "needs":
        return "None"
    if want in op.params:
        i = op.params.index(want)
        return {
            _TENSOR: f"None if a[{i}] is None else Saved(a[{i}])",
            _TENSORS: f"SavedList([None if t is None else Saved(t) for t in a[{i}]])",
            _PLAIN: f"a[{i}]",
        }[op.kinds[i]]
    if want.startswith("result"):
        i = 0 if want == "result" else int(want[6:])
        return f"SavedResult(r[{i}] if type(r) is tuple else r, {i})"
    if want.startswith("_"):
        return "None"
    i = op.params.index(want[:-6])
    fact = "_a.shape" if want.endswith("_shape") else "dtype"
    if op.kinds[i] is _TENSORS:
        return f"[None if t is None else t.{fact} for t in a[{i}]]"
    return f"None if a[{i}] is None else a[{i}].{fact}"


class GenericNode(Node):
    """A node whose formulas and saved values follow the op's declaration.

    ``args`` is (edges of each input, None without lists of tensors; values kept); the values move
    to ``saved``, from where they are freed after a backward, if tensors are among them.
    """

    __slots__ = ()
    __init__ = object.__init__  # see `Binary`

    op: Op

    def save(self, args: tuple[Any, ...], result: Any) -> None:
        """Keep what the formulas of the wanted inputs need."""
        op = self.op
        slots: Any = None
        if op.places:
            kept = op.keep(self.edges, args, result)
        else:
            slots = op.slots(args)
            values = []
            for rule in op.rules:
                for name in rule.inputs:
                    if self._wanted(slots[name]):
                        values.append(rule.keep(args, result))
                        break
                else:
                    values.append(None)
            kept = tuple(values)
        if op.keeps_tensors:
            self.args = slots, None
            self.saved = kept
        else:
            self.args = slots, kept
            self.saved = ()

    def _wanted(self, slot: Any) -> bool:
        if type(slot) is int:
            return self.edges[slot] is not None
        return len([i for i in slot if self.edges[i] is not None]) > 0

    def apply(self, F: Any, g: Any) -> tuple[Any, ...]:
        op = self.op
        slots, kept = self.args
        if kept is None and (kept := self.saved) is None:
            raise self.freed()
        if op.missing_reason:
            raise NotImplementedError(
                f"the gradient of {op.name!r} is missing: {op.missing_reason}"
            )
        if type(g) is dict:
            g = tuple(g.get(i) for i in range(8))
        parts: list[Any] = [None] * len(self.edges)
        for rule, values in zip(op.rules, kept, strict=True):
            if values is None:
                continue
            targets = rule.at or [slots[name] for name in rule.inputs]
            needs = tuple([self._wanted(t) for t in targets]) if rule.asks else None
            grads = rule.run(self, F, g, values, needs)
            if len(targets) == 1:
                if rule.at:
                    parts[targets[0]] = grads
                    continue
                grads = (grads,)
            for target, grad in zip(targets, grads, strict=True):
                if type(target) is int:
                    parts[target] = grad
                else:
                    for i, part in zip(target, grad, strict=True):
                        parts[i] = part
        return tuple(parts)

    def adopt(self, storage: Any) -> None:
        for values in self.saved or ():
            for value in values or ():
                if type(value) is SavedResult:
                    value.storage, value.version = storage, storage.version


class SingleNode(GenericNode):
    """The node of an op of one tensor with one formula, which needs no search for its place."""

    __slots__ = ()

    def apply(self, F: Any, g: Any) -> tuple[Any, ...]:
        kept: Any = self.args
        if kept is None and (kept := self.saved) is None:
            raise self.freed()
        return (self.op.rules[0].run(self, F, g, kept[0], None),)


class Saved:
    """A tensor kept for backward, with the version it had when it was kept."""

    __slots__ = ("native", "tensor", "version")

    def __init__(self, t: Tensor) -> None:
        self.tensor = t
        self.native = t._a
        self.version = 0 if t._st is None else t._st.version

    def get(self, node: Node, F: Any, name: str) -> Any:
        """The kept value, if nobody wrote to it since."""
        t = self.tensor
        found = 0 if t._st is None else t._st.version
        if found != self.version:
            raise node.stale(name, t._a.shape, found, self.version)
        return self.native if F.native else at_save(t, self.native)


class SavedResult:
    """A result kept by its own node: array and storage, not the tensor, hence no cycle."""

    __slots__ = ("dtype", "index", "native", "storage", "version")

    def __init__(self, t: Tensor, index: int) -> None:
        self.native = t._a
        self.storage = storage_of(t)
        self.version = self.storage.version
        self.dtype = t.dtype
        self.index = index

    def get(self, node: Node, F: Any, name: str) -> Any:
        """The kept value, if nobody wrote to it since."""
        if self.storage.version != self.version:
            raise node.stale(name, self.native.shape, self.storage.version, self.version)
        if F.native:
            return self.native
        return F.result(node, self.native, self.storage._be, self.index)


class SavedList:
    """Several tensors kept for backward."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[Saved | None]) -> None:
        self.entries = entries

    def get(self, node: Node, F: Any, name: str) -> Any:
        """The kept values, if nobody wrote to them since."""
        return [None if e is None else e.get(node, F, name) for e in self.entries]


def wrapped(be: Any, arrays: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """The results of a kernel as tensors without history."""
    found = []
    for a in arrays:
        t = new(_dispatch.Tensor_)
        t._a = a = a if type(a) is be.array else be.to_array(a)
        t._be = be
        t.dtype = be.dtype_of(a)
        t._rg = False
        found.append(t)
    return tuple(found)


def _lift(be: Any, a: Any, kind: str) -> Any:
    if kind is _PLAIN or a is None:
        return a
    if kind is _TENSORS:
        return tuple(None if x is None else wrap(be, x, be.dtype_of(be.fresh(x))) for x in a)
    return wrap(be, a, be.dtype_of(be.fresh(a)))


def _lowered(a: Any, kind: str) -> Any:
    if kind is _PLAIN or a is None:
        return a
    return a._a if kind is _TENSOR else tuple([None if t is None else t._a for t in a])


def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's arguments; `inspect.signature` takes 30 times as long."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__"):
        import inspect

        return tuple(inspect.signature(function).parameters)
    return code.co_varnames[: code.co_argcount]


def _kind(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    if text in ("Tensor", "Tensor | None"):
        return _TENSOR
    if "Tensor" in text:
        return _TENSORS
    return _PLAIN


def _used(op: Op, formula: Callable[..., Any]) -> int:
    """Which operands a formula uses: bit 0 for the first, bit 1 for the second."""
    wants = parameters(formula)[2:]
    if len(wants) != 2 or wants[0].lstrip("_") != "self" or wants[1].lstrip("_") != "other":
        raise TypeError(
            f"{op.name}: a formula of a broadcasting op takes (F, g, self, other), each with an "
            f"underscore if unused; got {wants}"
        )
    return (not wants[0].startswith("_")) + 2 * (not wants[1].startswith("_"))


def primitive(body: Callable[..., Any] | None = None, **facts: Any) -> Any:
    """Declare a primitive: the decorated function's body is its shape rule on `Spec`s."""
    if body is None:
        return lambda b: Op(b, "primitive", **facts)
    return Op(body, "primitive", **facts)


def composite(body: Callable[..., Any] | None = None, **facts: Any) -> Any:
    """Declare an op that a backend may override: the body is its decomposition on tensors."""
    if body is None:
        return lambda b: Op(b, "composite", **facts)
    return Op(body, "composite", **facts)
