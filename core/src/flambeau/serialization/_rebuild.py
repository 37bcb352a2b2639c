"""The functions that pickles of tensors call, under the names that PyTorch's files use.

They are called with whatever a file says, so each checks all of its arguments.
"""

from __future__ import annotations

import codecs
from collections import Counter, OrderedDict
from contextvars import ContextVar
from typing import Any

from flambeau._api.functions import empty
from flambeau._storages.memory import tensor_in
from flambeau._storages.typed import TypedStorage
from flambeau._storages.untyped import UntypedStorage
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.device import device as Device
from flambeau._types.layout import layout as Layout
from flambeau._types.layout import sparse_coo, strided
from flambeau._types.size import Size
from flambeau.sparse._coo import SparseTensor

# Sparse tensors made by the running load: the stream has their positions after the pickle.
unchecked: ContextVar[list[Tensor]] = ContextVar("flambeau_unchecked_sparse_tensors")


class UnknownDtype:
    """A dtype of PyTorch that flambeau does not have; harmless until a tensor needs it."""

    def __init__(self, name: str) -> None:
        self.name = name


def _ints(values: Any, what: str) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or not all(
        type(v) is int and 0 <= v < 1 << 62 for v in values
    ):
        raise ValueError(f"{what} {values!r} is no tuple of non-negative integers")
    return tuple(values)


