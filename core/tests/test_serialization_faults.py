"""Damaged, hostile and half-written checkpoints."""

from __future__ import annotations

import errno
import io
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import zipfile
import zlib

import pytest

import flambeau as fb
from flambeau.serialization import CheckpointError, _files, safetensors
from flambeau.serialization._archive import ArchiveReader, ArchiveWriter

pytest.importorskip("flambeau_numpy", reason="needs the CPU backend")

pytestmark = pytest.mark.filterwarnings(
    "ignore:the format of PyTorch before 1.6 carries no checksums:UserWarning",
    "ignore:load.weights_only=False. runs the code:UserWarning",
)


def written(archive=True, format=None):
    x = fb.arange(300.0)
    data = {"x": x, "v": x[7:], "n": [1, "two"], "h": fb.ones(5, dtype=fb.bfloat16)}
    if format:
        data = {"x": x, "h": data["h"]}
    file = io.BytesIO()
    fb.save(data, file, _use_new_zipfile_serialization=archive, format=format)
    return file.getvalue()


def archived(pkl, **records):
    out = bytearray()
    writer = ArchiveWriter(out.extend, "archive")
    writer.record("data.pkl", pkl)
    for name, data in records.items():
        writer.record(f"data/{name[1:]}", data)
    writer.close()
    return bytes(out)


KINDS = {
    "archive": lambda: written(),
    "stream": lambda: written(archive=False),
    "safetensors": lambda: written(format="safetensors"),
}


def cuts(size, count):
    return sorted({size * i // count for i in range(count)})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_file_that_is_cut_off_is_detected_wherever(kind, count):
    whole = KINDS[kind]()
    for cut in cuts(len(whole), count):
        with pytest.raises(CheckpointError):
            fb.load(io.BytesIO(whole[:cut]))


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_bit_that_flips_in_any_record_is_detected(count):
    whole = written()
    records = ArchiveReader(whole).records.values()
    places = [i for r in records for i in range(r.start, r.start + r.size)]
    chance = random.Random(0)
    for _ in range(count):
        damaged = bytearray(whole)
        damaged[chance.choice(places)] ^= 1 << chance.randrange(8)
        with pytest.raises(CheckpointError):
            fb.load(io.BytesIO(damaged))


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_bit_that_flips_anywhere_in_safetensors_of_ours_is_detected(count):
    file = io.BytesIO()
    named = {"x": fb.arange(300.0), "h": fb.ones(5, dtype=fb.bfloat16), "none": fb.empty(0, 3)}
    safetensors._write(named, file, {"by": "me"})
    whole = file.getvalue()
    chance = random.Random(3)
    for _ in range(count):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        with pytest.raises(CheckpointError):
            fb.load(io.BytesIO(damaged))


def test_the_checksum_of_safetensors_can_be_left_out_and_survives_another_order(tmp_path):
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"a": fb.ones(2), "b": fb.zeros(3)}, path, {"by": "me"})
    whole = path.read_bytes()
    (length,) = struct.unpack_from("<Q", whole)
    header, data = json.loads(whole[8 : 8 + length]), whole[8 + length :]
    turned = {key: header[key] for key in reversed(header)}
    turned["a"]["data_offsets"], turned["b"]["data_offsets"] = [12, 20], [0, 12]
    text = json.dumps(turned).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8:] + data[:8])
    assert safetensors.load_file(path)["a"].tolist() == [1, 1]
    path.write_bytes(whole[:-1] + b"!")
    with pytest.raises(CheckpointError, match="verify=False"):
        fb.load(path)
    assert fb.load(path, verify=False)["a"].tolist() == [1, 1]
    assert safetensors.load_file(path, verify=False)["a"].tolist() == [1, 1]


