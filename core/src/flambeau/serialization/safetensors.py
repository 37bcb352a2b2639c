"""The safetensors format: a JSON header with bounds, then the bytes of named tensors.

Written and read here, without the package of that name.  It holds a flat dict of tensors and a dict
of strings, nothing else; sharing is not kept.

The format has no checksums.  Files written here carry one among their strings, which other readers
see as a string and `load_file` compares: of names, dtypes, shapes, numbers and the other strings,
whatever their order.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._storages.typed import TypedStorage
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.strides import contiguous_strides
from flambeau.plugin import Format
from flambeau.serialization._budget import DIMENSIONS, LARGEST, shown, told
from flambeau.serialization._checksum import crc32
from flambeau.serialization._errors import CheckpointError
from flambeau.serialization._files import replacing
from flambeau.serialization._locations import made, visible
from flambeau.serialization._rebuild import rebuild_tensor
from flambeau.serialization._source import FileSource, Source

if TYPE_CHECKING:
    from flambeau._types.hints import DeviceLike


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
    D.uint16: "U16",
    D.uint32: "U32",
    D.uint64: "U64",
    D.float8_e4m3fn: "F8_E4M3",
    D.float8_e5m2: "F8_E5M2",
}
_DTYPES = {code: dtype for dtype, code in _CODES.items()}
_MOST = 100_000_000  # bytes of a header, the limit of the format
_KEY = "flambeau.checksum"
# With a word of its own, so that the value is known for ours where a flipped bit is in the key.
_VALUE = re.compile(r"flambeau-crc32:[0-9a-f]{8}")
_PART = 1 << 18  # bytes that are read and summed while the processor still has them


@takes_as_annotated
def save_file(
    tensors: Mapping[str, Tensor], filename: object, metadata: Mapping[str, str] | None = None
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
    strings = dict(metadata or {})
    if not all(isinstance(s, str) for pair in strings.items() for s in pair):
        raise TypeError("safetensors: metadata are a dict from strings to strings")
    order = []
    for name, t in tensors.items():
        if type(name) is not str or not isinstance(t, Tensor) or t.is_sparse or t.is_meta:
            raise TypeError(f"safetensors holds dense tensors by name; {name!r} is none")
        if name == "__metadata__" or t.dtype not in _CODES:
            raise ValueError(f"safetensors: {name!r} has dtype {t.dtype} or a reserved name")
        order.append((name, t))
    order.sort(key=lambda pair: (-pair[1].dtype.itemsize, pair[0]))  # so that all are aligned
    entries: dict[str, Any] = {}
    sums, at = {}, 0
    for name, t in order:
        size = t.numel() * t.dtype.itemsize
        entries[name] = {
            "dtype": _CODES[t.dtype],
            "shape": list(t.shape),
            "data_offsets": [at, at + size],
        }
        sums[name] = crc32(_host(t))
        at += size
    strings.pop(_KEY, None)
    strings[_KEY] = _checksum(entries, strings, sums)
    header = {"__metadata__": strings, **entries}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for _, t in order:
        file.write(_host(t))


def _host(t: Tensor) -> Any:
    """The numbers of a tensor in order, as something with the buffer protocol."""
    dense = t.detach().contiguous()
    return dense._be.backend.to_host(dense._a)


def _checksum(entries: Mapping[str, Any], strings: Mapping[str, str], sums: Any) -> str:
    """The checksum of a file, from those of its tensors' bytes."""
    facts = [[n, entries[n]["dtype"], entries[n]["shape"], sums[n]] for n in sorted(entries)]
    text = json.dumps([facts, sorted(strings.items())], separators=(",", ":"))
    return f"flambeau-crc32:{crc32(text.encode()):08x}"


@takes_as_annotated
def load_file(
    filename: str | os.PathLike[str], device: DeviceLike = "cpu", *, verify: bool = True
) -> dict[str, Tensor]:
    """The named tensors of a file.

    Args:
        filename: a path.
        device: where the tensors shall live.
        verify: whether to compare the checksum, if the file has one.

    Raises:
        CheckpointError: it is damaged, or has a dtype that flambeau lacks.
    """
    path = os.fsdecode(os.fspath(filename))
    with open(path, "rb", buffering=0) as file:
        return read(FileSource(file, os.fstat(file.fileno()).st_size, path), device, verify=verify)


@takes_as_annotated
def metadata(filename: str | os.PathLike[str]) -> dict[str, str]:
    """The strings that were saved with a file's tensors.

    Raises:
        CheckpointError: the header is damaged.
    """
    path = os.fsdecode(os.fspath(filename))
    with open(path, "rb", buffering=0) as file:
        strings = _header(FileSource(file, os.fstat(file.fileno()).st_size, path))[1]
    return {key: value for key, value in strings.items() if key != _KEY}


