"""A backend bound to one device: every op is an attribute, ready to be called.

The attributes are the hot path's only table.  Those named as canonical ops take and return native
arrays; a composite without a kernel is its decomposition run on native arrays.  The same object is
the namespace ``F`` of gradient formulas in an ordinary backward pass, hence the helpers at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.dispatch import OPS
from flambeau._dispatch.orders import keeping_order
from flambeau._dispatch.promotion import fits
from flambeau._types import dtype as D
from flambeau._types.device import default_device
from flambeau._types.device import device as Device
from flambeau.plugin.accelerator import Accelerator
from flambeau.plugin.forks import make_lock
from flambeau.plugin.host import host

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType
    from flambeau.ops.declaration.table import Op
    from flambeau.ops.optimisers.optimizer_steps import StepOp
    from flambeau.ops.pointwise.complexes import RetypingView
    from flambeau.ops.randomness.sampling import RandomOp
    from flambeau.plugin.backend import HostBytes

_SWAP_LAST = {n: (*range(n - 2), n - 1, n - 2) for n in range(2, 65)}
_SCALARS_KEPT = 256
_CPU = Device("cpu")


class BoundBackend:
    """The kernels of one device as attributes, and what the dispatcher asks of its backend.

    `__getattr__` is deliberately absent: it would turn off the interpreter's specialised attribute
    reads on the hot path.  Missing kernels are filled in when the object is made.
    """

    if TYPE_CHECKING:
        # The ops, which `__init__` and `_activate` store on the instance.
        def __getattr__(self, name: str) -> Callable[..., Any]: ...

    def __init__(
        self, backend: Any, device: Device, kernels: dict[str, Callable[..., Any]]
    ) -> None:
        self.native = True  # here, since a default of the class is five times as slow to read
        self.backend = backend
        self.device = device
        self.array: type = backend.array
        # A table of dtypes that has not all of them raises KeyError.
        self.error = (*backend.error, ZeroDivisionError, OverflowError, MemoryError, KeyError)
        self.strided: bool = backend.strided
        self.to_array = backend.to_array
        self.dtype_of = backend.dtype_of
        self.consts: dict[DType, dict[Any, Any]] = {d: {} for d in D.EVERY}
        self.zero: dict[DType, Any] = {}  # not among `consts`: it would be found for -0.0 too
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.home: BoundBackend = self  # of `formulas`: where the tensors are
        self.formulas: BoundBackend = self
        self.settle: Callable[[Sequence[Any]], Sequence[Any]] = tuple
        self.offer(kernels)

    def offer(self, kernels: dict[str, Callable[..., Any]]) -> None:
        """Take `kernels` for the ops, in place of those so far; others decompose or are missing."""
        for name in self.kernels:
            self.__dict__.pop(name, None)
        self.kernels = kernels
        self.listening: dict[Any, Callable[..., Any]] = {}  # what captures put in their places
        self.__dict__.update(kernels)
        for op in OPS.values():
            if op.name not in kernels:
                composite = op.tier == "composite"
                filler = self._decomposed(op) if composite else partial(_missing, self, op.name)
                setattr(self, op.name, filler)
        if self.strided:
            for op in OPS.values():
                if op.ordered_by:
                    kernel = keeping_order(self, getattr(self, op.name), op)
                    setattr(self, op.name, kernel)
        self.formulas, self.settle = self._formulas()
        # `slice` of items that leave a dimension: a kernel may carry a shorter way for those.
        self.part = getattr(self.slice, "part", self.slice)
        if self.strided:
            for name in ("add", "sub", "mul", "div"):
                if f"{name}_" not in kernels:
                    setattr(self, f"{name}_", partial(_in_place, self, name))

    def _formulas(self) -> tuple[BoundBackend, Callable[[Sequence[Any]], Sequence[Any]]]:
        """The namespace ``F`` of gradient formulas, and what makes arrays of their results."""
        ops = {name: getattr(self, name) for name in OPS}
        made = self.backend.deferred(self.device.index or 0, ops)
        if made is None:
            return self, tuple
        late = object.__new__(BoundBackend)
        late.__dict__.update(self.__dict__)
        late.__dict__.update(made[0])
        late.part = late.slice
        return late, made[1]

    def _decomposed(self, op: Op | StepOp | RetypingView | RandomOp) -> Callable[..., Any]:
        """A composite as its decomposition, or as what the backend makes of that."""
        decomposition = op.decomposed(self)
        if op.name.endswith("_"):  # writes into its arguments
            return decomposition
        return self.backend.compile(op.name, decomposition) or decomposition

    def scalar_const(self, value: object, dtype: DType) -> Any:
        """A 0-d native array holding `value`, remembered for the next op with the same scalar."""
        backend, index = self.backend, self.device.index
        if index is None or index == backend.current_device():
            try:
                native = backend.scalar(value, dtype)
            except OverflowError as error:
                raise D.beyond(value, dtype) from error
            except KeyError as error:
                raise self._absent(f"the number {value}", error) from error
        else:
            native = self.host_array([value], (), dtype)
        cache = self.consts[dtype]
        # Zeros have a sign that equality does not see, and NaN never equals its cached self.  What
        # the dtype cannot hold is not kept, so that fills, which refuse it, may look here first.
        if value and value == value and len(cache) < _SCALARS_KEPT and fits(value, dtype):
            cache[value] = native
        return native

    def host_array(self, values: list[Any], shape: Sequence[int], dtype: DType) -> Any:
        """A native array of this device from Python numbers in row-major order."""
        return self.placed(D.pack(values, dtype), tuple(shape), dtype)

    def placed(self, data: HostBytes, shape: tuple[int, ...], dtype: DType) -> Any:
        """A native array of this device from little-endian bytes.

        Raises:
            NotImplementedError: the device has no such dtype.
        """
        try:
            return self.backend.from_host(data, shape, dtype, self.device.index or 0)
        except KeyError as error:
            raise self._absent(f"a tensor of shape {list(shape)}", error) from error

    def places(self, count: int, step: int = 1) -> Any:
        """The first `count` multiples of `step`, from 0 on, as a native array of int64.

        Raises:
            NotImplementedError: the device has no int64.
        """
        try:
            return self.arange(0, step, count, D.int64)
        except KeyError as error:
            raise self._absent(f"{count} places in a tensor", error) from error

    def _absent(self, what: str, error: KeyError) -> Exception:
        """What to raise where the backend's table of dtypes had no such entry."""
        return D.absent(what, error, f"device {self.device.type!r}") or error

    def scalar(self, value: float, like: object) -> Any:
        """A number as an operand for arrays like `like`."""
        dtype = self.dtype_of(like)
        if (found := self.consts[dtype].get(value)) is None:
            found = self.scalar_const(value, dtype)
        return found

    def zeros(self, shape: tuple[int, ...], like: object) -> Any:
        """Zeros with the dtype of `like`."""
        return self.full(tuple(shape), 0, self.dtype_of(like))

    def mT(self, a: Any) -> Any:
        """The matrix transpose: the last two dimensions swapped."""
        return self.permute(a, _SWAP_LAST[len(a.shape)])

    def cast_like(self, a: object, like: object) -> Any:
        """`a` in the dtype of `like`."""
        dtype = self.dtype_of(like)
        return a if self.dtype_of(a) is dtype else self.cast(a, dtype)

    def is_complex(self, a: object) -> bool:
        """Whether the numbers of `a` are complex."""
        return self.dtype_of(a).is_complex

    def sum_to(self, a: Any, shape: tuple[int, ...]) -> Any:
        """`a` summed over the dimensions along which `shape` was broadcast."""
        have = a.shape
        if have == shape:
            return a
        lead = len(have) - len(shape)
        if lead and have[lead:] == shape:  # a view of a sum with its dimensions would not be owned
            return self.fresh(self.sum(a, tuple(range(lead)), False))
        dims = (*range(lead), *(i + lead for i, n in enumerate(shape) if n == 1 != have[i + lead]))
        if dims:
            a = self.fresh(self.sum(a, dims, True))
        return self.reshape(a, tuple(shape)) if lead else a

    def reshape(self, a: object, shape: tuple[int, ...]) -> Any:
        """`a` in another shape: an alias where strides allow it, else a copy."""
        a = self.fresh(a)  # formulas pass on what kernels return, 0-d numbers too
        try:
            return self.view(a, shape)
        except self.error:
            return self.view(self.contiguous(a), shape)

    def fresh(self, result: object) -> Any:
        """A kernel's result as a native array (some libraries return scalars for 0-d)."""
        return result if type(result) is self.array else self.to_array(result)

    def flat(self, a: Any) -> Any:
        """`a` as a vector."""
        return self.reshape(a, (prod(a.shape),))


