"""Checkpoints: what goes in comes out, and nothing else happens on the way."""

from __future__ import annotations

import collections
import contextlib
import copy
import io
import os
import pathlib
import pickle
import types
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flambeau as fb
from flambeau.serialization import CheckpointError, WeightsOnlyError
from flambeau.serialization._globals import globals_of

pytest.importorskip("flambeau_numpy", reason="needs the CPU backend")

pytestmark = pytest.mark.filterwarnings(
    "ignore:the format of PyTorch before 1.6 carries no checksums:UserWarning",
    "ignore:load.weights_only=False. runs the code:UserWarning",
)

DTYPES = [
    *(fb.bool, fb.uint8, fb.int8, fb.int16, fb.int32, fb.int64),
    *(fb.float16, fb.bfloat16, fb.float32, fb.float64, fb.complex64, fb.complex128),
]


def through(obj, *, archive=True, **options):
    file = io.BytesIO()
    fb.save(obj, file, _use_new_zipfile_serialization=archive)
    file.seek(0)
    return fb.load(file, **options)


@pytest.fixture(params=[True, False], ids=["archive", "stream"])
def archive(request):
    return request.param


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_every_dtype_comes_back(dtype, shape, archive, device):
    x = fb.ones(shape, dtype=dtype, device=device)
    y = through(x, archive=archive, map_location=device)
    assert (y.dtype, y.shape, y.device.type) == (x.dtype, x.shape, device)
    assert y.tolist() == x.tolist()


def test_views_share_their_storage_again(archive, device):
    x = fb.arange(12.0, device=device).reshape(3, 4)
    saved = {"x": x, "row": x[1], "turned": x.t(), "corner": x[1:, 2:]}
    found = through(saved, archive=archive, map_location=device)
    for name, value in saved.items():
        assert found[name].stride() == value.stride()
        assert found[name].tolist() == value.tolist()
    found["x"].zero_()
    assert found["corner"].sum().item() == found["turned"].sum().item() == 0


def test_containers_and_facts_come_back(archive):
    saved = {
        "list": [1, 2.5, "ä", b"\x00\xff", None, True, 2**70, -3, 1 + 2j],
        "tuple": (1, (2, [3])),
        "size": fb.Size([2, 3]),
        "dtype": fb.bfloat16,
        "device": fb.device("cuda", 1),
        "layout": fb.strided,
        "set": {1, 2},
        "counter": collections.Counter("aab"),
        "ordered": collections.OrderedDict(b=1, a=2),
        (1, "key"): bytearray(b"abc"),
    }
    found = through(saved, archive=archive)
    assert found == saved
    assert [type(v) for v in found.values()] == [type(v) for v in saved.values()]


def test_a_state_dict_keeps_its_metadata(archive):
    nn = pytest.importorskip("flambeau.nn")
    state = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).state_dict()
    found = through(state, archive=archive)
    assert list(found) == list(state)
    assert found._metadata == state._metadata


def test_parameters_and_buffers_keep_class_and_flags(archive):
    nn = pytest.importorskip("flambeau.nn")
    frozen = nn.Parameter(fb.ones(2), requires_grad=False)
    p, q, b = through([nn.Parameter(fb.ones(2)), frozen, nn.Buffer(fb.ones(2), persistent=False)])
    assert type(p) is nn.Parameter and p.requires_grad
    assert type(q) is nn.Parameter and not q.requires_grad
    assert type(b) is nn.Buffer and not b.persistent


