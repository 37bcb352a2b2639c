"""Files of ours, changed by structure: instructions of pickles, records of archives, headers."""

from __future__ import annotations

import io
import json
import pickletools
import random
import struct
import warnings
from collections import Counter, OrderedDict
from functools import cache
from typing import Any

import flambeau as fb
from files_hostile import DOUBLED, PLACES, archived, streamed, text, whole
from files_programs import model, program
from flambeau import nn
from flambeau.serialization._archive import ArchiveReader, ArchiveWriter

NUMBERS = [0, 1, 2, 3, 5, 63, 255, 256, 2**16, 2**31 - 1, 2**31, 2**62, 2**63, 2**64, 2**70]
NAMES = (
    """
torch._utils _rebuild_tensor_v2|torch._utils _rebuild_tensor_v3|torch._utils _rebuild_parameter
torch._utils _rebuild_parameter_with_state|torch._utils _rebuild_meta_tensor_no_storage
torch._utils _rebuild_sparse_tensor|torch._tensor _rebuild_from_type_v2|torch device|torch Size
torch.serialization _get_layout|collections OrderedDict|collections Counter|_codecs encode
builtins set|builtins bytearray|builtins complex|builtins bytes|torch Tensor|torch float32
torch int64|torch FloatStorage|torch LongStorage|torch.storage UntypedStorage|torch quint8
torch.nn.parameter Parameter|torch.nn.parameter Buffer|os system|builtins eval|numpy ndarray
""".strip()
    .replace("\n", "|")
    .split("|")
)
# Without arguments: of stack, memo, containers and calls.
BARE = b"(012N\x88\x89)]}\x8ftdl\x85\x86\x87aesu\x90\x91\x94Rb\x81Q.\x93"


@cache
def contents() -> list[Any]:
    """What the files hold before they are changed."""
    fb.manual_seed(0)
    x = fb.arange(12.0).reshape(3, 4)
    state = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).state_dict()
    plain = [1, -(2**70), 2.5, 1 + 2j, "ä", b"\xff", None, True, {(1, (2, 3)): {4, 5}}, (), []]
    return [
        {"x": x, "rows": x[1:], "turned": x.t(), "one": x.expand(2, 3, 4)},
        state,
        [nn.Parameter(fb.ones(2)), nn.Buffer(fb.zeros(3)), fb.ones(2, device="meta")],
        {"sparse": fb.eye(3).to_sparse(), "storage": x.storage(), "bytes": fb.UntypedStorage(5)},
        plain,
        OrderedDict(a=Counter("aab"), b=fb.Size([2, 3]), c=bytearray(b"abc"), d=fb.device("cpu")),
        {"half": fb.ones(5, dtype=fb.bfloat16), "complex": fb.ones(2, dtype=fb.complex64)},
        {"optimizer": {"state": {0: {"step": fb.tensor(1.0)}}, "groups": [{"lr": 1e-3}]}},
    ]


@cache
def saved(which: int, protocol: int, archive: bool) -> bytes:
    """A file before it is changed."""
    file = io.BytesIO()
    options = {"pickle_protocol": protocol, "_use_new_zipfile_serialization": archive}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fb.save(contents()[which], file, **options)
    return file.getvalue()


@cache
def named() -> bytes:
    """A file in the format safetensors."""
    file = io.BytesIO()
    fb.save(
        {"a": fb.ones(2, 3), "b": fb.zeros(0, 2), "c": fb.arange(4)}, file, format="safetensors"
    )
    return file.getvalue()


def instructions(data: bytes) -> list[bytes]:
    """A pickle, cut into its instructions."""
    places = [at for _, _, at in pickletools.genops(data)]
    assert all(at is not None for at in places)
    return [data[a:b] for a, b in zip(places, [*places[1:], None], strict=True)]


