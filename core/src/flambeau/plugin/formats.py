"""What a plugin hands to the core for files of its own: a format of `save` and `load`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Format(NamedTuple):
    """A file format for `save(..., format=)`; `load` recognises its files.

    Attributes:
        name: what users write.
        sniff: whether a file begins (up to 512 bytes) as this format does.
        save: writes (object, binary file).
        load: reads (bytes-like, path or description, map_location, weights_only) to an object.
            It must run no code from the file if `weights_only`.

    >>> from flambeau.plugin import Format
    >>> from flambeau.serialization import register_format, save, load
    >>> import io
    >>> register_format(Format(
    ...     "text", lambda head: head[:1] == b"#",
    ...     lambda obj, file: file.write(b"#" + obj.encode()),
    ...     lambda data, path, map_location, weights_only: bytes(data[1:]).decode()))
    >>> file = io.BytesIO(); save("hello", file, format="text"); _ = file.seek(0); load(file)
    'hello'
    """

    name: str
    sniff: Callable[[bytes], bool]
    save: Callable[[Any, Any], Any]
    load: Callable[[Any, str, Any, bool], Any]
