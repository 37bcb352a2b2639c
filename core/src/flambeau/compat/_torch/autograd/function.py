"""Names of ``torch.autograd.function`` that only programs for PyTorch want."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flambeau import Tensor
from flambeau.autograd.function import Function, FunctionCtx

__all__ = [
    "BackwardCFunction",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "_ContextMethodMixin",
    "_SingleLevelFunction",
    "_iter_None_tensors",
    "_iter_filter",
    "_iter_tensors",
    "_iter_tensors_permissive",
    "_map_tensor_data",
    "_nested_map",
    "_unflatten",
]

BackwardCFunction = FunctionCtx
_ContextMethodMixin = FunctionCtx
NestedIOFunction = Function
_SingleLevelFunction = Function
FunctionMeta = type(Function)


class InplaceFunction(Function):
    """A function whose object knows whether it writes into its input: a base of older programs."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def _refuse(obj: object, condition_msg: str | None) -> None:
    accepted = (
        f". Accepted types: {condition_msg}, or lists/tuples of them" if condition_msg else ""
    )
    raise ValueError(
        "Auto nesting doesn't know how to process an input object of type "
        f"{type(obj).__qualname__}{accepted}"
    )


def _nested_map(
    condition: Callable[[Any], bool], fn: Callable[[Any], Any], condition_msg: str | None = None
) -> Callable[[Any], Any]:
    """A function that applies `fn`, in nested lists, tuples and dicts, to what is as it should."""

    def mapped(obj: object) -> Any:
        if condition(obj):
            return fn(obj)
        if obj is None:
            return None
        if isinstance(obj, (list, tuple)):
            parts = [mapped(each) for each in obj]
            kind: Any = type(obj)
            return kind(*parts) if hasattr(obj, "_fields") else kind(parts)
        if isinstance(obj, dict):
            return {key: mapped(value) for key, value in obj.items()}
        return _refuse(obj, condition_msg)

    return mapped


def _iter_filter(
    condition: Callable[[Any], bool],
    allow_unknown: bool = False,
    condition_msg: str | None = None,
    conversion: Callable[[Any], Any] | None = None,
) -> Callable[[Any], Iterator[Any]]:
    """A function that yields, from nested lists, tuples and dicts, what is as it should."""

    def found(obj: object) -> Iterator[Any]:
        if conversion is not None:
            obj = conversion(obj)
        if condition(obj):
            yield obj
        elif obj is None:
            return
        elif isinstance(obj, (list, tuple, dict)):
            for each in obj.values() if isinstance(obj, dict) else obj:
                yield from found(each)
        elif allow_unknown:
            yield obj
        else:
            _refuse(obj, condition_msg)

    return found


def _unflatten(input: Any, proto: Any) -> Any:
    """A flat sequence in the form of nested lists and tuples; what is left over is dropped."""

    def formed(values: Any, form: Any) -> tuple[Any, Any]:
        if not isinstance(form, (list, tuple)):
            return values[0], values[1:]
        parts = []
        for each in form:
            part = None
            if each is not None:
                part, values = formed(values, each)
            parts.append(part)
        return type(form)(parts), values

    return formed(input, proto)[0]


def _is_tensor(x: object) -> bool:
    return isinstance(x, Tensor)


_iter_tensors = _iter_filter(_is_tensor, condition_msg="Tensors")
_iter_tensors_permissive = _iter_filter(
    _is_tensor, allow_unknown=True, condition_msg="Tensors (permissive)"
)
_iter_None_tensors = _iter_filter(  # noqa: N816 - PyTorch's name
    lambda x: x is None or _is_tensor(x), condition_msg="Tensors or None"
)
_map_tensor_data = _nested_map(_is_tensor, lambda x: x.data, condition_msg="Tensors")
