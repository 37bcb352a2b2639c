"""Parameters and buffers: tensors that a module registers when they are assigned to it.

The uninitialised ones know their dtype and device and get their shape later, at the first forward
of a lazy module or from a state dictionary.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NoReturn

import flambeau as fb
from flambeau import Tensor
from flambeau.overrides import looks_at, takes_as_annotated

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]

Device = fb.device | str | int | None


class _ParameterMeta(type(Tensor)):
    """The class of `Parameter`, which knows those that are of another class of tensors."""


def _is_parameter(cls: Any, instance: object) -> bool:
    """Whether something is a parameter, if only by what `Parameter` has noted on it."""
    return type.__instancecheck__(cls, instance) or (
        cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)
    )


class Parameter(Tensor, plain=True, metaclass=_ParameterMeta):
    """A leaf tensor that is trained: assigning it to a module's attribute registers it.

    `data` gives the values, shared and not copied (an empty tensor if left out).  The parameter
    requires a gradient unless `requires_grad` is false.  Operations on parameters give tensors.

    Raises:
        TypeError: `data` is not a tensor.
        RuntimeError: `requires_grad` is true and `data` is neither floating nor complex.

    >>> import flambeau as fb
    >>> fb.nn.Parameter(fb.tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = fb.empty(0)
        if isinstance(data, Tensor) and looks_at(type(data)):
            return _of_other_class(data, requires_grad)
        return Tensor._make_subclass(cls, data, requires_grad)

    @takes_as_annotated
    def __deepcopy__(self, memo: dict[int, object]) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]  # pyright: ignore[reportReturnType]
        values = self.data.clone(memory_format=fb.preserve_format)
        copy = type(self)(values, self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return "Parameter containing:\n" + super().__repr__(tensor_contents=tensor_contents)

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        # Gradient hooks hold arbitrary functions; like the gradient itself they stay behind.
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())


def _of_other_class(data: Tensor, requires_grad: bool) -> Any:
    """A parameter of a class of tensors that sees the calls made with it: it stays of that class.

    Raises:
        RuntimeError: `detach` gives a tensor of another one.
    """
    t = data.detach().requires_grad_(requires_grad)
    if type(t) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that "
            f"detach() returns an instance of the same type, but return type {type(t).__name__} "
            "was found instead. To use the type as a Parameter, please correct the detach() "
            "semantics defined by its __torch_dispatch__() implementation."
        )
    t._is_param = True  # pyright: ignore[reportAttributeAccessIssue]
    # Not before: who has no such parameter shall not pay for it in each `isinstance`.
    _ParameterMeta.__instancecheck__ = _is_parameter
    return t


def _rebuild_parameter(
    data: Tensor, requires_grad: bool, backward_hooks: OrderedDict[int, object]
) -> Parameter:
    """What a pickled parameter calls; the arguments are those of PyTorch's files."""
    return Parameter(data, requires_grad)


