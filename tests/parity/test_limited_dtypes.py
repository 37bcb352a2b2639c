"""uint16, uint32, uint64 and float8 beside PyTorch: casts bit for bit, and the ops that it has."""

from __future__ import annotations

import io

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
UNSIGNED = ["uint16", "uint32", "uint64"]
PROGRAMS = {
    "mul": lambda t, x, i: x * x,
    "eq": lambda t, x, i: x == x.flip(0),
    "abs": lambda t, x, i: x.abs(),
    "where": lambda t, x, i: t.where(i > 0, x, x.flip(0)),
    "cat": lambda t, x, i: t.cat([x, x]),
    "roll": lambda t, x, i: x.roll(1),
    "index_select": lambda t, x, i: x.index_select(0, i),
    "index": lambda t, x, i: x[i],
    "any": lambda t, x, i: x.any(),
    "isnan": lambda t, x, i: x.isnan(),
    "full_like": lambda t, x, i: t.full_like(x, 3),
    "repeat": lambda t, x, i: x.repeat(2),
    "bytes": lambda t, x, i: x.view(t.uint8),
    "bool": lambda t, x, i: x.bool(),
    "double": lambda t, x, i: x.double(),
    "half": lambda t, x, i: x.half(),
    "long": lambda t, x, i: x.to(t.int64),
    "complex": lambda t, x, i: x.to(t.complex64),
    "copy_": lambda t, x, i: t.zeros_like(x).copy_(t.ones(len(x)) * 2.6),
    "sum": lambda t, x, i: x.sum(),
    "sort": lambda t, x, i: x.sort()[0],
    "cumsum": lambda t, x, i: x.cumsum(0),
    "and": lambda t, x, i: x & x.flip(0),
    "div": lambda t, x, i: x / x,
    "unique": lambda t, x, i: x.unique(),
    "sqrt": lambda t, x, i: x.sqrt(),
    "new_tensor": lambda t, x, i: x.new_tensor([1, 2]),
    "repr": lambda t, x, i: repr(x[:9]),
    "times a number": lambda t, x, i: x * 2,
}


@pytest.fixture(params=["cpu", "ref"])
def device(request):
    return request.param


@pytest.mark.parametrize("source", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", FLOAT8)
def test_all_numbers_of_16_bits_are_rounded_alike(name, source, device):
    words = torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(getattr(torch, source))
    expected = words.to(getattr(torch, name)).view(torch.uint8).tolist()
    ours = fb.arange(65536, device=device).to(fb.uint16).view(getattr(fb, source))
    assert ours.to(getattr(fb, name)).view(fb.uint8).tolist() == expected


@pytest.mark.parametrize("name", FLOAT8)
def test_numbers_beside_the_middle_of_two_are_rounded_alike(name, device):
    kind = getattr(torch, name)
    numbers = torch.arange(256).to(torch.uint8).view(kind).double()
    numbers = numbers[numbers.isfinite()].sort()[0]
    middle = (numbers[1:] + numbers[:-1]) / 2
    points = torch.cat([middle, middle * (1 + 2**-20), middle * (1 - 2**-20)]).float()
    points = torch.cat([points, torch.tensor([464.0, 465.0, 480.0, 61440.0, 1e30, -1e30])])
    ours = fb.tensor(points.tolist(), device=device).to(getattr(fb, name))
    assert ours.view(fb.uint8).tolist() == points.to(kind).view(torch.uint8).tolist()


@pytest.mark.parametrize("name", FLOAT8)
def test_every_pattern_of_bits_is_the_same_number(name, device):
    expected = torch.arange(256).to(torch.uint8).view(getattr(torch, name)).float().tolist()
    ours = fb.arange(256, device=device).to(fb.uint8).view(getattr(fb, name)).float().tolist()
    assert list(map(str, ours)) == list(map(str, expected))


@pytest.mark.parametrize("name", FLOAT8)
def test_integers_and_doubles_are_rounded_by_way_of_float32(name, device):
    for values, source in (
        ([0, 1, -3, 17, 19, 300, 500, 100000, 2**40], "int64"),
        ([1.0625 + 1e-12, 1.0625 - 1e-12, 0.1], "float64"),
    ):
        expected = torch.tensor(values, dtype=getattr(torch, source)).to(getattr(torch, name))
        ours = fb.tensor(values, dtype=getattr(fb, source), device=device).to(getattr(fb, name))
        assert ours.view(fb.uint8).tolist() == expected.view(torch.uint8).tolist()


@pytest.mark.parametrize("name", UNSIGNED)
def test_integers_are_converted_alike(name, device):
    values = [0, 1, -1, -2, 2**15, 2**16 - 1, 70000, 2**31, 2**32 - 1, 2**40]
    theirs = torch.tensor(values).to(getattr(torch, name))
    ours = fb.tensor(values, device=device).to(getattr(fb, name))
    assert ours.tolist() == theirs.tolist()
    for target in ("int8", "int32", "int64", "float32", "float64"):
        expected = theirs.to(getattr(torch, target)).tolist()
        assert ours.to(getattr(fb, target)).tolist() == expected


@pytest.mark.parametrize("size", [6, 70000])
@pytest.mark.parametrize("name", [*UNSIGNED, *FLOAT8])
def test_what_pytorch_computes_is_computed_alike(name, size):
    numbers = (torch.arange(size) * 7) % 11
    theirs, i = numbers.to(getattr(torch, name)), torch.arange(size) % 2
    ours, j = fb.tensor(numbers.tolist()).to(getattr(fb, name)), fb.arange(size) % 2
    compared = 0
    for what, program in PROGRAMS.items():
        try:
            expected = program(torch, theirs, i)
        except (NotImplementedError, RuntimeError):
            continue
        found = program(fb, ours, j)
        compared += 1
        if isinstance(expected, str):
            assert found == expected
            continue
        assert str(found.dtype) == str(expected.dtype), what
        assert repr(found.tolist()) == repr(expected.tolist()), what
    assert compared > 15


@pytest.mark.parametrize("name", [*UNSIGNED, *FLOAT8])
def test_facts_and_files_are_pytorchs(name):
    facts = "finfo" if name in FLOAT8 else "iinfo"
    expected = getattr(torch, facts)(getattr(torch, name))
    assert repr(getattr(fb, facts)(getattr(fb, name))) == repr(expected)
    file = io.BytesIO()
    fb.save(fb.tensor([1, 2, 3]).to(getattr(fb, name)), file)
    file.seek(0)
    assert torch.load(file).dtype is getattr(torch, name)
    file = io.BytesIO()
    torch.save(torch.tensor([1, 2, 3]).to(getattr(torch, name)), file)
    file.seek(0)
    found = fb.load(file)
    assert found.dtype is getattr(fb, name) and found.tolist() == [1, 2, 3]


def test_promotion_is_pytorchs():
    names = [*UNSIGNED, *FLOAT8, "bool", "uint8", "int16", "int64", "float16", "float32"]
    for a in names:
        for b in names:
            assert _promoted(fb, a, b) == _promoted(torch, a, b)


def _promoted(library, a, b):
    try:
        return str(library.promote_types(getattr(library, a), getattr(library, b)))
    except RuntimeError as error:
        return str(error).split(",")[0]
