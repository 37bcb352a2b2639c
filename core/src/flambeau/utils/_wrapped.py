"""Tensors that say themselves what ops make of them: subclasses with ``__torch_dispatch__``.

Such a tensor is, for the ops, one of a backend of its own, as tensors under a transform are: its
array is the tensor, and a kernel is a call of ``__torch_dispatch__``.  So autograd, promotion and
views are those of all tensors.  What a kernel returns is a plain tensor of that backend; before a
program gets it, `delivered` puts in its place what ``__torch_dispatch__`` has returned, with the
history.  ``docs/design/subclasses.md`` argues for it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import flambeau as fb
from flambeau._autograd import engine
from flambeau._autograd.modes import no_grad, recording
from flambeau._autograd.node import Edges, next_seq
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.bound import BoundBackend, bind
from flambeau._dispatch.dispatch import OPS, new, wrap
from flambeau._memory.record import Storage, state_of
from flambeau._memory.views import edge
from flambeau._tensor import overrides
from flambeau._tensor.attributes import attributes_of
from flambeau._tensor.overrides import DisableTorchFunctionSubclass
from flambeau._tensor.tensor import Tensor
from flambeau._transforms import levels as _levels  # whose `lifted` this one asks first
from flambeau._types import dtype as D
from flambeau._types.device import device as Device
from flambeau._types.memory_format import is_contiguous
from flambeau._types.strides import contiguous_strides
from flambeau.utils import _wrapped_calls
from flambeau.utils._wrapped_arrays import (
    HISTORY,
    HeldArray,
    below,
    call,
    has_dispatch,
    held,
    twin,
)

__all__ = ["below", "delivered", "made", "make_subclass", "prepare"]


def prepare(cls: type) -> None:
    """Give a class that defines ``__torch_dispatch__`` what its tensors need."""
    if "_a" not in vars(cls):
        cls._a = property(_array_of, _take_array)  # type: ignore[attr-defined]
    if getattr(cls.__torch_function__, "__func__", None) is _FUNCTION:  # type: ignore[attr-defined]
        # Results are of the class that __torch_dispatch__ says, not of this one.
        cls.__torch_function__ = staticmethod(overrides.run_disabled)  # type: ignore[attr-defined]
    overrides.delivered = delivered
    overrides.instead = _wrapped_calls.instead
    engine.delivered = delivered
    _dispatch.lifted = lifted


def _array_of(t: object) -> HeldArray:
    # Made each time: one that is kept would be a cycle.
    facts: HeldArray = state_of(t)["_a"]
    return HeldArray(t, facts.shape, facts.dtype, facts.strides, facts.offset, facts.inner)


def _take_array(t: object, native: object) -> None:
    if type(native) is HeldArray:  # what it says of itself; what it holds is its own affair
        facts = HeldArray(None, native.shape, native.dtype, native.strides, native.offset)
        state_of(t)["_a"] = facts
        return
    raise RuntimeError(
        f"the memory of a {type(t).__name__} cannot be replaced: it says itself, in "
        "__torch_dispatch__, what its values are; write with copy_()"
    )


def made(
    cls: Any,
    size: Sequence[int],
    strides: Sequence[int] | None = None,
    storage_offset: int | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    inner: Tensor | None = None,
) -> Any:
    """A leaf of a class with ``__torch_dispatch__``, which has a shape and no memory of its own."""
    shape = tuple([int(n) for n in size])
    steps = contiguous_strides(shape) if strides is None else tuple([int(n) for n in strides])
    kind = D.get_default_dtype() if dtype is None else D.as_dtype(dtype)
    be = over(bind(None if device is None else Device(device)))
    facts = HeldArray(None, shape, kind, steps, int(storage_offset or 0), inner)
    t = new(cls)
    state = state_of(t)
    state.update(_a=facts, _be=be, dtype=kind, _rg=False)
    t._st = Storage(HeldArray(None, shape, kind, steps), be, kind)
    t._st.shared = True  # its memory is written to, and never exchanged
    return t.requires_grad_(requires_grad) if requires_grad else t


def make_subclass(cls: object, data: Tensor, requires_grad: bool) -> Any:
    """A leaf of such a class over the memory of `data`, for ``super().__torch_dispatch__``."""
    with DisableTorchFunctionSubclass():
        inner = data.detach()
    if type(inner._be) is WrapperBackend:
        inner = inner._a.inner or inner
    geometry = inner.stride() if inner._be.strided else None
    t = made(
        cls, tuple(inner._a.shape), geometry, 0, inner.dtype, inner.device, requires_grad, inner
    )
    return t


class _NoArray:
    """What no array is: the shorter paths, which take results as they are, stay out."""


class WrapperBackend(BoundBackend):
    """The backend of tensors with ``__torch_dispatch__`` on one device: each op is asked of them.

    Kernels are made when they are first asked for, which `BoundBackend` must not do.
    """

    def __init__(self, below: BoundBackend) -> None:
        self.below = below
        self.native = True
        self.backend = Runtime(below)
        self.device = below.device
        self.array = _NoArray
        self.error = ()
        self.strided = True
        self.consts = {d: {} for d in D.EVERY}
        self.zero = {}
        self.kernels = {}
        self.home = self.formulas = self
        self.settle = tuple

    def __getattr__(self, name: str) -> Any:
        if name == "part":
            return self.slice
        if name == "assign":
            found = self._called(name)
        elif (op := OPS.get(name)) is None:
            raise AttributeError(f"no canonical op {name!r}")
        else:
            found = self._kernel(op)
        self.__dict__[name] = found
        return found

    def _kernel(self, op: Any) -> Callable[..., Any]:
        if not op.inputs_at:
            return lambda *args: self.to_array(getattr(self.below, op.name)(*args))
        if op.tier == "composite" and not _wrapped_calls.is_whole(op.name):
            return op.decomposed(self)
        return self._called(op.name)

    def _called(self, name: str) -> Callable[..., Any]:
        several = name in OPS and OPS[name].results > 1

        def run(*args: object) -> Any:
            number = all(_is_number(a) for a in args)
            with no_grad(), DisableTorchFunctionSubclass():
                told = [self.told(a, "" if number else name) for a in args]
                found = _wrapped_calls.run(name, told, self)
            if name == "assign":
                return found  # nobody looks at it
            if number and isinstance(found, (bool, int, float, complex)):
                return held(fb.tensor(found))
            return _arrays(name, found, several)

        return run

    def told(self, a: Any, name: str) -> Any:
        """An argument of a kernel as ``__torch_dispatch__`` is told of it."""
        if type(a) is HeldArray:
            if isinstance(a.value, Tensor) or _wrapped_calls.takes_numbers(name):
                return a.value
            return fb.tensor(a.value, dtype=a.dtype, device=self.device)
        if type(a) in (list, tuple):
            return type(a)([self.told(each, name) for each in a])
        if type(a) is self.below.array:
            return wrap(self.below, a, self.below.dtype_of(a))
        return a

    def to_array(self, value: object) -> Any:
        """A result, or an array of the device, as an array of this backend."""
        if type(value) is HeldArray or type(value) is dict:
            return value
        native = self.below.fresh(value)
        return held(wrap(self.below, native, self.below.dtype_of(native)))

    def dtype_of(self, array: object) -> Any:
        return array.dtype if type(array) is HeldArray else self.below.dtype_of(array)

    def scalar_const(self, value: object, dtype: D.dtype) -> HeldArray:
        return HeldArray(value, (), dtype, ())

    def host_array(self, values: list[Any], shape: Sequence[int], dtype: D.dtype) -> Any:
        return self.to_array(self.below.host_array(values, shape, dtype))

    def reshape(self, a: object, shape: tuple[int, ...]) -> Any:
        return self.view(a, tuple(shape))

    def seed(self, out: Tensor) -> Tensor:
        """The gradient of a result by itself."""
        return delivered(call(_wrapped_calls.aten("ones_like"), (out,), {}))

    def as_plain(self, like: Tensor, value: Tensor) -> Tensor:
        """The values of a tensor that are to be written into a plain one."""
        plain = fb.empty(value.shape, dtype=like.dtype, device=like.device)
        with no_grad(), DisableTorchFunctionSubclass():
            call(_wrapped_calls.aten("copy_"), (plain, value), {})
        return plain

    def numbers(self, t: Any) -> Any:
        """The numbers of a tensor as nested lists, for `repr`."""
        inner = t._a.inner
        if inner is not None:
            return inner.tolist()
        if not t.dim():
            return t.item()
        with no_grad(), DisableTorchFunctionSubclass():
            rows = (
                call(_wrapped_calls.UNBIND, (t,), {})
                if t.dim() == 1
                else map(t.__getitem__, range(len(t)))
            )
            return [self.numbers_of(each) for each in rows]

    def numbers_of(self, t: Any) -> Any:
        """The numbers of a part, which may be a plain tensor."""
        return self.numbers(t) if type(t._be) is WrapperBackend else t.tolist()

    def reduced(self, t: object) -> tuple[Any, ...]:
        """See `reduced`."""
        return reduced(t)

    def copied(self, t: object, memo: dict[int, Any]) -> Any:
        """See `copied`."""
        return copied(t, memo)

    def moved(self, t: Any, be: BoundBackend) -> Tensor:
        """A tensor on another device."""
        if recording() and t.requires_grad:
            raise NotImplementedError(
                f"the gradient of moving a {type(t._a.value).__name__} to another device is not "
                "written: detach() it first"
            )
        to_copy = _wrapped_calls.aten("_to_copy")
        found = call(to_copy, (t._a.value,), {"device": be.device})
        return delivered(_wrapped_calls.tensor_of("_to_copy", found))


class Runtime:
    """What `flambeau.plugin.Backend` is to a device."""

    strided = True
    error = ()
    array = HeldArray

    def __init__(self, below: BoundBackend) -> None:
        self.below = below
        self.device_type = below.device.type
        self.indexed = below.backend.indexed

    def strides(self, array: HeldArray) -> tuple[int, ...]:
        return array.strides

    def offset(self, array: HeldArray, root: object) -> int:
        return array.offset

    def as_strided(self, array: HeldArray, *place: object) -> Any:
        raise RuntimeError(
            "as_strided: a tensor with __torch_dispatch__ has no memory whose elements it could "
            "choose"
        )

    def is_contiguous(self, array: HeldArray) -> bool:
        return is_contiguous(array.shape, array.strides, None)

    def owns(self, array: HeldArray) -> bool:
        return True

    def data_ptr(self, array: HeldArray) -> int:
        return 0 if array.inner is None else array.inner.data_ptr()

    def numpy(self, array: HeldArray) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def deferred(self, index: int, ops: object) -> None:
        return None

    def device_count(self) -> int:
        return self.below.backend.device_count()

    def current_device(self) -> int:
        return self.below.backend.current_device()

    def generator(self, index: int) -> Any:
        return self.below.backend.generator(index)

    def to_host(self, array: HeldArray, *rest: object) -> Any:
        raise RuntimeError(
            f"the memory of a {type(array.value).__name__} cannot be read: it has no data of its "
            "own; its values are what __torch_dispatch__ makes of ops"
        )

    reinterpret = to_host

    def item(self, array: HeldArray) -> Any:
        with no_grad():
            found = call(_wrapped_calls.aten("_local_scalar_dense"), (array.value,), {})
        return found.item() if isinstance(found, Tensor) else found

    def tolist(self, array: HeldArray) -> Any:
        raise RuntimeError(
            ".tolist() is not supported for tensor subclasses, got " + type(array.value).__name__
        )

    def check_values(
        self, array: object, low: float, high: float, error: object, text: str
    ) -> bool:
        return False


_over: dict[int, WrapperBackend] = {}


def over(be: Any) -> WrapperBackend:
    """The backend of tensors with ``__torch_dispatch__`` on the device of another backend."""
    if type(be) is WrapperBackend:
        return be
    if (found := _over.get(id(be))) is None:
        found = _over[id(be)] = WrapperBackend(be)
    return found


def _is_number(a: object) -> bool:
    return type(a) is HeldArray and not isinstance(a.value, Tensor)


def _arrays(name: str, result: object, several: bool) -> Any:
    """What ``__torch_dispatch__`` has returned for an op, as arrays of this backend.

    Raises:
        RuntimeError: it is not what the op gives.
    """
    if several:
        if not isinstance(result, (list, tuple)) or len(result) != OPS[name].results:
            raise _wrapped_calls.no_result(name, result)
        return tuple([_arrays(name, each, False) for each in result])
    if isinstance(result, Tensor):
        return held(result)
    raise _wrapped_calls.no_result(name, result)


class _Crossing(engine.DeviceMove):
    """Between plain tensors and those of a wrapper's backend; the gradient decides its home."""

    __slots__ = ("home",)

    def homes(self) -> tuple[Any, ...]:
        return (self.home,)