_bound: dict[tuple[str, int | None], BoundBackend] = {}
_retired: dict[tuple[str, int | None], BoundBackend] = {}  # to be offered kernels again
_usual: BoundBackend | None = None  # that of the CPU, once it is bound
_lock = make_lock()


def bind(name: Device | str | int | None) -> BoundBackend:
    """The `BoundBackend` of a device, activating its plugin at first use.

    Raises:
        RuntimeError: no backend serves the device type, its plugin is broken, or the index is out
        of range.
    """
    global _usual
    if name is None:
        where = default_device() or _CPU
    else:
        where = name if type(name) is Device else Device(name)
    try:
        return _bound[where.type, where.index]
    except KeyError:
        pass
    with _lock:
        if (found := _bound.get((where.type, where.index))) is None:
            found = _activate(where)
            # The bare name of one of several devices means another one after `set_device`.
            if found.device == where or found.backend.device_count() == 1:
                _bound[where.type, where.index] = found
                if where == _CPU:
                    _usual = found
        return found


# Where tensors for a backend are made, under transforms; `flambeau._transforms` sets it.
making: Callable[[BoundBackend], BoundBackend] | None = None
held: Callable[[Callable[..., Any], list[Any]], Any] | None = None  # for bodies of ops, likewise


_OTHER_WAYS = frozenset({"alone", "between", "empty", "identity"})