@cache
def pool() -> list[bytes]:
    """Instructions of all files, and such as no file of ours has."""
    found = {bytes([op]) for op in BARE}
    for which in range(len(contents())):
        for protocol in (2, 4):
            reader = ArchiveReader(saved(which, protocol, True))
            found.update(instructions(bytes(reader.read("data.pkl"))))
    found.update(b"c" + "\n".join(name.split()).encode() + b"\n" for name in NAMES)
    found.update(whole(sign * n) for n in NUMBERS for sign in (1, -1))
    found.update([DOUBLED, text(b"x" * 1000), b"G" + struct.pack(">d", float("nan"))])
    return sorted(found)


def changed_pickle(chance: random.Random, data: bytes) -> bytes:
    """A pickle with a few instructions changed."""
    parts = instructions(data)
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        at = chance.randrange(len(parts))
        kind = chance.randrange(9)
        if kind == 0:
            other = chance.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        elif kind == 1 and len(parts) > 1:
            del parts[at : at + chance.choice((1, 1, 2, 5))]
        elif kind == 2:
            few = parts[at : at + chance.choice((1, 2, 5, 20))]
            parts[at:at] = few * chance.choice((1, 2, 10, 1000))
        elif kind in (3, 4):
            parts[at:at] = [chance.choice(pool())]
        elif kind == 5:
            parts[at] = chance.choice(pool())
        elif kind == 6:  # another place of the memo
            index = chance.randrange(40)
            parts[at] = chance.choice((b"h", b"q")) + bytes([index])
        elif kind == 7 and len(parts[at]) > 1:  # another size or number
            part = bytearray(parts[at])
            part[chance.randrange(1, len(part))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
            parts[at] = bytes(part)
        else:  # a value where another one is used
            place, value = chance.choice(list(PLACES.values())), chance.choice(pool())
            parts[at:at] = [place.replace(b"%s", value)]
        parts = parts or [b"."]
    return b"".join(parts)


def archive(chance: random.Random) -> bytes:
    """An archive whose pickle is changed and whose checksums fit."""
    reader = ArchiveReader(saved(chance.randrange(len(contents())), chance.choice((2, 4)), True))
    records = {name: bytes(reader.read(name)) for name in reader.records}
    records["data.pkl"] = changed_pickle(chance, records["data.pkl"])
    if not chance.randrange(4):
        name = chance.choice(list(records))
        kind = chance.randrange(4)
        if kind == 0:
            del records[name]
        elif kind == 1:
            records[name] = records[name][: chance.randrange(len(records[name]) + 1)]
        elif kind == 2:
            records[name] *= chance.choice((2, 3, 100))
        else:
            records["byteorder"] = chance.choice((b"big", b"middle", b""))
    out = bytearray()
    writer = ArchiveWriter(out.extend, "archive")
    for name, data in records.items():
        writer.record(name, data)
    writer.close()
    return bytes(out)


def directory(chance: random.Random) -> bytes:
    """An archive whose headers are changed: sizes, places, ZIP64 fields, twice the same record."""
    data = bytearray(saved(chance.randrange(len(contents())), 2, True))
    places = {
        sign: [i for i in range(len(data)) if data[i : i + 4] == sign]
        for sign in (b"PK\3\4", b"PK\1\2", b"PK\5\6")
    }
    for _ in range(chance.choice((1, 1, 2, 4))):
        sign = chance.choice(list(places))
        at = chance.choice(places[sign])
        kind = chance.randrange(6)
        length = {b"PK\3\4": 30, b"PK\1\2": 46, b"PK\5\6": 22}[sign]
        if kind == 0:
            data[at + chance.randrange(4, length)] = chance.choice((0, 1, 0x7F, 0xFE, 0xFF))
        elif kind == 1:
            field = at + chance.randrange(4, length - 3)
            data[field : field + 4] = b"\xff\xff\xff\xff"
        elif kind == 2 and sign == b"PK\1\2":
            size = struct.unpack_from("<H", data, at + 28)[0] + 46
            again = bytes(data[at : at + size])
            end = places[b"PK\5\6"][0]
            count, total = struct.unpack_from("<HHI", data, end + 8)[1:]
            more, longer = (count + 1) % 2**16, (total + size) % 2**32
            struct.pack_into("<HHI", data, end + 8, more, more, longer)
            data[at:at] = again
            return bytes(data)
        elif kind == 3 and sign == b"PK\1\2":
            other = chance.choice(places[b"PK\3\4"])
            struct.pack_into("<I", data, at + 42, other)
        elif kind == 4:
            extra = struct.pack("<HHQQQ", 1, 24, *(chance.choice(NUMBERS[:13]) for _ in range(3)))
            data[at + length : at + length] = extra
            return bytes(data)
        else:
            del data[at : at + chance.choice((1, 4, length))]
            return bytes(data)
    return bytes(data)


def stream(chance: random.Random) -> bytes:
    """A stream of PyTorch before 1.6 with a changed pickle, or changed anywhere."""
    data = saved(chance.randrange(len(contents())), 2, False)
    if chance.randrange(4):
        return bent(chance, data)
    body = ArchiveReader(saved(chance.randrange(len(contents())), 2, True)).read("data.pkl")
    keys = b"](" + b"".join(text(b"%d" % i) for i in range(chance.randrange(4))) + b"e."
    tail = bytes(chance.choice((0, 8, 40, 400)))
    return streamed(changed_pickle(chance, bytes(body))[2:-1], keys, tail)


def header(chance: random.Random) -> bytes:
    """A file in the format safetensors with a changed header."""
    data = named()
    (length,) = struct.unpack_from("<Q", data)
    found, rest = json.loads(data[8 : 8 + length]), data[8 + length :]
    for _ in range(chance.choice((1, 1, 2))):
        name = chance.choice(list(found))
        odd = chance.choice(
            [None, -1, 1.5, "x", [], {}, [[]], *NUMBERS, [0, 10**26], [1] * 70, [1, 2]]
        )
        kind = chance.randrange(5)
        if kind == 0 and isinstance(found[name], dict):
            found[name][chance.choice(list(found[name]) or ["shape"])] = odd
        elif kind == 1:
            found[name] = odd
        elif kind == 2:
            found[chance.choice(("", "a\x00", "x" * 5000, "__metadata__"))] = found.pop(name)
        elif kind == 3:
            rest = rest[: chance.randrange(len(rest) + 1)] + bytes(chance.choice((0, 1, 8)))
        else:
            found[f"{name}2"] = found[name]
        if not found:
            break
    body = json.dumps(found).encode()
    if not chance.randrange(5):
        body = bent(chance, body)
    size = len(body) if chance.randrange(8) else chance.choice(NUMBERS[:13])
    return struct.pack("<Q", size) + body + rest


def bent(chance: random.Random, data: bytes) -> bytes:
    """Bytes that are cut, flipped, doubled or put elsewhere."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(out) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            del out[at:]
        elif kind == 1 and at < len(out):
            out[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            del out[at : at + chance.choice((1, 2, 8, 64))]
        elif kind == 3:
            out[at:at] = out[at : at + chance.choice((1, 8, 64))] * chance.choice((1, 2, 50))
        else:
            out[at:at] = chance.choice(pool())
    return bytes(out)


def anything(chance: random.Random) -> bytes:
    """One of the hostile places with a value of the pool, by itself."""
    place, value = chance.choice(list(PLACES.values())), chance.choice(pool())
    body = place.replace(b"%s", value)
    return archived(body, bytes(16)) if chance.randrange(4) else streamed(body)


KINDS = (archive, archive, archive, directory, stream, header, anything, program, model)


def mutated(seed: int) -> tuple[str, bytes]:
    """The kind of a change, and a changed file; the same for the same seed."""
    chance = random.Random(seed)
    make = KINDS[seed % len(KINDS)]
    data = make(chance)
    if not chance.randrange(10):
        return f"{make.__name__}, bent", bent(chance, data)
    return make.__name__, data
