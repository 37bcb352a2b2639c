"""Hostile files by name: small ones that ask a reader for endless work, memory or recursion."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

from flambeau.serialization._archive import ArchiveWriter

P = b"\x80\x02"
# A tuple of 2 ** 60 elements, in 250 bytes, and one that is a million levels deep.
DOUBLED = b")" + b"q\0h\0\x86" * 60
DEEP = b")" + b"\x85" * 1_000_000
STORAGE = (
    b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
)
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"
ORDERED = b"ccollections\nOrderedDict\n"
NO_HOOKS = b"\x89" + ORDERED + b")RtR"


def text(value: bytes) -> bytes:
    """The instruction that makes a string."""
    return b"X" + struct.pack("<I", len(value)) + value


def whole(value: int) -> bytes:
    """The instruction that makes an integer."""
    size = value.bit_length() // 8 + 1
    return b"\x8b" + struct.pack("<i", size) + value.to_bytes(size, "little", signed=True)


def archived(body: bytes, *storages: bytes, **records: bytes) -> bytes:
    """An archive around a pickle."""
    out = bytearray()
    writer = ArchiveWriter(out.extend, "archive")
    writer.record("data.pkl", P + body + b".")
    for i, data in enumerate(storages):
        writer.record(f"data/{i}", data)
    for name, data in records.items():
        writer.record(name, data)
    writer.close()
    return bytes(out)


def streamed(body: bytes, keys: bytes = b"].", tail: bytes = b"") -> bytes:
    """A stream of PyTorch before 1.6 around a pickle."""
    magic = P + b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + P + b"M\xe9\x03."
    facts = P + b"}" + text(b"little_endian") + b"\x88s."
    return magic + facts + P + body + b"." + P + keys + tail


def tensor(size: bytes, stride: bytes, offset: bytes = b"K\x00", storage: bytes = STORAGE) -> bytes:
    """A pickle of a tensor over four floats."""
    return REBUILD + b"(" + storage + offset + size + stride + NO_HOOKS


def sparse(size: bytes, stride: bytes, shape: bytes, offset: bytes = b"K\x00") -> bytes:
    """A pickle of a sparse tensor, whose positions are four numbers or more."""
    place = STORAGE.replace(b"Float", b"Long")
    if offset != b"K\x00":
        place = place.replace(b"K\x04", whole(1 << 14))
    count = size[2:-1] if size[:1] == b"K" else size
    indices = tensor(size, stride, offset, place)
    values = tensor(count + b"\x85", b"K\x00\x85", storage=STORAGE.replace(text(b"0"), text(b"1")))
    layout = b"ctorch.serialization\n_get_layout\n" + text(b"torch.sparse_coo") + b"\x85R"
    call = b"ctorch._utils\n_rebuild_sparse_tensor\n" + layout
    return call + b"(" + indices + values + shape + b"\x89t\x86R"


def overlapping(count: int) -> bytes:
    """Sparse tensors whose positions are one memory, read from a new place each time."""
    shape = b"(" + b"K\x02" * 32 + b"t"
    size, stride = b"K\x20M\x00\x20\x86", b"K\x01K\x01\x86"
    parts = [sparse(size, stride, shape, b"M" + struct.pack("<H", 1 + i)) for i in range(count)]
    return b"".join(parts)


def safetensors(header: object, data: bytes = b"") -> bytes:
    """A file of that format; `header` is JSON, or something to encode as that."""
    body = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(body)) + body + data


def entry(shape: object, size: int = 0, dtype: str = "U8") -> dict[str, object]:
    """What a header says of a tensor."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}


def many(first: bytes, call: bytes, count: int) -> bytes:
    """A list of `count` results of `call`, which may read what `first` has remembered as 0."""
    return first + b"q\x000](" + call * count + b"e"


def equal_hashes(count: int, *, of: str = "int") -> bytes:
    """A dict of keys that have one hash: Python takes quadratic time for it."""
    prime = (1 << 61) - 1
    if of == "complex":
        key = b"cbuiltins\ncomplex\nq\x000"
        parts = [
            b"h\x00G" + struct.pack(">d", -1000003.0 * i) + b"G" + struct.pack(">d", i) + b"\x86R"
            for i in range(count)
        ]
        return key + b"}(" + b"".join(p + b"N" for p in parts) + b"u"
    return b"}(" + b"".join(whole(prime * (i + 1)) + b"N" for i in range(count)) + b"u"


def equal_strings(count: int) -> bytes:
    """Two equal strings of a megabyte, which a dict compares again and again."""
    long = text(b"x" * 1_000_000)
    return long + b"q\x000" + long + b"q\x010}h\x00Ns" + b"h\x01Ns" * count


