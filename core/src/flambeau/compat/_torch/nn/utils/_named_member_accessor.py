"""Tensors of modules by their names, for libraries that compute modules with other tensors."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau.nn import Module

__all__ = ["set_tensor", "swap_tensor"]

_MISSING: Any = object()


def _check(module: object, name: str, tensor: object) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not None and tensor is not _MISSING and not isinstance(tensor, fb.Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if not name or "." in name:
        raise KeyError(f"the name of a tensor of a module has no dot and is not empty: {name!r}")


def set_tensor(module: Module, name: str, tensor: fb.Tensor | None) -> None:
    """Put a tensor in the place of a parameter, buffer or attribute, as it is.

    Raises:
        TypeError: `module` is no module, or `tensor` no tensor.
        KeyError: a name that no member has.
    """
    _check(module, name, tensor)
    for members in (module._parameters, module._buffers):
        if name in members:
            members[name] = tensor  # type: ignore[assignment] - it need not be a parameter
            return
    setattr(module, name, tensor)


def swap_tensor(
    module: Module, name: str, tensor: Any, allow_missing: bool = False
) -> fb.Tensor | None:
    """`set_tensor`, and the tensor that was there.

    Raises:
        AttributeError: there was none, without `allow_missing`.
        TypeError: what was there is no tensor, or as for `set_tensor`.
        KeyError: as for `set_tensor`.
    """
    _check(module, name, tensor)
    for members in (module._parameters, module._buffers):
        if name in members:
            before = members[name]
            if tensor is _MISSING:
                del members[name]
            else:
                members[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    if before is not None and before is not _MISSING and not isinstance(before, fb.Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before
