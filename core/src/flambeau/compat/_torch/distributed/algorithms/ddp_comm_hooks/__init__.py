"""Ways to exchange gradients by their names, as PyTorch's programs choose them."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any

from flambeau.distributed.algorithms.ddp_comm_hooks import default_hooks as default

__all__ = ["DDPCommHookType", "default", "register_ddp_comm_hook"]


def _register(hook: Any, model: Any, state: object) -> None:
    model.register_comm_hook(state, hook)


class DDPCommHookType(Enum):
    """The ways that are there; a program finds others absent."""

    ALLREDUCE = partial(_register, default.allreduce_hook)
    FP16_COMPRESS = partial(_register, default.fp16_compress_hook)
    BF16_COMPRESS = partial(_register, default.bf16_compress_hook)


def register_ddp_comm_hook(
    comm_hook_type: DDPCommHookType, model: Any, state: object = None
) -> None:
    """Let a `DistributedDataParallel` exchange gradients in one of these ways."""
    comm_hook_type.value(model=model, state=state)
