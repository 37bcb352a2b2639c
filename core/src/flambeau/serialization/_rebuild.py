"""The functions that pickles of tensors call, under the names that PyTorch's files use.

They are called with whatever a file says, so each checks all of its arguments.
"""

from __future__ import annotations

import codecs
import math
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Any

from flambeau._api.functions import empty
from flambeau._memory.views import storage_of
from flambeau._storages.memory import tensor_in
from flambeau._storages.typed import TypedStorage
from flambeau._storages.untyped import UntypedStorage
from flambeau._tensor.attributes import OWN
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.device import device as Device
from flambeau._types.layout import layout as Layout
from flambeau._types.layout import sparse_coo, strided
from flambeau._types.size import Size
from flambeau.serialization._budget import DIMENSIONS, LARGEST, Budget, current, shown
from flambeau.sparse._coo import SparseTensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau._types.dtype import dtype as DType


_ENTRY = 100  # bytes of an entry of a dict, about


class UnknownDtype:
    """A dtype of PyTorch that flambeau does not have; harmless until a tensor needs it."""

    def __init__(self, name: str) -> None:
        self.name = name


def _budget() -> Budget:
    """That of the running load; outside of one there are no limits."""
    return current.get(None) or Budget(None)


def _ints(values: object, what: str) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or len(values) > DIMENSIONS:
        raise ValueError(f"{what} {shown(values)} is no tuple of at most {DIMENSIONS} integers")
    if not all(type(v) is int and 0 <= v < LARGEST for v in values):
        raise ValueError(f"{what} {shown(values)} is no tuple of non-negative integers")
    return tuple(values)


def _shape(values: object) -> tuple[int, ...]:
    shape = _ints(values, "size")
    if math.prod(n for n in shape if n) >= LARGEST:
        raise ValueError(f"size {shape} has more elements than can be counted")
    return shape


def _view(
    storage: UntypedStorage, dtype: DType, offset: object, size: object, stride: object
) -> Tensor:
    if isinstance(dtype, UnknownDtype):
        raise TypeError(f"flambeau has no dtype torch.{dtype.name}")
    if not isinstance(dtype, D.dtype):
        raise TypeError(f"{shown(dtype)} is no dtype")
    shape, steps = _shape(size), _ints(stride, "stride")
    (start,) = _ints((offset,), "storage offset")
    if len(shape) != len(steps):
        raise ValueError(f"size {shape} and stride {steps} do not belong together")
    held = storage.nbytes() // dtype.itemsize
    reach = start + sum(s * (n - 1) for n, s in zip(shape, steps, strict=True)) + 1
    if 0 in shape:
        start, steps = 0, tuple(0 for _ in steps) if not held else steps
    elif reach > held:
        raise ValueError(
            f"a tensor of size {shape}, stride {steps} and offset {start} reaches beyond its "
            f"storage of {held} elements"
        )
    if 0 in shape:
        # Strides of empty tensors address nothing; the plain ones fit any storage.
        return _empty(storage, dtype, shape)
    return tensor_in(storage._st, dtype, start, shape, steps)


