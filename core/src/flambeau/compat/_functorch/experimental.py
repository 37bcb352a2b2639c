"""``functorch.experimental``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.func import functionalize, replace_all_batch_norm_modules_, vmap

__all__ = ["chunk_vmap", "functionalize", "replace_all_batch_norm_modules_"]


def chunk_vmap(
    func: Callable[..., Any],
    in_dims: object = 0,
    out_dims: object = 0,
    randomness: str = "error",
    chunks: int = 2,
) -> Callable[..., Any]:
    """`vmap` with the batch cut into a number of chunks."""

    def chunked(*args: Any, **kwargs: Any) -> Any:
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        size = next(a.shape[d] for a, d in zip(args, dims, strict=True) if isinstance(d, int))
        step = -(-size // chunks)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=step)(*args, **kwargs)

    return chunked
