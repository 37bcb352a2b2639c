"""`repr` of a tensor is PyTorch's, character for character.

The formatter asks so little of a tensor that it prints PyTorch's own tensors too; comparing the two
texts for one object leaves nothing but the formatting to differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau
from flambeau._tensor.printing import get_printoptions, set_printoptions, tensor_format, tensor_repr
from flambeau._types import dtype as _dtype

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]
INF, NAN = math.inf, math.nan


@contextmanager
def options(**kwargs) -> Iterator[None]:
    """The same print options on both sides."""
    set_printoptions(**kwargs)
    torch.set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(profile="default")
        torch.set_printoptions(profile="default")


@contextmanager
def default_dtype(name: str) -> Iterator[None]:
    torch.set_default_dtype(getattr(torch, name))
    _dtype.set_default_dtype(getattr(_dtype, name))
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
        _dtype.set_default_dtype(_dtype.float32)


def assert_prints_like_torch(tensor: torch.Tensor) -> None:
    assert tensor_repr(tensor) == repr(tensor)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (40,), (2, 3), (3, 1, 4), (2, 1, 2, 2)], ids=str)
def test_every_dtype_and_rank(dtype, shape):
    values = torch.arange(math.prod(shape)).reshape(shape) - 3
    assert_prints_like_torch(values.to(dtype))
    assert_prints_like_torch((values / 7).to(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)], ids=str)
def test_empty_tensors_show_size_and_dtype(dtype, shape):
    assert_prints_like_torch(torch.empty(shape, dtype=dtype))


@pytest.mark.parametrize("default", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_default_dtype_decides_which_suffix_is_implied(default, dtype):
    with default_dtype(default):
        for shape in [(), (2,), (0,), (0, 2)]:
            assert_prints_like_torch(torch.ones(shape, dtype=dtype))
            assert_prints_like_torch(torch.ones(shape, dtype=dtype, device="meta"))


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2.0, -3.0],
        [0.0, -0.0],
        [NAN, INF, -INF],
        [1.0, INF],
        [0.5, NAN],
        [1.0, NAN, 100000.0],
        [1e-5, INF],
        [1e9],
        [1e8],
        [1e8 + 0.5],
        [1.0, 1000.0],
        [1.0, 1001.0],
        [0.5, 500.0],
        [0.5, 500.5],
        [1e-4],
        [0.9e-4],
        [5e-324, 1e308],
        [999.99999, -1.0],
        [0.00005, 0.05],
        [123456.789],
        [2.5, 3.5],
    ],
    ids=str,
)
@pytest.mark.parametrize("sci_mode", [None, True, False])
def test_notation_thresholds(values, sci_mode):
    for precision in (0, 1, 4, 9):
        with options(precision=precision, sci_mode=sci_mode):
            for dtype in (torch.float64, torch.float32, torch.float16):
                assert_prints_like_torch(torch.tensor(values, dtype=dtype))
                assert_prints_like_torch(torch.tensor(values[0], dtype=dtype))


@pytest.mark.parametrize(
    "values",
    [
        [1 + 2j, -3 - 4j],
        [complex(NAN, 1), complex(0.0, -0.0), complex(INF, NAN), complex(1, -INF)],
        [1e-6 + 1j, 1 + 1e9j],
        [0.5 + 100j],
    ],
    ids=str,
)
@pytest.mark.parametrize("sci_mode", [None, True, False])
def test_complex_parts_have_styles_of_their_own(values, sci_mode):
    with options(sci_mode=sci_mode):
        assert_prints_like_torch(torch.tensor(values))
        assert_prints_like_torch(torch.tensor(values).conj())
        assert_prints_like_torch(torch.tensor(values[0]))
        assert_prints_like_torch(torch.tensor(values).repeat(9, 5))


@pytest.mark.parametrize(
    "shape",
    [(1000,), (1001,), (40, 40), (2, 600), (600, 2), (7, 7, 30), (2, 2, 2, 2, 2, 50), (1, 1, 2000)],
    ids=str,
)
@pytest.mark.parametrize("edgeitems", [0, 1, 3, 8])
def test_summaries_cut_long_dimensions_only(shape, edgeitems):
    values = torch.arange(math.prod(shape)).reshape(shape)
    with options(edgeitems=edgeitems):
        for tensor in (values, values / 8, values.flip(0).mT if len(shape) > 1 else -values):
            assert_prints_like_torch(tensor)
        assert_prints_like_torch(values.to(torch.complex64))


@pytest.mark.parametrize("profile", ["default", "short", "full", "no such profile"])
def test_profiles(profile):
    with options(profile=profile, linewidth=60):
        assert get_printoptions() == torch._tensor_str.get_printoptions()
        for tensor in (torch.linspace(0, 1, 30), torch.arange(1200.0).reshape(30, 40)):
            assert_prints_like_torch(tensor)


def test_options_left_out_keep_their_value_except_sci_mode():
    with options(precision=2, sci_mode=True):
        set_printoptions(linewidth=70)
        torch.set_printoptions(linewidth=70)
        assert get_printoptions() == torch._tensor_str.get_printoptions()
        assert_prints_like_torch(torch.linspace(0, 1, 30))


def test_suffixes_of_autograd():
    leaf = torch.linspace(0, 1, 4, requires_grad=True)
    assert_prints_like_torch(leaf)
    assert_prints_like_torch(leaf + 1)
    assert_prints_like_torch((leaf * leaf).sum())
    assert_prints_like_torch((leaf * 2).expand(400, 4))
    assert_prints_like_torch((leaf[:0] * 2).double())


def test_a_view_without_rebuildable_history_prints_invalid():
    base = torch.ones(3, requires_grad=True) * 1
    with torch.no_grad():
        view = base[:2]
        view.requires_grad_().mul_(2)
    base.add_(1)
    assert_prints_like_torch(view)


@pytest.mark.parametrize("count", range(1, 12))
def test_suffixes_move_to_a_new_line_where_the_line_is_full(count):
    tensor = torch.linspace(0, 1, count, dtype=torch.float64, requires_grad=True)
    for linewidth in (1, 20, 45, 60, 80, 200):
        with options(linewidth=linewidth):
            assert_prints_like_torch(tensor * 2)
            assert_prints_like_torch(tensor.detach().reshape(count, 1).half())


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool], ids=str)
def test_meta_tensors_show_no_numbers(dtype):
    for shape in [(), (2, 3), (0,)]:
        assert_prints_like_torch(torch.empty(shape, dtype=dtype, device="meta"))


def test_given_contents_replace_the_numbers():
    for tensor in (torch.ones(2), torch.ones(0, 2), torch.ones(2, dtype=torch.int32)):
        assert tensor_repr(tensor, tensor_contents="<here>") == tensor.__repr__(
            tensor_contents="<here>"
        )


def test_subclasses_print_under_their_name():
    class Mask(torch.Tensor):
        pass

    class Scale(torch.nn.Parameter):
        pass

    assert_prints_like_torch(torch.arange(30.0).as_subclass(Mask))
    for parameter in (Scale(torch.arange(30.0)), torch.nn.Parameter(torch.ones(2))):
        assert "Parameter containing:\n" + tensor_repr(parameter) == repr(parameter)


@pytest.mark.parametrize("spec", ["", ".2f", ">12", "e"])
def test_format_of_a_single_number_is_the_number_s_own(spec):
    for value in (2.5, 7, -1.5e-7):
        tensor = torch.tensor(value, dtype=torch.float64)
        assert tensor_format(tensor, spec) == format(tensor, spec)


def test_format_of_anything_else_takes_no_spec():
    parameter = torch.nn.Parameter(torch.tensor(1.5))
    for tensor in (torch.ones(2), torch.ones(1), torch.ones((), device="meta"), parameter):
        assert tensor_format(tensor, "") == format(tensor, "")
        with pytest.raises(TypeError, match="unsupported format string"):
            format(tensor, ".2f")
        with pytest.raises(TypeError, match="unsupported format string"):
            tensor_format(tensor, ".2f")


numbers = {
    "bool": st.booleans(),
    "int": st.integers(-128, 127),
    "float": st.one_of(
        st.floats(width=16),
        st.floats(-10, 10, width=32),
        st.integers(-2000, 2000).map(float),
        st.sampled_from([0.0, -0.0, INF, -INF, NAN, 1e-4, 1e8, 65504.0]),
    ),
    "complex": st.complex_numbers(width=64),
}


def kind(dtype: torch.dtype) -> str:
    if dtype is torch.bool:
        return "bool"
    return "complex" if dtype.is_complex else "float" if dtype.is_floating_point else "int"


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    """A tensor of any dtype and rank up to four, made of a few distinct values, maybe permuted."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(0, 9), max_size=4))
    values = draw(st.lists(numbers[kind(dtype)], min_size=1, max_size=12))
    if dtype is torch.uint8:
        values = [abs(value) for value in values]
    count = math.prod(shape)
    repeated = (values * (count // len(values) + 1))[:count]
    tensor = torch.tensor(repeated, dtype=torch.complex128 if dtype.is_complex else None)
    tensor = tensor.to(dtype).reshape(shape).permute(draw(st.permutations(range(len(shape)))))
    recordable = dtype.is_floating_point or dtype.is_complex
    return tensor.requires_grad_(recordable and draw(st.booleans()))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    tensor=tensors(),
    precision=st.integers(0, 10),
    threshold=st.sampled_from([0, 5, 50, 1000, INF]),
    edgeitems=st.integers(0, 4),
    linewidth=st.integers(1, 200),
    sci_mode=st.sampled_from([None, None, True, False]),
)
def test_any_tensor_under_any_options(tensor, **chosen):
    with options(**chosen):
        assert_prints_like_torch(tensor)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(values=st.lists(numbers["float"], max_size=20), sci_mode=st.sampled_from([None, True]))
def test_flambeau_tensors_print_as_torch_tensors_do(values, sci_mode):
    with options(sci_mode=sci_mode):
        for name in ("float16", "bfloat16", "float32", "float64"):
            ours = flambeau.tensor(values, dtype=getattr(flambeau, name))
            assert repr(ours) == repr(torch.tensor(values, dtype=getattr(torch, name)))
