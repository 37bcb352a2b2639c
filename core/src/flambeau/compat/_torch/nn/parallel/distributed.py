"""Names of ``torch.nn.parallel.distributed`` that only programs for PyTorch want."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from flambeau import Tensor

__all__ = ["_find_tensors"]


def _find_tensors(obj: object) -> Iterator[Tensor]:
    """The tensors in nested lists, tuples, dictionaries and dataclasses."""
    if isinstance(obj, Tensor):
        yield obj
    elif isinstance(obj, list | tuple):
        for each in obj:
            yield from _find_tensors(each)
    elif isinstance(obj, dict):
        yield from _find_tensors(list(obj.values()))
    elif dataclasses.is_dataclass(obj):
        yield from _find_tensors([getattr(obj, field.name) for field in dataclasses.fields(obj)])
