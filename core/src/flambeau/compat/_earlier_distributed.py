"""Stores and names of backends as PyTorch 1.2 had them, for programs that are told that it is here.

Programs of that time looked for the words: to take another port, and to tell what came late.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import wraps
from typing import Any

import flambeau as fb  # whose distributed part is imported at its first use
from flambeau.compat._earlier import _errors, _instead_of


@_instead_of("flambeau.distributed._tcp_store:start_server")
def _(start_server: Callable[..., Any]) -> Callable[..., object]:
    """An address in use is nothing but that."""

    @wraps(start_server)
    def start(*args: Any) -> object:
        try:
            return start_server(*args)
        except fb.distributed.DistNetworkError as error:
            if isinstance(cause := error.__cause__, OSError) and cause.errno == errno.EADDRINUSE:
                raise fb.distributed.DistNetworkError("Address already in use") from error
            raise

    return start


@_instead_of("flambeau.distributed._stores:late", "flambeau.distributed._tcp_store:late")
def _(late: Callable[..., Exception]) -> Callable[..., object]:
    @wraps(late)
    def earlier(*args: Any) -> Exception:
        error = late(*args)
        return type(error)(str(error).replace("wait timeout", "Timeout"))

    return earlier


_instead_of("flambeau.distributed:get_backend")(
    _errors(RuntimeError, ValueError, word="Invalid process group specified")
)


@_instead_of("flambeau.distributed:Backend.__new__")
def _(new: Callable[..., Any]) -> Callable[..., object]:
    """Only names of engines are names of backends."""

    @wraps(new)
    def known(cls: Any, name: object) -> object:
        made = new(cls, name)
        if made not in ("gloo", "nccl", "mpi") and not fb.distributed.is_backend_available(made):
            raise ValueError(f"Invalid backend: {name!r}")
        return made

    return known
