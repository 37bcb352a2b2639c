"""What is in the place of attributes and methods while any thread traces."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import nn
from flambeau._tensor import function_modes
from flambeau._types.size import Size
from flambeau.autograd import function as of_autograd
from flambeau.jit import _types as T
from flambeau.jit._frontend.match import call_op
from flambeau.jit._parts import compiler
from flambeau.jit._tracing.classes import has_own_gradient
from flambeau.jit._tracing.numbers import traced
from flambeau.jit._tracing.state import active, current, for_export, warn_user
from flambeau.jit._tracing.unseen import followed
from flambeau.overrides import offering_calls
from flambeau.plugin.forks import make_lock
from flambeau.utils._named_ops import CustomOp

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau.jit._tracing.numbers import TracedInt
    from flambeau.jit._tracing.recorder import Recorder

_lock = make_lock()
_tracing = 0
_undo: list[Callable[[], None]] = []


@contextmanager
def tracing(recorder: Recorder, function: Callable[..., Any]) -> Iterator[None]:
    """A block in which what this thread calls is noted; everything is put back after it."""
    with ExitStack() as stack:
        _begin()
        stack.callback(_end)
        stack.callback(setattr, active, "recorder", active.recorder)
        active.recorder = recorder
        recorder.namespaces = _Namespaces(stack)
        recorder.namespaces.of(function)
        function_modes.enter(recorder, lasting=False)
        stack.callback(function_modes.leave)
        yield


class _Namespaces:
    """The namespaces of the functions that a trace has come through."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.seen: set[int] = set()
        self.thread = threading.get_ident()

    def of(self, function: Callable[..., Any]) -> None:
        """Let the public functions that a function's module has imported be seen."""
        space = getattr(getattr(function, "__func__", function), "__globals__", None)
        if space is not None and id(space) not in self.seen:
            self.seen.add(id(space))
            self.stack.enter_context(offering_calls(space))


def _begin() -> None:
    global _tracing
    with _lock:
        _tracing += 1
        if _tracing == 1:
            for owner, name, made in list(_replacements()):  # all are looked up before one changes
                _replace(owner, name, made)


def _end() -> None:
    global _tracing
    with _lock:
        _tracing -= 1
        if not _tracing:
            while _undo:
                _undo.pop()()


def _replace(owner: type, name: str, made: object) -> None:
    if name in vars(owner):
        before = vars(owner)[name]
        _undo.append(lambda: setattr(owner, name, before))
    else:
        _undo.append(lambda: delattr(owner, name))
    setattr(owner, name, made)


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    tensor = fb.Tensor
    yield tensor, "shape", _shape()
    for name, op in _ATTRIBUTES.items():
        yield tensor, name, _attribute(name, op)
    yield tensor, "size", _size(tensor.size)
    for name in ("numel", "nelement"):
        yield tensor, name, _numel(getattr(tensor, name))
    for name, what in _LEAKS.items():
        yield tensor, name, _leak(getattr(tensor, name), what)
    for name in _METHODS:
        yield tensor, name, _noted(getattr(tensor, name))
    yield tensor, "__len__", _length(tensor.__len__)
    yield nn.Module, "__call__", _call(nn.Module.__call__)
    script = compiler.function.ScriptFunction
    yield script, "__call__", _script(script.__call__)
    method = compiler.modules.ScriptMethod
    yield method, "__call__", _method(method.__call__)
    yield of_autograd, "noted", _applied
    yield CustomOp, "__call__", _named(CustomOp.__call__)
    yield tensor, "__deepcopy__", _copied(tensor.__deepcopy__, "aten::clone")
    yield tensor, "__copy__", _copied(tensor.__copy__)
    for owner in (fb, nn.functional):
        for name in _WRITERS:
            if hasattr(owner, name):
                yield owner, name, _noted(getattr(owner, name))
    yield from followed()


_ATTRIBUTES = {
    "T": "aten::numpy_T",
    "H": "aten::matrix_H",
    "mT": "aten::mT",
    "mH": "aten::mH",
    "real": "aten::real",
    "imag": "aten::imag",
    "data": "aten::detach",
}
_METHODS = ("detach_", "resize_", "resize_as_", "pin_memory", "cuda", "type", "set_")
"""Methods of the class itself, which modes do not see."""
_WRITERS = """selu_ celu_ elu_ leaky_relu_ hardtanh_ threshold_ rrelu_ relu_ dropout_ alpha_dropout_
    feature_dropout_ feature_alpha_dropout_""".split()
"""Functions that write to their argument, which modes do not see."""
_LEAKS = {
    "__bool__": "Converting a tensor to a Python boolean",
    "__int__": "Converting a tensor to a Python integer",
    "__float__": "Converting a tensor to a Python float",
    "__complex__": "Converting a tensor to a Python complex",
    "__index__": "Converting a tensor to a Python index",
    "item": "Converting a tensor to a Python number",
    "tolist": "Converting a tensor to a Python list",
    "numpy": "Converting a tensor to a NumPy array",
    "__array__": "Converting a tensor to a NumPy array",
    "__contains__": "Converting a tensor to a Python boolean",
    "__iter__": "Iterating over a tensor",
}


def _recorder(tensor: Tensor) -> Recorder | None:
    """The trace in which a tensor comes from the inputs."""
    recorder = current()
    return recorder if recorder is not None and recorder.is_traced(tensor) else None


