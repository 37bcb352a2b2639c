"""From tensors to kernels and back: wrapping, recording, and the slow path of every op.

The generated methods (`_tensor.methods`) hold the fast paths; whatever they cannot take (scalars
that promote, mixed dtypes and devices, subclasses, modes) comes here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from opcode import opmap
from typing import TYPE_CHECKING, Any

from flambeau._autograd import anomaly
from flambeau._autograd.modes import recording
from flambeau._autograd.node import Binary, SavesInput, SavesNothing, SavesResult, next_seq
from flambeau._dispatch.halves import SCALING, is_half, loses
from flambeau._dispatch.promotion import fitting, python_number, result_type
from flambeau._memory.record import is_tensor
from flambeau._memory.views import edge, storage_of
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._types.spec import Spec
from flambeau.plugin.accelerator import OutOfMemoryError, amount

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor
    from flambeau.ops.declaration.table import Op

_RAISE = opmap["RAISE_VARARGS"]
new = object.__new__
OPS: dict[str, Op] = {}  # the canonical ops by name; `flambeau.ops.declaration.table` fills it
Tensor_: Any = None  # set by `flambeau._tensor.tensor`
PLAIN: set[type] = set()  # Tensor, and subclasses that ops treat as Tensor (Parameter)

# How many modes (anomaly, profiler) are on.  The generated methods keep their own copy as a global.
modes = 0
# Whether a plan is being captured, on whichever thread; `flambeau.plans` sets it.
captures = False
# Tensors of several levels of transforms as tensors of one; `flambeau._transforms` sets it.
lifted: Callable[[Sequence[Tensor]], list[Tensor] | None] | None = None
# Where random numbers for a backend are to be drawn, under transforms; set there as well.
drawing: Callable[[BoundBackend], BoundBackend] | None = None
on_shift: list[Callable[[int], None]] = []


def shift_modes(by: int) -> None:
    """Count a mode in or out; while any is on, every op takes the slow path."""
    global modes
    modes += by
    for tell in on_shift:
        tell(modes)


def wrap(be: BoundBackend, native: object, dtype: DType) -> Tensor:
    """A tensor without history over a fresh native array."""
    t = new(Tensor_)
    t._a = native if type(native) is be.array else be.to_array(native)
    t._be = be
    t.dtype = dtype
    t._rg = False
    return t


def version(t: Tensor) -> int:
    """The number of in-place writes to the memory of `t`."""
    return 0 if (st := t._st) is None else st.version


def device_error(name: str, tensors: list[Tensor]) -> RuntimeError:
    """The error of operands that live on different devices."""
    found = ", ".join(dict.fromkeys(str(t._be.device) for t in tensors))
    return RuntimeError(
        f"{name}: Expected all tensors to be on the same device, but found at least two devices: "
        f"{found}. Move them with .to(device) first."
    )


def elsewhere(op: Op, args: tuple[Any, ...]) -> Any:
    """An op on tensors of several backends: of levels of transforms, or else an error.

    Raises:
        RuntimeError: they live on different devices.
    """
    tensors = op.tensors(args)
    found = None if lifted is None else lifted(tensors)
    if found is None or any(t._be is not found[0]._be for t in found):
        raise device_error(op.name, tensors)
    rest = iter(found)
    given = []
    for a, kind in zip(args, op.kinds, strict=True):
        if a is None or kind == "plain":
            given.append(a)
        elif kind == "tensor":
            given.append(next(rest))
        else:
            given.append(tuple([None if t is None else next(rest) for t in a]))
    return op(*given)


def written(self: Tensor, value: Tensor) -> Tensor:
    """The `value` that shall be written into `self`, which is of another backend, as one of its.

    Raises:
        RuntimeError: they live on different devices, or a transform would write to what is outside.
    """
    found = None if lifted is None else lifted([self, value])
    if found is None or found[0]._be is not found[1]._be:
        raise device_error("in-place operation", [self, value])
    if found[0] is not self:
        where: Any = found[0]._be
        if hasattr(where, "as_plain"):  # of tensors that say themselves what ops make of them
            return where.as_plain(self, value)
        raise RuntimeError(where.level.captured)
    return found[1]


SIZED_BY_VALUES = frozenset({"nonzero"})
"""Ops whose results have a size that depends on values: their rules refuse whatever they get."""


def kernel_error(name: str, error: Exception, args: tuple[Any, ...]) -> Exception:
    """What to raise when a kernel refused its arguments.

    If the op's rule refuses them too, the arguments are wrong, and what the kernel said is noise:
    the rule's exception is raised here, alone.
    """
    if isinstance(error, ZeroDivisionError):
        return RuntimeError("ZeroDivisionError: integer division or modulo by zero")
    op = OPS.get(name)
    if op is not None and op.tier == "primitive":
        try:
            op.body(*[_spec(a) for a in args])
        except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError) as worded:
            if name not in SIZED_BY_VALUES or isinstance(error, NotImplementedError):
                raise worded from None
        except AttributeError:
            pass  # the rule knows arrays only, and an argument is none
    if isinstance(error, MemoryError):
        return out_of_memory(name, error, args)
    device = next((f"device {a.device.type!r}" for a in args if is_tensor(a)), "the device")
    if (absent := D.absent(name, error, device)) is not None:
        return absent
    if isinstance(error, KeyError):
        raise error  # of no dtype: a kernel's own mistake
    kind = (
        IndexError
        if isinstance(error, IndexError)
        else NotImplementedError  # an array library has no loop for the dtype
        if isinstance(error, TypeError)
        else RuntimeError
    )
    why = error if said_on_purpose(error) else f"cannot be computed for {described(args)}"
    return kind(f"{name}: {why}")


def out_of_memory(name: str, error: BaseException, args: Sequence[Any]) -> OutOfMemoryError:
    """What to raise where there is no memory for the result of an op, or on its way there."""
    if isinstance(error, OutOfMemoryError) and error.size is None:
        raise error  # an accelerator has said it all, and from what
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    size = getattr(error, "size", None)
    if shape is not None and dtype is not None:  # as NumPy notes them
        size = math.prod(shape) * dtype.itemsize
    asked = "" if size is None else f": tried to allocate {size} bytes ({amount(size)})"
    return OutOfMemoryError(f"{name}: not enough memory{asked}, for {described(args)}")


def described(args: Sequence[Any]) -> str:
    """Arguments of an op as an error tells them: tensors by dtype and shape."""
    return ", ".join(map(_described, args))


def _described(a: object) -> str:
    if is_tensor(a):
        return f"{a.dtype.name}{list(a._a.shape)}"
    if isinstance(a, (list, tuple)) and any(map(is_tensor, a)):
        return f"({described(a[:8])}{', ...' if len(a) > 8 else ''})"
    text = str(a)
    return text if len(text) <= 80 else f"{text[:77]}..."


def said_on_purpose(error: BaseException) -> bool:
    """Whether a kernel raised the error itself; if not, an array library speaks of its own terms.

    A kernel says ``raise``, in a function of the package that was called.
    """
    packages: list[str] = []
    last = trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__") or "flambeau"  # of a function written out
        packages.append(name.partition(".")[0])
        last, trace = trace, trace.tb_next
    if last is None or packages[-1] not in (*packages[1:2], "flambeau"):
        return False
    return last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISE


def _spec(a: object) -> Any:
    if is_tensor(a):
        return Spec(tuple(a._a.shape), a.dtype)
    if isinstance(a, (list, tuple)) and a and is_tensor(a[0]):
        return [_spec(x) for x in a]
    return a


def record_unary(t: Tensor, x: Tensor, node: type) -> None:
    """Give `t` the history of a one-input op on `x`, if `x` has one.

    The generated methods call this, `record_binary` and `record_scalar` while no mode is on;
    `Op.record` tells the modes too.
    """
    e = (x._fn or x) if x._rg is True else edge(x)
    if e is None and not x.requires_grad:
        return
    n = node()
    n._hooks = None
    n.edges = (e,)
    if (keeps := node.keeps) == 2:
        n.saved = (t._a, None, 0)  # `storage_of` fills in the storage once the result has one
    elif keeps:
        n.saved = (x, x._a, 0 if (s := x._st) is None else s.version)
    else:
        n.saved = ()
    n.seq = next_seq()
    t._fn = n
    t._rg = True


def record_binary(t: Tensor, x: Tensor, y: Tensor, node: type) -> None:
    """Give `t` the history of a broadcasting op on `x` and `y`, if they have one.

    What is saved is written here and, for a number as second operand, in `record_scalar`; the
    generator of the methods takes the tuples from the source of this function.
    """
    e0 = ((x._fn or x) if g is True else edge(x)) if (g := x._rg) else None
    e1 = ((y._fn or y) if g is True else edge(y)) if (g := y._rg) else None
    if e0 is None:
        if e1 is None:
            # A view made under no_grad requires a gradient and has nowhere to send it.
            if not ((x._rg and x.requires_grad) or (y._rg and y.requires_grad)):
                return
        keep = node.keep[0 if e1 is None else 2]
    else:
        keep = node.keep[1 if e1 is None else 3]
    n = node()
    n._hooks = None
    n.edges = (e0, e1)
    a = x._a
    b = y._a
    n.shapes = None if a.shape == b.shape else (a.shape, b.shape)
    if not keep:
        n.saved = ()
    elif keep == 3:
        n.saved = (
            x,
            a,
            0 if (s := x._st) is None else s.version,
            y,
            b,
            0 if (s := y._st) is None else s.version,
        )
    elif keep == 1:
        n.saved = (x, a, 0 if (s := x._st) is None else s.version, None, None, 0)
    else:
        n.saved = (None, None, 0, y, b, 0 if (s := y._st) is None else s.version)
    n.seq = next_seq()
    t._fn = n
    t._rg = True


def record_scalar(t: Tensor, x: Tensor, number: object, node: type) -> None:
    """Give `t` the history of a broadcasting op on `x` and a native scalar."""
    e = (x._fn or x) if x._rg is True else edge(x)
    if e is None and not x.requires_grad:
        return
    keep = node.keep[1]
    n = node()
    n._hooks = None
    n.edges = (e, None)
    n.shapes = None
    if not keep:
        n.saved = ()
    elif keep & 1:
        vx = 0 if (s := x._st) is None else s.version
        n.saved = (x, x._a, vx, None, number if keep & 2 else None, 0)
    else:
        n.saved = (None, None, 0, None, number, 0)
    n.seq = next_seq()
    t._fn = n
    t._rg = True


# What hooks for saved tensors do with a new node; `flambeau.autograd.graph` sets it.
packing: Callable[[Any, Any], None] | None = None


def after_record(node: object, result: object) -> None:
    """What modes do with a new node and the result, or the tuple of results, that it is of."""
    if anomaly.enabled:
        anomaly.remember_call(node)
    if packing is not None:
        packing(node, result)


def as_operands(name: str, *operands: object) -> tuple[Any, ...] | None:
    """Operands as tensors and Python numbers, or None if one of them is neither."""
    found = []
    for x in operands:
        if not is_tensor(x):
            x = python_number(x)
            if not isinstance(x, (int, float, complex)):
                return None
        found.append(x)
    return tuple(found)


def slow_unary(name: str, x: Tensor) -> Tensor:
    """An elementwise function of one tensor, in the dtype to which its op promotes."""
    op = OPS[name]
    op.check_dtype(x.dtype, (x,))
    if op.promotes == "float" and not x.dtype.fp:
        x = cast(x, D.get_default_dtype())
    elif op.promotes == "integer" and x.dtype is D.bool_:
        x = cast(x, D.int64)
    return op.run(x)


_SURE = frozenset((D.float32, D.float64))


def slow_binary(name: str, x: object, y: object) -> Any:
    """A broadcasting op of tensors and numbers; NotImplemented for anything else."""
    if type(x) not in PLAIN or type(y) not in PLAIN:
        from flambeau._tensor import overrides as _overrides

        if _overrides.wanted((x, y)):
            return _overrides.call(OPS[name].public(), (x, y), {})
    if (type(x) is float or type(x) is int) and is_tensor(y) and y.dtype in _SURE:
        # 1 - x is common, and numbers promote nothing here.
        OPS[name].check_dtype(y.dtype, (x, y))
        number = wrap(y._be, scalar_native(y._be, x, y.dtype), y.dtype)
        result = OPS[name].run(number, y)
        return result.contiguous() if name == "pow" else result
    operands = as_operands(name, x, y)
    if operands is None:
        return NotImplemented
    op = OPS[name]
    dtype = result_type(*operands)
    if op.promotes == "float" and not dtype.fp:
        dtype = D.get_default_dtype()
    op.check_dtype(dtype, operands)
    if name == "pow" and not is_tensor(operands[1]):
        if dtype.category == 1 or is_half(dtype):
            fitting(operands[1], dtype)
        if type(y) is int and y < 0 and dtype.category == 1:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
    if name in SCALING and is_half(dtype) and loses(dtype, operands):
        wide = [cast(x, D.float32) if is_tensor(x) else x for x in operands]
        return cast(op(*common(name, tuple(wide), D.float32)), dtype)
    result = op(*common(name, operands, dtype))
    # The power of a number is row-major, whatever the exponents are.
    return result if name != "pow" or is_tensor(operands[0]) else result.contiguous()


def common(name: str, operands: tuple[Any, ...], dtype: DType) -> list[Tensor]:
    """Operands as tensors of one dtype on one device; numbers and 0-d CPU tensors follow."""
    tensors = [x for x in operands if is_tensor(x)]
    if not tensors:  # of a method that was taken from the class
        given = " and ".join(type(x).__name__ for x in operands)
        raise TypeError(f"{name}(): expected a Tensor among its operands, got {given}")
    be = tensors[0]._be
    if any(t._be is not be for t in tensors):
        if lifted is not None and (found := lifted(tensors)) is not None:
            rest = iter(found)
            operands = tuple([next(rest) if is_tensor(x) else x for x in operands])
            tensors, be = found, found[0]._be
        large = [t for t in tensors if len(t._a.shape) > 0 or t._be.device.type != "cpu"]
        be = large[0]._be if large else be
        if any(t._be is not be for t in large):
            raise device_error(name, tensors)
    out = []
    for x in operands:
        if not is_tensor(x):
            out.append(wrap(be, scalar_native(be, x, dtype), dtype))
            continue
        if x._be is not be:
            x = x.to(be.device)
        if x.dtype is not dtype:
            original = x
            x = cast(x, dtype)
            if x._st is None:
                # Saved for backward, the cast stands for the operand: writes to that one count.
                x._st = storage_of(original)
        out.append(x)
    return out


def scalar_native(be: BoundBackend, value: object, dtype: DType) -> Any:
    """A Python number as a native operand of `dtype`."""
    # A zero is not among `consts`, where one of the other sign would find it.
    if (type(value) is int or type(value) is float) and not value and math.copysign(1, value) > 0:
        if (found := be.zero.get(dtype)) is None:
            found = be.zero[dtype] = be.scalar_const(0, dtype)
        return found
    if isinstance(value, complex) and not dtype.is_complex:
        value = value != 0 if dtype.category == 0 else value.real
    if dtype.category == 1 and type(value) is float:
        if not math.isfinite(value):
            raise D.beyond(value, dtype)
        value = int(value)
    if type(value) is bool:
        value = int(value)
    if type(value) is int:
        if not -(1 << 63) <= value < 1 << 64:
            raise D.beyond(value, dtype)
        if dtype.category == 1:
            bits = 8 * dtype.itemsize
            low = -(1 << (bits - 1)) if dtype.is_signed else 0
            value = ((value - low) & ((1 << bits) - 1)) + low  # wraps like a C cast
    if (found := be.consts[dtype].get(value)) is None:
        if not isinstance(value, (int, float, complex)) and not hasattr(value, "__float__"):
            raise TypeError(f"expected a number, got {type(value).__name__}")
        found = be.scalar_const(value, dtype)
    return found


def all_values(t: Tensor) -> Tensor:
    """The tensor below all levels of transforms: for checks, which ask whether all of it is so."""
    while hasattr(t._be, "level"):
        t = t._a.value
    return t


def where_to_draw(be: BoundBackend) -> BoundBackend:
    """The backend on which random numbers for tensors of `be` are drawn: a batch's, in `vmap`.

    Raises:
        RuntimeError: random numbers are not allowed here.
    """
    return be if drawing is None else drawing(be)


def drawable(t: Tensor) -> Tensor:
    """The tensor, or in `vmap` one of the batch with its values, whose random numbers differ."""
    if drawing is None or (be := drawing(t._be)) is t._be:
        return t
    return be.level.lift(t)  # type: ignore[attr-defined] - of the backend of a level


def op(name: str) -> Op:
    """A canonical op by name."""
    return OPS[name]


def cast(t: Tensor, dtype: DType) -> Tensor:
    """`t` in another dtype; `t` itself if it has it."""
    if t.dtype is dtype:
        return t
    if type(dtype) is not DType:
        return cast(t, D.as_dtype(dtype))
    return OPS["cast"].run(t, dtype)


__all__ = [
    "PLAIN",
    "SIZED_BY_VALUES",
    "Binary",
    "SavesInput",
    "SavesNothing",
    "SavesResult",
    "cast",
    "common",
    "device_error",
    "edge",
    "kernel_error",
    "new",
    "record_binary",
    "record_scalar",
    "record_unary",
    "recording",
    "result_type",
    "shift_modes",
    "slow_binary",
    "slow_unary",
    "version",
    "wrap",
]