def _view(storage: UntypedStorage, dtype: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    if isinstance(dtype, UnknownDtype):
        raise TypeError(f"flambeau has no dtype torch.{dtype.name}")
    if not isinstance(dtype, D.dtype):
        raise TypeError(f"{dtype!r} is no dtype")
    shape, steps = _ints(size, "size"), _ints(stride, "stride")
    (start,) = _ints((offset,), "storage offset")
    if len(shape) != len(steps) or len(shape) > 64:
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


def _empty(storage: UntypedStorage, dtype: Any, shape: tuple[int, ...]) -> Tensor:
    return empty(shape, dtype=dtype, device=storage.device)


def rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    """A tensor over a storage of its own dtype."""
    if not isinstance(storage, TypedStorage):
        raise TypeError(f"a tensor needs a typed storage, got {type(storage).__name__}")
    return _view(storage.untyped(), storage.dtype, offset, size, stride)


def rebuild_tensor_v2(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    """The same with the flag of its gradient; hooks do not travel."""
    t = rebuild_tensor(storage, offset, size, stride)
    return t.requires_grad_(True) if requires_grad is True else t


def rebuild_tensor_v3(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor over untyped bytes."""
    if not isinstance(storage, UntypedStorage):
        raise TypeError(f"expected an untyped storage, got {type(storage).__name__}")
    t = _view(storage, dtype, offset, size, stride)
    return t.requires_grad_(True) if requires_grad is True else t


def rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any = None) -> Any:
    """A parameter."""
    from flambeau.nn import Parameter

    if not isinstance(data, Tensor):
        raise TypeError(f"a parameter needs a tensor, got {type(data).__name__}")
    return Parameter(data, requires_grad is True)


def rebuild_parameter_with_state(
    data: Any, requires_grad: Any, backward_hooks: Any, state: Any
) -> Any:
    """A parameter with attributes that the user has set."""
    return _with_attributes(rebuild_parameter(data, requires_grad), state)


def rebuild_meta(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """A tensor on ``meta``: shape and dtype only."""
    if not isinstance(dtype, D.dtype):
        raise TypeError(f"{dtype!r} is no dtype that flambeau has")
    t = empty(_ints(size, "size"), dtype=dtype, device="meta")
    return t.requires_grad_(True) if requires_grad is True else t


def rebuild_sparse(layout: Any, data: Any) -> Tensor:
    """A sparse tensor from its positions and values; `check_positions` follows."""
    if layout is not sparse_coo or type(data) is not tuple or len(data) not in (3, 4):
        raise ValueError(f"sparse tensors of layout {layout} are not supported")

    indices, values, shape = data[0], data[1], _ints(data[2], "size")
    if not isinstance(indices, Tensor) or not isinstance(values, Tensor):
        raise TypeError("a sparse tensor needs tensors of positions and values")
    if indices.dtype is not D.int64 or indices.dim() != 2 or indices.shape[0] > len(shape):
        raise ValueError(f"positions of shape {tuple(indices.shape)} for size {shape}")
    if tuple(values.shape) != (indices.shape[1], *shape[indices.shape[0] :]):
        raise ValueError(f"values of shape {tuple(values.shape)} for size {shape}")
    made = SparseTensor.make(indices, values, shape, coalesced=len(data) == 4 and data[3] is True)
    unchecked.get().append(made)
    return made


def check_positions(t: Any) -> None:
    """Check that the positions of a sparse tensor lie inside of it.

    Raises:
        ValueError: one does not.
    """
    indices = t._indices()
    if t.is_meta or not indices.numel():
        return
    highest = indices.amax(1).tolist()
    if indices.min().item() < 0 or any(h >= n for h, n in zip(highest, t.shape, strict=False)):
        raise ValueError(f"a position of a sparse tensor lies outside of its size {t.shape}")


def rebuild_from_type(func: Any, kind: Any, args: Any, state: Any) -> Tensor:
    """A tensor of a subclass, or with attributes that the user has set."""
    if func not in TENSOR_MAKERS or type(args) is not tuple:
        raise TypeError(f"{func!r} does not make tensors")
    t = func(*args)
    if type(state) is dict and state.get("_is_buffer") is True:
        from flambeau.nn import Buffer

        return Buffer(t, persistent=state.get("persistent") is not False)
    if not (isinstance(kind, type) and issubclass(kind, Tensor)):
        raise TypeError(f"{kind!r} is no class of tensors")
    if type(t) is not kind:
        t = Tensor._make_subclass(kind, t, t.requires_grad)
    return _with_attributes(t, state)


def _with_attributes(t: Tensor, state: Any) -> Tensor:
    if not state:
        return t
    if type(state) is not dict:
        raise TypeError(f"the attributes of a tensor are a {type(state).__name__}, no dict")
    for name, value in state.items():
        if type(name) is not str or name.startswith("_") or hasattr(Tensor, name):
            raise ValueError(f"{name!r} is no attribute that a file may set on a tensor")
        setattr(t, name, value)
    return t


def get_layout(name: Any) -> Layout:
    """The layout of a name such as ``"torch.sparse_coo"``."""
    return {"torch.strided": strided, "torch.sparse_coo": sparse_coo}[name]


def make_device(*args: Any) -> Device:
    """A device from its type and index."""
    return Device(*args)


def make_ordered(pairs: Any = ()) -> OrderedDict[Any, Any]:
    """An ordered dict, empty or (in files of Python 2) from a list of pairs."""
    if type(pairs) not in (list, tuple):
        raise TypeError("an OrderedDict is made from a list of pairs")
    return OrderedDict((key, value) for key, value in pairs)


def make_counter(counts: Any = ()) -> Counter[Any]:
    """A counter from a dict."""
    return Counter(counts) if type(counts) is dict else Counter()


def make_size(values: Any = ()) -> Size:
    """A shape."""
    return Size(_ints(values, "size"))


def make_set(values: Any = ()) -> set[Any]:
    """A set of simple values."""
    if type(values) is not list or any(isinstance(v, (tuple, frozenset)) for v in values):
        raise TypeError("a set is made from a list of simple values")
    return set(values)


def make_bytearray(data: Any = b"") -> bytearray:
    """A bytearray; a number, which would ask for memory, is refused."""
    if type(data) is not bytes:
        raise TypeError("a bytearray is made from bytes")
    return bytearray(data)


def encode(text: Any, encoding: Any = "latin1") -> bytes:
    """Bytes, as protocol 2 writes them: a string with the same code points."""
    if encoding not in ("latin1", "latin-1") or type(text) is not str:
        raise ValueError(f"encoding {encoding!r} is not used by checkpoints")
    return codecs.encode(text, "latin1")  # type: ignore[return-value]


TENSOR_MAKERS = (
    rebuild_tensor_v2,
    rebuild_tensor_v3,
    rebuild_meta,
    rebuild_sparse,
    rebuild_parameter,
)
