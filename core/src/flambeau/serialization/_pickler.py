"""The pickler of checkpoints: PyTorch's names, and storages kept aside."""

from __future__ import annotations

import pickle
import sys
from collections import OrderedDict
from itertools import islice
from types import FunctionType
from typing import Any, ClassVar

from flambeau._memory.record import Storage
from flambeau._memory.views import geometry_of, storage_of
from flambeau._storages.typed import LEGACY, TypedStorage
from flambeau._storages.untyped import UntypedStorage
from flambeau._tensor.attributes import attributes_of
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.layout import layout as Layout
from flambeau._types.memory_format import contiguous_format
from flambeau.serialization import _rebuild as R
from flambeau.serialization._budget import DEPTH
from flambeau.serialization._locations import location_tag
from flambeau.serialization._names import WRITTEN, parameter_class


class Stored:
    """A storage of the object that is being saved, read as one dtype (None: as bytes)."""

    __slots__ = ("dtype", "st")

    def __init__(self, st: Storage, dtype: Any) -> None:
        self.st = st
        self.dtype = dtype


class StorageTable:
    """The storages met so far, by key, in the order of their first appearance."""

    def __init__(self) -> None:
        self.found: dict[str, Storage] = {}
        self._ids: dict[Any, tuple[Any, ...]] = {}
        self._itemsizes: dict[str, int] = {}

    def itemsize(self, key: str) -> int:
        """Bytes per element of a storage, 1 if it was met as bytes."""
        return self._itemsizes[key]

    def id_of(self, stored: Stored, *, legacy: bool) -> tuple[Any, ...]:
        """The persistent id.

        Raises:
            RuntimeError: the memory was met before as another dtype.
        """
        st, dtype = stored.st, stored.dtype
        if legacy and dtype is None:  # the older format has no untyped storages
            dtype = D.uint8
        if dtype in D.LIMITED:  # no class of storages is named after these: the tensor says which
            dtype = None
        nbytes = st.nbytes()
        # By address; the table keeps the storages alive, so that no address is used twice.
        key = st._be.device, st.identity, nbytes
        pid = self._ids.get(key)
        kind = UntypedStorage if dtype is None else LEGACY[dtype]
        if pid is None:
            name = str(len(self.found))
            self.found[name] = st
            self._itemsizes[name] = 1 if dtype is None else dtype.itemsize
            count = nbytes if dtype is None else nbytes // dtype.itemsize
            pid = ("storage", kind, name, location_tag(UntypedStorage._of(st)), count)
            if legacy:
                pid += (None,)
            self._ids[key] = pid
        elif pid[1] is not kind:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                f"types ({pid[1].__name__} and {kind.__name__}): clone() one of them"
            )
        return pid


def host_bytes(st: Storage) -> memoryview[int] | bytes:
    """The memory of a storage as something with the buffer protocol, not copied if possible."""
    be = st._be
    if be.strided and sys.byteorder == "little":
        try:
            return memoryview(st.vector(D.uint8))
        except TypeError:  # a device whose memory the host does not see
            pass
    return st.read(0, st.nbytes())


def reduced(obj: object) -> Any:
    """How `obj` is rebuilt, for what checkpoints treat specially; otherwise NotImplemented."""
    if isinstance(obj, Tensor):
        return _reduced_tensor(obj)
    if isinstance(obj, TypedStorage):
        return NotImplemented
    if type(obj) is Layout:
        return R.get_layout, (repr(obj),)
    return NotImplemented


def _reduced_tensor(t: Any) -> tuple[Any, ...]:
    kind = type(t)
    if t.is_sparse:
        data = (_spelt_out(t._indices()), t._values(), t.shape, t.is_coalesced())
        return R.rebuild_sparse, (t.layout, data)
    parameter = parameter_class()
    state = attributes_of(t)
    if parameter is not None and kind is parameter:
        args = (t.detach(), t.requires_grad, OrderedDict())
        if state:
            return R.rebuild_parameter_with_state, (*args, state)
        return R.rebuild_parameter, args
    shape, stride, offset = geometry_of(t)
    if hasattr(t._be, "reduced") and getattr(t._a, "inner", None) is None:  # has no memory
        args = (kind, t.dtype, tuple(shape), tuple(stride), offset, t.layout, str(t.device))
        return R.rebuild_from_type, (R.rebuild_wrapper, kind, (*args, t.requires_grad), state)
    if hasattr(t._be, "reduced"):
        t = t._a.inner
    if t.is_meta:
        make, args = R.rebuild_meta, (t.dtype, tuple(shape), stride, t.requires_grad)
    else:
        stored = Stored(storage_of(t), t.dtype)
        make = R.rebuild_tensor_v2
        args = (stored, offset, tuple(shape), stride, t.requires_grad, OrderedDict())
        if t.dtype in D.LIMITED:
            make, args = R.rebuild_tensor_v3, (*args, t.dtype)
    if kind is Tensor and not state:
        return make, args
    if parameter is not None and kind is sys.modules[parameter.__module__].Buffer:
        state = {"persistent": t.persistent, "_is_buffer": True}
        kind = Tensor
    return R.rebuild_from_type, (make, kind, args, state)


