"""Moving a module's tensors to another device or element type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import flambeau as fb
from flambeau import Tensor, __future__
from flambeau.nn._members import Members
from flambeau.nn.parameter import Parameter, is_lazy


class Conversion(Members):
    """The part of `Module` that applies one function to every parameter and buffer."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace every tensor by ``fn(tensor)``; the `Parameter` objects stay the same.

        Optimizers built earlier therefore keep their parameters.  What becomes sparse, or dense,
        or comes from or goes to the meta device gets a new `Parameter`, because its data cannot be
        exchanged, and so does all if `__future__` says so.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        overwrites = __future__.get_overwrite_module_params_on_conversion()
        swaps = __future__.get_swap_module_params_on_conversion()
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            with fb.no_grad():
                values = fn(parameter)
                if not isinstance(values, fb.Tensor):
                    raise TypeError(
                        f"parameters become tensors, but {name!r} became a {type(values).__name__}"
                    )
                grad = None if parameter.grad is None else fn(parameter.grad)
            if swaps:
                self._swap(name, parameter, values, grad)
                continue
            old = parameter.grad
            if overwrites or not (is_lazy(parameter) or _exchangeable(parameter, values)):
                parameter = self._parameters[name] = Parameter(values, parameter.requires_grad)
            else:
                parameter.data = values
            if old is None or grad is None:
                continue
            if parameter.grad is old and _exchangeable(old, grad):
                old.data = grad
            else:
                parameter.grad = grad.requires_grad_(old.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _swap(self, name: str, parameter: Parameter, values: Tensor, grad: Tensor | None) -> None:
        """Let a parameter and its gradient, as objects, be what they are converted to."""
        old, parameter.grad = parameter.grad, None
        try:
            fb.utils.swap_tensors(parameter, Parameter(values, parameter.requires_grad))
        except Exception as error:
            parameter.grad = old
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}") from error
        if old is not None and grad is not None:
            try:
                fb.utils.swap_tensors(old, grad.requires_grad_(old.requires_grad))
            except Exception as error:
                path = f"{self._get_name()}.{name}.grad"
                raise RuntimeError(f"_apply(): Couldn't swap {path}") from error
            parameter.grad = old

    def to(self, *args: object, **kwargs: object) -> Self:
        """Convert all parameters and buffers in place, as ``Tensor.to`` does for one tensor.

        The forms are ``to(device=None, dtype=None, non_blocking=False)``,
        ``to(dtype, non_blocking=False)``, ``to(tensor, non_blocking=False)`` and
        ``to(memory_format=...)``.  `dtype` changes floating and complex tensors only, and
        `memory_format` tensors of four or five dimensions only.

        Raises:
            TypeError: `dtype` is neither floating nor complex.
            NotImplementedError: the module is on the meta device and `device` is not.

        >>> import flambeau as fb
        >>> fb.nn.Linear(1, 1).to(fb.float64).weight.dtype
        torch.float64
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, "
                f"but got desired dtype={dtype}"
            )

        def convert(tensor: Tensor) -> Tensor:
            if tensor.device.type == "meta" and device is not None:
                if fb.device(device).type != "meta":
                    raise NotImplementedError(
                        "Cannot copy out of meta tensor; no data! Please use "
                        "torch.nn.Module.to_empty() instead of torch.nn.Module.to() "
                        "when moving module from meta to a different device."
                    )
            converts = tensor.is_floating_point() or tensor.is_complex()
            options: dict[str, Any] = {}
            if memory_format is not None and not is_lazy(tensor) and tensor.dim() in (4, 5):
                options["memory_format"] = memory_format
            return tensor.to(
                device=device,
                dtype=dtype if converts else None,
                non_blocking=non_blocking,
                **options,
            )

        return self._apply(convert)

    def to_empty(self, *, device: fb.device | str | int | None, recurse: bool = True) -> Self:
        """Move the module to `device` without copying the values, which are then arbitrary.

        >>> import flambeau as fb
        >>> fb.nn.Linear(2, 3, device="meta").to_empty(device="cpu").weight.shape
        torch.Size([3, 2])
        """
        return self._apply(lambda tensor: fb.empty_like(tensor, device=device), recurse)

    def type(self, dst_type: fb.dtype | str) -> Self:
        """Convert all parameters and buffers, integers too, to `dst_type`.

        >>> import flambeau as fb
        >>> fb.nn.Linear(1, 1).type(fb.float64).bias.dtype
        torch.float64
        """
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self) -> Self:
        """Convert the floating parameters and buffers to float32.

        >>> import flambeau as fb
        >>> fb.nn.Linear(1, 1).double().float().weight.dtype
        torch.float32
        """
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Convert the floating parameters and buffers to float64.

        >>> import flambeau as fb
        >>> fb.nn.Linear(1, 1).double().weight.dtype
        torch.float64
        """
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Convert the floating parameters and buffers to float16.

        >>> import flambeau as fb
        >>> fb.nn.Linear(1, 1).half().weight.dtype
        torch.float16
        """
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Convert the floating parameters and buffers to bfloat16.

        >>> import flambeau as fb
        >>> fb.nn.Linear(1, 1).bfloat16().weight.dtype
        torch.bfloat16
        """
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self) -> Self:
        """Move all parameters and buffers to the CPU.

        >>> import flambeau as fb
        >>> fb.nn.Linear(1, 1).cpu().weight.device
        device(type='cpu')
        """
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self, device: int | fb.device | None = None) -> Self:
        """Move all parameters and buffers to a CUDA device, the current one by default.

        >>> import flambeau as fb
        >>> fb.nn.Linear(1, 1).cuda().weight.device  # doctest: +SKIP
        device(type='cuda', index=0)
        """
        return self._apply(lambda tensor: tensor.cuda(device))

    def share_memory(self) -> Self:
        """Put all parameters and buffers into memory that other processes can map.

        >>> import flambeau as fb
        >>> fb.nn.Linear(1, 1).share_memory().weight.is_shared()  # doctest: +SKIP
        True
        """
        return self._apply(lambda tensor: tensor.share_memory_())


