"""PyTorch with one deliberate fault each, to show that the agreement fuzz notices such faults.

Every fault is a mistake that a tensor library can make in views, versions, histories, errors or
gradients.  It replaces single calls; everything else stays PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

Call = Callable[..., Any]
Fault = Callable[[Call, tuple[Any, ...], dict[str, Any]], Any]

FAULTS: dict[str, Fault] = {}
IN_PLACE_OPERATORS = ("__iadd__", "__isub__", "__imul__", "__itruediv__")
VIEWS = (
    "__getitem__",
    "select",
    "narrow",
    "transpose",
    "permute",
    "view",
    "diagonal",
    "t",
    "unsqueeze",
)


class Planted(TorchFunctionMode):
    """Within this context every call of PyTorch goes through `fault`."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.fault = fault

    def __torch_function__(self, func: Call, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.fault(func, args, kwargs or {})


def _fault(function: Fault) -> Fault:
    FAULTS[function.__name__] = function
    return function


def _in_place(func: Call) -> bool:
    name = func.__name__
    return (
        name == "__setitem__" or name in IN_PLACE_OPERATORS or (name[-1] == "_" and name[-2] != "_")
    )


def _changes(func: Call) -> bool:
    """Whether `func` changes values in place, and not only the autograd state of a tensor."""
    return _in_place(func) and func.__name__ not in ("detach_", "requires_grad_")


def _out_of_place(func: Call, args: Any, kwargs: Any) -> Any:
    """What an in-place method would write, computed from a copy."""
    target = args[0].detach().clone().requires_grad_(False)
    with torch.no_grad():
        func(target, *args[1:], **kwargs)
    return target


@_fault
def no_version_bump(func: Call, args: Any, kwargs: Any) -> Any:
    if not _changes(func):
        return func(*args, **kwargs)
    with torch.autograd._unsafe_preserve_version_counter(args[0]):
        return func(*args, **kwargs)


@_fault
def no_leaf_check(func: Call, args: Any, kwargs: Any) -> Any:
    if _changes(func) and args[0].is_leaf and args[0].requires_grad:
        with torch.no_grad():
            return func(*args, **kwargs)
    return func(*args, **kwargs)


@_fault
def detach_has_its_own_version(func: Call, args: Any, kwargs: Any) -> Any:
    return args[0].data if func.__name__ == "detach" else func(*args, **kwargs)


@_fault
def base_is_not_rebased(func: Call, args: Any, kwargs: Any) -> Any:
    if _changes(func) and args[0]._is_view() and not args[0].is_leaf:
        func(args[0].detach(), *args[1:], **kwargs)
        return args[0]
    return func(*args, **kwargs)


@_fault
def gradient_passes_through_changes_of_views(func: Call, args: Any, kwargs: Any) -> Any:
    target = args[0] if args and isinstance(args[0], torch.Tensor) else None
    if target is None or not _changes(func) or not target._is_view() or not target.requires_grad:
        return func(*args, **kwargs)
    return target.add_(_out_of_place(func, args, kwargs) - target.detach())


@_fault
def stale_views_keep_their_history(func: Call, args: Any, kwargs: Any) -> Any:
    if func.__name__ in VIEWS:
        view = func(*args, **kwargs)
        if view._is_view() and view.requires_grad:
            view._born = (view._version, view.clone())
        return view
    if _in_place(func) or func.__name__ in ("__get__", "backward", "tolist"):
        return func(*args, **kwargs)
    return func(*(_with_old_history(arg) for arg in args), **kwargs)


def _with_old_history(value: Any) -> Any:
    version, copy = getattr(value, "_born", (None, value))
    if version is None or value._version == version or not value.requires_grad:
        return value
    return copy + (value.detach() - copy.detach())


@_fault
def wrong_gradient_of_tanh(func: Call, args: Any, kwargs: Any) -> Any:
    if func.__name__ != "tanh" or not args[0].requires_grad:
        return func(*args, **kwargs)
    return args[0].tanh().detach() + 0.5 * (args[0] - args[0].detach())


@_fault
def views_are_copies(func: Call, args: Any, kwargs: Any) -> Any:
    result = func(*args, **kwargs)
    return result.clone() if func.__name__ == "narrow" else result


@_fault
def wrong_class_of_index_errors(func: Call, args: Any, kwargs: Any) -> Any:
    try:
        return func(*args, **kwargs)
    except IndexError as error:
        raise RuntimeError(str(error)) from error


@_fault
def comparisons_give_bytes(func: Call, args: Any, kwargs: Any) -> Any:
    result = func(*args, **kwargs)
    return result.to(torch.uint8) if func.__name__ in ("gt", "le", "__gt__", "__le__") else result