def _spelt_out(indices: Any) -> Any:
    """Positions with all of their memory: `load` reads each, so that they must be in the file."""
    if indices.is_meta or indices.nbytes == storage_of(indices).nbytes():
        return indices
    return indices.clone(memory_format=contiguous_format)


_Pickler: Any = pickle._Pickler  # type: ignore[attr-defined]


class TorchPickler(_Pickler):
    """Writes the names by which PyTorch finds the same things.

    Python's pickler, because the one in C insists on importing what it names.
    """

    def __init__(self, file: object, protocol: int, table: StorageTable, legacy: bool) -> None:
        super().__init__(file, protocol)
        self._table = table
        self._legacy = legacy
        self._sources: set[type] = set()
        self._tuples = 0

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        kind = type(obj)
        if kind is Stored:
            return self._table.id_of(obj, legacy=self._legacy)
        if kind is UntypedStorage:
            return self._table.id_of(Stored(obj._st, None), legacy=self._legacy)
        if kind is TypedStorage:
            return self._table.id_of(Stored(obj._st, obj.dtype), legacy=self._legacy)
        if self._legacy and isinstance(obj, type):
            return self._module_id(obj)
        return None

    def _module_id(self, cls: type) -> tuple[Any, ...] | None:
        module = sys.modules.get("flambeau.nn")
        if module is None or not issubclass(cls, module.Module) or cls in self._sources:
            return None
        from inspect import getsource, getsourcefile

        self._sources.add(cls)
        try:
            return "module", cls, getsourcefile(cls), getsource(cls)
        except (OSError, TypeError):  # made in an interactive session
            return None

    def reducer_override(self, obj: object) -> Any:
        return reduced(obj)

    def save_global(self, obj: object, name: str | None = None) -> None:
        written = WRITTEN.get(obj)
        if written is None:
            super().save_global(obj, name)
            return
        if self.proto >= 4:
            self.save(written[0])
            self.save(written[1])
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{written[0]}\n{written[1]}\n".encode())
        self.memoize(obj)

    def save_dtype(self, obj: object) -> None:
        self.save_global(obj)

    def save_dict(self, obj: dict[Any, object]) -> None:
        """The bytes of the base class, with fewer frames, so that models may be deep."""
        if not self.bin:
            super().save_dict(obj)
            return
        self.write(pickle.EMPTY_DICT)
        self.memoize(obj)
        items = iter(obj.items())
        while batch := list(islice(items, self._BATCHSIZE)):
            if len(batch) > 1:
                self.write(pickle.MARK)
            for key, value in batch:
                self.save(key)
                if type(value) is dict and id(value) not in self.memo:
                    self.framer.commit_frame()
                    self.save_dict(value)
                else:
                    self.save(value)
            self.write(pickle.SETITEMS if len(batch) > 1 else pickle.SETITEM)

    def save_tuple(self, obj: object) -> None:
        self._tuples += 1
        if self._tuples > DEPTH:
            raise RecursionError(f"tuples are nested more than {DEPTH} deep, which `load` refuses")
        super().save_tuple(obj)
        self._tuples -= 1

    def save_type(self, obj: type) -> None:
        if obj in WRITTEN:
            self.save_global(obj)
        else:
            super().save_type(obj)

    dispatch: ClassVar[dict[type, Any]] = {
        **_Pickler.dispatch,
        FunctionType: save_global,
        dict: save_dict,
        tuple: save_tuple,
        type: save_type,
        D.dtype: save_dtype,
    }