def facts_of(kernel: Callable[..., Any]) -> dict[str, Any]:
    """What a kernel says of itself, for one that stands in its place and sees what it makes.

    The other ways to make arrays that it may carry are left out: theirs would not be seen.
    """
    return {k: v for k, v in getattr(kernel, "__dict__", {}).items() if k not in _OTHER_WAYS}


def home(where: Any) -> BoundBackend:
    """The backend on which new tensors for a device, or for another backend, are made.

    Raises:
        RuntimeError: as `bind`.
    """
    if where is None and _usual is not None and default_device() is None:
        be = _usual
    else:
        be = where if isinstance(where, BoundBackend) else bind(where)
    return be if making is None else making(be)


def _activate(where: Device) -> BoundBackend:
    activation = host.activate(where.type)
    backend = activation.backend
    index = where.index
    if backend.indexed and index is None:
        return bind(Device(where.type, backend.current_device()))
    if not backend.indexed and index == 0:
        return bind(Device(where.type))
    count = backend.device_count()
    if index is not None and index >= count:
        if not count and isinstance(backend, Accelerator) and (why := backend.unavailable()):
            raise RuntimeError(f"no {where.type} device is available: {why}")
        raise RuntimeError(
            f"device {where} does not exist: {where.type!r} has {count} device(s), "
            f"numbered from 0; flambeau.device('{where.type}:0') is the first"
        )
    kernels = dict(activation.kernels)
    if isinstance(backend, Accelerator):
        kernels = dict(backend.kernels_on(index or 0, kernels))
    be = _retired.pop((where.type, index), None)
    if be is None or be.backend is not backend:
        be = BoundBackend(backend, where, kernels)
    else:
        be.offer(kernels)
    return be


def _in_place(be: BoundBackend, name: str, target: object, other: object) -> None:
    """The in-place form of an op on a strided backend that offers none."""
    be.assign(target, getattr(be, name)(target, other))


def _missing(be: BoundBackend, name: str, *args: object) -> Any:
    kernel = host.missing_kernel(name, be.device.type)  # raises unless a fallback is switched on
    return kernel(*args)


def forget(device_type: str | None = None) -> None:
    """Let the next use of a device see the plugins registered since.

    Living tensors refer to the object of their device, so it is kept, and offered the new kernels.
    """
    global _usual
    with _lock:
        for key in [k for k in _bound if device_type in (None, k[0])]:
            _retired[key] = _bound.pop(key)
        _usual = _bound.get((_CPU.type, _CPU.index))