class Entered(_Crossing):
    """A plain tensor among the operands of such a tensor."""

    __slots__ = ()
    title = "AliasBackward0"

    def apply(self, F: Any, g: Any, edges: Edges = None) -> tuple[Any, ...]:
        self.home = self.args
        if not F.native:
            return (g,)
        if type(g) is HeldArray:
            value = g.as_tensor(F)
            if type(value._be) is WrapperBackend:
                self.home = value._be
            else:
                g = value._a
        return (g,)


class Left(_Crossing):
    """A plain tensor that an op on such a tensor gave."""

    __slots__ = ()
    title = "AliasBackward0"

    def apply(self, F: Any, g: Any, edges: Edges = None) -> tuple[Any, ...]:
        self.home = self.args
        return (self.args.to_array(g) if F.native else lift(g, self.args),)


def _crossed(node: Any, where: Any, source: Any) -> Any:
    engine.several_devices = True
    node._hooks = None
    node.args = where
    node.edges = (source,)
    node.saved = ()
    node.seq = next_seq()
    return node


def lift(t: Tensor, be: WrapperBackend) -> Tensor:
    """A plain tensor as an operand beside one with ``__torch_dispatch__``."""
    if t._be is be:
        return t
    out = wrap(be, held(t), t.dtype)
    if t._rg and recording() and (e := edge(t)) is not None:
        out._fn, out._rg = _crossed(new(Entered), t._be, e), True
    return out


