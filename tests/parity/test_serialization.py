"""Checkpoints exchanged with PyTorch, both ways and in both formats."""

from __future__ import annotations

import io
from collections import OrderedDict

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

FORMATS = pytest.mark.parametrize("archive", [True, False], ids=["archive", "stream"])
DTYPES = [
    *("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32"),
    *("float64", "complex64", "complex128"),
]


def content(lib):
    x = lib.arange(24.0).reshape(4, 6)
    linear = lib.nn.Linear(3, 2)
    optimizer = lib.optim.Adam(linear.parameters(), lr=0.0)
    linear(lib.ones(1, 3)).sum().backward()
    optimizer.step()
    return {
        "x": x,
        "views": [x[1:, ::2], x.t(), x[0, 0], x.unsqueeze(0).expand(3, 4, 6)],
        "dtypes": {name: lib.ones(3).to(getattr(lib, name)) for name in DTYPES},
        "empty": lib.empty(0, 3),
        "parameter": lib.nn.Parameter(lib.ones(2), requires_grad=False),
        "facts": (lib.Size([1, 2]), lib.float16, lib.device("cuda:1"), b"\x00\xff", 2**80, None),
        "ordered": OrderedDict(b=1, a=[2.5, True]),
        "module": linear.state_dict(),
        "optimizer": optimizer.state_dict(),
        "sparse": x.to_sparse(),
    }


def archive(lib):
    file = io.BytesIO()
    lib.save([1], file)
    file.seek(0)
    return file


def same(a, b):
    """Whether two objects of the two libraries say the same."""
    if hasattr(a, "is_sparse"):
        if not a.numel():  # strides of empty tensors address nothing
            return str(a.dtype) == str(b.dtype) and tuple(a.shape) == tuple(b.shape)
        if a.is_sparse:
            return b.is_sparse and same(a.to_dense(), b.to_dense())
        return (str(a.dtype), tuple(a.shape), a.stride(), a.storage_offset(), a.requires_grad) == (
            str(b.dtype),
            tuple(b.shape),
            b.stride(),
            b.storage_offset(),
            b.requires_grad,
        ) and a.tolist() == b.tolist()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and type(a).__name__ != "Size":
        return len(a) == len(b) and all(map(same, a, b))
    return repr(a) == repr(b)


pytestmark = pytest.mark.filterwarnings(
    "ignore:the format of PyTorch before 1.6 carries no checksums:UserWarning",
    "ignore:load.weights_only=False. runs the code:UserWarning",
)


def passed_on(saver, loader, *, archive, **options):
    file = io.BytesIO()
    saver.save(content(saver), file, _use_new_zipfile_serialization=archive)
    file.seek(0)
    return loader.load(file, **options)


@FORMATS
def test_pytorch_reads_what_flambeau_wrote(archive):
    fb.manual_seed(0)
    found = passed_on(fb, torch, archive=archive, weights_only=True)
    torch.manual_seed(0)
    assert same(content(torch), found)
    assert found["module"]._metadata == {"": {"version": 1}}
    assert found["views"][1].data_ptr() == found["x"].data_ptr()


@FORMATS
def test_flambeau_reads_what_pytorch_wrote(archive):
    torch.manual_seed(0)
    found = passed_on(torch, fb, archive=archive)
    fb.manual_seed(0)
    assert same(content(fb), found)
    assert found["module"]._metadata == {"": {"version": 1}}
    assert type(found["parameter"]) is fb.nn.Parameter
    found["x"].zero_()
    assert found["views"][0].sum().item() == 0


def test_mapped_files_are_read_both_ways(tmp_path):
    for saver, loader in ((fb, torch), (torch, fb)):
        saver.manual_seed(0)
        loader.manual_seed(0)
        saver.save(content(saver), tmp_path / "x.pt")
        assert same(content(loader), loader.load(tmp_path / "x.pt", mmap=True))


def test_records_lie_where_pytorch_maps_them(tmp_path):
    fb.save([fb.ones(i) for i in range(1, 9)], tmp_path / "x.pt")
    for t in torch.load(tmp_path / "x.pt", mmap=True):
        assert t.data_ptr() % 64 == 0


@pytest.mark.parametrize("name", ["float8_e8m0fnu"])
def test_a_dtype_that_flambeau_lacks_is_named(name):
    file = io.BytesIO()
    torch.save(torch.ones(2).to(getattr(torch, name)), file)
    file.seek(0)
    with pytest.raises(fb.serialization.CheckpointError, match=f"no dtype torch.{name}"):
        fb.load(file)


def test_refusals_are_of_the_class_that_pytorch_raises():
    file = io.BytesIO()
    torch.save(torch.nn.Linear(1, 1), file)
    for lib in (torch, fb):
        file.seek(0)
        with pytest.raises(__import__("pickle").UnpicklingError):
            lib.load(file, weights_only=True)


def test_errors_about_arguments_are_of_the_same_class(tmp_path):
    for lib in (torch, fb):
        with pytest.raises(FileNotFoundError):
            lib.load(tmp_path / "absent")
        with pytest.raises(AttributeError):
            lib.load(3)
        with pytest.raises(AttributeError):
            lib.save([], 3)
        with pytest.raises(ValueError, match="mmap"):
            lib.load(archive(lib), mmap=True)
        with pytest.raises(RuntimeError):
            lib.save([lib.zeros(2), lib.zeros(2)], tmp_path / "no" / "folder.pt")


def test_a_big_endian_file_of_pytorch_is_turned():
    from torch.serialization import LoadEndianness  # noqa: F401 - says that the note exists

    file = io.BytesIO()
    fb.save(fb.tensor([1, 256], dtype=fb.int32), file)
    from flambeau.serialization._archive import ArchiveReader, ArchiveWriter

    read, out = ArchiveReader(file.getvalue()), bytearray()
    writer = ArchiveWriter(out.extend, "archive")
    for name in read.records:
        data = bytes(read.read(name))
        writer.record(name, b"big" if name == "byteorder" else data)
    writer.close()
    assert (
        torch.load(io.BytesIO(out)).tolist()
        == fb.load(io.BytesIO(out)).tolist()
        == [1 << 24, 1 << 16]
    )