def _empty(storage: UntypedStorage, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    return empty(shape, dtype=dtype, device=storage.device)


def rebuild_tensor(storage: object, offset: object, size: object, stride: object) -> Tensor:
    """A tensor over a storage of its own dtype."""
    if not isinstance(storage, TypedStorage):
        raise TypeError(f"a tensor needs a typed storage, got {type(storage).__name__}")
    return _view(storage.untyped(), storage.dtype, offset, size, stride)


def rebuild_tensor_v2(
    storage: object,
    offset: object,
    size: object,
    stride: object,
    requires_grad: object,
    backward_hooks: object = None,
    metadata: object = None,
) -> Tensor:
    """The same with the flag of its gradient; hooks do not travel."""
    t = rebuild_tensor(storage, offset, size, stride)
    return t.requires_grad_(True) if requires_grad is True else t


def rebuild_tensor_v3(
    storage: object,
    offset: object,
    size: object,
    stride: object,
    requires_grad: object,
    backward_hooks: object,
    dtype: DType,
    metadata: object = None,
) -> Tensor:
    """A tensor over untyped bytes."""
    if not isinstance(storage, UntypedStorage):
        raise TypeError(f"expected an untyped storage, got {type(storage).__name__}")
    t = _view(storage, dtype, offset, size, stride)
    return t.requires_grad_(True) if requires_grad is True else t


def rebuild_parameter(data: object, requires_grad: object, backward_hooks: object = None) -> Tensor:
    """A parameter."""
    from flambeau.nn import Parameter

    if not isinstance(data, Tensor):
        raise TypeError(f"a parameter needs a tensor, got {type(data).__name__}")
    return Parameter(data, requires_grad is True)


def rebuild_parameter_with_state(
    data: object, requires_grad: object, backward_hooks: object, state: object
) -> Tensor:
    """A parameter with attributes that the user has set."""
    return _with_attributes(rebuild_parameter(data, requires_grad), state)


def rebuild_meta(dtype: DType, size: object, stride: object, requires_grad: object) -> Tensor:
    """A tensor on ``meta``: shape and dtype only."""
    if not isinstance(dtype, D.dtype):
        raise TypeError(f"{shown(dtype)} is no dtype that flambeau has")
    t = empty(_shape(size), dtype=dtype, device="meta")
    return t.requires_grad_(True) if requires_grad is True else t


def rebuild_wrapper(
    cls: object,
    dtype: object,
    size: object,
    stride: object,
    storage_offset: object,
    layout: object,
    device: object,
    requires_grad: object,
) -> Tensor:
    """A tensor of a class with ``__torch_dispatch__``, which has a shape and no memory."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"{shown(cls)} is no class of tensors")
    if not isinstance(dtype, D.dtype) or layout is not strided:
        raise TypeError(f"{shown(dtype)} and {shown(layout)} are no dtype and layout of tensors")
    shape, steps = _shape(size), _shape(stride)
    if len(shape) != len(steps) or type(storage_offset) is not int or storage_offset < 0:
        raise ValueError(f"strides {shown(stride)} and an offset of {shown(storage_offset)}")
    device = device if isinstance(device, Device) else make_device(device)
    return Tensor._make_wrapper_subclass(
        cls, shape, steps, storage_offset, dtype=dtype, device=device,
        requires_grad=requires_grad is True,
    )  # fmt: skip


def rebuild_sparse(layout: object, data: object) -> Tensor:
    """A sparse tensor from its positions and values; `check_positions` follows."""
    if layout is not sparse_coo or type(data) is not tuple or len(data) not in (3, 4):
        raise ValueError(f"sparse tensors of layout {shown(layout)} are not supported")

    indices, values, shape = data[0], data[1], _shape(data[2])
    for t in (indices, values):
        if not isinstance(t, Tensor) or t.is_sparse or t.device != indices.device:
            raise TypeError("a sparse tensor needs dense tensors of positions and values")
    if indices.dtype is not D.int64 or indices.dim() != 2 or indices.shape[0] > len(shape):
        raise ValueError(f"positions of shape {tuple(indices.shape)} for size {shape}")
    if tuple(values.shape) != (indices.shape[1], *shape[indices.shape[0] :]):
        raise ValueError(f"values of shape {tuple(values.shape)} for size {shape}")
    made = SparseTensor.make(indices, values, shape, coalesced=len(data) == 4 and data[3] is True)
    _budget().unchecked.append(made)  # the stream has their positions after the pickle
    return made


def check_positions(t: Any, budget: Budget) -> None:
    """Check that the positions of a sparse tensor lie inside of it.

    Raises:
        ValueError: one does not.
        BudgetError: the positions of the file's tensors overlap too much.
    """
    indices = t._indices()
    if t.is_meta or not indices.numel():
        return
    for dim, step in enumerate(indices.stride()):
        if not step:  # the same numbers again
            indices = indices.narrow(dim, 0, 1)
    place = storage_of(indices), indices.storage_offset(), indices.shape, indices.stride()
    if place not in budget.positions:
        budget.step(indices.numel())
        budget.positions[place] = indices.min().item(), indices.amax(1).tolist()
    lowest, highest = budget.positions[place]
    if len(highest) < len(t._indices()):
        highest = highest * len(t._indices())
    if lowest < 0 or any(h >= n for h, n in zip(highest, t.shape, strict=False)):
        raise ValueError(f"a position of a sparse tensor lies outside of its size {t.shape}")


def rebuild_from_type(
    func: Callable[..., Any], kind: object, args: object, state: object
) -> Tensor:
    """A tensor of a subclass, or with attributes that the user has set."""
    if not any(func is f for f in TENSOR_MAKERS) or type(args) is not tuple:
        raise TypeError(f"{shown(func)} does not make tensors")
    t = func(*args)
    if type(state) is dict and state.get("_is_buffer") is True:
        from flambeau.nn import Buffer

        return Buffer(t, persistent=state.get("persistent") is not False)
    if not (isinstance(kind, type) and issubclass(kind, Tensor)):
        raise TypeError(f"{shown(kind)} is no class of tensors")
    if type(t) is not kind:
        t = Tensor._make_subclass(kind, t, t.requires_grad)
    return _with_attributes(t, state)


def _with_attributes(t: Tensor, state: object) -> Tensor:
    if not state:
        return t
    if type(state) is not dict:
        raise TypeError(f"the attributes of a tensor are a {type(state).__name__}, no dict")
    _budget().copy(_ENTRY * len(state))
    for name, value in state.items():
        if type(name) is not str or name in OWN or _known(name):
            raise ValueError(f"{shown(name)} is no attribute that a file may set on a tensor")
        setattr(t, name, value)
    return t


def _known(name: str) -> bool:
    """Whether a name means something to tensors, or may: what begins with two underscores."""
    return name.startswith("__") or hasattr(Tensor, name)


def get_layout(name: str) -> Layout:
    """The layout of a name such as ``"torch.sparse_coo"``."""
    layouts = {"torch.strided": strided, "torch.sparse_coo": sparse_coo}
    if type(name) is not str or name not in layouts:
        raise ValueError(f"layout {shown(name)} is not supported")
    return layouts[name]


def make_device(*args: Any) -> Device:
    """A device from its type and index."""
    fits = len(args) in (1, 2) and all(type(a) in (str, int) for a in args)
    if not fits or (type(args[0]) is str and len(args[0]) > 100):
        raise ValueError(f"{shown(args)} is no device")
    return Device(*args)


def make_complex(real: float = 0.0, imag: float = 0.0) -> complex:
    """A complex number from its parts; text, which `complex` would read, is refused."""
    if type(real) not in (int, float) or type(imag) not in (int, float):
        raise TypeError("a complex number is made from two numbers")
    return complex(real, imag)


def make_ordered(pairs: Any = ()) -> OrderedDict[Any, Any]:
    """An ordered dict, empty or (in files of Python 2) from a list of pairs."""
    if type(pairs) not in (list, tuple):
        raise TypeError("an OrderedDict is made from a list of pairs")
    budget, made = _budget(), OrderedDict()
    budget.copy(2 * _ENTRY * len(pairs))
    for pair in pairs:
        if type(pair) not in (list, tuple) or len(pair) != 2:
            raise TypeError("an OrderedDict is made from a list of pairs")
        budget.key(made, pair[0])
        made[pair[0]] = pair[1]
    return made


def make_counter(counts: object = ()) -> Counter[Any]:
    """A counter from a dict."""
    budget, made = _budget(), Counter()
    if type(counts) is dict:
        budget.copy(_ENTRY * len(counts))
        for key, count in counts.items():
            budget.key(made, key)
            made[key] = count
    return made


def make_size(values: Any = ()) -> Size:
    """A shape."""
    if type(values) not in (list, tuple):
        raise TypeError("a Size is made from a tuple")
    _budget().copy(8 * len(values))
    if not all(type(n) is int for n in values):
        raise TypeError("a Size is made from integers")
    return Size(values)


def make_set(values: Any = ()) -> set[Any]:
    """A set from a list."""
    if type(values) not in (list, tuple):
        raise TypeError("a set is made from a list")
    budget, made = _budget(), set()
    budget.copy(_ENTRY * len(values))
    for value in values:
        budget.key(made, value)
        made.add(value)
    return made


def make_bytearray(data: object = b"") -> bytearray:
    """A bytearray; a number, which would ask for memory, is refused."""
    if type(data) is not bytes:
        raise TypeError("a bytearray is made from bytes")
    _budget().copy(len(data))
    return bytearray(data)


def make_bytes() -> bytes:
    """No bytes, as protocol 2 writes them."""
    return b""


def encode(text: object, encoding: object = "latin1") -> bytes:
    """Bytes, as protocol 2 writes them: a string with the same code points."""
    if type(encoding) is not str or encoding not in ("latin1", "latin-1") or type(text) is not str:
        raise ValueError(f"encoding {shown(encoding)} is not used by checkpoints")
    _budget().copy(len(text))
    return codecs.encode(text, "latin1")  # type: ignore[return-value]


TENSOR_MAKERS = (
    rebuild_tensor_v2,
    rebuild_tensor_v3,
    rebuild_meta,
    rebuild_wrapper,
    rebuild_sparse,
    rebuild_parameter,
)