def test_the_optimizer_state_continues_a_run():
    nn = pytest.importorskip("flambeau.nn")

    def step(model, optimizer):
        optimizer.zero_grad()
        model(fb.ones(1, 2)).sum().backward()
        optimizer.step()

    model = nn.Linear(2, 1)
    optimizer = fb.optim.Adam(model.parameters())
    step(model, optimizer)
    saved = through({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    twin = nn.Linear(2, 1)
    second = fb.optim.Adam(twin.parameters())
    twin.load_state_dict(saved["model"])
    second.load_state_dict(saved["optimizer"])
    step(model, optimizer)
    step(twin, second)
    assert fb.equal(model.weight, twin.weight)


def test_storages_and_sparse_tensors_come_back(archive):
    x = fb.tensor([[0.0, 2.0], [3.0, 0.0]])
    found = through({"s": x.storage(), "sparse": x.to_sparse()}, archive=archive)
    assert found["s"].tolist() == [0, 2, 3, 0]
    assert fb.equal(found["sparse"].to_dense(), x)


def test_positions_outside_of_a_sparse_tensor_are_refused(archive):
    x = fb.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    x._indices()[0, 0] = 2
    with pytest.raises(CheckpointError, match="outside of its size"):
        through(x, archive=archive)


def test_memory_saved_as_two_dtypes_is_refused():
    x = fb.zeros(2)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        fb.save([x, x.view(fb.int32)], io.BytesIO())


@pytest.mark.parametrize(
    "where",
    ["ref", fb.device("ref"), {"cpu": "ref"}, lambda s, tag: s.to(device="ref")],
    ids=["name", "device", "dict", "function"],
)
def test_map_location_moves_storages_and_keeps_sharing(where, archive):
    x = fb.arange(4.0)
    a, b = through([x, x[2:]], archive=archive, map_location=where)
    assert a.device.type == b.device.type == "ref"
    a.zero_()
    assert b.tolist() == [0, 0]


def test_a_map_location_function_may_decline_and_sees_the_tag():
    seen = []
    x = through(fb.ones(1, device="ref"), map_location=lambda s, tag: seen.append((s.device, tag)))
    assert seen == [(fb.device("cpu"), "ref")]
    assert x.device.type == "cpu"


def test_a_device_that_is_absent_is_named_with_the_remedy():
    file = io.BytesIO()
    fb.save(fb.ones(1), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="'nosuch:1'.*map_location='cpu'"):
        fb.load(file, map_location="nosuch:1")


def test_mapped_tensors_can_be_written_and_the_file_stays(tmp_path):
    path = tmp_path / "x.pt"
    fb.save({"x": fb.ones(1000)}, path)
    before = path.read_bytes()
    x = fb.load(path, mmap=True)["x"]
    x.mul_(3)
    assert x.sum().item() == 3000
    assert path.read_bytes() == before


def test_paths_streams_and_several_objects_in_one_stream(tmp_path):
    for path in (tmp_path / "a.pt", str(tmp_path / "b.pt"), os.fsencode(tmp_path / "c.pt")):
        fb.save([1], path)
        assert fb.load(path) == [1]
    file = io.BytesIO()
    for i in range(3):
        fb.save({"i": fb.tensor(i)}, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert [fb.load(file)["i"].item() for _ in range(3)] == [0, 1, 2]


def test_the_same_data_give_the_same_bytes():
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        fb.save({"x": fb.arange(5)}, file)
    assert files[0].getvalue() == files[1].getvalue()


class Point:
    def __init__(self, x):
        self.x = x


def test_classes_need_permission_and_get_it(archive):
    with pytest.raises(WeightsOnlyError, match="Point is not allowed"):
        through(Point(1), archive=archive)
    with fb.serialization.safe_globals([Point]):
        assert through(Point(2), archive=archive).x == 2
    assert fb.serialization.get_safe_globals() == []
    assert through(Point(3), archive=archive, weights_only=False).x == 3


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_names_that_need_permission_are_listed_and_nothing_is_called(protocol):
    file = io.BytesIO()
    fb.save([fb.ones(2), Point(1), Fraction(1, 3), Point(2)], file, pickle_protocol=protocol)
    wanted = [f"{Point.__module__}.Point", "fractions.Fraction"]
    file.seek(0)
    assert fb.serialization.get_unsafe_globals_in_checkpoint(file) == wanted
    with fb.serialization.safe_globals([Point]):
        file.seek(0)
        assert fb.serialization.get_unsafe_globals_in_checkpoint(file) == wanted[1:]


def test_names_of_a_file_that_is_no_archive_are_refused():
    for data in (b"", b"PK\3\4", pickle.dumps([1])):
        with pytest.raises(CheckpointError):
            fb.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))


@given(st.lists(st.sampled_from([b"c", b"os\n", b"\x93", b"h", b"\x07", b"\x8c\x01a", b"q"])))
def test_names_of_a_damaged_pickle_are_an_error_of_the_file(parts):
    # Whatever else it raises fails the test.
    with contextlib.suppress(CheckpointError):
        assert all(len(pair) == 2 for pair in globals_of(b"".join(parts) + b".", "file"))


def test_a_whole_module_needs_the_unrestricted_way(archive):
    nn = pytest.importorskip("flambeau.nn")
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with pytest.raises(CheckpointError):
        through(model, archive=archive)
    x = fb.ones(1, 2)
    assert fb.equal(through(model, archive=archive, weights_only=False)(x), model(x))


def test_another_pickle_module_is_used_both_ways():
    file = io.BytesIO()
    x = fb.arange(3)
    fb.save([x, x[1:]], file, pickle_module=types.SimpleNamespace(Pickler=pickle._Pickler))
    file.seek(0)
    a, b = fb.load(file, pickle_module=pickle, weights_only=False)
    a.zero_()
    assert b.tolist() == [0, 0]


def test_the_environment_may_ask_for_other_objects_where_the_call_does_not_say(monkeypatch):
    file = io.BytesIO()
    fb.save(Point(3), file)
    content = file.getvalue()
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    assert fb.load(io.BytesIO(content)).x == 3
    with pytest.raises(pickle.UnpicklingError):
        fb.load(io.BytesIO(content), weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "true")
    with pytest.raises(RuntimeError, match="both were set"):
        fb.load(io.BytesIO(content))
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError):
        fb.load(io.BytesIO(content), weights_only=False)


