"""Files that hold programs, changed by structure: archives of scripts, and models of ONNX."""

from __future__ import annotations

import io
import random
from functools import cache
from typing import Any

import flambeau as fb
import sources
from flambeau import nn
from flambeau.serialization._archive import ArchiveReader, ArchiveWriter

Fields = list[tuple[int, int, "int | bytes | Fields"]]
"""A message of Protocol Buffers: numbers of fields, how each is written, and what it holds."""

NUMBERS = (0, 1, 2, 7, 127, 128, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1)


class _Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
        self.register_buffer("mean", fb.ones(2))
        self.names = ["a", "b"]

    def forward(self, x: fb.Tensor, n: int = 2) -> fb.Tensor:
        y = self.inner(x) - self.mean
        for _ in range(n):
            y = y * 2 if bool(y.sum() > 0) else y + len(self.names)
        return y


@cache
def archives() -> list[bytes]:
    """Archives of programs before they are changed."""
    unit = fb.jit.CompilationUnit(sources.FUNCTIONS[2])
    layers = (nn.Conv2d(1, 2, 2), nn.BatchNorm1d(3), nn.Sequential(nn.Linear(3, 2), nn.Tanh()))
    made = [fb.jit.script(_Branches()), *map(fb.jit.script, layers), unit.f]
    made.append(fb.jit.trace(nn.Linear(3, 2), (fb.ones(2, 3),)))
    found = []
    for each in made:
        file = io.BytesIO()
        fb.jit.save(each, file)
        found.append(file.getvalue())
    return found


@cache
def models() -> list[bytes]:
    """Models of ONNX before they are changed."""
    cases = [
        (nn.Sequential(nn.Linear(3, 2), nn.ReLU()), (fb.ones(2, 3),)),
        (nn.Conv2d(3, 2, 2), (fb.ones(1, 3, 4, 4),)),
        (nn.LSTM(3, 2), (fb.ones(4, 1, 3),)),
        (fb.jit.script(_Branches()), (fb.ones(2, 3), 2)),
    ]
    found = []
    for module, given in cases:
        file = io.BytesIO()
        fb.onnx.export(module, given, file)
        found.append(file.getvalue())
    return found


def program(chance: random.Random) -> bytes:
    """An archive of a program whose code, values or records are changed; its checksums fit."""
    from files_mutations import bent, changed_pickle

    reader = ArchiveReader(chance.choice(archives()))
    records = {name: bytes(reader.read(name)) for name in reader.records}
    for name in chance.sample(list(records), chance.choice((1, 1, 2))):
        if name.endswith(".py") or chance.random() < 0.4:
            code = chance.choice([n for n in records if n.endswith(".py")] or [name])
            records[code] = _changed_code(chance, records[code])
        elif name.endswith(".pkl"):
            records[name] = changed_pickle(chance, records[name])
        elif chance.random() < 0.5:
            records[name] = bent(chance, records[name])
        else:
            other = chance.choice([n for n in records if not n.endswith(".pkl")])
            records[name], records[other] = records[other], records[name]
    out = bytearray()
    writer = ArchiveWriter(out.extend, "archive")
    for name, data in records.items():
        writer.record(name, data)
    writer.close()
    return bytes(out)


def _changed_code(chance: random.Random, code: bytes) -> bytes:
    text = code.decode(errors="replace")
    kind = chance.randrange(5)
    try:
        if kind < 2:
            return sources.changed(chance, text).encode(errors="replace")
    except (SyntaxError, RecursionError):  # no program, or deeper than Python parses from here
        pass
    lines = text.splitlines()
    if kind == 2 or not lines:
        return (text + "\n" + sources.deep(chance)).encode()
    at = chance.randrange(len(lines))
    if kind == 3:
        pad = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        lines[at] = pad + chance.choice(sources.STATEMENTS)
    else:
        lines[at], other = chance.choice(lines), lines[at]
        lines.insert(chance.randrange(len(lines)), other)
    return "\n".join(lines).encode(errors="replace")


def model(chance: random.Random) -> bytes:
    """A model of ONNX with a few fields changed."""
    fields = parsed(chance.choice(models()))
    assert fields is not None
    for _ in range(chance.choice((1, 1, 2, 4))):
        _change(chance, fields)
    return written(fields)


def _messages(fields: Fields) -> list[Fields]:
    found = [fields]
    for each in found:  # which grows: a message may be deeper than calls can be
        found += [value for _, _, value in each if isinstance(value, list)]
    return found


def _change(chance: random.Random, fields: Fields) -> None:
    messages = [m for m in _messages(fields) if m]
    within = chance.choice(messages)
    at = chance.randrange(len(within))
    number, wire, value = within[at]
    kind = chance.randrange(7)
    if kind == 0:
        del within[at]
    elif kind == 1:
        within[at:at] = [within[at]] * chance.choice((1, 2, 50))
    elif kind == 2:
        within[at] = chance.choice((number, 1, 2, 5, 7, 20)), wire, value
    elif kind == 3:
        inside = chance.choice(messages)
        within[at] = number, 2, parsed(written(inside)) or []
    elif isinstance(value, int):
        within[at] = number, wire, chance.choice(NUMBERS) % (1 << {5: 32}.get(wire, 64))
    elif isinstance(value, bytes):
        text = (b"", b"Loop", b"If", b"Constant", b"x" * 5000, b"\xff", b"../../etc/passwd", b"0")
        within[at] = number, 2, chance.choice((*text, value[: len(value) // 2], value * 3))
    elif kind == 4:  # a message within a message, again and again
        deep = value
        for _ in range(chance.choice((10, 90, 400))):
            deep = [*value[:2], (number, 2, deep)]
        within[at] = number, 2, deep
    else:
        chance.shuffle(value)


def parsed(data: bytes, depth: int = 12) -> Fields | None:
    """The fields of a message; None if it is none."""
    found: Fields = []
    at = 0
    try:
        while at < len(data):
            key, at = _varint(data, at)
            number, wire = key >> 3, key & 7
            if not number or wire in (3, 4, 6, 7):
                return None
            value: int | bytes | Fields
            if wire == 0:
                value, at = _varint(data, at)
            elif wire == 2:
                size, at = _varint(data, at)
                value, at = data[at : at + size], at + size
                if depth and value and (inner := parsed(value, depth - 1)) is not None:
                    value = inner
            else:
                size = 8 if wire == 1 else 4
                value, at = int.from_bytes(data[at : at + size], "little"), at + size
            if at > len(data):
                return None
            found.append((number, wire, value))
    except IndexError:
        return None
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128 or shift > 63:
            return value, at


def written(fields: Fields) -> bytes:
    """A message as bytes."""
    pieces: list[bytes] = []  # from the end to the start, so that lengths are known
    size = 0
    left: list[Any] = list(fields)
    while left:
        piece = left.pop()
        if isinstance(piece, int):  # where a message ends: all since then is within it
            piece = _as_varint(size - piece)
        elif isinstance(piece, tuple):
            number, wire, value = piece
            left.append(_as_varint(number << 3 | wire))
            if isinstance(value, list):
                left += [size, *value]
                continue
            if isinstance(value, int):
                width = {1: 8, 5: 4}.get(wire)
                piece = value.to_bytes(width, "little") if width else _as_varint(value)
            else:
                left.append(_as_varint(len(value)))
                piece = value
        pieces.append(piece)
        size += len(piece)
    return b"".join(reversed(pieces))


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
