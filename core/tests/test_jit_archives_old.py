"""Archives as PyTorch 1.0, 1.1 and 1.2 wrote them, made by hand."""

from __future__ import annotations

import copy
import io
import json
import struct
import zipfile

import pytest

import flambeau as fb
from flambeau.serialization import CheckpointError

_FORWARD = """op_version_set = 1
def forward(self,
    input: Tensor) -> Tensor:
  weight = self.fc.weight
  bias = self.fc.bias
  _0 = torch.addmm(bias, input, torch.t(weight), beta=1, alpha=1)
  return torch.add(_0, CONSTANTS.c2, alpha=1)
"""
_ATTRIBUTES = """def scaled(self,
    input: Tensor) -> Tensor:
  if self.flag:
    _0 = torch.mul((self).forward(input, ), self.scale)
  else:
    _0 = input
  return torch.add(_0, self.shift, alpha=1)
"""
_ID = {  # how a pickle has a tensor and a list of integers, by version
    2: (
        b"c__main__\nTensorID\n)\x81K\x03b",
        b"c__main__\nIntList\n)\x81](K\x01K\x02eb",
    ),
    3: (
        b"ctorch.jit._pickle\nbuild_tensor_from_id\nK\x03\x85R",
        b"ctorch.jit._pickle\nbuild_intlist\n](K\x01K\x02e\x85R",
    ),
}


def _tensor(key, dims, grad=False):
    strides = [str(fb.Size(dims[at + 1 :]).numel()) for at in range(len(dims))]
    return {
        "dims": [str(n) for n in dims],
        "offset": "0",
        "strides": strides,
        "requiresGrad": grad,
        "dataType": "FLOAT",
        "data": {"key": f"tensors/{key}"},
        "device": "cpu",
    }


def _model(version):
    parameters = [
        {"isBuffer": False, "tensorId": "0", "name": "weight"},
        {"isBuffer": False, "tensorId": "1", "name": "bias"},
    ]
    main = {
        "torchscriptArena": {"key": "code/archive.py"},
        "name": "archive",
        "optimize": True,
        "submodules": [{"name": "fc", "optimize": True, "parameters": parameters}],
    }
    if version > 1:
        types = {"flag": "bool", "scale": "float", "shift": "Tensor", "sizes": "List[int]"}
        main["attributes"] = [
            {"type": kind, "name": name, "id": str(at)}
            for at, (name, kind) in enumerate(types.items())
        ]
    return {
        "protoVersion": str(version),
        "mainModule": main,
        "producerName": "pytorch",
        "producerVersion": "1.0",
        "tensors": [
            _tensor(0, [2, 4], True),
            _tensor(1, [2], True),
            _tensor(2, [2]),
            _tensor(3, [1, 2]),
        ],
    }


def _file(model, version, code=None, **more):
    records = {
        "version": b"1\n",
        "code/archive.py": (code or _FORWARD + (_ATTRIBUTES if version > 1 else "")).encode(),
        "tensors/0": struct.pack("<8f", *range(8)),
        "tensors/1": struct.pack("<2f", 0.5, -1.0),
        "tensors/2": struct.pack("<2f", 10, 20),
        "tensors/3": struct.pack("<2f", 100, 200),
        "extra/note": b"kept",
        "model.json": model if isinstance(model, bytes) else json.dumps(model).encode(),
        **more,
    }
    if version > 1:
        tensor, numbers = _ID[min(version, 3)]
        start, end = (b"](", b"e.") if version == 2 else (b"(", b"t.")
        values = b"\x88G" + struct.pack(">d", 2.5) + tensor + numbers
        records["attributes.pkl"] = b"\x80\x02" + start + values + end
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in records.items():
            archive.writestr(f"archive/{name}", data)
    file.seek(0)
    return file


X = fb.arange(8.0).reshape(2, 4)


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_older_archives_compute_what_their_code_says_and_are_saved_as_new_ones(version):
    extra = {"note": ""}
    net = fb.jit.load(_file(_model(version), version), _extra_files=extra)
    weight, bias = fb.arange(8.0).reshape(2, 4), fb.tensor([0.5, -1.0])
    expected = X @ weight.T + bias + fb.tensor([10.0, 20.0])
    file = io.BytesIO()
    fb.jit.save(net, file)
    file.seek(0)
    for each in (net, fb.jit.load(file)):
        assert fb.equal(each(X), expected)
        if version > 1:
            assert fb.equal(each.scaled(X), expected * 2.5 + fb.tensor([[100.0, 200.0]]))
            assert (each.flag, each.scale, each.sizes) == (True, 2.5, [1, 2])
            assert [name for name, _ in each.named_buffers()] == ["shift"]
        assert {n: p.requires_grad for n, p in each.named_parameters()} == {
            "fc.weight": True,
            "fc.bias": True,
        }
    assert bytes(extra["note"]) == b"kept"


def test_types_of_older_archives_are_in_their_libraries():
    code = """op_version_set = 1
import __torch__.shapes
def forward(self,
    input: Tensor) -> Tensor:
  pair = __torch__.shapes.Pair(input, 3)
  return torch.mul(pair.left, pair.count)
"""
    shapes = b"op_version_set = 1\nclass Pair(NamedTuple):\n  left : Tensor\n  count : int\n"
    net = fb.jit.load(_file(_model(1), 1, code, **{"libs/__torch__/shapes.py": shapes}))
    assert fb.equal(net(X), X * 3)


def _changed(path, value):
    model = copy.deepcopy(_model(3))
    at = model
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    return model


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (["protoVersion"], "6", "unknown version 6"),
        (["protoVersion"], "x", "'x' where a number"),
        (["mainModule"], [], "an object"),
        (["mainModule", "submodules"], {}, "a list"),
        (["mainModule", "torchscriptArena", "key"], "code/none.py", "name of a record"),
        (["mainModule", "attributes", 0, "id"], "9", "number of an attribute"),
        (["mainModule", "attributes", 0, "type"], "(", "a type"),
        (["mainModule", "submodules", 0, "parameters", 0, "tensorId"], "99", "number of a tensor"),
        (["tensors", 0, "dims"], ["2", "400"], "storage"),
        (["tensors", 0, "offset"], "-1", "offset"),
        (["tensors", 0, "dataType"], "STRING", "a dtype"),
        (["tensors", 0, "data", "key"], "tensors/77", "name of a record"),
        (["mainModule", "getStateAttributeId"], "0", "__setstate__"),
    ],
)
def test_what_does_not_fit_in_an_older_archive_is_an_error_with_its_place(path, value, words):
    with pytest.raises(CheckpointError, match=words):
        fb.jit.load(_file(_changed(path, value), 3))


def test_a_table_that_is_no_json_and_code_that_is_no_method_are_errors():
    with pytest.raises(CheckpointError, match=r"model\.json cannot be read"):
        fb.jit.load(_file(b"{", 3))
    with pytest.raises(fb.jit.CompilationError, match="no method"):
        fb.jit.load(_file(_model(1), 1, "print('here')\n"))
    deep = _model(1)
    inner = deep["mainModule"]
    for _ in range(300):
        inner["submodules"] = [{"name": "a", "submodules": []}]
        inner = inner["submodules"][0]
    with pytest.raises(CheckpointError, match="too deep"):
        fb.jit.load(_file(deep, 1))
