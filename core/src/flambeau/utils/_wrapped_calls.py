"""How kernels for tensors with ``__torch_dispatch__`` are told: as calls of PyTorch's ops."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import flambeau as fb
from flambeau._autograd.modes import no_grad, recording
from flambeau._memory.views import storage_of, view_strides
from flambeau._tensor.overrides import DisableTorchFunctionSubclass
from flambeau._tensor.tensor import Tensor
from flambeau.utils import _aten, _aten_calls
from flambeau.utils._wrapped_arrays import LIKE, HeldArray, call, has_dispatch, twin

__all__ = ["aten", "instead", "is_whole", "no_result", "run", "takes_numbers", "tensor_of"]


def aten(name: str, overload: str = "default") -> Any:
    """An overload of an op of ``torch.ops.aten``.

    Raises:
        NotImplementedError: there is no function for it.
    """
    packet = _aten.find(name)
    if packet is None:
        raise NotImplementedError(f"there is no function for the op 'aten::{name}'")
    return getattr(packet, overload)


def no_result(name: str, result: object) -> RuntimeError:
    """What is raised for a result of ``__torch_dispatch__`` that an op cannot have."""
    return RuntimeError(
        f"Unable to cast {type(result).__name__} to Tensor: __torch_dispatch__ returned it for "
        f"the op {name!r}"
    )


def tensor_of(name: str, result: object) -> Tensor:
    """A result that is a tensor.

    Raises:
        RuntimeError: it is none.
    """
    if not isinstance(result, Tensor):
        raise no_result(name, result)
    return result


def _ask(name: str, overload: str, *args: object, **kwargs: object) -> Any:
    return call(aten(name, overload), args, kwargs)


_COMPARISONS = "eq ne lt le gt ge remainder fmod bitwise_and bitwise_or bitwise_xor".split()
_NUMBERS = frozenset(["add", "sub", "mul", "div", "pow", *_COMPARISONS])


def takes_numbers(name: str) -> bool:
    """Whether an op is told of a Python number as what it is."""
    return name in _NUMBERS


def _binary(name: str, first: Any, second: Any) -> Any:
    if isinstance(second, Tensor) and isinstance(first, Tensor):
        return _ask(name, "Tensor_Tensor" if name == "pow" else "Tensor", first, second)
    if isinstance(first, Tensor):
        overload = "Tensor_Scalar" if name == "pow" else "Scalar"
        return _ask(name, overload if name in (*_COMPARISONS, "pow") else "Tensor", first, second)
    if name in ("add", "mul"):
        return _ask(name, "Tensor", second, first)
    if name == "sub":
        return _ask("rsub", "Scalar", second, first)
    if name == "div":
        return _ask("mul", "Tensor", _ask("reciprocal", "default", second), first)
    if name == "pow":
        return _ask("pow", "Scalar", first, second)
    whole = fb.tensor(first, dtype=second.dtype, device=second.device)
    return _ask(name, "Tensor", whole, second)


def _slice(x: Any, items: tuple[Any, ...]) -> Any:
    dim = 0
    for item in items:
        if item is None:
            x = _ask("unsqueeze", "default", x, dim)
        elif isinstance(item, slice):
            n = x.shape[dim]
            if (item.start, item.stop, item.step) != (0, n, 1):
                rest = () if item.step == 1 else (item.step,)
                x = _ask("slice", "Tensor", x, dim, item.start, item.stop, *rest)
        else:
            x = _ask("select", "int", x, dim, item)
            continue
        dim += 1
    return x


def _permute(x: object, dims: tuple[int, ...]) -> Any:
    moved = [i for i, d in enumerate(dims) if i != d]
    if len(dims) == 2 and moved:
        return _ask("t", "default", x)
    if len(moved) == 2:
        return _ask("transpose", "int", x, *moved)
    return _ask("permute", "default", x, list(dims))


def _view(x: Any, shape: tuple[int, ...]) -> Any:
    if tuple(x.shape) == tuple(shape):
        return _ask("alias", "default", x)
    steps = tuple(x.shape), tuple(x.stride())
    if view_strides(*steps, shape) is not None:
        return _ask("view", "default", x, list(shape))
    return _ask("_unsafe_view", "default", _ask("clone", "default", x), list(shape))


def _expand(x: object, shape: tuple[int, ...]) -> Any:
    return _ask("expand", "default", x, list(shape))


def _matmul(first: Any, second: Any) -> Any:
    sizes = first.dim(), second.dim()
    names = {(2, 2): "mm", (2, 1): "mv", (1, 1): "dot"}
    if sizes in names:
        return _ask(names[sizes], "default", first, second)
    if sizes == (3, 3) and first.shape[0] == second.shape[0]:
        return _ask("bmm", "default", first, second)
    if sizes[1] <= 2 < sizes[0]:
        rows = prod(first.shape[:-1])
        flat = _view(first, (rows, first.shape[-1]))
        found = _matmul(flat, second)
        return _ask("_unsafe_view", "default", found, [*first.shape[:-1], *second.shape[1:]])
    if sizes[0] == 1:
        found = _matmul(_ask("unsqueeze", "default", first, 0), second)
        return _ask("squeeze", "dim", found, -2)
    if sizes[1] == 1:
        found = _matmul(first, _ask("unsqueeze", "default", second, 1))
        return _ask("squeeze", "dim", found, -1)
    batch = tuple(fb.broadcast_shapes(first.shape[:-2], second.shape[:-2]))
    parts = []
    for each in (first, second):
        whole = _expand(each, (*batch, *each.shape[-2:]))
        parts.append(_view(whole, (prod(batch), *each.shape[-2:])))
    found = _ask("bmm", "default", *parts)
    shape = [*batch, first.shape[-2], second.shape[-1]]
    return _ask("_unsafe_view", "default", found, shape)


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    rows = prod(x.shape[:-1])
    flat = x if x.dim() == 2 else _view(x, (rows, x.shape[-1]))
    turned = _ask("t", "default", weight)
    if bias is None:
        found = _ask("mm", "default", flat, turned)
    else:
        found = _ask("addmm", "default", bias, flat, turned)
    return found if x.dim() == 2 else _view(found, (*x.shape[:-1], weight.shape[0]))


def _reduction(name: str, overload: str) -> Callable[..., Any]:
    def told(x: Any, dims: Any, keepdim: bool = False) -> Any:
        if not keepdim and len(dims or ()) == x.dim():
            return _ask(name, "default", x)
        rest = (True,) if keepdim else ()
        return _ask(name, overload, x, list(dims), *rest)

    return told


def _assign(target: object, value: object) -> Any:
    return _ask("copy_", "default", target, value)


def _index(x: Any, indices: Any) -> Any:
    return _ask("index", "Tensor", x, list(indices))


_OF_OPS: dict[str, Callable[..., Any]] = {
    **{name: (lambda a, b, name=name: _binary(name, a, b)) for name in _NUMBERS},
    "assign": _assign,
    "expand": _expand,
    "linear": _linear,
    "matmul": _matmul,
    "mean": _reduction("mean", "dim"),
    "permute": _permute,
    "slice": _slice,
    "sum": _reduction("sum", "dim_IntList"),
    "view": _view,
}


def is_whole(name: str) -> bool:
    """Whether a composite op is one call; others are calls of their parts."""
    return name in _OF_OPS or name in _aten_calls._OVERLOAD or name in _aten_calls._SPECIAL


def run(name: str, args: list[Any], be: Any) -> Any:
    """The call, or the calls, that an op is told as."""
    if (special := _OF_OPS.get(name)) is not None:
        return special(*args)
    func, given, kwargs = _aten_calls.call_of(name, tuple(args), be.below)
    return call(func, given, kwargs)


_WITH_NUMBERS = frozenset("add sub mul div true_divide".split())


def instead(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What is asked of a tensor with ``__torch_dispatch__`` without an op of flambeau's between.

    Returns:
        NotImplemented for a call that is told by its ops.
    """
    x = args[0] if args else None
    if not isinstance(x, Tensor) or type(x._a) is not HeldArray:
        return NotImplemented
    if not has_dispatch(type(x)):
        return NotImplemented
    if name in LIKE:
        return _like(name, x, args[1:], kwargs)
    if name == "detach":
        return _detached(x)
    if name.endswith("_") and not name.endswith("__"):
        return _written(name, x, args[1:], kwargs)
    if (plain := _IN_PLACE.get(name)) is not None:
        return _written(plain, x, args[1:], kwargs)
    return NotImplemented