def size_of(recorder: Recorder, tensor: Tensor, dim: int) -> TracedInt:
    """The size of a dimension as a number of the trace."""
    recorder.look()
    value = call_op(
        recorder, "aten::size", [recorder.tensor(tensor), recorder.constant(dim, T.INT)]
    )
    return traced(recorder, tensor._a.shape[dim], value)


def _sizes(recorder: Recorder, tensor: Tensor) -> Size:
    parts = [size_of(recorder, tensor, dim) for dim in range(len(tensor._a.shape))]
    return tuple.__new__(Size, parts)


def _shape() -> property:
    plain = vars(fb.Tensor)["shape"]

    def shape(self: Tensor) -> Any:
        recorder = _recorder(self)
        return plain.fget(self) if recorder is None else _sizes(recorder, self)

    return property(shape, plain.fset, None, plain.__doc__)


def _size(plain: Callable[..., Any]) -> Callable[..., Any]:
    def size(self: Tensor, dim: int | None = None) -> Any:
        found = plain(self, dim)
        recorder = _recorder(self)
        if recorder is None:
            return found
        return _sizes(recorder, self) if dim is None else size_of(recorder, self, int(dim))

    return size


def _numel(plain: Callable[..., Any]) -> Callable[..., Any]:
    def numel(self: Tensor) -> object:
        recorder = _recorder(self)
        if recorder is None:
            return plain(self)
        recorder.look()
        value = call_op(recorder, "aten::numel", [recorder.tensor(self)])
        return traced(recorder, plain(self), value)

    return numel


def _attribute(name: str, op: str) -> property:
    plain = next(vars(c)[name] for c in fb.Tensor.__mro__ if name in vars(c))

    def get(self: Tensor) -> Any:
        recorder = _recorder(self)
        found = plain.__get__(self, type(self))
        if recorder is not None:
            recorder.look()
            recorder.bind(found, call_op(recorder, op, [recorder.tensor(self)]))
        return found

    def put(self: Tensor, value: Any) -> None:
        recorder = _recorder(self)
        if recorder is None:
            plain.fset(self, value)
        elif name == "data":
            plain.fset(self, value)
            recorder.bind(self, recorder.tensor(value))
        else:  # a part of the tensor
            part = get(self)
            part.copy_(value) if isinstance(value, fb.Tensor) else part.fill_(value)

    writes = getattr(plain, "fset", None) is not None
    return property(get, put if writes else None, getattr(plain, "fdel", None), plain.__doc__)


def _copied(plain: Callable[..., Any], *further: str) -> Callable[..., Any]:
    """A copy, which has no history: what is detached, and perhaps more."""

    def copied(self: Tensor, *memo: Any) -> Tensor:
        recorder = _recorder(self)
        known = bool(memo) and id(self) in memo[0]
        found = plain(self, *memo)
        if recorder is not None and not known:
            recorder.look()
            value = recorder.tensor(self)
            for op in ("aten::detach", *further):
                value = call_op(recorder, op, [value])
            recorder.bind(found, value)
        return found

    return copied


def _noted(plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = _recorder(self)
        if recorder is None or (plain.__name__ == "type" and not args and not kwargs):
            return plain(self, *args, **kwargs)
        return recorder.method(plain, (self, *args), kwargs)

    call.__name__ = plain.__name__
    return call


def _leak(plain: Callable[..., Any], what: str) -> Callable[..., Any]:
    def leaking(self: Tensor, *args: object, **kwargs: object) -> object:
        if _recorder(self) is not None:
            warn_user(what, "might cause the trace to be incorrect. " + _WHY if what else "")
        return plain(self, *args, **kwargs)

    return leaking


_WHY = (
    "We can't record the data flow of Python values, so this value will be treated as a constant "
    "in the future. This means that the trace might not generalize to other inputs!"
)


def _length(plain: Callable[..., Any]) -> Callable[..., Any]:
    def length(self: Tensor) -> int:
        if _recorder(self) is not None:
            warn_user(
                "Using len to get tensor shape might cause the trace to be incorrect.",
                "Recommended usage would be tensor.shape[0]. Passing a tensor of different shape "
                "might lead to errors or silently give incorrect results.",
            )
        return plain(self)

    return length


def _call(plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> object:
        recorder = current()
        if recorder is None or isinstance(self, compiler.modules.ScriptModule):
            return plain(self, *args, **kwargs)
        recorder.namespaces.of(self.forward)
        return plain(self, *args, **kwargs)

    return call


def _script(plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return plain(self, *args, **kwargs)
        return recorder.script_call(self, args, kwargs)

    return call


def _method(plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: object, *args: object, **kwargs: object) -> Any:
        recorder = current()
        if recorder is None:
            return plain(self, *args, **kwargs)
        return recorder.method_call(self, args, kwargs, plain)

    return call


def _named(plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: CustomOp, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return plain(self, *args, **kwargs)
        return recorder.named_call(self, args, kwargs)

    return call


def _applied(cls: type[Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    recorder = current()
    if recorder is not None:
        if for_export.get():
            if hasattr(cls, "symbolic"):
                return recorder.python_call(cls, args)
        elif has_own_gradient(cls, args):
            return recorder.gradient_call(cls, args)
    return NotImplemented
