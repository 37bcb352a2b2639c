"""uint16, uint32, uint64 and the float8 dtypes: facts, promotion, printing, files."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

import flambeau as fb
from flambeau._types import dtype as D
from flambeau._types import eighths
from flambeau.serialization.safetensors import load_file, save_file

DEVICE = "ref"
FLOAT8 = [d.name for d in D.FLOAT8]
UNSIGNED = [d.name for d in D.WIDE_UNSIGNED]


def made(name, values=(1, 2, 3)):
    return fb.tensor(list(values), device=DEVICE).to(getattr(fb, name))


@pytest.mark.parametrize("name", FLOAT8)
def test_every_pattern_of_bits_is_the_number_that_it_decodes_to(name):
    for bits, value in enumerate(eighths.values(name)):
        if value == value:
            back = eighths.encoded([value], name)[0]
            assert back == bits or (abs(value) == float("inf") and back & 0x7F == 0x7C)


def test_float8_rounds_half_to_even_and_ends_as_pytorch_ends():
    many = [1.0625, 1.1875, 464.0, 1e9, -1e9]
    assert made("float8_e4m3fn", many).tolist() == [1.0, 1.25, 448.0, 448.0, -448.0]
    inf = float("inf")
    assert made("float8_e5m2", [1.125, 61439.0, 61440.0]).tolist() == [1.0, 57344.0, inf]
    assert made("float8_e4m3fnuz", [240.0, 247.0]).tolist() == [240.0, 240.0]
    assert made("float8_e4m3fnuz", [248.0, inf]).isnan().all()
    assert repr(made("float8_e5m2fnuz", [-0.0]).item()) == "0.0"


@pytest.mark.parametrize("name", FLOAT8)
def test_float8_promotes_with_itself_only(name):
    dtype = getattr(fb, name)
    assert fb.promote_types(dtype, dtype) is dtype
    with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
        fb.promote_types(dtype, fb.float32)


@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned_integers_promote_with_floats(name):
    dtype = getattr(fb, name)
    assert (made(name) * 2).dtype is dtype
    assert (made(name) * 2.5).dtype is fb.float32
    assert fb.promote_types(dtype, fb.float16) is fb.float16
    with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64 types"):
        made(name) * fb.ones(3, dtype=fb.int64, device=DEVICE)


def test_facts_of_dtypes():
    assert fb.iinfo(fb.uint32).max == 2**32 - 1 and fb.iinfo(fb.uint64).min == 0
    assert fb.finfo(fb.float8_e4m3fn).max == 448.0 and fb.finfo(fb.float8_e5m2).max == 57344.0
    assert not fb.uint16.is_signed and fb.float8_e5m2.is_floating_point
    assert [d.itemsize for d in D.LIMITED] == [2, 4, 8, 1, 1, 1, 1]


def test_printing_names_the_dtype():
    assert repr(made("uint16")) == "tensor([1, 2, 3], device='ref', dtype=torch.uint16)"
    assert repr(made("float8_e5m2")).endswith(
        "[1., 2., 3.], device='ref', dtype=torch.float8_e5m2)"
    )
    assert made("uint64").type() == "torch.ref.UInt64Tensor"


def test_the_largest_integers_are_kept():
    top = 2**64 - 1
    x = fb.tensor([top], dtype=fb.uint64, device=DEVICE)
    assert x.tolist() == [top] and x.item() == top
    assert made("uint32", [-1]).item() == 2**32 - 1


@pytest.mark.parametrize("name", [*UNSIGNED, *FLOAT8])
def test_checkpoints_keep_them(name):
    pytest.importorskip("flambeau_numpy", reason="device ref has no bytes to share")
    x, file = made(name).cpu(), io.BytesIO()
    fb.save({"x": x, "part": x[1:]}, file)
    file.seek(0)
    found = fb.load(file)
    assert found["x"].dtype is found["part"].dtype is x.dtype
    assert found["x"].tolist() == [1, 2, 3] and found["part"].tolist() == [2, 3]


@pytest.mark.parametrize("name", [*UNSIGNED, *FLOAT8[:2]])
def test_safetensors_keep_them(name, tmp_path):
    save_file({"x": made(name)}, tmp_path / "x")
    found = load_file(tmp_path / "x")["x"]
    assert found.dtype is getattr(fb, name) and found.tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", [*UNSIGNED, *FLOAT8])
def test_copies_keep_them(name):
    x = made(name)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert y.dtype is x.dtype and y.tolist() == x.tolist()
