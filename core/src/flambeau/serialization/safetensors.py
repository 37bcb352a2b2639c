"""The safetensors format: a JSON header with bounds, then the bytes of named tensors.

Written and read here, without the package of that name.  It holds a flat dict of tensors and a dict
of strings, nothing else; sharing is not kept.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from typing import Any

from flambeau._storages.typed import TypedStorage
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.strides import contiguous_strides
from flambeau.plugin import Format
from flambeau.serialization._errors import CheckpointError
from flambeau.serialization._files import replacing
from flambeau.serialization._locations import made
from flambeau.serialization._rebuild import rebuild_tensor

_CODES = {
    D.bool_: "BOOL",
    D.uint8: "U8",
    D.int8: "I8",
    D.int16: "I16",
    D.int32: "I32",
    D.int64: "I64",
    D.float16: "F16",
    D.bfloat16: "BF16",
    D.float32: "F32",
    D.float64: "F64",
    D.complex64: "C64",
}
_DTYPES = {code: dtype for dtype, code in _CODES.items()}
_MOST = 100_000_000  # bytes of a header, the limit of the format


def save_file(
    tensors: Mapping[str, Tensor], filename: Any, metadata: Mapping[str, str] | None = None
) -> None:
    """Write named tensors to a file, which is replaced whole or not at all.

    Raises:
        TypeError: not a dict from strings to dense tensors, or metadata that are no strings.
        ValueError: a dtype that the format does not have.

    >>> import flambeau as fb, tempfile
    >>> from flambeau.serialization.safetensors import load_file, save_file
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     save_file({"w": fb.ones(2)}, file.name); load_file(file.name)
    {'w': tensor([1., 1.])}
    """
    with replacing(filename) as file:
        _write(tensors, file, metadata)


def _write(tensors: Any, file: Any, metadata: Mapping[str, str] | None = None) -> None:
    if not isinstance(tensors, Mapping):
        raise TypeError(f"safetensors holds a dict of tensors, got {type(tensors).__name__}")
    header: dict[str, Any] = {}
    if metadata:
        if not all(isinstance(s, str) for pair in metadata.items() for s in pair):
            raise TypeError("safetensors: metadata are a dict from strings to strings")
        header["__metadata__"] = dict(metadata)
    order = []
    for name, t in tensors.items():
        if type(name) is not str or not isinstance(t, Tensor) or t.is_sparse or t.is_meta:
            raise TypeError(f"safetensors holds dense tensors by name; {name!r} is none")
        if name == "__metadata__" or t.dtype not in _CODES:
            raise ValueError(f"safetensors: {name!r} has dtype {t.dtype} or a reserved name")
        order.append((name, t))
    order.sort(key=lambda pair: (-pair[1].dtype.itemsize, pair[0]))  # so that all are aligned
    at = 0
    for name, t in order:
        size = t.numel() * t.dtype.itemsize
        header[name] = {
            "dtype": _CODES[t.dtype],
            "shape": list(t.shape),
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for _, t in order:
        dense = t.detach().contiguous()
        file.write(dense._be.backend.to_host(dense._a))


def load_file(filename: Any, device: Any = "cpu") -> dict[str, Tensor]:
    """The named tensors of a file.

    Raises:
        CheckpointError: it is damaged, or has a dtype that flambeau lacks.
    """
    path = os.fsdecode(os.fspath(filename))
    with open(path, "rb") as file:
        return _read(file.read(), path, device)


def metadata(filename: Any) -> dict[str, str]:
    """The strings that were saved with a file's tensors."""
    path = os.fsdecode(os.fspath(filename))
    with open(path, "rb") as file:
        return _header(file.read(), path)[1]


def _header(data: Any, path: str) -> tuple[dict[str, Any], dict[str, str], int]:
    view = memoryview(data)
    if len(view) < 8:
        raise CheckpointError("the file is cut off", path, len(view))
    (length,) = struct.unpack_from("<Q", view)
    if length > min(_MOST, len(view) - 8):
        raise CheckpointError(f"a header of {length} bytes in {len(view)}", path, 0)
    try:
        header = json.loads(bytes(view[8 : 8 + length]).decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"damaged header: {error}", path, 8) from error
    if type(header) is not dict:
        raise CheckpointError("the header is no object", path, 8)
    strings = header.pop("__metadata__", {})
    if type(strings) is not dict or not all(type(v) is str for v in strings.values()):
        raise CheckpointError("the metadata are no strings", path, 8)
    return header, strings, 8 + length


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _read(data: Any, path: str, device: Any) -> dict[str, Tensor]:
    header, _, start = _header(data, path)
    view = memoryview(data)
    spans = []
    for name, entry in header.items():
        spans.append((*_span(name, entry, len(view) - start, path), name))
    last = 0
    for low, high, name in sorted(spans):
        if low != last:
            raise CheckpointError(f"a gap or overlap before {name!r}", path, start + low)
        last = high
    if start + last != len(view):
        raise CheckpointError("the file is cut off, or longer than it says", path, len(view))
    found = {}
    for low, high, name in spans:
        dtype, shape = _DTYPES[header[name]["dtype"]], tuple(header[name]["shape"])
        storage = made(view[start + low : start + high], dtype, device)
        typed = TypedStorage(wrap_storage=storage, dtype=dtype)
        found[name] = rebuild_tensor(typed, 0, shape, contiguous_strides(shape))
    return found


def _span(name: str, entry: Any, held: int, path: str) -> tuple[int, int]:
    """Where a tensor's bytes are, if what the header says of it makes sense."""
    if type(entry) is not dict or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise CheckpointError(f"damaged entry of {name!r}", path, 8)
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if type(code) is not str or code not in _DTYPES:
        raise CheckpointError(f"{name!r} has dtype {code!r}, which flambeau lacks", path, 8)
    for numbers in (shape, offsets):
        if type(numbers) is not list or any(type(n) is not int or n < 0 for n in numbers):
            raise CheckpointError(f"damaged entry of {name!r}", path, 8)
    size = _DTYPES[code].itemsize
    for n in shape:
        size *= n
    if len(offsets) != 2 or offsets[1] > held or offsets[1] - offsets[0] != size:
        raise CheckpointError(
            f"{name!r} of shape {shape} has {size} bytes, its place is {offsets} of {held}", path, 8
        )
    return offsets[0], offsets[1]


def _sniff(head: bytes) -> bool:
    return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= _MOST


def _load(data: Any, path: str, map_location: Any, weights_only: bool) -> Any:
    if isinstance(map_location, dict):
        map_location = map_location.get("cpu", "cpu")
    if callable(map_location):
        raise TypeError("safetensors: map_location must be a device, its name or a dict")
    return _read(data, path, "cpu" if map_location is None else map_location)


FORMAT = Format("safetensors", _sniff, _write, _load)