def _exchangeable(old: Tensor, new: Tensor) -> bool:
    """Whether a tensor can be given another one's data."""
    return old.layout is new.layout and old.is_meta == new.is_meta


_PYTHON = {bool: fb.bool, int: fb.int64, float: fb.float64, complex: fb.complex128}


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Device, dtype, non_blocking and memory format of the call forms of `Module.to`."""
    names = ["device", "dtype", "non_blocking", "copy"]
    if args and isinstance(args[0], Tensor):
        tensor, *rest = args
        args = (tensor.device, tensor.dtype, *rest)
    elif args and isinstance(args[0], fb.dtype | type):
        names.remove("device")
    elif "tensor" in kwargs:
        tensor = kwargs.pop("tensor")
        kwargs = {"device": tensor.device, "dtype": tensor.dtype, **kwargs}
    given = dict(zip(names, args, strict=False))
    repeated = given.keys() & kwargs.keys()
    unknown = kwargs.keys() - {*names, "memory_format"}
    if len(args) > len(names) or repeated or unknown:
        raise TypeError(
            "to() takes (device, dtype, non_blocking), (dtype, non_blocking) or "
            f"(tensor, non_blocking), got {len(args)} positional arguments and {sorted(kwargs)}"
        )
    given.update(kwargs)
    place = given.get("device")
    device = None if place is None else fb.device(place)
    dtype = given.get("dtype")
    if dtype in _PYTHON:
        dtype = _PYTHON[dtype]
    if dtype is not None and not isinstance(dtype, fb.dtype):
        raise TypeError(f"to(): dtype must be a dtype, got {dtype!r}")
    return device, dtype, bool(given.get("non_blocking", False)), given.get("memory_format")