UNBIND: Any = aten("unbind", "int")


_IN_PLACE = {
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
    "__ipow__": "pow_",
}


def _like(name: str, x: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    options = dict(kwargs)
    requires_grad = options.pop("requires_grad", False)
    if name.startswith("new_") and args and name != "new_full" and isinstance(args[0], int):
        args = (list(args),)
    with no_grad(), DisableTorchFunctionSubclass():
        found = tensor_of(name, call(aten(name), (x, *args), options))
    return found.requires_grad_() if requires_grad else found


def _detached(x: Any) -> Any:
    with no_grad(), DisableTorchFunctionSubclass():
        found = tensor_of("detach", call(aten("detach"), (x,), {}))
    if found is x:
        found = twin(x)
    if has_dispatch(type(found)):
        found._st = storage_of(x)  # of one memory, so of one count of writes
    return found


def _written(name: str, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tensors = [a for a in (x, *args, *kwargs.values()) if isinstance(a, Tensor)]
    if recording() and any(t._rg and t.requires_grad for t in tensors):
        return NotImplemented
    if name in ("requires_grad_", "detach_", "retain_grad_", "share_memory_", "rename_"):
        return NotImplemented
    if name == "copy_":
        args = args[:1]
    packet = _aten.find(name)
    if packet is None:
        return NotImplemented
    plain = name[:-1]
    if plain in ("add", "sub") and len(args) == 2:
        return NotImplemented
    overload = _overload_in_place(plain, args)
    with no_grad(), DisableTorchFunctionSubclass():
        call(getattr(packet, overload), args=(x, *args), kwargs=kwargs)
    storage_of(x).version += 1
    return x


def _overload_in_place(plain: str, args: tuple[Any, ...]) -> str:
    number = bool(args) and not isinstance(args[0], Tensor)
    if plain in _WITH_NUMBERS:
        return "Tensor"
    if plain in (*_COMPARISONS, "pow", "fill", "lerp"):
        return (
            "Scalar"
            if number or (plain == "lerp" and not isinstance(args[-1], Tensor))
            else ("Tensor")
        )
    return "default"