@pytest.mark.parametrize("cut", [0, 5000, 1 << 20, 9 << 20])
def test_a_file_that_is_cut_while_it_is_read_is_an_error(tmp_path, cut, monkeypatch):
    """A map of it would kill the process."""
    path = tmp_path / "x.pt"
    fb.save([fb.zeros(1 << 20), fb.ones(3 << 19)], path)
    begun = ArchiveReader._read

    def cutting(self):
        begun(self)
        os.truncate(path, cut)

    monkeypatch.setattr(ArchiveReader, "_read", cutting)
    with pytest.raises(CheckpointError, match="became shorter") as info:
        fb.load(path)
    assert info.value.path == str(path)


def test_a_file_that_is_cut_while_it_is_mapped_is_an_error_as_long_as_it_is_loaded(
    tmp_path, monkeypatch
):
    path = tmp_path / "x.pt"
    fb.save([fb.zeros(1 << 20)], path)
    begun = ArchiveReader._read

    def cutting(self):
        begun(self)
        os.truncate(path, 8192)

    monkeypatch.setattr(ArchiveReader, "_read", cutting)
    with pytest.raises(CheckpointError, match="became shorter"):
        fb.load(path, mmap=True, verify=True)


def test_storages_of_strangers_that_lie_anyhow_are_mapped_as_copies(tmp_path):
    body = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n" + STORAGE
    body += b"K\x00K\x04\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR."
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("odder/data.pkl", body)
        archive.writestr("odder/x", b"12")
        archive.writestr("odder/data/0", struct.pack("<4f", 1, 2, 3, 4))
    whole = file.getvalue()
    assert whole.index(struct.pack("<4f", 1, 2, 3, 4)) % 4
    path = tmp_path / "x.pt"
    path.write_bytes(whole)
    found = fb.load(path, mmap=True)
    assert found.tolist() == [1, 2, 3, 4]
    assert found.data_ptr() % 4 == 0


def test_the_file_does_not_choose_the_device_where_numbers_are_objects():
    file = io.BytesIO()
    fb.save(fb.ones(3, device="ref"), file)
    for options, where in (
        ({}, "cpu"),
        ({"map_location": {"cuda": "cpu"}}, "cpu"),
        ({"map_location": {"ref": "ref"}}, "ref"),
        ({"map_location": "ref"}, "ref"),
        ({"map_location": lambda storage, tag: None}, "cpu"),
    ):
        file.seek(0)
        assert fb.load(file, **options).device.type == where
    fb.set_default_device("ref")
    try:
        file.seek(0)
        assert fb.load(file).device.type == "ref"
    finally:
        fb.set_default_device(None)


