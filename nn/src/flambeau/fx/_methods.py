"""Methods of tensors that a traced program has itself, where it gives them proxies."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType

import flambeau as fb
from flambeau.fx.proxy import Proxy

__all__ = ["METHODS", "as_node", "find_proxy"]

METHODS = [
    name
    for name in dir(fb.Tensor)
    if (not name.startswith("_") or name == "__getitem__")
    and isinstance(getattr(fb.Tensor, name, None), FunctionType)
]
"""The methods of tensors."""


@functools.cache
def as_node(method: Callable[..., object], name: str) -> Callable[..., object]:
    """A method of tensors whose calls with a proxy are a node."""

    @functools.wraps(method)
    def called(*args: object, **kwargs: object) -> object:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return method(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return called


def find_proxy(*places: object) -> Proxy | None:
    """The first proxy among values and in containers of these."""
    for place in places:
        if isinstance(place, Proxy):
            return place
        inner = None
        if isinstance(place, tuple | list):
            inner = find_proxy(*place)
        elif isinstance(place, dict):
            inner = find_proxy(*place.values())
        if inner is not None:
            return inner
    return None