def wide_headers(count: int) -> bytes:
    """An archive whose many records share one header with 64 KiB of extra fields."""
    name, extra = b"a/data.pkl", b"FB\xfb\xff" + bytes(0xFFFB)
    local = b"PK\3\4" + struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 0, 0, 1, 1, len(name), len(extra))
    out = bytearray(local + name + extra + b".")
    start = len(out)
    for i in range(count):
        this = name if not i else b"a/%08d" % i
        sizes = (20, 20, 0, 0, 0, 0, 0, 1, 1, len(this), 0, 0, 0, 0, 0, 0)
        out += b"PK\1\2" + struct.pack("<HHHHHHIIIHHHHHII", *sizes) + this
    length = len(out) - start
    out += b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, count, count, length, start, 0)
    return bytes(out)


SIZE_4 = b"K\x04\x85"
STEP_1 = b"K\x01\x85"

# What takes a value where it must be hashed, compared or printed; %s is the value.
PLACES = {
    "FROZENSET": b"(%s\x91",
    "ADDITEMS": b"\x8f(%s\x90",
    "SETITEM": b"}%sNs",
    "SETITEMS": b"}(%sNu",
    "DICT": b"(%sNd",
    "set": b"cbuiltins\nset\n(%slt\x85R".replace(b"lt\x85", b"l\x85"),
    "OrderedDict pairs": ORDERED + b"(%sN\x86l\x85R",
    "OrderedDict": ORDERED + b"%sR",
    "Counter": b"ccollections\nCounter\n}%sNs\x85R",
    "Size": b"ctorch\nSize\n%s\x85R",
    "size": tensor(b"%s", STEP_1),
    "stride": tensor(SIZE_4, b"%s"),
    "offset": tensor(SIZE_4, STEP_1, b"%s"),
    "persistent id": b"%sQ",
    "first of a persistent id": STORAGE.replace(text(b"storage"), b"%s"),
    "storage kind": STORAGE.replace(b"ctorch\nFloatStorage\n", b"%s"),
    "storage key": STORAGE.replace(text(b"0"), b"%s"),
    "storage place": STORAGE.replace(text(b"cpu"), b"%s"),
    "storage length": STORAGE.replace(b"K\x04", b"%s"),
    "REDUCE": b"%s)R",
    "arguments": b"ccollections\nCounter\n%sR",
    "NEWOBJ": b"%s)\x81",
    "layout": b"ctorch.serialization\n_get_layout\n%s\x85R",
    "encoding": b"c_codecs\nencode\n" + text(b"a") + b"%s\x86R",
    "encoded": b"c_codecs\nencode\n%s" + text(b"latin1") + b"\x86R",
    "bytearray": b"cbuiltins\nbytearray\n%s\x85R",
    "complex": b"cbuiltins\ncomplex\n%s\x85R",
    "device": b"ctorch\ndevice\n%s\x85R",
    "global": text(b"torch") + b"%s\x93",
    "module": b"%s" + text(b"Size") + b"\x93",
    "BUILD": b")%sb",
    "state": ORDERED + b")R}%sNsb",
    "dtype": b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(%s))\x89tR",
    "meta size": b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\n%s)\x89tR",
    "sparse layout": b"ctorch._utils\n_rebuild_sparse_tensor\n%s)\x86R",
    "sparse data": b"ctorch._utils\n_rebuild_sparse_tensor\nctorch.serialization\n_get_layout\n"
    + text(b"torch.sparse_coo")
    + b"\x85R(%s%s%st\x86R",
    "maker": b"ctorch._tensor\n_rebuild_from_type_v2\n(%sctorch\nTensor\n)}tR",
    "class of a tensor": b"ctorch._tensor\n_rebuild_from_type_v2\n("
    + REBUILD
    + b"%s("
    + STORAGE
    + b"K\x00"
    + SIZE_4
    + STEP_1
    + b"\x89Nt}tR",
    "attribute": b"ctorch._utils\n_rebuild_parameter_with_state\n("
    + tensor(SIZE_4, STEP_1)
    + b"\x89N}%sNstR",
}
STREAM_PLACES = {
    "stream persistent id": b"%sQ",
    "stream view": STORAGE[:-2] + b"(%sK\x00K\x01ttQ",
    "stream view key": STORAGE[:-2] + b"(%sK\x00K\x01ttQ",
    "stream module": b"(" + text(b"module") + b"%s%s%stQ",
}


def _in(place: bytes, value: bytes) -> bytes:
    return place.replace(b"%s", value)


LONG = text(b"x" * 2_000_000)
VALUES = {"doubled": DOUBLED, "deep": DEEP, "long": LONG}

