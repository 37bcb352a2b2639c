"""The Tensor: a native array, the backend it belongs to, and its place in the recorded graph.

What every op reads (``_a _be dtype _rg``) is stored on each instance and has no class default: a
class attribute of the same name would turn off the interpreter's specialised reads.  Everything
else has a default on the class and costs nothing until used.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from flambeau._autograd.modes import recording, set_recording
from flambeau._autograd.node import Hooks, Node, Out, RemovableHandle, _add
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import checked_sizes, dim_of, need_self
from flambeau._dispatch.arguments import sizes as as_sizes
from flambeau._dispatch.bound import bind
from flambeau._dispatch.dispatch import wrap
from flambeau._dispatch.keywords import many
from flambeau._memory import views as _views
from flambeau._memory.record import Storage, TensorBase, state_of
from flambeau._memory.states import LEAF_VIEW, UNBUILT_VIEW, VIEW
from flambeau._memory.views import edge, geometry_of, storage_of
from flambeau._storages.memory import shown_in
from flambeau._tensor import absent
from flambeau._tensor.attributes import OWN, attributes_of, show_attributes, shown
from flambeau._tensor.methods import TensorMethods
from flambeau._tensor.printing import tensor_format, tensor_repr
from flambeau._types import dtype as D
from flambeau._types.device import device as Device
from flambeau._types.layout import strided
from flambeau._types.memory_format import is_contiguous, order_of_memory, preserve_format
from flambeau._types.size import Size
from flambeau._writes import inplace as _inplace

if TYPE_CHECKING:
    from types import ModuleType

    from flambeau._dispatch.bound import BoundBackend
    from flambeau._storages.typed import TypedStorage
    from flambeau._storages.untyped import UntypedStorage
    from flambeau._types.dtype import dtype as DType
    from flambeau._types.hints import DeviceLike
    from flambeau._types.memory_format import memory_format as MemoryFormat

_new = object.__new__
_new_tuple = tuple.__new__

DATA_KEEPS_ITS_KIND = True
"""Whether the `data` of a tensor that requires a gradient stays floating: not in PyTorch 1.2."""


class Tensor(TensorMethods, TensorBase):
    """A multi-dimensional array of one dtype on one device, with a gradient history.

    ``Tensor(2, 3)`` is uninitialised float32 of that shape and ``Tensor([1, 2])`` holds data, as in
    PyTorch; `flambeau.tensor` and the factory functions are the usual way to make one.

    >>> import flambeau as fb
    >>> fb.Tensor([1, 2])
    tensor([1., 2.])
    """

    _a: Any  # native array
    _be: BoundBackend  # its backend, one object per device
    dtype: DType
    _rg: Any  # whether and how it has a history: a state of `flambeau._memory.states`

    seq: ClassVar[int] = 0  # a leaf stands for the end of a graph; nodes have positive numbers

    _fn: Any = None  # Node, or Out for one output of several; the base's of an `UNBUILT_VIEW`
    _st: Storage | None = None  # None: version 0, shared with nobody
    _base: Any = None  # root of the chain of views
    _view: Any = None  # (parent, op, args, name) of a view
    _seen: Any = None  # storage version for which `_fn` of a view was built
    _made: str | None = None  # "no_grad", or the function that made this view and others at once
    _msteps: Any = ()  # without strides: view steps from the root of the storage
    _grad: Any = None
    _hooks: Any = None  # Hooks of a leaf
    _retains: bool = False

    __array_priority__ = 1000
    __dict__ = shown  # type: ignore[assignment] - what programs have set, not what a tensor is made of

    def __hash__(self) -> int:  # type: ignore[override] - defining __eq__ has set it to None
        return id(self)

    layout: ClassVar[Any] = strided
    is_sparse: ClassVar[bool] = False
    is_quantized: ClassVar[bool] = False
    is_mkldnn: ClassVar[bool] = False
    is_nested: ClassVar[bool] = False
    is_sparse_csr: ClassVar[bool] = False

    def __new__(cls, *args: object, **kwargs: object) -> Tensor:
        from flambeau._tensor.legacy import legacy_new  # makes tensors

        return legacy_new(cls, args, kwargs)

    def __init_subclass__(cls, plain: bool = False, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        show_attributes(cls)
        if "dtype" in vars(cls):
            # Not before: beside a descriptor CPython reads the attribute of all tensors slower.
            Tensor.dtype = _OwnDtype()  # type: ignore[assignment]
        if plain or _is_plain(cls):
            _dispatch.PLAIN.add(cls)
            _share_keys(cls)
        else:
            from flambeau._tensor.method_calls import intercept_methods

            intercept_methods(cls)
        if "__torch_dispatch__" in vars(cls):
            _saying().prepare(cls)

    @staticmethod
    def _make_subclass(
        cls: type, data: Tensor, require_grad: bool = False, **options: object
    ) -> Any:
        """An instance of a subclass that shares the memory of `data`, as a leaf."""
        if not isinstance(data, Tensor):
            raise TypeError(
                f"{cls.__name__}(): argument 'data' must be Tensor, not {type(data).__name__}"
            )
        if getattr(getattr(cls, "__torch_dispatch__", None), "__func__", None) is not _DISPATCH:
            return _saying().make_subclass(cls, data, require_grad)
        t = data.detach()
        out = _new(cls)
        state_of(out).update(state_of(t))
        _refresh_alias(out)
        out._rg = False
        return out.requires_grad_(require_grad)

    @staticmethod
    def _make_wrapper_subclass(
        cls: type,
        size: Sequence[int],
        strides: Sequence[int] | None = None,
        storage_offset: int | None = None,
        memory_format: MemoryFormat | None = None,
        *,
        dtype: DType | None = None,
        layout: object = strided,
        device: object = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        **policies: object,
    ) -> Any:
        """A tensor of a class with ``__torch_dispatch__``, which has a shape and no memory.

        The class says in ``__torch_dispatch__(cls, func, types, args, kwargs)`` what ops make of
        it; `func` is one of ``torch.ops.aten``.  Its gradient history is that of any tensor.

        Raises:
            TypeError: the class has no ``__torch_dispatch__``.

        >>> import flambeau as fb
        >>> class Scaled(fb.Tensor):
        ...     @staticmethod
        ...     def __new__(cls, values, scale):
        ...         t = fb.Tensor._make_wrapper_subclass(cls, values.shape, dtype=fb.float32)
        ...         t.values, t.scale = values, scale
        ...         return t
        ...     @classmethod
        ...     def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        ...         plain = [a.values * a.scale if isinstance(a, Scaled) else a for a in args]
        ...         return func(*plain, **(kwargs or {}))
        >>> Scaled(fb.tensor([1, 2]), 0.5) + 1
        tensor([1.5000, 2.0000])
        """
        if getattr(getattr(cls, "__torch_dispatch__", None), "__func__", None) is _DISPATCH:
            raise TypeError(
                f"{cls.__name__} must define __torch_dispatch__, which says what ops make of it"
            )
        return _saying().made(cls, size, strides, storage_offset, dtype, device, requires_grad)

    def as_subclass(self, cls: type) -> Any:
        """This tensor, history included, as an instance of a subclass."""
        try:
            if getattr(getattr(cls, "__torch_dispatch__", None), "__func__", None) is not _DISPATCH:
                return Tensor._make_subclass(cls, self, self.requires_grad)
            out = _new(cls)
            from flambeau.ops.shapes.movement import alias as alias_of

            alias = alias_of(self)
            state_of(out).update(state_of(alias))
            _refresh_alias(out)
            return out
        except AttributeError:
            need_self(self, "as_subclass")
            raise

    def _same_history(self, native: object) -> Tensor:
        # A stand-in: other values, the same edge.
        t = wrap(self._be, native, self.dtype)
        if self._rg:
            e = edge(self)
            if isinstance(e, Node):
                t._fn, t._rg = e, True
                if e.keeps == 2:  # its saved result belongs to the storage of the true tensor
                    t._st = Storage(native, self._be, self.dtype)
            elif e is not None:
                t._fn, t._rg = _inplace._own(e), True
            elif self.requires_grad:
                t._rg = True
        return t

    def _fresh_copy(self) -> Tensor:
        return wrap(self._be, self._be.clone(self._a), self.dtype)

    @property
    def shape(self) -> Size:
        """The sizes of the dimensions."""
        return _new_tuple(Size, self._a.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dimension."""
        try:
            if dim is None:
                return _new_tuple(Size, self._a.shape)

            return self._a.shape[dim_of(dim, len(self._a.shape), scalar_as_vector=False)]
        except AttributeError:
            need_self(self, "size")
            raise

    def dim(self) -> int:
        """The number of dimensions."""
        try:
            return len(self._a.shape)
        except AttributeError:
            need_self(self, "dim")
            raise

    ndimension = dim

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._a.shape)

    def numel(self) -> int:
        """The number of elements."""
        try:
            count = 1
            for n in self._a.shape:
                count *= n
            return count
        except AttributeError:
            need_self(self, "numel")
            raise

    nelement = numel

    def __len__(self) -> int:
        if not self._a.shape:
            raise TypeError("len() of a 0-d tensor")
        return self._a.shape[0]

    @property
    def device(self) -> Device:
        """Where the tensor lives."""
        return self._be.device

    @property
    def is_cuda(self) -> bool:
        """Whether it lives on a CUDA device."""
        return self._be.device.type == "cuda"

    @property
    def is_mps(self) -> bool:
        """Whether it lives on a device of type ``mps``."""
        return self._be.device.type == "mps"

    @property
    def is_xpu(self) -> bool:
        """Whether it lives on a device of type ``xpu``."""
        return self._be.device.type == "xpu"

    @property
    def is_cpu(self) -> bool:
        """Whether it lives on the CPU."""
        return self._be.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        """Whether it has a shape and no data."""
        return self._be.device.type == "meta"

    def get_device(self) -> int:
        """The index of the device, -1 on the CPU."""
        try:
            index = self._be.device.index
            return -1 if self._be.device.type == "cpu" else index or 0
        except AttributeError:
            need_self(self, "get_device")
            raise

    def element_size(self) -> int:
        """Bytes per element."""
        try:
            return self.dtype.itemsize
        except AttributeError:
            need_self(self, "element_size")
            raise

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    def is_floating_point(self) -> bool:
        """Whether the dtype is floating."""
        try:
            return self.dtype.is_floating_point
        except AttributeError:
            need_self(self, "is_floating_point")
            raise

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        try:
            return self.dtype.is_complex
        except AttributeError:
            need_self(self, "is_complex")
            raise

    def is_distributed(self) -> bool:
        """Whether the tensor is spread over processes: never."""
        return False

    def is_signed(self) -> bool:
        """Whether the dtype has negative numbers."""
        try:
            return self.dtype.is_signed
        except AttributeError:
            need_self(self, "is_signed")
            raise

    def stride(self, dim: int | None = None) -> Any:
        """Elements between neighbours along each dimension, or along one."""
        try:
            strides = geometry_of(self)[1]
            if dim is None:
                return strides

            return strides[dim_of(dim, len(strides), scalar_as_vector=False)]
        except AttributeError:
            need_self(self, "stride")
            raise

    def storage_offset(self) -> int:
        """Elements between the start of the storage and the first element."""
        try:
            return geometry_of(self)[2]
        except AttributeError:
            need_self(self, "storage_offset")
            raise

    def is_contiguous(self, memory_format: MemoryFormat | None = None) -> bool:
        """Whether the elements lie in row-major order (or in the given format) without gaps."""
        try:
            be = self._be
            if be.strided:
                if memory_format is None:
                    return be.backend.is_contiguous(self._a)
                shape, stride = self._a.shape, be.backend.strides(self._a)
            else:
                shape, stride, _ = geometry_of(self)

            return is_contiguous(shape, stride, memory_format)
        except AttributeError:
            need_self(self, "is_contiguous")
            raise

    def data_ptr(self) -> int:
        """The address of the first element, 0 where memory has none."""
        try:
            if not self._be.strided:
                return 0
            storage_of(self).shared = True  # the address stays valid only if writes happen in place
            return self._be.backend.data_ptr(self._a)
        except AttributeError:
            need_self(self, "data_ptr")
            raise

    def untyped_storage(self) -> UntypedStorage:
        """The bytes of the storage, shared by all views."""
        try:
            from flambeau._storages.of_tensors import untyped_storage

            return untyped_storage(self)
        except AttributeError:
            need_self(self, "untyped_storage")
            raise

    def storage(self) -> TypedStorage:
        """The storage, shared by all views, read as this dtype."""
        from flambeau._storages.of_tensors import typed_storage

        return typed_storage(self)

    typed_storage = storage

    def storage_type(self) -> Any:
        """The class of the storage, such as ``FloatStorage``."""
        from flambeau._storages.of_tensors import storage_type

        return storage_type(self)

    def is_pinned(self, device: object = None) -> bool:
        """Whether it lives in page-locked host memory (of a type of accelerator)."""
        try:
            from flambeau.accelerator._pinned import is_pinned

            return is_pinned(self, device)
        except AttributeError:
            need_self(self, "is_pinned")
            raise

    def pin_memory(self, device: object = None) -> Tensor:
        """A copy in page-locked memory; itself where it is there or no accelerator needs that.

        Raises:
            RuntimeError: it is not on the CPU.
        """
        try:
            from flambeau.accelerator._pinned import pinned

            return pinned(self, device)
        except AttributeError:
            need_self(self, "pin_memory")
            raise

    def record_stream(self, stream: Any) -> None:
        """Say that `stream` uses the memory, which another stream's work allocated.

        When the tensor is gone, nothing else gets its memory before what `stream` was asked until
        then is done.

        Raises:
            RuntimeError: the tensor is not on the type of device that has `stream`.
        """
        if not hasattr(stream, "_native"):
            raise TypeError(f"record_stream wants a Stream, not {type(stream).__name__}")
        if self.device.type != stream.device.type:
            raise RuntimeError(
                f"record_stream: the tensor is on {self.device}, the stream on {stream.device}"
            )
        self._be.backend.record_use(self._a, stream._native)

    def is_shared(self) -> bool:
        """Whether other processes can see the memory."""
        st = self._st
        return self.is_cuda or (st is not None and st.mapping is not None and st.mapping.shared)

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for this tensor."""
        g = self._rg
        if g is True or g is False:
            return g
        return g > VIEW or self._fn is not None or self._base._rg

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Switch recording for this leaf on or off, in place.

        Raises:
            RuntimeError: the dtype is not floating, or the tensor is no leaf and shall be switched
            off.
        """
        try:
            want = bool(requires_grad)
            if want and not self.dtype.fp:
                raise RuntimeError(
                    "only Tensors of floating point and complex dtype can require gradients"
                )
            if not want and not self.is_leaf:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to use "
                    "a computed variable in a subgraph that doesn't require differentiation use "
                    "var_no_grad = var.detach()."
                )
            if self._base is None or not self.dtype.fp:
                self._rg = want or self._fn is not None
            elif self._rg != UNBUILT_VIEW:
                self._rg = LEAF_VIEW if want else VIEW
            return self
        except AttributeError:
            need_self(self, "requires_grad_")
            raise

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op produced this tensor."""
        if self._rg is True:
            return self._fn is None
        return not isinstance(edge(self), Node)

    @property
    def grad_fn(self) -> Any:
        """The node that produced this tensor, or None for leaves."""
        fn = self._fn if self._rg is True else edge(self)
        return fn.node if isinstance(fn, Out) else None if fn is self else fn

    @property
    def _grad_fn(self) -> Any:
        return self.grad_fn

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")

    @property
    def output_nr(self) -> int:
        """Which output of its node this tensor is."""
        e = edge(self)
        return e.index if isinstance(e, Out) else 0

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient of a leaf (or of a tensor that retains it), or None."""
        if (grad := self._grad) is None and self._rg and not self._retains and not self.is_leaf:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
                ".grad attribute won't be populated during autograd.backward(). If you indeed want "
                "the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on it.",
                UserWarning,
                stacklevel=2,
            )
        return grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got {type(value)}"
                )
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if value.dtype is not self.dtype:
                raise RuntimeError(
                    f"assigned grad has data of a different type: {value.type()}, expected "
                    f"{self.type()}"
                )
            if value._be is not self._be and value.device != self.device:
                raise RuntimeError(
                    f"assigned grad has data located on a different device: {value.device}, "
                    f"expected {self.device}"
                )
            if value._a.shape != self._a.shape:
                raise RuntimeError(
                    f"assigned grad has data of a different size: {list(value._a.shape)}, expected "
                    f"{list(self._a.shape)}"
                )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def retains_grad(self) -> bool:
        """Whether a non-leaf keeps its gradient after backward."""
        return self._retains and not self.is_leaf

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf tensor in ``.grad``.

        Raises:
            RuntimeError: the tensor does not require a gradient.
        """
        try:
            if not self.requires_grad:
                raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
            e = edge(self)
            if isinstance(e, Node):
                self._retains = True
                e.hooks().retain = weakref.ref(self)
        except AttributeError:
            need_self(self, "retain_grad")
            raise

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Compute the gradients of the leaves and add them to their ``.grad``.

        Args:
            gradient: the gradient of this tensor; may be left out if it has one element.
            retain_graph: keep the graph for another backward; default `create_graph`.
            create_graph: record the backward itself, for higher derivatives.
            inputs: accumulate only into these.

        Raises:
            RuntimeError: no gradient is required, or `gradient` is missing or does not fit.
        """
        from flambeau import autograd

        autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def register_hook(self, hook: Callable[[Tensor], Any]) -> RemovableHandle:
        """Call ``hook(grad)`` whenever this tensor's gradient is computed; it may return another.

        Raises:
            RuntimeError: the tensor does not require a gradient.
        """
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        e = edge(self)
        hooks = e.hooks() if isinstance(e, Node) else self._leaf_hooks()
        return _add(hooks.tensor, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], Any]) -> RemovableHandle:
        """Call ``hook(self)`` after a gradient was added to this leaf's ``.grad``."""
        if not self.requires_grad or not self.is_leaf:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors"
            )
        return _add(self._leaf_hooks().post, hook)

    def _leaf_hooks(self) -> Hooks:
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks

    @property
    def _backward_hooks(self) -> dict[int, Callable[[Tensor], Any]] | None:
        # What programs ask whether a tensor that came from elsewhere brought hooks along.
        hooks = self._hooks if self._fn is None else self._fn._hooks
        return hooks.tensor if hooks is not None and hooks.tensor else None

    @_backward_hooks.setter
    def _backward_hooks(self, given: dict[int, Callable[[Tensor], Any]] | None) -> None:
        hooks = self._hooks if self._fn is None else self._fn._hooks
        if hooks is not None:
            hooks.tensor.clear()
        for hook in list((given or {}).values()):
            self.register_hook(hook)

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")

    def detach(self) -> Tensor:
        """The same memory without history; writes to either are seen, and counted, by both."""
        try:
            st = storage_of(self)
            st.shared = True
            t = wrap(self._be, self._a, self.dtype)
            t._st = st
            if not self._be.strided:
                if (level := getattr(self._be, "level", None)) is not None:
                    t._a = level.detached(self._a)
                t._msteps = self._msteps
                _views.register_alias(st, t)
            return t
        except AttributeError:
            need_self(self, "detach")
            raise

    def detach_(self) -> Tensor:
        """Forget the history of this tensor, in place.

        Raises:
            RuntimeError: it is a view; views cannot be detached in place.
        """
        try:
            if self._base is not None:
                raise RuntimeError(
                    "Can't detach views in-place. Use detach() instead. If you are using "
                    "DistributedDataParallel (DDP) for training, and gradients are set as views of "
                    "buckets, use detach() too."
                )
            self._fn, self._rg = None, False
            return self
        except AttributeError:
            need_self(self, "detach_")
            raise

    def __delitem__(self, key: object) -> NoReturn:
        """Refused.

        Raises:
            TypeError: always.
        """
        raise TypeError("Tensor does not support deleting items")

    def __rdiv__(self, other: Any) -> Any:
        """``other / self``, by the name of Python 2, as PyTorch has it."""
        return other / self

    @property
    def data(self) -> Tensor:
        """The same memory without history, and without counting writes."""
        t = self.detach()
        st = self._st
        assert st is not None
        if self._be.strided:
            t._st = st.uncounted()
        return t

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if value.layout is not self.layout:
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
                f"incompatible tensor type: {self.layout} and {value.layout}"
            )
        if value.dtype.fp is not self.dtype.fp and self.requires_grad and DATA_KEEPS_ITS_KIND:
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point"
            )
        # A view keeps the node that made it, which may not be there yet.
        made = edge(self) if self._base is not None and self.requires_grad else self
        shape, dtype = tuple(self._a.shape), self.dtype
        self._take_over(value)
        if made is not None and made is not self:
            self._rg, self._fn = True, made
        if self._fn is not None and (self.dtype is not dtype or tuple(self._a.shape) != shape):
            self._fn = _inplace.Retyped(self._fn, shape, dtype)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def _take_over(self, value: Tensor) -> None:
        # Become an alias of `value` in everything but history.
        st = storage_of(value)
        st.shared = True
        if self._st is not None and self._st is not st and self._st.aliases:
            self._st.aliases = [r for r in self._st.aliases if r() is not self]
        self._a, self._be, self.dtype = value._a, value._be, value.dtype
        self._st, self._msteps = st, value._msteps
        if not self._be.strided:
            _views.register_alias(st, self)
        if self._base is not None:
            self._rg, self._fn = self._rg == LEAF_VIEW, None
            self._base = self._view = self._made = None

    def set_(
        self, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
    ) -> Tensor:
        """Become an alias of another tensor, or of a part of a storage; of nothing by default.

        Args:
            source: a tensor or a storage of this dtype, or an `UntypedStorage`.
            storage_offset: elements before the first one.
            size: the shape; by default that of the tensor, or all that follows in the storage.
            stride: elements between neighbours; row-major by default.

        Raises:
            RuntimeError: dtypes differ, or offset and strides are not possible.

        >>> import flambeau as fb
        >>> fb.tensor([]).set_(fb.FloatStorage([1, 2, 3, 4]), 1, (2,), (2,))
        tensor([2., 4.])
        """
        try:
            from flambeau._storages.of_tensors import reset

            return reset(self, source, storage_offset, size, stride)
        except AttributeError:
            need_self(self, "set_")
            raise

    @property
    def _version(self) -> int:
        return 0 if self._st is None else self._st.version

    def _is_view(self) -> bool:
        return self._base is not None

    def is_inference(self) -> bool:
        """Always False: inference mode makes ordinary tensors."""
        return False

    @property
    def _cdata(self) -> int:
        """A number that no other living tensor has."""
        return id(self)

    @property
    def is_inference_mode(self) -> bool:
        """Always False: inference mode makes ordinary tensors."""
        return False

    def item(self) -> Any:
        """The value of a one-element tensor as a Python number.

        Raises:
            RuntimeError: there are more or fewer elements.
        """
        try:
            if self.numel() != 1:
                raise RuntimeError(
                    f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
                )
            return self._be.backend.item(self._a)
        except AttributeError:
            need_self(self, "item")
            raise

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers (a number for 0-d).

        Raises:
            OutOfMemoryError: there is no room for the lists.
        """
        try:
            return self._be.backend.tolist(self._a)
        except AttributeError:
            need_self(self, "tolist")
            raise
        except MemoryError as error:
            raise _dispatch.out_of_memory("tolist", error, (self,)) from error

    def numpy(self, *, force: bool = False) -> Any:
        """A NumPy array over the same memory, which cannot grow then.

        Raises:
            RuntimeError: the tensor requires a gradient, which is lost, and gradients are on.
            TypeError: it does not live on the CPU.
        """
        try:
            if force:
                return self.detach().cpu().numpy()
            if self.requires_grad and recording():
                raise RuntimeError(
                    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                    "instead."
                )
            give = getattr(self._be.backend, "numpy", None)
            if give is None:
                raise TypeError(
                    f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to "
                    "copy the tensor to host memory first."
                )
            st = storage_of(self)
            st.shared = st.lent = True
            return give(self._a)
        except AttributeError:
            need_self(self, "numpy")
            raise

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Any:
        if isinstance(dtype, Tensor):
            raise TypeError("__array__(): argument 'dtype' must be a dtype of NumPy, not Tensor")
        array = self.numpy()
        try:
            if dtype is not None and array.dtype != dtype:
                return array.astype(dtype)
        except (TypeError, ValueError) as error:
            said = f"__array__(): {dtype!r:.80} is no dtype of NumPy"
            raise TypeError(said) from error
        return array.copy() if copy else array

    def __array_wrap__(
        self, array: Any, context: object = None, return_scalar: bool = False
    ) -> Tensor:
        """What NumPy's functions of this tensor return: a tensor; truth values are bytes."""
        from flambeau.ops.creation.creation import from_numpy

        if getattr(array, "dtype", None) == "bool" and not isinstance(array, Tensor):
            array = array.astype("uint8")
        return from_numpy(array)

    def __bool__(self) -> bool:
        try:
            if self.numel() != 1:
                if self.numel() == 0:
                    raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
                raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
            return bool(self.item())
        except AttributeError:
            need_self(self, "__bool__")
            raise

    def _one(self) -> Any:
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def __int__(self) -> int:
        try:
            return int(self._one())
        except AttributeError:
            need_self(self, "__int__")
            raise

    def __float__(self) -> float:
        try:
            return float(self._one())
        except AttributeError:
            need_self(self, "__float__")
            raise

    def __complex__(self) -> complex:
        try:
            return complex(self._one())
        except AttributeError:
            need_self(self, "__complex__")
            raise

    def __index__(self) -> int:
        try:
            if self.dtype.category > 1 or self.numel() != 1:
                raise TypeError(
                    "only integer tensors of a single element can be converted to an index"
                )
            return int(self.item())
        except AttributeError:
            need_self(self, "__index__")
            raise

    def __contains__(self, element: object) -> bool:
        if isinstance(element, (Tensor, int, float, bool, complex)):
            return bool((self == element).any().item())
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )

    def __iter__(self) -> Iterator[Tensor]:
        if not self._a.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        return self if not self._a.shape else self.flip(0)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        try:
            return tensor_repr(self, tensor_contents=tensor_contents)
        except AttributeError:
            need_self(self, "__repr__")
            raise

    def __format__(self, format_spec: str) -> str:
        return tensor_format(self, format_spec)

    def __dir__(self) -> list[str]:
        return sorted(
            {n for n in object.__dir__(self) if n not in absent.NAMES or hasattr(self, n)}
        )

    def __copy__(self) -> Tensor:
        if type(self).__reduce_ex__ is not Tensor.__reduce_ex__:
            rebuild, arguments = self.__reduce_ex__(4)[:2]
            return rebuild(*arguments)
        if not self.is_leaf:
            raise RuntimeError("cannot copy a non-leaf tensor without its history; use detach()")
        out = _new(type(self))
        state_of(out).update(state_of(self.detach()))
        _refresh_alias(out)
        out._rg = False
        out.requires_grad_(self.requires_grad)
        for name, value in attributes_of(self).items():
            setattr(out, name, value)
        return out

    @takes_as_annotated
    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment. If you were attempting to deepcopy a module, this may be "
                "because of a torch.nn.utils.weight_norm usage."
            )
        if id(self) in memo:
            return memo[id(self)]
        if (copied := getattr(self._be, "copied", None)) is not None:
            return copied(self, memo)
        import copy

        before = recording()
        try:
            set_recording(False)
            if self._st is None or not self._st.shared:
                t = self.detach().clone()
            else:  # what else is copied may be part of the same memory
                storage = copy.deepcopy(self.untyped_storage(), memo)
                t = shown_in(storage._st, self)
        finally:
            set_recording(before)
        out = _new(type(self))
        state_of(out).update(state_of(t))
        _refresh_alias(out)
        memo[id(self)] = out
        out._rg = False
        out.requires_grad_(self.requires_grad)
        if self._grad is not None:
            out._grad = copy.deepcopy(self._grad, memo)
        for name, value in attributes_of(self).items():
            setattr(out, name, copy.deepcopy(value, memo))
        return out

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        # A result of others arrives as a leaf: its history does not travel.
        if (reduced := getattr(self._be, "reduced", None)) is not None:
            return reduced(self)  # which may have no memory
        host = self.detach().contiguous()
        data = bytes(host._be.backend.to_host(host._a)) if not self.is_meta else b""
        state = attributes_of(self)
        return _rebuild, (
            None if type(self) is Tensor else type(self),  # whose name is another under `torch`
            data,
            tuple(self._a.shape),
            self.dtype,
            str(self.device),
            self.requires_grad,
            state,
        )

    def _become(self, values: Tensor) -> None:
        """Take over what another tensor is made of: for objects that exist before their values."""
        state_of(self).update(state_of(values))

    def __setstate__(self, state: dict[str, Any]) -> None:
        state_of(self).update(state)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """The tensor in another dtype, on another device, or like another; itself if it is so.

        Forms: ``to(dtype)``, ``to(device, dtype=None)``, ``to(other)``; keywords ``non_blocking``,
        ``copy`` and ``memory_format``.

        With `non_blocking`, copies between an accelerator and page-locked memory (`pin_memory`;
        results on the CPU are in such) are asked of the accelerator's current stream and not
        waited for: until then the memory must not change, and what is copied to the CPU is not
        there.  Other copies wait.

        >>> import flambeau as fb
        >>> fb.ones(2).to(fb.int64)
        tensor([1, 1])
        """
        try:
            if len(args) == 1 and not kwargs:
                kind = type(args[0])
                if kind is D.dtype:
                    return _dispatch.cast(self, args[0])
                here = self._be.device
                if kind is Device and args[0] == here:
                    return self
                if kind is str and args[0] == here.type and here.index is None:
                    return self
            device, dtype, copy, memory_format, non_blocking = _to_arguments(args, kwargs)
            return _convert(self, device, dtype, copy, memory_format, non_blocking)
        except AttributeError:
            need_self(self, "to")
            raise

    def type(self, dtype: DType | str | type | None = None, non_blocking: bool = False) -> Any:
        """The legacy type name, or the tensor cast to a dtype or type name."""
        try:
            from flambeau._tensor.legacy import dtype_and_device, type_name  # as above

            if dtype is None:
                return type_name(self)
            d, where = dtype_and_device(dtype)
            return _convert(self, where, d, False, None, non_blocking)
        except AttributeError:
            need_self(self, "type")
            raise

    def type_as(self, other: Tensor | None = None, *, tensor: Tensor | None = None) -> Tensor:
        """The tensor in the dtype and on the device of `other` (`tensor` in PyTorch 1.0)."""
        if tensor is not None:
            other = tensor
        if not isinstance(other, Tensor):
            raise TypeError(
                f"type_as(): argument 'other' must be Tensor, not {type(other).__name__}"
            )
        return _convert(self, other.device, other.dtype, False, None)

    def cpu(self, memory_format: MemoryFormat | None = None) -> Tensor:
        """The tensor on the CPU."""
        return _convert(self, Device("cpu"), None, False, memory_format)

    def cuda(
        self,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: MemoryFormat | None = None,
    ) -> Tensor:
        """The tensor on a CUDA device."""
        where = Device("cuda" if device is None else device)
        return _convert(self, where, None, False, memory_format, non_blocking)

    def clone(self, *, memory_format: MemoryFormat | None = None) -> Tensor:
        """A copy that shares no memory, with history.

        >>> import flambeau as fb
        >>> x = fb.ones(2); y = x.clone(); y[0] = 5; x
        tensor([1., 1.])
        """
        try:
            if memory_format is not None:
                if memory_format is not preserve_format:
                    return _arranged(self, order_of_memory(memory_format, self.dim()))
            return _dispatch.OPS["clone"].run(self)
        except AttributeError:
            need_self(self, "clone")
            raise

    def contiguous(self, memory_format: MemoryFormat | None = None) -> Tensor:
        """The tensor in row-major memory; itself if it already is.

        >>> import flambeau as fb
        >>> fb.zeros(2, 3).t().contiguous().is_contiguous()
        True
        """
        try:
            if memory_format is None:
                return self if self.is_contiguous() else _arranged(self, None)

            order = order_of_memory(memory_format, self.dim())
            return self if self.is_contiguous(memory_format) else _arranged(self, order)
        except AttributeError:
            need_self(self, "contiguous")
            raise

    @property
    def mT(self) -> Tensor:
        """The tensor with its last two dimensions swapped."""
        if len(self._a.shape) < 2:
            raise RuntimeError(
                "tensor.mT is only supported on matrices or batches of matrices. Got "
                f"{self.dim()}-D tensor."
            )
        return self.transpose(-2, -1)

    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
        if self.dim() != 2:
            raise RuntimeError(
                f"tensor.H is only supported on matrices, got a {self.dim()}-D tensor"
            )
        return self.t().conj()

    @property
    def mH(self) -> Tensor:
        """The last two dimensions swapped, and complex numbers conjugated."""
        if self.dim() == 1:
            raise RuntimeError(
                "tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor."
            )
        return self.adjoint()

    @property
    def real(self) -> Tensor:
        """The real parts, over the memory of a complex tensor; a real tensor itself."""
        from flambeau.ops.pointwise.complexes import real

        return real(self)

    @real.setter
    def real(self, value: object) -> None:
        self._write_part(0, value)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts, over the memory of a complex tensor."""
        from flambeau.ops.pointwise.complexes import imag

        return imag(self)

    @imag.setter
    def imag(self, value: object) -> None:
        self._write_part(1, value)

    def _write_part(self, part: int, value: object) -> None:
        from flambeau.ops.pointwise.complexes import write_part

        write_part(self, part, value)

    def new(self, *args: object, device: Any = None, size: Any = None) -> Tensor:
        """A tensor by the legacy constructor of this dtype: ``x.new(2, 3)``, ``x.new([1, 2])``.

        `new_tensor`, `new_empty` and `new_zeros` say what they make.

        >>> import flambeau as fb
        >>> fb.ones(1, dtype=fb.int64).new([1, 2])
        tensor([1, 2])
        """
        try:
            from flambeau._tensor.legacy import make  # as above

            return make(self.dtype, device or self.device, args if size is None else (Size(size),))
        except AttributeError:
            need_self(self, "new")
            raise

    def resize_(
        self, *sizes: object, size: object = None, memory_format: MemoryFormat | None = None
    ) -> Tensor:
        """Another shape in place, over the same memory, which grows if it must; new elements are 0.

        Raises:
            RuntimeError: the tensor requires a gradient, or memory that cannot grow would have to.

        >>> import flambeau as fb
        >>> fb.arange(6).resize_(2, 2)
        tensor([[0, 1],
                [2, 3]])
        """
        try:
            from flambeau._storages.resize import resize

            shape = checked_sizes(as_sizes((many("resize_", "size", sizes, size),), "size"))
            return resize(self, shape, memory_format)
        except AttributeError:
            need_self(self, "resize_")
            raise

    def resize_as_(
        self,
        other: object = None,
        *,
        memory_format: MemoryFormat | None = None,
        tensor: object = None,
    ) -> Tensor:
        """`resize_` to the shape of `other` (`tensor` in PyTorch 1.0).

        With ``memory_format=flambeau.preserve_format`` the strides become those of `other`, too.
        """
        try:
            if tensor is not None:
                other = tensor
            if not isinstance(other, Tensor):
                raise TypeError(
                    f"resize_as_(): argument 'other' must be Tensor, not {type(other).__name__}"
                )
            from flambeau._storages.resize import resize_as

            return resize_as(self, other, memory_format)
        except AttributeError:
            need_self(self, "resize_as_")
            raise

    def copy_(self, src: object, non_blocking: bool = False) -> Tensor:
        """Write the values of `src`, broadcast and cast, into this tensor.

        With `non_blocking`, copies between an accelerator and page-locked memory are not waited
        for; see `to`.
        """
        try:
            if not isinstance(src, Tensor):
                raise TypeError(
                    f"copy_(): argument 'other' must be Tensor, not {type(src).__name__}"
                )
            return _inplace.copy_(self, src, non_blocking=bool(non_blocking))
        except AttributeError:
            need_self(self, "copy_")
            raise

    def fill_(self, value: object) -> Tensor:
        """Write one number everywhere."""
        try:
            return _inplace.fill_(self, value)
        except AttributeError:
            need_self(self, "fill_")
            raise

    def zero_(self) -> Tensor:
        """Write zero everywhere."""
        try:
            return _inplace.fill_(self, 0)
        except AttributeError:
            need_self(self, "zero_")
            raise

    def share_memory_(self) -> Tensor:
        """Move the storage to shared memory, where other processes see it.

        See `UntypedStorage.share_memory_`.

        Raises:
            NotImplementedError: the memory of this device cannot be shared.
        """
        from flambeau._storages import sending  # loads multiprocessing

        sending.register()
        sending.share(self)
        return self

    def module_load(self, other: Tensor, assign: bool = False) -> Tensor:
        """What an entry of a state dict becomes in the place of this parameter or buffer.

        `Module.load_state_dict` asks it where
        `__future__.set_swap_module_params_on_conversion` was told True.  The result must be neither
        this tensor nor `other`: here it is this memory, which `other` is copied into, or that of
        `other` with `assign`.

        Raises:
            TypeError: `other` is no tensor.

        >>> import flambeau as fb
        >>> fb.zeros(2).module_load(fb.ones(2))
        tensor([1., 1.])
        """
        if not isinstance(other, Tensor):
            raise TypeError(f"module_load: other must be a Tensor, got {type(other).__name__}")
        return other.detach() if assign else self.copy_(other).detach()

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The functions of the array API standard.

        Raises:
            ValueError: they are not of the version that is asked for.

        >>> import flambeau as fb
        >>> x = fb.ones(2)
        >>> x.__array_namespace__().sum(x, axis=0)
        tensor(2.)
        """
        from flambeau import array_api  # loaded when it is asked for

        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ValueError(f"__array_namespace__(): there is no version {api_version!r} of it")
        return array_api

    def to_device(self, device: object, /, *, stream: object = None) -> Any:
        """``to(device)``, by the array API standard's name."""
        return self.to(device)

    def __dlpack__(
        self,
        stream: object = None,
        *,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        from flambeau.utils.dlpack import exported

        return exported(
            self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        from flambeau.utils.dlpack import dlpack_device

        return dlpack_device(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Where the elements are in the memory of a CUDA device, for other libraries.

        Raises:
            AttributeError: the tensor is on no CUDA device.
            RuntimeError: it requires a gradient.
        """
        found = getattr(self._a, "__cuda_array_interface__", None)
        if found is None:
            raise AttributeError(
                "Can't get __cuda_array_interface__ on non-CUDA tensor type: "
                f"{self.type()} If CUDA data is required use tensor.cuda() to copy tensor to "
                "device memory."
            )
        if self.requires_grad:
            raise RuntimeError(
                "Can't get __cuda_array_interface__ on Variable that requires grad. "
                "If gradients aren't required, use var.detach() to get Variable that doesn't "
                "require grad."
            )
        storage_of(self).shared = True
        return found

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: tuple[type, ...], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run `func` and turn plain results into this class, as subclasses expect.

        Those of parameters, buffers and their subclasses stay plain.
        """
        from flambeau._tensor.overrides import run_default, run_disabled

        if any(base in _dispatch.PLAIN and base is not Tensor for base in cls.__mro__):
            return run_disabled(func, types, args, kwargs)
        return run_default(cls, func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(
        cls, func: object, types: object, args: object = (), kwargs: object = None
    ) -> Any:
        """Run an op on the plain tensors that `args` were made of by `_make_subclass`."""
        return _saying().below(func, types, args, kwargs)


def _saying() -> Any:
    # Of tensors that say themselves what ops make of them: loaded with the first such class.
    from flambeau.utils import _wrapped

    return _wrapped


def _refresh_alias(new: Tensor) -> None:
    # Backends without strides refresh registered aliases after a write: the new object must be one.
    if not new._be.strided and new._st is not None:
        _views.register_alias(new._st, new)


_PYTHON = tuple(D.OF_PYTHON)


def _to_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any, bool, Any, bool]:
    known = {"dtype", "device", "non_blocking", "copy", "memory_format", "other"}
    if unknown := set(kwargs) - known:
        raise TypeError(f"to() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    copy, non_blocking = kwargs.get("copy", False), kwargs.get("non_blocking", False)
    rest = list(args)
    if "other" in kwargs:
        rest.insert(0, kwargs["other"])
    if rest:
        head = rest.pop(0)
        if isinstance(head, Tensor):
            device, dtype = head.device, head.dtype
        elif isinstance(head, D.dtype) or head in _PYTHON:
            dtype = head
        elif head is None or isinstance(head, (str, Device, int)):
            device = head
            if rest and (rest[0] is None or isinstance(rest[0], D.dtype) or rest[0] in _PYTHON):
                dtype = rest.pop(0)
        else:
            raise TypeError(
                "to() received an invalid combination of arguments: the first must be a dtype, a "
                f"device or a Tensor, not {type(head).__name__}"
            )
        if rest:
            non_blocking = rest.pop(0)
        if rest:
            copy = rest.pop(0)
        if rest:
            raise TypeError(f"to() takes at most 4 positional arguments, got {len(args)}")
    if dtype is not None and not isinstance(dtype, D.dtype):
        if dtype not in _PYTHON:
            raise TypeError(
                f"to(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}"
            )
        dtype = D.OF_PYTHON[dtype]
    return (
        None if device is None else Device(device),
        dtype,
        bool(copy),
        kwargs.get("memory_format"),
        bool(non_blocking),
    )


def _convert(
    t: Tensor,
    device: DeviceLike | None,
    dtype: DType | None,
    copy: bool,
    memory_format: MemoryFormat | None,
    non_blocking: bool = False,
) -> Tensor:
    if not isinstance(t, Tensor):
        raise TypeError(
            f"descriptor 'to' for 'torch.Tensor' objects doesn't apply to a {type(t).__name__!r} "
            "object"
        )
    be = t._be
    if device is not None and device != be.device:
        be = bind(device)
    moved = be is not t._be
    target = t.dtype if dtype is None else dtype
    if moved and (move := getattr(t._be, "moved", None)) is not None:  # no device, but on one
        t, moved = move(t, be), False
    if moved:
        from flambeau._writes.device_copy import moved_to

        # Cast first where the copy then has fewer bytes to move, and on the device what may not
        # be there yet.
        late = non_blocking and be.device.type == "cpu"
        if target.itemsize < t.dtype.itemsize or (late and target is not t.dtype):
            t = _dispatch.cast(t, target)
        t = moved_to(t, be, non_blocking and (not late or memory_format is None))
    if target is not t.dtype:
        t = _dispatch.cast(t, target)
    elif copy and not moved:
        t = t.clone()
    return (
        t
        if memory_format is None
        else t.contiguous(memory_format)
        if _rearranges(memory_format)
        else t
    )


def _arranged(t: Tensor, order: list[int] | None) -> Tensor:
    """A copy whose memory has the dimensions in this order; in their own for None."""
    if order is None:
        return _dispatch.op("contiguous")(t)
    back = [order.index(d) for d in range(len(order))]
    return _dispatch.op("contiguous")(t.permute(order)).permute(back)


def _rearranges(memory_format: MemoryFormat) -> bool:
    return memory_format is not preserve_format


def _rebuild(
    cls: type | None,
    data: bytes,
    shape: tuple[int, ...],
    dtype: DType,
    device: str,
    requires_grad: bool,
    state: dict[str, Any],
) -> Any:
    be = bind(device)
    if device.partition(":")[0] == "meta":
        native = be.full(shape, 0, dtype)
    else:
        native = be.backend.from_host(data, shape, dtype, be.device.index or 0)
    t = _new(cls or Tensor)
    t._a, t._be, t.dtype, t._rg = native, be, dtype, False
    state_of(t).update(state)
    return t.requires_grad_(requires_grad)


class _OwnDtype:
    """What ``super().dtype`` is in a subclass that has a property of this name."""

    def __get__(self, t: Tensor | None, owner: type) -> Any:
        return self if t is None else state_of(t)["dtype"]


def _is_plain(cls: type[Tensor]) -> bool:
    """Whether a class comes by its calls from one that ops treat as Tensor, such as Parameter."""
    for base in cls.__mro__[1:]:
        if base in _dispatch.PLAIN:
            return base is not Tensor and "__torch_function__" not in vars(cls)
        if "__torch_function__" in vars(base):
            return False
    return False


def _share_keys(cls: type[Tensor]) -> None:
    # CPython lays out a class by the attributes of its first thirty instances; one set later costs
    # a dictionary per instance and the specialised access to all its attributes.
    t = _new(cls)
    for name in sorted(OWN):
        if not hasattr(getattr(cls, name, None), "__set__"):
            setattr(t, name, None)


_DISPATCH = vars(Tensor)["__torch_dispatch__"].__func__
_dispatch.Tensor_ = _views._Tensor = Tensor
_dispatch.PLAIN.add(Tensor)
_share_keys(Tensor)
absent.tell(Tensor)
__all__ = ["Tensor"]
