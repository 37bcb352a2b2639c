"""Names for annotations of functions of tensors."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, Union

from flambeau import Size, Tensor, device, dtype, layout

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number = Union[builtins.int, builtins.float, builtins.bool]  # noqa: UP007 - asked for its arguments
Device = Union[device, str, builtins.int, None]  # noqa: UP007
FileLike = Union[str, os.PathLike[str], IO[bytes]]  # noqa: UP007
Storage = Any

_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_str, _bytes, _any = builtins.str, builtins.bytes, Any
_dtype, _device, _layout, _size = dtype, device, layout, Union[Size, list[int], tuple[int, ...]]  # noqa: UP007
_symint = _int
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]  # noqa: UP007
_TensorOrTensorsOrGradEdge = _TensorOrTensors