def test_a_pickle_module_contradicts_weights_only():
    with pytest.raises(RuntimeError, match="weights_only=False"):
        through([1], pickle_module=pickle)


def test_errors_name_file_and_byte(tmp_path):
    path = tmp_path / "broken.pt"
    path.write_bytes(b"nothing")
    with pytest.raises(CheckpointError) as info:
        fb.load(path)
    assert info.value.path == str(path) and info.value.offset == 0
    assert pickle.loads(pickle.dumps(info.value)).args == info.value.args
    assert issubclass(WeightsOnlyError, pickle.UnpicklingError)
    with pytest.raises(FileNotFoundError):
        fb.load(tmp_path / "absent.pt")


def test_registered_packages_tag_and_restore():
    from flambeau.serialization import _locations

    before = list(_locations._packages)
    try:
        fb.serialization.register_package(
            5,
            lambda s: "attic" if s.nbytes() == 3 else None,
            lambda s, t: s if t == "attic" else None,
        )
        assert fb.serialization.location_tag(fb.UntypedStorage(3)) == "attic"
        assert through(fb.ones(3, dtype=fb.int8)).tolist() == [1, 1, 1]
    finally:
        _locations._packages[:] = before


@pytest.mark.parametrize("how", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copy_and_pickle_agree_with_save(how):
    x = fb.arange(6.0).reshape(2, 3).t()
    assert fb.equal(how(x), through(x))
    assert how(x).dtype is through(x).dtype


def test_safetensors_come_back_dense_and_aligned(tmp_path):
    from flambeau.serialization import safetensors

    path = pathlib.Path(tmp_path / "x.safetensors")
    x = fb.arange(6.0).reshape(2, 3)
    saved = {"turned": x.t(), "half": fb.ones(3, dtype=fb.bfloat16), "none": fb.empty(0, 2)}
    safetensors.save_file(saved, path, {"by": "me"})
    found = fb.load(path)
    assert {k: v.tolist() for k, v in found.items()} == {k: v.tolist() for k, v in saved.items()}
    assert safetensors.metadata(path) == {"by": "me"}
    fb.save(saved, path, format="safetensors")
    assert sorted(safetensors.load_file(path, device="ref")) == sorted(saved)
    with pytest.raises(ValueError, match="no format 'nosuch'"):
        fb.save({}, tmp_path / "y", format="nosuch")
    assert not (tmp_path / "y").exists()
