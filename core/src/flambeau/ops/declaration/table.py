"""The table of canonical ops and the class of its entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import set_recording
from flambeau._autograd.node import (
    Binary,
    Node,
    Out,
    SavesInput,
    SavesNothing,
    SavesResult,
    next_seq,
)
from flambeau._dispatch import bound as _bound
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.dispatch import (
    OPS,
    elsewhere,
    kernel_error,
    record_binary,
    record_unary,
    recording,
    wrap,
)
from flambeau._memory.views import edge
from flambeau._types import dtype as D
from flambeau.ops.declaration import written
from flambeau.ops.declaration.lazily import lazily
from flambeau.ops.declaration.nodes import GenericNode, SingleNode
from flambeau.ops.declaration.parameters import PLAIN, TENSOR, TENSORS, kind_of, parameters
from flambeau.ops.declaration.rule import Rule, operands_used
from flambeau.ops.declaration.written import wrapped

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor


def _called_by_slot(cls: type[Op]) -> type[Op]:
    """`cls`, whose instances, called, run what their slot `run` holds, without a frame between."""
    cls.__call__ = cls.__dict__["run"]
    return cls


@_called_by_slot
class Op:
    """One canonical op: its schema, its meaning and its gradient.

    Calling it runs on tensors and canonical arguments, and records if an input requires a gradient.

    Attributes:
        name: the name under which backends offer kernels.
        filling: that of a kernel that writes into its first argument, of random ops.
        filling_params: what such a kernel takes: the array says of which shape and dtype.
        tier: ``"primitive"`` (a backend owes it) or ``"composite"`` (it decomposes).
        body: the shape rule on `Spec`s of a primitive, the decomposition on tensors of a composite.
        out: dtype of the result: ``"same"`` as the first tensor, a dtype, None to ask the backend.
        promotes: ``"float"`` if integers become the default float first, ``"integer"`` if bools
            become int64, ``"any"``, or None.
        integral: whether it takes integers and bools only.
        ordered_by: the places of the operands that decide whether results have channels last, as
            they have on devices with strides if one of those has; declared by their names.
        joint: the places of the inputs that `jointly` names; `joint_zeros`: what it says of zeros.
        run: what a call does; public functions name it, which spares them looking for `__call__`.
        head: a call for the first of several results, which makes others if they are to be kept.
    """

    __slots__ = ("__dict__", "__weakref__", "head", "run")
    __call__: Callable[..., Any]

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
        integral: bool = False,
        results: int = 1,
        ordered_by: Sequence[str] = (),
    ) -> None:
        self.body = body
        self.name = body.__name__.lstrip("_")
        self.filling = f"{self.name}_"
        self.tier = tier
        self.out = out
        self.promotes = promotes
        self.differentiable = differentiable
        self.refuses_bool = refuses_bool
        self.refuses_complex = refuses_complex
        self.integral = integral
        self.results = results
        self.missing_reason: str | None = None
        self.samplers: tuple[Callable[[Any], Any], tuple[D.dtype, ...]] | None = None
        self.checks: Callable[..., None] | None = None
        self.params = parameters(body)
        self.ordered_by = tuple([self.params.index(name) for name in ordered_by])
        self.filling_params: tuple[str, ...] | None = None
        if "generator" in self.params:
            told = [name for name in self.params if name not in ("shape", "dtype")]
            self.filling_params = "dst", *told
        annotations = body.__annotations__
        self.kinds = tuple([kind_of(annotations.get(name)) for name in self.params])
        self.inputs_at = tuple([(i, k) for i, k in enumerate(self.kinds) if k != PLAIN])
        self.inputs = tuple([self.params[i] for i, _ in self.inputs_at])
        self.sides = tuple([(self.params[i], i, kind) for i, kind in self.inputs_at])
        # Where single tensors stand among the arguments; None if an argument is a list of tensors.
        lists = TENSORS in self.kinds
        self.places = None if lists else tuple([i for i, _ in self.inputs_at])
        self.alone = self.places == (0,) and results == 1 and type(self)._run is Op._run
        plain = self.inputs_at and type(self)._run is Op._run
        self.run: Callable[..., Any] = self._first if plain else self._run
        self.head: Callable[..., Any] = self._first_head if plain else self._head
        self.rules: list[Rule] = []
        self.joint: tuple[int, ...] = ()
        self.joint_zeros = False
        self.keeps_tensors = False
        self.title = title or "".join(w.capitalize() for w in self.name.split("_")) + "Backward0"
        self._form: tuple[type[Node], dict[str, Any]] = GenericNode, {"op": self, "n_out": results}
        self.__doc__ = body.__doc__
        if self.name in OPS:
            raise TypeError(f"op {self.name!r} is declared twice")
        OPS[self.name] = self

    def __repr__(self) -> str:
        return f"<{self.tier} op {self.name}({', '.join(self.params)})>"

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
            self._forget()
            return formula

        return declare

    def jointly(self, *inputs: str, zeros: bool = False) -> None:
        """Declare that PyTorch has one function for the op's gradients, which takes these inputs.

        Under ``create_graph`` what it gives requires a gradient if one of them does, whether it
        depends on their values or not.  Those on which it does not depend have no gradient there,
        or with `zeros` one of zeros.
        """
        self.joint = tuple([self.inputs.index(name) for name in inputs])
        self.joint_zeros = zeros
        self._forget()

    def demand(self, checks: Callable[..., None]) -> Callable[..., None]:
        """Declare what every call of the op fulfils: `checks` raises otherwise.

        It is called with the op's arguments before a kernel sees them.  For composites, whose
        bodies are not run where a kernel trusts the shapes of its operands.
        """
        if parameters(checks) != self.params:
            raise TypeError(f"{self.name}: its demands take {self.params}")
        self.checks = checks
        return checks

    def samples(self, *dtypes: Any) -> Any:
        """Declare samples of the op's arguments, for some dtypes (all floating, without arguments).

        The function takes the module `flambeau.testing.sample_arrays` as ``S`` and returns a list
        of samples.  Only tests call it.
        """
        if len(dtypes) == 1 and not isinstance(dtypes[0], D.dtype):
            return self.samples()(dtypes[0])

        def declare(give: Callable[[Any], Any]) -> Callable[[Any], Any]:
            self.samplers = give, dtypes or D.FLOATING
            return give

        return declare

    def gradient_missing(self, reason: str) -> None:
        """Declare that the gradient is not implemented; backward raises `reason`."""
        self.missing_reason = reason
        self._forget()

    def _forget(self) -> None:
        """Forget what was made of earlier declarations."""
        for name in ("node", "record_result", "record_head"):
            self.__dict__.pop(name, None)

    def _specialise(self, covered: set[str]) -> None:
        """Choose the base of the nodes where the op has one of the simple forms."""
        if covered != set(self.inputs):
            return
        rules = {name: rule.formula for rule in self.rules for name in rule.inputs}
        if self.params == ("self", "other") and self.kinds == (TENSOR, TENSOR):
            if len(self.rules) != 2:
                return
            f0, f1 = rules["self"], rules["other"]
            u0, u1 = operands_used(self, f0), operands_used(self, f1)
            keep = (0, u0, u1, u0 | u1)
            space = {"f0": staticmethod(f0), "f1": staticmethod(f1), "keep": keep}
            self._form = Binary, {**space, "__slots__": ()}
        elif self.params == ("self",) and self.kinds == (TENSOR,):
            formula = rules["self"]
            saved = parameters(formula)[2:]
            base = {(): SavesNothing, ("self",): SavesInput, ("result",): SavesResult}.get(saved)
            if base is not None:
                self._form = base, {"formula": staticmethod(formula), "__slots__": ()}
                return
        if self.alone and "needs" not in self.rules[0].wants:
            self._form = SingleNode, {"op": self, "__slots__": ()}

    @lazily
    def node(self) -> type[Node]:
        """The class of the nodes that record this op: made when one first does."""
        base, facts = self._form
        space: dict[str, Any] = {"title": self.title, **facts}
        if issubclass(base, GenericNode):
            space["keeps"] = 2 * any(rule.keeps_results for rule in self.rules)
            if self.places is not None and self.rules and not self.missing_reason:
                space["apply"] = written.applying(self, base is SingleNode)
        made: Any = type(self.title, (base,), space)
        return made

    @lazily
    def record_result(self) -> Callable[..., None]:
        """What `record` does, for an op without lists of tensors; see `written.recording_of`."""
        return written.recording_of(self)

    @lazily
    def record_head(self) -> Callable[..., None]:
        """The same for the first of several results, if nobody has the others."""
        return written.recording_of(self, head=True)

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

    def by_order(
        self,
        kernel: Callable[..., Any],
        otherwise: Callable[..., Any],
        is_contiguous: Callable[..., bool],
    ) -> Callable[..., Any]:
        """`kernel` where the operands that order the results are row-major, else `otherwise`."""
        return written.by_order(self, kernel, otherwise, is_contiguous)

    def public(self) -> Callable[..., Any]:
        """The public function of this name, for ``__torch_function__``."""
        import flambeau

        return getattr(flambeau, self.name, self)

    def check_dtype(self, dtype: Any, operands: tuple[Any, ...]) -> None:
        """Refuse dtypes that PyTorch refuses whatever the backend."""
        if self.integral and dtype.category >= 2:
            raise NotImplementedError(
                f'"{self.name}" is not implemented for {dtype}; it takes integers and bools'
            )
        if self.refuses_complex and dtype.is_complex:
            raise NotImplementedError(self.refuses_complex)
        if self.refuses_bool:
            for x in operands:
                if (type(x) is bool) if not hasattr(x, "dtype") else x.dtype is D.bool_:
                    raise RuntimeError(self.refuses_bool)

    def decomposed(self, be: BoundBackend) -> Callable[..., Any]:
        """The decomposition as a kernel: native arrays in, native arrays out."""
        body, kinds = self.body, self.kinds

        def run(*args: object) -> Any:
            before = recording()
            try:
                set_recording(False)
                given = [_lift(be, a, k) for a, k in zip(args, kinds, strict=True)]
                result = body(*given) if _bound.held is None else _bound.held(body, given)
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
            if kind is TENSOR and a is not None and a._be is not be:
                return False
            if kind is TENSORS and any(t._be is not be for t in a or () if t is not None):
                return False
            given.append(_lowered(a, kind))
        return takes(*given)

    def chooser(self, x: Tensor) -> Callable[..., bool] | None:
        """What the kernel of a tensor's device says about arguments; None if it is not to be asked.

        See `taken`; this is for callers who would have to look for the arguments first.
        """
        return getattr(getattr(x._be, self.name), "takes", None)

    def _first(self, *args: object) -> Any:
        """The first call, which writes `_run` out for the op's inputs."""
        self.run = written.running(self)
        return self.run(*args)

    def _first_head(self, *args: object) -> Tensor:
        self.head = written.running(self, head=True)
        return self.head(*args)

    def _head(self, *args: object) -> Tensor:
        return self.run(*args)[0]

    def _run(self, *args: Any) -> Any:
        """Run on any arguments: the first input may be absent."""
        be = first = None
        record = False
        native = list(args)
        for i, kind in self.inputs_at:
            a = args[i]
            if a is None:
                continue
            if kind is TENSOR:
                native[i] = a._a
                if first is None:
                    first, be = a, a._be
                elif a._be is not be:
                    return elsewhere(self, args)
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
                    return elsewhere(self, args)
                if t._rg:
                    record = True
        if be is None or first is None:
            raise TypeError(f"{self.name}(): expected a Tensor, got none")
        if self.checks is not None:
            self.checks(*args)
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
            if kind is TENSOR:
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
            if kind is TENSOR and a is not None:
                found.append(a)
            elif kind is TENSORS and a is not None:
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
                _dispatch.after_record(n, result)
            return
        if base is not GenericNode:
            if base is Binary:
                record_binary(result, args[0], args[1], node_type)
            else:
                record_unary(result, args[0], node_type)
            if _dispatch.modes and result._fn is not None:
                _dispatch.after_record(result._fn, result)
            return
        if self.places is not None:
            self.record_result(args, result)
            return
        inputs: list[Any] = []
        for i, kind in self.inputs_at:
            if kind is TENSOR:
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
        n.save(args, result)
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
            _dispatch.after_record(n, result)


def _lift(be: BoundBackend, a: Any, kind: str) -> Any:
    if kind is PLAIN or a is None:
        return a
    if kind is TENSORS:
        return tuple(None if x is None else wrap(be, x, be.dtype_of(be.fresh(x))) for x in a)
    return wrap(be, a, be.dtype_of(be.fresh(a)))


def _lowered(a: Any, kind: str) -> Any:
    if kind is PLAIN or a is None:
        return a
    return a._a if kind is TENSOR else tuple([None if t is None else t._a for t in a])


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
