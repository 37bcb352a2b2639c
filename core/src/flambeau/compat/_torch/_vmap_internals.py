"""The older vmap, by which libraries map a product with a Jacobian over the rows of one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from flambeau import vmap

__all__ = ["vmap"]


def _vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    allow_none_pass_through: bool = False,
) -> Callable[..., Any]:
    """`vmap`, whose function may give None for some results where that is allowed."""
    if not allow_none_pass_through:
        return vmap(func, in_dims, out_dims)

    @wraps(func)
    def mapped(*args: Any) -> Any:
        given: list[Any] = []
        several = False

        def tensors(*entry: Any) -> tuple[Any, ...]:
            nonlocal given, several
            results = func(*entry)
            several = isinstance(results, tuple)
            given = list(results) if several else [results]
            return tuple([each for each in given if each is not None])

        found = iter(vmap(tensors, in_dims)(*args))
        places = [out_dims] * len(given) if isinstance(out_dims, int) else out_dims
        results = tuple(
            [
                None if each is None else next(found).movedim(0, place)
                for each, place in zip(given, places, strict=True)
            ]
        )
        return results if several else results[0]

    return mapped