def lifted(tensors: Sequence[Tensor]) -> list[Tensor] | None:
    """Operands as those of one of these backends; None if there is none among them."""
    be = next((t._be for t in tensors if type(t._be) is WrapperBackend), None)
    if be is None:
        return _levels.lifted(tensors)
    return [lift(t, be) for t in tensors]


_FUNCTION = vars(Tensor)["__torch_function__"].__func__


def delivered(result: Any) -> Any:
    """What a program gets for the result of a function."""
    cls = type(result)
    if cls in _dispatch.PLAIN:
        return _handed(result) if type(result._be) is WrapperBackend else result
    if cls is tuple or cls is list:
        return cls([delivered(each) for each in result])
    if isinstance(result, tuple) and any(type(getattr(x, "_be", None)) is WrapperBackend
                                         for x in result):  # fmt: skip
        values = [delivered(each) for each in result]
        return cls(*values) if hasattr(cls, "_fields") else cls(values)
    return result


def _handed(t: Any) -> Any:
    """The tensor that the array of `t` is, with the history of `t`."""
    value = t._a.as_tensor(t._be)
    if t._rg is False and t._base is None:
        return value
    if not has_dispatch(type(value)):
        if (e := edge(t)) is None:
            return value
        out = value.detach()
        out._fn, out._rg = _crossed(new(Left), t._be, e), True
        return out
    if value._rg is not False or value._base is not None:
        if value._fn is t._fn and value._rg is t._rg and value._base is t._base:
            return value  # delivered before
        value = twin(value)
    was, state = state_of(t), state_of(value)
    state.update({name: was[name] for name in HISTORY if name in was})
    if t._base is not None:
        value._st = t._st
    else:
        t._st = value._st
        if getattr(t._fn, "keeps", 0) == 2 or hasattr(t._fn, "adopt"):
            t._fn.adopt(value._st)
    return value