def _header(source: Source) -> tuple[dict[str, Any], dict[str, str], int]:
    path = source.path
    if source.size < 8:
        raise CheckpointError("the file is cut off", path, source.size)
    (length,) = struct.unpack("<Q", source.view(0, 8))
    if length > min(_MOST, source.size - 8):
        raise CheckpointError(f"a header of {length} bytes in {source.size}", path, 0)
    try:
        text = bytes(source.view(8, 8 + length)).decode("utf-8")
        header = json.loads(text, object_pairs_hook=_once, parse_int=_number)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"damaged header: {str(error)[:300]}", path, 8) from None
    if type(header) is not dict:
        raise CheckpointError("the header is no object", path, 8)
    strings = header.pop("__metadata__", {})
    if type(strings) is not dict or not all(type(v) is str for v in strings.values()):
        raise CheckpointError("the metadata are no strings", path, 8)
    return header, strings, 8 + length


def _number(digits: str) -> int:
    if len(digits) > 40:  # the time that `int` takes grows with the square of the digits
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def read(source: Source, map_location: object = None, *, verify: bool = True) -> dict[str, Tensor]:
    """The named tensors of a file.

    Raises:
        CheckpointError: it is damaged.
        TypeError: `map_location` is a function.
    """
    device = map_location
    if isinstance(map_location, dict):
        device = map_location.get("cpu", "cpu")
    elif callable(map_location):
        raise TypeError("safetensors: map_location must be a device, its name or a dict")
    header, strings, start = _header(source)
    spans = []
    for name, entry in header.items():
        spans.append((*_span(name, entry, source.size - start, source.path), name))
    last = 0
    for low, high, name in sorted(spans):
        if low != last:
            text = f"a gap or overlap before {shown(name)}"
            raise CheckpointError(text, source.path, start + low)
        last = high
    if start + last != source.size:
        text = "the file is cut off, or longer than it says"
        raise CheckpointError(text, source.path, source.size)
    expected = _expected(strings, source.path) if verify else None
    found: dict[str, Tensor] = {}
    sums: dict[str, int] | None = None if expected is None else {}
    where = "cpu" if device is None else device
    for low, high, name in spans:
        try:
            found[name] = _tensor(
                name, header[name], source, (start + low, start + high), where, sums
            )
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"{shown(name)}: {told(error)}", source.path, 8) from error
    if expected is not None:
        strings.pop(_KEY)
        if _checksum(header, strings, sums) != expected:
            raise CheckpointError(
                "the file does not have the checksum that it was written with: it is damaged, or "
                "was changed by a program that kept the old one (then load it with verify=False)",
                source.path,
            )
    return found


def _expected(strings: dict[str, str], path: str) -> str | None:
    """The checksum among the strings of a file, None if it was not written by flambeau."""
    value = strings.get(_KEY)
    ours = [s for s in strings.values() if _VALUE.fullmatch(s)]
    if value is None and not ours:
        return None
    if value is None or not _VALUE.fullmatch(value):
        raise CheckpointError("the checksum of the file is damaged", path, 8)
    return value


def _tensor(
    name: str,
    entry: dict[str, Any],
    source: Source,
    place: tuple[int, int],
    device: object,
    sums: dict[str, int] | None,
) -> Tensor:
    """A tensor of the file; its checksum is added to `sums`."""
    low, high = place
    dtype, shape, crc = _DTYPES[entry["dtype"]], tuple(entry["shape"]), 0
    room = visible(high - low, dtype, device)
    if room is None:
        data = source.view(low, high)
        crc = crc32(data) if sums is not None else 0
        storage = made(data, dtype, device)
    else:
        storage, memory = room
        for i in range(0, high - low, _PART):
            part = memory[i : i + _PART]
            source.into(low + i, part)
            if sums is not None:
                crc = crc32(part, crc)
    if sums is not None:
        sums[name] = crc
    typed = TypedStorage(wrap_storage=storage, dtype=dtype)
    return rebuild_tensor(typed, 0, shape, contiguous_strides(shape))


def _span(name: str, entry: object, held: int, path: str) -> tuple[int, int]:
    """Where a tensor's bytes are, if what the header says of it makes sense."""
    if type(entry) is not dict or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise CheckpointError(f"damaged entry of {shown(name)}", path, 8)
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if type(code) is not str or code not in _DTYPES:
        text = f"{shown(name)} has dtype {shown(code)}, which flambeau lacks"
        raise CheckpointError(text, path, 8)
    for numbers, most in ((shape, DIMENSIONS), (offsets, 2)):
        whole = type(numbers) is list and len(numbers) <= most
        if not whole or any(type(n) is not int or not 0 <= n < LARGEST for n in numbers):
            raise CheckpointError(f"damaged entry of {shown(name)}", path, 8)
    if math.prod(n for n in shape if n) >= LARGEST:
        raise CheckpointError(f"{shown(name)} has more elements than can be counted", path, 8)
    size = _DTYPES[code].itemsize * math.prod(shape)
    if len(offsets) != 2 or offsets[1] > held or offsets[1] - offsets[0] != size:
        raise CheckpointError(
            f"{shown(name)} of shape {shape} has {size} bytes, its place is {offsets} of {held}",
            path,
            8,
        )
    return offsets[0], offsets[1]


def _sniff(head: bytes) -> bool:
    return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= _MOST


def _load(data: object, path: str, map_location: object, weights_only: bool) -> dict[str, Tensor]:
    return read(Source(data, path), map_location)


FORMAT = Format("safetensors", _sniff, _write, _load)
