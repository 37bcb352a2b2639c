"""`isinstance` that looks at what containers hold."""

from __future__ import annotations

from flambeau.jit._frontend import annotations as _annotations
from flambeau.jit._parts import compiler


def isinstance(obj: object, target_type: object) -> bool:
    """Whether a value is of a type, containers with what they hold.

    >>> import flambeau as fb
    >>> fb.jit.isinstance([1, 2], list[int]), fb.jit.isinstance([1, 2], list[str])
    (True, False)
    """
    is_value_of = compiler.execute.is_value_of

    types = target_type if type(target_type) is tuple else (target_type,)
    for each in types:
        if each in (list, tuple, dict):
            if type(obj) is each:
                return True
            continue
        kind = _annotations.of_object(each)
        empty = type(obj) in (list, dict) and not obj
        if is_value_of(obj, kind) and not empty:
            return True
        if empty and kind.kind == {list: "List", dict: "Dict"}[type(obj)]:
            return True
    return False