FILES: dict[str, Callable[[], bytes]] = {
    **{
        f"{kind} tuple, {name}" if kind != "long" else f"long text, {name}": (
            lambda place=place, value=value: archived(_in(place, value), bytes(16))
        )
        for name, place in PLACES.items()
        for kind, value in VALUES.items()
    },
    **{
        f"{kind}, {name}": lambda place=place, value=value: streamed(_in(place, value))
        for name, place in STREAM_PLACES.items()
        for kind, value in VALUES.items()
    },
    "magic that is a tensor": lambda: (
        P
        + b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
        + P
        + b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\nK\x02\x85)\x89tR."
        + P
        + b"}."
    ),
    "counters": lambda: archived(
        b"ccollections\nCounter\nq\x010"
        + many(
            b"}(" + b"".join(b"M" + struct.pack("<H", i) + b"K\x01" for i in range(10_000)) + b"u",
            b"h\x01h\x00\x85R",
            20_000,
        )
    ),
    "ordered dicts": lambda: archived(
        ORDERED
        + b"q\x010"
        + many(
            b"(" + b"".join(b"M" + struct.pack("<H", i) + b"N\x86" for i in range(10_000)) + b"l",
            b"h\x01h\x00\x85R",
            20_000,
        )
    ),
    "states of ordered dicts": lambda: archived(
        ORDERED
        + b"q\x010"
        + many(
            b"}(" + b"".join(text(b"%d" % i) + b"N" for i in range(10_000)) + b"u",
            b"h\x01)Rh\x00b",
            20_000,
        )
    ),
    "sizes": lambda: archived(
        b"ctorch\nSize\nq\x010" + many(b"(" + b"K\x01" * 10_000 + b"t", b"h\x01h\x00\x85R", 20_000)
    ),
    "sets": lambda: archived(
        b"cbuiltins\nset\nq\x010"
        + many(
            b"(" + b"".join(b"M" + struct.pack("<H", i) for i in range(10_000)) + b"l",
            b"h\x01h\x00\x85R",
            20_000,
        )
    ),
    "encoded bytes": lambda: archived(
        b"c_codecs\nencode\nq\x010" + many(text(b"x" * 100_000), b"h\x01h\x00\x85R", 20_000)
    ),
    "byte arrays": lambda: archived(
        b"cbuiltins\nbytearray\nq\x010"
        + many(b"B" + struct.pack("<I", 100_000) + bytes(100_000), b"h\x01h\x00\x85R", 20_000)
    ),
    "complex numbers from text": lambda: archived(
        b"cbuiltins\ncomplex\nq\x010" + many(text(b"1" * 1_000_000), b"h\x01h\x00\x85R", 20_000)
    ),
    "equal hashes": lambda: archived(equal_hashes(30_000)),
    "equal hashes of complex numbers": lambda: archived(equal_hashes(30_000, of="complex")),
    "equal strings": lambda: archived(equal_strings(200_000)),
    "headers that overlap": lambda: wide_headers(60_000),
    "positions without strides": lambda: archived(
        sparse(b"K\x01" + whole(1 << 36) + b"\x86", b"K\x00K\x00\x86", b"K\x02\x85"),
        bytes(32),
        bytes(16),
    ),
    "positions that overlap": lambda: archived(
        b"(" + overlapping(5_000) + b"l", bytes(8 << 14), bytes(16)
    ),
    "uncountable elements": lambda: archived(
        tensor(whole(1 << 40) * 2 + b"\x86", b"K\x00K\x00\x86"), bytes(16)
    ),
    "uncountable elements on meta": lambda: archived(
        b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\n"
        + whole(1 << 40) * 2
        + b"\x86)\x89tR"
    ),
    "a hundred dimensions": lambda: archived(
        tensor(b"(" + b"K\x01" * 100 + b"t", b"(" + b"K\x01" * 100 + b"t"), bytes(16)
    ),
    "a storage on ref": lambda: archived(
        tensor(
            whole(1 << 20) + b"\x85",
            STEP_1,
            storage=STORAGE.replace(text(b"cpu"), text(b"ref")).replace(b"K\x04", whole(1 << 20)),
        ),
        bytes(4 << 20),
    ),
    "nested lists": lambda: archived(b"(" * 300_000 + b"l" * 300_000),
    "nested dicts": lambda: archived(b"K\x00" + (b"q\x000}K\x00h\x00s") * 100_000),
    "nested frozensets": lambda: archived(b"(" * 100_000 + b"\x91" * 100_000),
    "nested ordered dicts": lambda: archived(
        ORDERED + b"q\x010N" + (b"q\x000h\x01)R}" + text(b"a") + b"h\x00sb") * 30_000
    ),
    "nested parameters": lambda: archived(
        b"ctorch._utils\n_rebuild_parameter_with_state\nq\x010"
        + tensor(SIZE_4, STEP_1)
        + b"q\x020N"
        + (b"q\x000h\x01(h\x02\x89N}" + text(b"a") + b"h\x00stR") * 5_000,
        bytes(16),
    ),
    "safetensors, empty and huge": lambda: safetensors({"a": entry([0, 10**26])}),
    "safetensors, 70 dimensions": lambda: safetensors({"a": entry([1] * 70, 1)}, b"x"),
    "safetensors, uncountable": lambda: safetensors({"a": entry([0, 1 << 40, 1 << 40])}),
    "safetensors, long name": lambda: safetensors({"x" * 2_000_000: entry([1], 2)}, b"x"),
    "safetensors, long shape": lambda: safetensors({"a": entry([1] * 500_000, 1)}, b"x"),
    "safetensors, nested": lambda: safetensors(b'{"a":' + b"[" * 500_000),
    "safetensors, long number": lambda: safetensors(b'{"a":' + b"9" * 500_000 + b"}"),
    "safetensors, no text": lambda: safetensors(b"{" + b"\xff" * 1000),
}
