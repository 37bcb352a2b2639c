"""Hooks that average gradients, as they are or in half the bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import futures
from flambeau.distributed._exchange.collectives import all_reduce
from flambeau.distributed._init import get_world_size

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


Hook = Callable[[Any, Any], futures.Future[Any]]


def _average(group: Any, tensor: Any) -> futures.Future[Any]:
    tensor.div_(get_world_size(group))
    work = all_reduce(tensor, group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group: object, bucket: Any) -> futures.Future[Any]:
    """The average of the gradients, what `DistributedDataParallel` does without a hook."""
    return _average(process_group, bucket.buffer())


def _compressed(dtype: Any, process_group: object, bucket: Any) -> futures.Future[Any]:
    buffer = bucket.buffer()

    def restored(future: futures.Future[Any]) -> Any:
        return buffer.copy_(future.value())

    return _average(process_group, buffer.to(dtype)).then(restored)


def fp16_compress_hook(process_group: object, bucket: object) -> futures.Future[Any]:
    """The average of the gradients rounded to float16, which travel in half the bytes."""
    return _compressed(fb.float16, process_group, bucket)


def bf16_compress_hook(process_group: object, bucket: object) -> futures.Future[Any]:
    """The average of the gradients rounded to bfloat16, which travel in half the bytes."""
    return _compressed(fb.bfloat16, process_group, bucket)


def _wrapper(dtype: DType, hook: Hook) -> Hook:
    def wrapped(state: object, bucket: Any) -> futures.Future[Any]:
        buffer = bucket.buffer()
        with fb.no_grad():
            buffer.copy_(buffer.to(dtype))
        return hook(state, bucket)

    return wrapped


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """`hook`, with gradients rounded to float16 before it."""
    return _wrapper(fb.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """`hook`, with gradients rounded to bfloat16 before it."""
    return _wrapper(fb.bfloat16, hook)
