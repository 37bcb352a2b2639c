"""Checkpoints: files of tensors and containers, exchanged with PyTorch both ways.

`save` and `load` are also ``flambeau.save`` and ``flambeau.load``.
"""

from flambeau.serialization._errors import CheckpointError, WeightsOnlyError
from flambeau.serialization._formats import Format, register_format
from flambeau.serialization._load import get_unsafe_globals_in_checkpoint, load, verify
from flambeau.serialization._locations import (
    default_restore_location,
    location_tag,
    register_package,
)
from flambeau.serialization._names import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from flambeau.serialization._save import save
from flambeau.serialization._stream import SourceChangeWarning

__all__ = [
    "CheckpointError",
    "Format",
    "SourceChangeWarning",
    "WeightsOnlyError",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "register_format",
    "register_package",
    "safe_globals",
    "save",
    "verify",
]
