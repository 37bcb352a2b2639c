"""Sparse tensors in coordinate format: the positions of the stored elements, and their values.

A sparse tensor is two dense tensors, so every backend has them.  Its history is that of its
values: a gradient reaches a sparse tensor as the gradient of the elements it stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from flambeau._autograd.modes import no_grad, recording
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import checked_sizes, need_tensor, sizes
from flambeau._tensor.printing import sparse_repr
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.layout import sparse_coo
from flambeau.ops.creation.ranges import arange

if TYPE_CHECKING:
    from flambeau._autograd.node import RemovableHandle
    from flambeau._types.dtype import dtype as DType
    from flambeau._types.hints import DeviceLike
    from flambeau._types.memory_format import memory_format as MemoryFormat


_new = object.__new__

COALESCED_BELOW = 2
"""With fewer stored elements a tensor counts as coalesced: nothing can repeat.  In PyTorch 1.2
that took `SparseTensor.coalesce`."""


class _Elsewhere:
    """Stands in a sparse tensor where a dense one has its array: it knows the shape only."""

    __slots__ = ("shape",)
    __array_ufunc__ = None  # NumPy's functions refuse it instead of making an object array

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


class _NoKernels:
    """Stands in a sparse tensor for the backend: there is no kernel for this layout."""

    native = True
    strided = False
    array = _Elsewhere
    error: tuple[type[Exception], ...] = ()

    def __init__(self, device: DeviceLike) -> None:
        self.device = device

    def __getattr__(self, name: str) -> NoReturn:
        raise NotImplementedError(
            f"{name}: not implemented for sparse tensors; convert with to_dense() first"
        )


class SparseTensor(Tensor):
    """A tensor that stores the positions and values of some elements; all others are zero.

    Made by `flambeau.sparse_coo_tensor` and `Tensor.to_sparse`.  An *uncoalesced* tensor may store
    a position several times; its element is then the sum of the values.

    >>> import flambeau as fb
    >>> s = fb.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> s.to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """

    is_sparse = True  # type: ignore[assignment] - a class attribute of Tensor too
    layout = sparse_coo

    _where: Tensor
    _stored: Tensor
    _sorted: bool
    _leaf_hooks_of_values: Any = None

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Sparse tensors are made by `make`; this only takes the place of ``Tensor.__init__``."""

    def __new__(cls, *args: object, **kwargs: object) -> SparseTensor:
        """Refused: functions make sparse tensors, and copies are made without arguments.

        Raises:
            TypeError: always; `sparse_coo_tensor` is what is wanted.
        """
        raise TypeError("SparseTensor cannot be called: use flambeau.sparse_coo_tensor")

    @staticmethod
    def make(
        indices: Tensor, values: Tensor, size: Sequence[int], *, coalesced: bool
    ) -> SparseTensor:
        """A sparse tensor over these indices and values, which are not checked."""
        t = _new(SparseTensor)
        t._a = _Elsewhere(tuple(size))
        t._be = _NoKernels(values.device)  # type: ignore[assignment] - see there
        t.dtype = values.dtype
        t._rg = False  # the values have the history
        t._where, t._stored = indices, values
        t._sorted = coalesced or indices.shape[1] < COALESCED_BELOW
        return t

    def like(self, values: Tensor, *, coalesced: bool | None = None) -> SparseTensor:
        """The same positions with other values."""
        return self.make(
            self._where,
            values,
            self._a.shape,
            coalesced=self._sorted if coalesced is None else coalesced,
        )

    def become(self, other: SparseTensor) -> SparseTensor:
        """Take over the contents of `other`: what in-place functions do."""
        if self.requires_grad and self.is_leaf and _records():
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
        if not isinstance(other, SparseTensor):
            raise RuntimeError("a sparse tensor cannot hold a dense result")
        self._a, self._be, self.dtype = other._a, other._be, other.dtype
        self._where, self._stored, self._sorted = other._where, other._stored, other._sorted
        return self

    def new(self, *args: object, device: object = None, size: Any = None) -> Tensor:
        """A sparse tensor of a size, or of indices, values and perhaps a size.

        >>> import flambeau as fb
        >>> s = fb.eye(2).to_sparse()
        >>> s.new(fb.tensor([[1]]), fb.tensor([5.0]), (2,)).to_dense(), s.new(2, 3).shape
        (tensor([0., 5.]), torch.Size([2, 3]))
        """
        from flambeau.sparse._legacy import new  # a module of subclasses of this class

        return new(self.dtype, device or self.device, args if size is None else tuple(size))

    def indices(self) -> Tensor:
        """The positions of the stored elements, (sparse_dim, nnz), sorted.

        Raises:
            RuntimeError: the tensor is not coalesced.
        """
        self._need_coalesced("indices")
        return self._where.detach()

    def values(self) -> Tensor:
        """The stored elements, (nnz, *dense sizes).

        Raises:
            RuntimeError: the tensor is not coalesced.
        """
        self._need_coalesced("values")
        return self._stored

    def _need_coalesced(self, what: str) -> None:
        if not self._sorted:
            raise RuntimeError(
                f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first"
            )

    def _indices(self) -> Tensor:
        return self._where.detach()

    def _values(self) -> Tensor:
        return self._stored.detach()

    def _nnz(self) -> int:
        return self._where.shape[1]

    def is_coalesced(self) -> bool:
        """Whether the positions are sorted and each is stored once."""
        return self._sorted

    def sparse_dim(self) -> int:
        """The number of leading dimensions that the indices address."""
        return self._where.shape[0]

    def dense_dim(self) -> int:
        """The number of trailing dimensions that each stored value has."""
        return self._stored.dim() - 1

    def coalesce(self) -> SparseTensor:
        """The same tensor with sorted positions, each stored once.

        >>> import flambeau as fb
        >>> fb.sparse_coo_tensor([[1, 0, 1]], [1.0, 2.0, 3.0]).coalesce().values()
        tensor([2., 4.])
        """
        if self._sorted:
            return self
        order, group, first = sorted_groups(self._where)
        values = self._stored.index_select(0, order)
        summed = values.new_zeros((first.shape[0], *values.shape[1:])).index_add(0, group, values)
        where = self._where.index_select(1, order).index_select(1, first)
        return self.make(where, summed, self._a.shape, coalesced=True)

    def to_dense(self, dtype: DType | None = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense tensor of the same elements."""
        if dtype is not None:
            return self.to(dtype).to_dense()
        zeros = self._stored.new_zeros(tuple(self._a.shape))
        if not self.sparse_dim():
            return zeros + self._stored.sum(0)
        return zeros.index_put(tuple(self._where.unbind(0)), self._stored, accumulate=True)

    to_dense.__name__ = "to_dense"
    toDense = to_dense  # noqa: N815 - the name of the 1.0 documents

    def to_sparse(self, *args: object, **kwargs: object) -> SparseTensor:
        """Itself."""
        return self

    def to_sparse_coo(self) -> SparseTensor:
        """Itself."""
        return self

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        """Say, in place, whether positions are sorted and stored once; nobody looks."""
        self._sorted = bool(coalesced)
        return self

    @property
    def requires_grad(self) -> bool:
        """Whether gradients of the stored values are computed."""
        return self._stored.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Switch recording for this leaf on or off, in place."""
        self._stored.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op produced the values."""
        return self._stored.is_leaf

    @property
    def grad_fn(self) -> Tensor:
        """The node that produced the values, or None for leaves."""
        return self._stored.grad_fn

    @property
    def grad(self) -> Any:
        """The accumulated gradient, a sparse tensor with the positions of this one."""
        g = self._stored.grad
        return None if g is None else self._gradient(g)

    def _gradient(self, of_stored: Tensor) -> SparseTensor:
        """The sparse gradient that gives the stored elements theirs.

        An element that is stored twice has one gradient, which both parts of it have.
        """
        if self._sorted:
            return self.like(of_stored)
        order, _, first = sorted_groups(self._where)
        at = order.index_select(0, first)
        where, values = self._where.index_select(1, at), of_stored.index_select(0, at)
        return self.make(where, values, self._a.shape, coalesced=True)

    @grad.setter
    def grad(self, value: object) -> None:
        if value is None:
            self._stored.grad = None
        elif isinstance(value, SparseTensor) and value._a.shape == self._a.shape:
            self._stored.grad = value.coalesced_at(self)
        else:
            raise TypeError("assigned grad of a sparse tensor must be a sparse tensor of its size")

    @grad.deleter
    def grad(self) -> None:
        self._stored.grad = None

    def coalesced_at(self, like: SparseTensor) -> Tensor:
        """The elements of this tensor at the stored positions of `like`."""
        if self._where is like._where:
            return self._stored
        return self.to_dense()[tuple(like._where.unbind(0))]

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """As `Tensor.backward`; `gradient` is a sparse or dense tensor of this size."""
        if isinstance(gradient, SparseTensor):
            gradient = gradient.coalesced_at(self)
        elif gradient is not None:
            gradient = gradient[tuple(self._where.unbind(0))]
        self._stored.backward(gradient, retain_graph, create_graph, inputs)

    def register_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Call ``hook(grad)`` with the sparse gradient whenever it is computed."""

        def on_values(grad: Tensor) -> Tensor | None:
            new = hook(self._gradient(grad))
            return None if new is None else new.coalesced_at(self)

        return self._stored.register_hook(on_values)

    def retain_grad(self) -> None:
        """Keep the gradient of a non-leaf."""
        self._stored.retain_grad()

    def detach(self) -> SparseTensor:
        """The same elements without history."""
        return self.like(self._stored.detach())

    def detach_(self) -> SparseTensor:
        """Forget the history, in place."""
        self._stored.detach_()
        return self

    @property
    def data(self) -> SparseTensor:
        """The same elements without history."""
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, SparseTensor):
            if not isinstance(value, Tensor):
                raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
                f"incompatible tensor type: {self.layout} and {value.layout}"
            )
        self._where, self._stored, self._sorted = value._where, value._stored, value._sorted
        self._a, self._be, self.dtype = value._a, value._be, value.dtype

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def clone(self, *, memory_format: MemoryFormat | None = None) -> SparseTensor:
        """A copy that shares no memory, with history."""
        copy = self.like(self._stored.clone())
        copy._where = self._where.clone()
        return copy

    def to(self, *args: object, **kwargs: object) -> SparseTensor:
        """The tensor in another dtype or on another device, as `Tensor.to`."""
        copy = kwargs.pop("copy", False)
        values = self._stored.to(*args, **kwargs)
        if values is self._stored:
            return self.clone() if copy else self
        moved = self.like(values)
        moved._where = self._where.to(values.device)
        return moved

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The legacy type name, or the tensor cast to a dtype or type name."""
        if dtype is None:
            head, _, name = self._stored.type().rpartition(".")
            return f"{head}.sparse.{name}"
        if isinstance(dtype, str):
            dtype = dtype.replace(".sparse.", ".")
        moved = self.like(self._stored.type(dtype))
        return moved

    def type_as(self, other: object = None, *, tensor: object = None) -> Tensor:
        """The tensor in the dtype and on the device of `other` (`tensor` in PyTorch 1.0)."""
        like = need_tensor(other if tensor is None else tensor, "type_as", "other")
        return self.to(like.device, like.dtype)

    def cpu(self, memory_format: MemoryFormat | None = None) -> SparseTensor:
        """The tensor on the CPU."""
        return self.to("cpu")

    def cuda(
        self,
        device: object = None,
        non_blocking: bool = False,
        memory_format: MemoryFormat | None = None,
    ) -> SparseTensor:
        """The tensor on a CUDA device."""
        return self.to("cuda" if device is None else device)

    def contiguous(self, memory_format: MemoryFormat | None = None) -> SparseTensor:
        """Itself: the layout has no order in memory."""
        return self

    def is_contiguous(self, memory_format: MemoryFormat | None = None) -> bool:
        """False: the elements do not lie side by side."""
        return False

    def stride(self, dim: int | None = None) -> Any:
        """Zeros, as PyTorch answers: the layout has no strides."""
        return (0,) * self.dim() if dim is None else 0

    def storage(self) -> NoReturn:
        """Refused: there is no single storage.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "Cannot access storage of a sparse tensor; its indices and values have storages"
        )

    untyped_storage = storage

    def storage_offset(self) -> int:
        """Refused as `storage`."""
        self.storage()

    def data_ptr(self) -> int:
        """Refused as `storage`."""
        self.storage()

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Refused.

        Raises:
            TypeError: always.
        """
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def tolist(self) -> NoReturn:
        """Refused.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("tolist(): not for sparse tensors; use to_dense() first")

    def item(self) -> Tensor:
        """The value of a one-element tensor as a Python number."""
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self.to_dense().item()

    @property
    def _version(self) -> int:
        return self._stored._version

    def resize_(
        self, *sizes: object, size: object = None, memory_format: MemoryFormat | None = None
    ) -> NoReturn:
        """Refused: `sparse_resize_` says which dimensions are sparse.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("resize_: not for sparse tensors; use sparse_resize_")

    def sparse_resize_(self, size: Sequence[int], sparse_dim: int, dense_dim: int) -> SparseTensor:
        """Another size in place; stored elements stay, so no dimension may shrink below them.

        Raises:
            RuntimeError: the numbers of dimensions change, or a dimension shrinks, while elements
                are stored.
        """
        size = checked_sizes(sizes((tuple(size),)))
        if len(size) != sparse_dim + dense_dim:
            raise RuntimeError(
                f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim "
                f"({dense_dim}), but got {len(size)}"
            )
        if not self._nnz():
            return self.become(empty(size, self._stored, sparse_dim))
        if (sparse_dim, dense_dim) != (self.sparse_dim(), self.dense_dim()):
            kind = "dense" if sparse_dim == self.sparse_dim() else "sparse"
            raise RuntimeError(
                f"changing the number of {kind} dimensions of a non-empty sparse tensor is not "
                f"supported: {self.sparse_dim()} sparse and {self.dense_dim()} dense ones to "
                f"{sparse_dim} and {dense_dim}"
            )
        less = [n < m for n, m in zip(size, self._a.shape, strict=True)]
        if any(less):
            kind = "dense" if any(less[sparse_dim:]) else "sparse"
            raise RuntimeError(
                f"shrinking the size of {kind} dimensions of a non-empty sparse tensor is not "
                f"supported: {list(self._a.shape)} to {list(size)}"
            )
        if tuple(size[sparse_dim:]) != tuple(self._a.shape[sparse_dim:]):
            # As `resize_` does: the numbers in memory stay where they are.
            grown = self._stored.new_zeros((self._nnz(), *size[sparse_dim:]))
            grown.view(-1)[: self._stored.numel()] = self._stored.reshape(-1)
            self._stored = grown
        self._a = _Elsewhere(tuple(size))
        return self

    def sparse_resize_and_clear_(
        self, size: Sequence[int], sparse_dim: int, dense_dim: int
    ) -> SparseTensor:
        """Another size in place, without elements."""
        return self.become(empty(size, self._stored, sparse_dim))

    def resize_as_(
        self,
        other: object = None,
        *,
        memory_format: MemoryFormat | None = None,
        tensor: object = None,
    ) -> Tensor:
        """`sparse_resize_` to the size of another sparse tensor (`tensor` in PyTorch 1.0)."""
        other = other if tensor is None else tensor
        if not isinstance(other, SparseTensor):
            raise RuntimeError("resize_as_ of a sparse tensor wants a sparse tensor as its model")
        return self.sparse_resize_(other.shape, other.sparse_dim(), other.dense_dim())

    resizeAs_ = resize_as_  # noqa: N815 - the name of the 1.0 documents

    def __len__(self) -> int:
        if not self._a.shape:
            raise TypeError("len() of a 0-d tensor")
        return self._a.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._a.shape:
            raise TypeError("iteration over a 0-d tensor")
        return (self[i] for i in range(self._a.shape[0]))

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise NotImplementedError("sparse tensors cannot be written to by index")

    @takes_as_annotated
    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        from copy import deepcopy

        if id(self) not in memo:
            copied = self.like(deepcopy(self._stored, memo))
            copied._where = deepcopy(self._where, memo)
            memo[id(self)] = copied
        return memo[id(self)]

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return _rebuild, (self._where, self._stored, tuple(self._a.shape), self._sorted)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        facts = [f"size={tuple(self._a.shape)}", f"nnz={self._nnz()}"]
        if self.device.type != "cpu":
            facts.insert(0, f"device='{self.device}'")
        if self.dtype not in (D.get_default_dtype(), D.int64, D.bool_):
            facts.append(f"dtype={self.dtype}")
        facts.append("layout=torch.sparse_coo")
        return sparse_repr(self._indices(), self._values(), facts, self._stored)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: Any = None,
    ) -> Tensor:
        """Run what is defined for sparse tensors; refuse the rest.

        Raises:
            NotImplementedError: the function is not defined for this layout.
        """
        from flambeau.sparse._ops import run

        return run(func, args, kwargs or {})


def _handled(name: str) -> Callable[..., Any]:
    def method(self: SparseTensor, *args: object, **kwargs: object) -> object:
        from flambeau.sparse._ops import HANDLERS

        return HANDLERS[name](self, *args, **kwargs)

    method.__name__ = name
    return method


# The 1.0 documents list the products as methods.
for _name in ("hspmm", "narrow_copy", "spadd", "spmm", "sspmm"):
    setattr(SparseTensor, _name, _handled(_name))


def _records() -> bool:
    return recording()


def _rebuild(indices: Tensor, values: Tensor, size: tuple[int, ...], coalesced: bool) -> Tensor:
    return SparseTensor.make(indices, values, size, coalesced=coalesced)


def empty(size: Sequence[int], like: Tensor, sparse_dim: int | None = None) -> SparseTensor:
    """A sparse tensor without elements, with the dtype and device of `like`."""
    size = checked_sizes(sizes((tuple(size),)))
    n = len(size) if sparse_dim is None else sparse_dim
    indices = like.new_empty((n, 0), dtype=D.int64)
    return SparseTensor.make(indices, like.new_empty((0, *size[n:])), size, coalesced=True)


@no_grad()
def sorted_groups(where: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The order that sorts positions, the group of each sorted one, and where groups begin.

    Positions are the columns of `where`, compared by its first row first.  They are sorted row by
    row, the last one first, so that no product of sizes can overflow.
    """
    rows, n = where.shape
    order = arange(n, device=where.device)
    for d in reversed(range(rows)):
        keys = where[d].index_select(0, order)
        order = order.index_select(0, keys.sort(stable=True)[1])
    ordered = where.index_select(1, order)
    begins = where.new_ones((n,), dtype=D.bool_)
    if n > 1:
        begins[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(0)
        if not rows:
            begins[1:] = False
    group = begins.to(D.int64).cumsum(0) - 1
    return order, group, begins.nonzero().reshape((-1,))