def reduced(t: Any) -> tuple[Any, ...]:
    """What pickles have of a tensor that has no memory: its class, shape and attributes."""
    facts = t._a
    size, strides = tuple(facts.shape), tuple(facts.strides)
    given = type(t), size, strides, facts.offset, t.dtype, str(t.device), t.requires_grad
    return _rebuild, (*given, attributes_of(t))


def _rebuild(
    cls: object,
    size: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    dtype: D.dtype,
    device: str,
    requires_grad: bool,
    attributes: dict[str, Any],
) -> Any:
    t = made(cls, size, strides, offset, dtype, device, requires_grad)
    for name, value in attributes.items():
        setattr(t, name, value)
    return t


def copied(t: Any, memo: dict[int, Any]) -> Any:
    """What `copy.deepcopy` makes of a tensor: a clone, with copies of the attributes.

    Raises:
        RuntimeError: ``clone`` gives a tensor of another class.
    """
    with no_grad():
        clone = t.clone()
    if type(clone) is not type(t):
        raise RuntimeError(
            f"The default implementation of __deepcopy__() for {type(t).__name__} needs clone() to "
            f"give one as well; __torch_dispatch__ made a {type(clone).__name__} of it"
        )
    memo[id(t)] = clone
    for name, value in attributes_of(t).items():
        setattr(clone, name, copy.deepcopy(value, memo))
    if t.grad is not None:
        clone.grad = copy.deepcopy(t.grad, memo)
    return clone.requires_grad_(t.requires_grad)
