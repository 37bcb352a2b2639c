"""Reading and writing by index: views and the ops `index` and `index_put_`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.jit import _types as T
from flambeau.jit._frontend.match import call_op
from flambeau.jit._tracing.numbers import plain

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau.jit._graph import Value
    from flambeau.jit._tracing.recorder import Recorder


def read(c: Recorder, tensor: Tensor, index: object) -> Value:
    """Note ``tensor[index]``."""
    view, indices = _view(c, tensor, index)
    if not indices:
        if view is c.tensor(tensor):
            return call_op(c, "aten::alias", [view])
        return view
    return call_op(c, "aten::index", [view, _list(c, indices)])


def write(c: Recorder, tensor: Tensor, index: object, value: Tensor | float) -> None:
    """Note ``tensor[index] = value``."""
    view, indices = _view(c, tensor, index)
    if not indices:
        given = _fitting(c, tensor, index, value)
        op = "aten::copy_" if given.type() is T.TENSOR else "aten::fill_"
        call_op(c, op, [view, given])
        return
    if isinstance(value, fb.Tensor):
        given = _fitting(c, tensor, index, value)
        if value.dtype is not tensor.dtype:
            given = call_op(c, "aten::to", [given, c.value(tensor.dtype)])
    else:
        given = c.value(fb.tensor(plain(value), dtype=tensor.dtype, device=tensor.device))
    call_op(c, "aten::index_put_", [view, _list(c, indices), given, c.constant(False)])


def _fitting(c: Recorder, tensor: Tensor, index: object, value: Tensor | float) -> Value:
    """A value without dimensions of one element in front that what is written lacks."""
    given = c.value(value)
    if isinstance(value, fb.Tensor):
        for _ in range(value.dim() - plain(tensor)[plain(index)].dim()):
            given = call_op(c, "aten::squeeze", [given, c.constant(0)])
    return given


def _list(c: Recorder, indices: list[Value | None]) -> Value:
    members = [each if each is not None else c.constant(None, T.NONE) for each in indices]
    return c.emit("prim::ListConstruct", members, T.list_of(T.optional(T.TENSOR)))


def _view(c: Recorder, tensor: Tensor, index: object) -> tuple[Value, list[Value | None]]:
    """The view that an index means, and the tensors of indices that are left over."""
    parts = list(index) if isinstance(index, tuple) else [index]
    given = [_as_tensor(each) for each in parts]
    taken = sum(_width(each) for each in given)
    value, dim, missing = c.tensor(tensor), 0, tensor.dim() - taken
    indices: list[Value | None] = []
    for each in given:
        if each is None:
            value = call_op(c, "aten::unsqueeze", [value, c.constant(dim)])
            dim += 1
        elif each is Ellipsis:
            dim += missing
        elif isinstance(each, slice):
            if (each.start, each.stop, each.step) != (None, None, None):
                ends = [c.value(end) for end in (each.start, each.stop)]
                step = c.value(1 if each.step is None else each.step)
                value = call_op(c, "aten::slice", [value, c.constant(dim), *ends, step])
            dim += 1
        elif isinstance(each, fb.Tensor):
            indices += [None] * (dim - len(indices))
            indices.append(c.tensor(each))
            dim += max(1, each.dim()) if each.dtype is fb.bool else 1
        elif isinstance(each, bool):
            value = call_op(c, "aten::unsqueeze", [value, c.constant(dim)])
            indices += [None] * (dim - len(indices))
            indices.append(c.tensor(fb.tensor([each], device=tensor.device)))
            dim += 1
        else:
            value = call_op(c, "aten::select", [value, c.constant(dim), c.value(each)])
    return value, indices


def _as_tensor(each: Any) -> Any:
    if isinstance(each, (list, tuple, range)) or (
        hasattr(each, "__array__") and not isinstance(each, fb.Tensor) and each.ndim
    ):
        return fb.tensor(plain(list(each))) if not hasattr(each, "__array__") else fb.tensor(each)
    return each


def _width(each: object) -> int:
    """How many dimensions of the tensor an index stands for."""
    if each is None or each is Ellipsis or isinstance(each, bool):
        return 0
    if isinstance(each, fb.Tensor) and each.dtype is fb.bool:
        return each.dim()
    return 1