@pytest.mark.filterwarnings("default")
def test_what_cannot_be_checked_or_trusted_is_said():
    file = io.BytesIO()
    with pytest.warns(UserWarning, match="carries no checksums"):
        fb.save([1], file, _use_new_zipfile_serialization=False)
    program = """
import io, warnings
import flambeau as fb
file = io.BytesIO(); fb.save([1], file)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for _ in range(3):
        file.seek(0); fb.load(file, weights_only=False)
print([str(w.message) for w in said])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.count("runs the code that a file names") == 1, done


@pytest.mark.parametrize("kind", ["archive", "stream"])
@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_bit_that_flips_anywhere_gives_no_foreign_error(kind, count):
    """Between the records there is padding; in the stream there are no checksums."""
    whole = KINDS[kind]()
    chance = random.Random(1)
    for _ in range(count):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        try:
            found = fb.load(io.BytesIO(damaged))
        except RuntimeError:  # CheckpointError, or a device that is not there
            continue
        if kind == "archive":
            assert found["x"].tolist() == list(range(300))


def test_verify_finds_what_a_mapped_load_does_not_look_at(tmp_path):
    whole = bytearray(written())
    record = ArchiveReader(whole).records["data/0"]
    whole[record.start] ^= 1
    path = tmp_path / "x.pt"
    path.write_bytes(whole)
    assert fb.load(path, mmap=True)["x"].shape == (300,)
    with pytest.raises(CheckpointError) as info:
        fb.serialization.verify(path)
    assert info.value.offset == record.start


def test_a_checksum_of_zero_means_that_there_is_none():
    whole = bytearray(written())
    record = ArchiveReader(whole).records["data/0"]
    crc = struct.pack("<I", record.crc)
    assert whole.count(crc) == 2
    assert fb.load(io.BytesIO(whole.replace(crc, bytes(4))))["x"].shape == (300,)


class Call:
    def __init__(self, func, *args):
        self.call = func, args

    def __reduce__(self):
        return self.call


TRAP: list[str] = []


def spring(*args):
    TRAP.append("sprung")


HOSTILE = {
    "os.system": pickle.dumps(Call(os.system, "true"), 2),
    "own function": pickle.dumps(Call(spring), 2),
    "eval": pickle.dumps(Call(eval, "TRAP.append(1)"), 2),
    "getattr": pickle.dumps(Call(getattr, 1, "real"), 2),
    "memory": pickle.dumps(Call(bytearray, 1 << 40), 2),
    "hidden in a list": pickle.dumps([1, {"a": Call(spring)}], 2),
    "protocol 4": pickle.dumps(Call(spring), 4),
    "protocol 0": pickle.dumps(Call(spring), 0),
    "INST": b"(S'x'\nios\nsystem\n.",
    "OBJ": b"(cos\nsystem\nX\x04\x00\x00\x00trueo.",
    "EXT": b"\x80\x02\x82\x01.",
    "nested name": b"\x80\x04\x8c\x05torch\x8c\x09os.system\x93.",
    "BUILD on a tensor class": b"\x80\x02ctorch\nTensor\n}X\x01\x00\x00\x00aK\x01sb.",
    "SETITEM on a list": b"\x80\x02]K\x00K\x01s.",
    "APPEND to a dict": b"\x80\x02}K\x01a.",
    "NEWOBJ of a tensor": b"\x80\x02ctorch\nTensor\n)\x81.",
    "call of data": b"\x80\x02K\x01)R.",
    "call of a dtype": b"\x80\x02ctorch\nfloat32\n)R.",
    "call of a storage class": b"\x80\x02ctorch\nFloatStorage\nK\x05\x85R.",
    "memo": b"\x80\x02j\xff\xff\xff\x7f.",
    "empty stack": b"\x80\x020.",
    "no mark": b"\x80\x02K\x01t.",
    "long string": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "long integer": b"\x80\x02\x8b\xff\xff\xff\x7f1.",
    "negative length": b"\x80\x02\x8b\xff\xff\xff\xff1.",
    "protocol": b"\x80\x7fN.",
    "no end": b"\x80\x02N",
    "foreign id": b"\x80\x02X\x01\x00\x00\x00aQ.",
    "set of lists": b"\x80\x02cbuiltins\nset\n]]a\x85R.",
    "key bomb": b"\x80\x02}" + b")" + b"2\x86" * 60 + b"K\x01s.",
    "codec": b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00utf-8\x86R.",
    "maker": b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(cbuiltins\ncomplex\n"
    b"ctorch\nTensor\n)}tR.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles_are_refused_and_run_nothing(name, monkeypatch):
    monkeypatch.setattr(os, "system", spring)
    with pytest.raises(CheckpointError):
        fb.load(io.BytesIO(archived(HOSTILE[name])))
    assert TRAP == []


STORAGE = (
    b"((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
)
VIEWS = {
    "offset": b"K\x03K\x02\x85K\x01\x85",
    "stride": b"K\x00K\x02\x85K\x04\x85",
    "size": b"K\x00K\x05\x85K\x01\x85",
    "negative stride": b"K\x00K\x02\x85J\xff\xff\xff\xff\x85",
    "negative offset": b"J\xff\xff\xff\xffK\x02\x85K\x01\x85",
    "negative size": b"K\x00J\xff\xff\xff\xff\x85K\x01\x85",
    "lengths": b"K\x00K\x02\x85K\x01K\x01\x86",
    "float": b"K\x00G?\xf0\x00\x00\x00\x00\x00\x00\x85K\x01\x85",
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_that_leave_their_storage_are_refused(name):
    body = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n" + STORAGE + VIEWS[name]
    pkl = body + b"\x89ccollections\nOrderedDict\n)RtR."
    with pytest.raises(CheckpointError):
        fb.load(io.BytesIO(archived(pkl, _0=bytes(16))))


def test_a_record_of_another_size_than_declared_is_refused():
    pkl = b"\x80\x02" + STORAGE[1:] + b"."
    assert len(fb.load(io.BytesIO(archived(pkl, _0=bytes(16))))) == 4
    for size in (0, 15, 17, 1000):
        with pytest.raises(CheckpointError, match="should have 16 bytes"):
            fb.load(io.BytesIO(archived(pkl, _0=bytes(size))))


def test_compressed_records_are_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(1 << 20))
    file.seek(0)
    with pytest.raises(CheckpointError, match="compressed"):
        fb.load(file)


def test_a_save_that_fails_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "x.pt"
    fb.save([1], path)
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        fb.save([fb.ones(10), lambda: None], path)
    assert fb.load(path) == [1]
    assert os.listdir(tmp_path) == ["x.pt"]


@pytest.mark.parametrize("after", [0, 1, 100, 1000, 3000])
def test_a_full_disk_is_an_oserror_and_leaves_the_old_file(tmp_path, after, monkeypatch):
    path = tmp_path / "x.pt"
    fb.save([1], path)
    program = f"""