class Buffer(Tensor, plain=True):
    """A tensor that belongs to a module's state and is not trained: assigning it registers it.

    `persistent` says whether the module's ``state_dict`` includes it.

    >>> import flambeau as fb
    >>> module = fb.nn.Module()
    >>> module.mean = fb.nn.Buffer(fb.zeros(2))
    >>> list(module.state_dict())
    ['mean']
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = fb.empty(0)
        buffer = Tensor._make_subclass(cls, data, getattr(data, "requires_grad", False))
        buffer.persistent = persistent
        return buffer

    @takes_as_annotated
    def __deepcopy__(self, memo: dict[int, object]) -> Buffer:
        if id(self) in memo:
            return memo[id(self)]  # pyright: ignore[reportReturnType]
        values = self.data.clone(memory_format=fb.preserve_format)
        copy = type(self)(values, persistent=self.persistent)
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        return _rebuild_buffer, (self.data, self.persistent)


def _rebuild_buffer(data: Tensor, persistent: bool) -> Buffer:
    return Buffer(data, persistent=persistent)


class UninitializedTensorMixin:
    """A parameter or buffer without shape: what it can do until `materialize`."""

    cls_to_become: type[Tensor]
    _stand_in: Tensor  # empty, of the dtype and on the device that the values will have

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        raise TypeError(f"{cls.__name__} is a base; make an UninitializedParameter or -Buffer")

    @property
    def _a(self) -> NoReturn:
        # The native array, which every operation asks for.
        raise ValueError(
            "Attempted to use an uninitialized parameter or buffer. This happens when the "
            "parameters of a lazy module are used before its first forward: call the module with a "
            "dummy batch first, or materialize() them."
        )

    @property
    def shape(self) -> NoReturn:
        """Unknown so far: raises RuntimeError."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This usually happens "
            "in `load_state_dict` when loading an uninitialized parameter into an initialized one. "
            "Call `forward` to initialize the parameters before accessing their attributes."
        )

    @property
    def is_leaf(self) -> bool:
        """True: nothing has been computed."""
        return True

    @property
    def grad_fn(self) -> None:
        """None: nothing has been computed."""

    @property
    def data(self) -> Tensor:
        """An empty tensor of the dtype and on the device that the values will have."""
        return self._stand_in

    @data.setter
    def data(self, value: Tensor) -> None:
        self._stand_in = value = value.data if is_lazy(value) else value.detach()
        self.__dict__.update(_be=value._be, dtype=value.dtype)

    def materialize(
        self, shape: Sequence[int], device: Device = None, dtype: fb.dtype | None = None
    ) -> None:
        """Become an ordinary parameter or buffer of this shape, with arbitrary values.

        Device and dtype are those it was made with unless given.

        >>> import flambeau as fb
        >>> from flambeau.nn.parameter import UninitializedParameter
        >>> weight = UninitializedParameter()
        >>> weight.materialize((2, 3))
        >>> weight.shape
        torch.Size([2, 3])
        """
        old = self._stand_in
        values = fb.empty(tuple(shape), device=device or old.device, dtype=dtype or old.dtype)
        del self._stand_in
        made: Any = self
        requires = made._rg
        made.__class__ = self.cls_to_become
        made._become(values)
        made._rg = requires

    def _like(self, values: Tensor) -> Any:
        """An uninitialised one that will have the dtype and device of `values`."""
        raise NotImplementedError

    def to(self, *args: object, **kwargs: object) -> Any:
        """As ``Tensor.to``: what the values will be."""
        return self._like(self._stand_in.to(*args, **kwargs))

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """As ``Tensor.type``: the type that the values will have, or another."""
        result = self._stand_in.type(dtype, non_blocking)
        return self._like(result) if isinstance(result, Tensor) else result

    def cpu(self, memory_format: object = None) -> Any:
        """On the CPU."""
        return self._like(self._stand_in.cpu())

    def cuda(self, device: object = None, non_blocking: bool = False) -> Any:
        """On a CUDA device."""
        return self._like(self._stand_in.cuda(device, non_blocking))

    def float(self) -> Any:
        """In float32."""
        return self.to(fb.float32)

    def double(self) -> Any:
        """In float64."""
        return self.to(fb.float64)

    def half(self) -> Any:
        """In float16."""
        return self.to(fb.float16)

    def bfloat16(self) -> Any:
        """In bfloat16."""
        return self.to(fb.bfloat16)

    def share_memory_(self) -> NoReturn:
        """There is no memory yet: raises RuntimeError."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self, **unused: object) -> str:
        return f"<{type(self).__name__}>"

    @takes_as_annotated
    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = self._like(self._stand_in.clone())
        return memo[id(self)]


def _empty(cls: type, device: Device, dtype: fb.dtype | None, requires_grad: bool) -> Any:
    new = object.__new__(cls)
    values = fb.empty(0, device=device, dtype=dtype)
    new._stand_in, new._be, new.dtype, new._rg = (
        values,
        values._be,
        values.dtype,
        bool(requires_grad),
    )
    return new


class UninitializedParameter(UninitializedTensorMixin, Parameter, plain=True):  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
    """A `Parameter` without shape; `materialize` gives it one.

    Raises:
        ValueError: an operation is tried before.

    >>> import flambeau as fb
    >>> fb.nn.parameter.UninitializedParameter(dtype=fb.float64)
    <UninitializedParameter>
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Device = None, dtype: fb.dtype | None = None
    ) -> UninitializedParameter:
        return _empty(cls, device, dtype, requires_grad)

    def _like(self, values: Tensor) -> UninitializedParameter:
        return type(self)(self.requires_grad, values.device, values.dtype)

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        return type(self), (self.requires_grad, str(self.device), self.dtype)


class UninitializedBuffer(UninitializedTensorMixin, Tensor, plain=True):  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
    """A buffer without shape; `materialize` gives it one.

    `persistent` says whether the module's ``state_dict`` includes it.

    >>> import flambeau as fb
    >>> fb.nn.parameter.UninitializedBuffer()
    <UninitializedBuffer>
    """

    cls_to_become = Tensor
    persistent: bool

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Device = None,
        dtype: fb.dtype | None = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        new = _empty(cls, device, dtype, requires_grad)
        new.persistent = persistent
        return new

    def _like(self, values: Tensor) -> UninitializedBuffer:
        return type(self)(self.requires_grad, values.device, values.dtype, self.persistent)

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        state = self.requires_grad, str(self.device), self.dtype, self.persistent
        return type(self), state


def is_lazy(value: object) -> bool:
    """Whether `value` is an uninitialised parameter or buffer.

    >>> import flambeau as fb
    >>> fb.nn.parameter.is_lazy(fb.nn.LazyLinear(2).weight)
    True
    """
    return isinstance(value, UninitializedTensorMixin)