import flambeau as fb, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({after}, {after}))
try:
    fb.save(fb.ones(5000), {str(path)!r})
except OSError as error:
    print(error.errno)
"""
    # Without bytecode: Python itself leaves a broken file where it cannot write a whole one.
    command = [sys.executable, "-B", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == [str(errno.EFBIG)], done.stderr
    assert fb.load(path) == [1]
    assert os.listdir(tmp_path) == ["x.pt"]


KILLING = """
import os, random, signal, sys, time
import flambeau as fb

path, count = sys.argv[1], int(sys.argv[2])
chance = random.Random(2)
fb.save({"x": fb.zeros(200_000)}, path)
for _ in range(count):
    ready, told = os.pipe()
    parent, child = os.getpid(), os.fork()
    if not child:
        os.write(told, b"!")
        i = 0
        while os.getppid() == parent:  # not for ever if the test is given up
            i += 1
            fb.save({"x": fb.full((200_000,), float(i))}, path)
        os._exit(0)
    os.read(ready, 1)
    time.sleep(chance.random() * 0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready), os.close(told)
    x = fb.load(path)["x"]
    assert x.min().item() == x.max().item()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
@pytest.mark.parametrize("count", [4, pytest.param(500, marks=pytest.mark.slow)])
def test_a_save_that_is_killed_leaves_a_whole_file_and_the_next_save_cleans_up(tmp_path, count):
    path = tmp_path / "x.pt"
    command = [sys.executable, "-c", KILLING, str(path), str(count)]
    subprocess.run(command, check=True, timeout=600)
    fb.save([1], path)
    assert os.listdir(tmp_path) == ["x.pt"]


def test_files_of_living_writers_are_left_alone(tmp_path):
    path = tmp_path / "x.pt"
    with _files.replacing(path) as outer:
        fb.save([1], path)
        assert len(os.listdir(tmp_path)) == 2
        outer.write(b"late")
    assert path.read_bytes() == b"late"


def test_links_are_followed_and_permissions_kept(tmp_path):
    real, link = tmp_path / "real.pt", tmp_path / "link.pt"
    fb.save([1], real)
    real.chmod(0o640)
    link.symlink_to(real)
    fb.save([2], link)
    assert link.is_symlink() and fb.load(real) == [2]
    assert real.stat().st_mode & 0o777 == 0o640


def test_standard_tools_find_nothing_wrong_with_an_archive():
    with zipfile.ZipFile(io.BytesIO(written())) as archive:
        assert archive.testzip() is None
        assert zlib.crc32(archive.read("archive/data/0")) == zlib.crc32(
            struct.pack("<300f", *range(300))
        )
