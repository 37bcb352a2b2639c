"""Ways of calling: sizes by place and by name, several ellipses, resizing views, copies of views."""

# ruff: noqa: E501 - a table of programs

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402
from expressions import agree, programs, run, same  # noqa: E402

SIZES = """
t.zeros()
t.ones()
t.empty()
t.rand()
t.randn()
t.zeros(())
t.zeros(size=())
t.zeros(size=(2,))
t.zeros(size=3)
t.zeros(2, size=(2,))
t.zeros(out=t.ones(3))
t.zeros((), out=t.ones(3))
t.full(3, 2)
t.full((), 2)
t.rand((), generator=None).shape
t.tensor(3.0).new_zeros()
t.tensor(3.0).new_ones()
t.tensor(3.0).new_empty()
t.tensor([3.0]).new_zeros(size=(2,))
t.tensor([3.0]).new_zeros(2, 3)
t.ones(2, 3).view()
t.tensor(3.0).view()
t.tensor(3.0).view(())
t.ones(1).view(size=())
t.ones(2).view(size=(1, 2))
t.ones(6).view(size=6)
t.ones(2, 3).view(2, 3, size=(3, 2))
t.ones(2, 3).view([3, 2])
t.ones(2, 3).view((3, 2), 1)
t.ones(2, 3).view(3.0, 2)
t.tensor(3.0).reshape()
t.ones(1).reshape(())
t.ones(1).reshape(shape=())
t.ones(6).reshape(shape=(3, 2))
t.ones(6).reshape(shape=6)
t.ones(6).reshape(2, 3, shape=(3, 2))
t.reshape(t.ones(6))
t.reshape(t.ones(6), 6)
t.reshape(t.ones(6), 3, 2)
t.reshape(t.ones(6), (3, -1))
t.reshape(t.ones(6), shape=(3, 2))
t.tensor(3.0).permute()
t.ones(2, 3).permute()
t.tensor(3.0).permute(())
t.ones(2, 3).permute(1, 0)
t.ones(2, 3).permute([1, 0])
t.ones(2, 3).permute(dims=(1, 0))
t.ones(2, 3).permute(dims=[-1, 0])
t.ones(2).permute(dims=0)
t.ones(2, 3).permute(1, 0, dims=(1, 0))
t.ones(2, 3).permute(())
t.permute(t.ones(2, 3), 1, 0)
t.permute(t.ones(2), 0)
t.permute(t.ones(2, 3), dims=(1, 0))
t.tensor(3.0).expand()
t.tensor(3.0).expand(())
t.tensor(3.0).expand(-1)
t.tensor(3.0).expand(size=(2, 3))
t.ones(6).expand(size=6)
t.ones(2, 3).expand(4, 2, 3, implicit=True)
t.ones(2, 3).expand([4, 2, 3])
t.tensor(3.0).repeat()
t.tensor(3.0).repeat(())
t.ones(2).repeat(repeats=(2,))
t.ones(2).repeat(2, 2)
t.ones(2).repeat((2, 2))
t.ones(2).tile()
t.ones(2).tile(())
t.ones(2).tile(2)
t.ones(2).tile(dims=(2,))
t.tile(t.ones(2), 2)
t.tile(t.ones(2), dims=(2,))
t.ones(2).flip()
t.ones(2).flip(())
t.ones(2).flip(0)
t.tensor([[1, 2], [3, 4]]).flip(0, 1)
t.tensor([1, 2]).flip(dims=(0,))
t.flip(t.ones(2), 0)
t.flip(t.ones(2, 2), 0, 1)
t.ones(2, 3).sum_to_size()
t.ones(2, 3).sum_to_size(3)
t.ones(2, 3).sum_to_size(size=(3,))
t.ones(2, 3).sum_to_size(())
t.ones(3).broadcast_to(2, 3)
t.ones(3).broadcast_to((2, 3))
t.broadcast_to(t.ones(3), 3)
"""
ELLIPSES = """
t.arange(6).reshape(2, 3)[..., ...]
t.arange(6).reshape(2, 3)[..., ..., 0]
t.arange(6).reshape(2, 3)[..., 0, ...]
t.arange(6).reshape(2, 3)[0, ..., ...]
t.arange(24).reshape(2, 3, 4)[..., 0, ..., 1]
t.arange(24).reshape(2, 3, 4)[..., 0, ..., ...]
t.arange(24).reshape(2, 3, 4)[0, ..., 0, ..., 1]
t.arange(24).reshape(2, 3, 4)[..., None, ...]
t.arange(24).reshape(2, 3, 4)[..., ..., None]
t.arange(24).reshape(2, 3, 4)[0, 1, ..., 1, ..., None]
t.arange(24).reshape(2, 3, 4)[..., ..., True]
t.arange(24).reshape(2, 3, 4)[..., True, ...]
t.arange(24).reshape(2, 3, 4)[..., t.tensor([0]), ...]
t.arange(24).reshape(2, 3, 4)[..., ..., t.tensor([0])]
t.arange(24).reshape(2, 3, 4)[..., ..., :]
t.arange(24).reshape(2, 3, 4)[(...,) * 5]
x = t.arange(24).reshape(2, 3, 4); x[x > 3, ..., ...]
t.tensor(3)[..., ...]
t.tensor(3)[..., ..., None]
x = t.arange(6).reshape(2, 3); x[..., ...] = 2; x
x = t.arange(6).reshape(2, 3); x[..., 0, ...] += 2; x
x = t.arange(6).reshape(2, 3); x[..., ..., 0] = 2; x
"""
RESIZING = """
x = t.arange(6.0).reshape(2, 3); y = x[0]; y.resize_(2, 2); (x, y, y.storage_offset())
x = t.arange(6.0).reshape(2, 3); y = x[1]; y.resize_(2, 2); (x, y[0], y.storage_offset(), x.untyped_storage().size())
x = t.arange(6.0).reshape(2, 3); v = x.t(); x.resize_(3, 2); (x, v)
x = t.arange(6.0).reshape(2, 3); v = x.t(); x.resize_(2); v[0, 1] = 9; (x, v)
x = t.arange(6.0).reshape(2, 3); v = x[1:]; w = v[:, 1:]; v.resize_(1); x.mul_(2); (x, v, w)
x = t.arange(6.0).reshape(2, 3); v = x.t(); x.resize_(4, 4); x[0] = 7; (x[0], v)
x = t.arange(6.0).reshape(2, 3); x.t().resize_(2, 2)
x = t.arange(6.0).reshape(2, 3).t(); x.resize_(2, 3); x
x = t.arange(6.0).reshape(2, 3)[:, 1:]; x.resize_(2); (x, x.storage_offset())
x = t.arange(6.0); y = x[2:]; y.resize_(4, 1); y.fill_(1); x
x = t.arange(4.0).expand(3, 4); x.resize_(2, 2); (x, x.untyped_storage().size())
x = t.arange(6.0); x.resize_(2); a = x.clone(); (a, x.untyped_storage().size(), x.resize_(6))
x = t.arange(6.0); x.resize_(2); y = x + 1; x.add_(1); (x, y, x.resize_(6))
x = t.arange(6.0); x.resize_(2, 3); (x.is_contiguous(), x.storage_offset(), x.untyped_storage().size())
x = t.arange(6.0); x.resize_(0); (x, x.resize_(6))
x = t.arange(4); x.resize_(-1)
x = t.arange(4); x.resize_()
x = t.arange(4); x.resize_(2.0)
x = t.arange(4); x.resize_(size=(2, 2))
x = t.arange(4); x.resize_(t.Size([2, 2]))
x = t.arange(4.0).requires_grad_(); x.resize_(4)
x = t.arange(4.0).requires_grad_(); y = x * 2; y.resize_(2, 2)
x = t.arange(4.0).requires_grad_(); y = (x * 2).detach(); y.resize_(2, 2)
x = t.arange(24.0); x.resize_(1, 2, 3, 4, memory_format=t.channels_last)
x = t.arange(24.0).reshape(1, 2, 3, 4); x.resize_(1, 2, 3, 4, memory_format=t.channels_last)
x = t.arange(24.0).reshape(4, 6).t(); x.resize_(6, 4, memory_format=t.contiguous_format)
x = t.arange(24.0); x.resize_(1, 2, 3, 4, memory_format=t.preserve_format)
x = t.arange(24.0); x.resize_(2, 3, memory_format=t.channels_last)
x = t.arange(24.0); x.resize_as_(t.zeros(1, 2, 3, 4).to(memory_format=t.channels_last))
x = t.arange(24.0); x.resize_as_(t.zeros(1, 2, 3, 4).to(memory_format=t.channels_last), memory_format=t.preserve_format)
x = t.arange(24.0); x.resize_as_(t.zeros(4, 6).t(), memory_format=t.preserve_format)
x = t.arange(6.0); v = x[2:5]; x.untyped_storage().resize_(40); (x, v)
w = t.ones(2, requires_grad=True); x = t.zeros(6); v = x[:4]; v.resize_(2); v.mul_(0).add_(w); x.sum().backward(); (x, w.grad)
w = t.ones(2, requires_grad=True); x = t.zeros(6); v = x.view(2, 3); x.resize_(4); v[:, 0] = w; (v * v).sum().backward(); (x, v, w.grad)
w = t.ones(4, requires_grad=True); x = t.zeros(6); v = x.view(2, 3); x.resize_(4); x.copy_(w); (v * 2).sum().backward(); (x, v, w.grad)
"""
ONE_DTYPE = """
t.arange(6.0).cumsum_(0, dtype=t.float32)
t.arange(6.0).cumsum_(0, dtype=t.float64)
t.arange(6.0).cumprod_(0, dtype=t.float64)
t.arange(6).cumsum_(0, dtype=t.int32)
t.arange(6).cumprod_(0, dtype=t.int64)
t.tensor(1.0).cumsum_(0, dtype=t.float64)
t.tensor(1.0).cumsum_(1, dtype=t.float64)
t.tensor([]).cumsum_(0, dtype=t.float64)
"""
ROUNDING = """
t.tensor([1.2345, 6.78905, float('nan'), float('inf')]).round(decimals=2)
t.tensor([12.5, 678.0]).round(decimals=-1)
t.tensor([1.2345, 6.78905]).round_(decimals=2)
t.tensor([1.2345, 6.789], dtype=t.float16).round(decimals=2)
(t.arange(40) * 0.37123).to(t.bfloat16).round(decimals=1)
t.tensor([1.5, 2.5]).round()
t.tensor([1.5, 2.5]).round(decimals=0)
t.tensor([12, 678]).round(decimals=-1)
t.tensor([12, 678]).round_(decimals=1)
t.tensor([1 + 2j]).round(decimals=1)
t.tensor([1.5]).round(1)
t.tensor([1.5]).round(decimals=1.5)
t.tensor([1.5]).round(decimals=400)
x = t.tensor([1.52, 2.25], requires_grad=True); y = x.round(decimals=1); y.sum().backward(); (y, x.grad)
x = t.tensor([1.52, 2.25], requires_grad=True); y = (x + 0).round_(decimals=1); y.sum().backward(); (y, x.grad)
"""
LEGACY_NEW = """
t.tensor([1, 2]).new()
t.tensor([1, 2]).new(2, 3).shape
t.tensor([1, 2]).new([1, 2])
t.tensor([1, 2]).new((2, 2))
t.tensor([1.0, 2]).new([1, 2])
x = t.tensor([1, 2]); y = x.new(x); y[0] = 5; x
t.tensor([1, 2]).new(t.ones(2))
t.tensor([1, 2]).new(t.Size([2, 2])).shape
t.tensor([1, 2]).new(2, dtype=t.int64)
"""
COPIES = """
t.alias_copy(x)
t.as_strided_copy(x, (2, 2), (1, 2), 3)
t.as_strided_copy(x, (2, 2), (1, 2))
t.detach_copy(x)
t.diagonal_copy(x)
t.diagonal_copy(x, 1, 0, 2)
t.expand_copy(x[:1], (5, 3, 4))
t.expand_copy(x[:1], (5, 3, 4), implicit=True)
t.narrow_copy(x, 1, 0, 2)
t.narrow_copy(x, 1, 7, 8)
t.permute_copy(x, (2, 0, 1))
t.permute_copy(x, 0, 1, 2)
t.select_copy(x, 1, 0)
t.select_copy(x, 1, 7)
t.slice_copy(x)
t.slice_copy(x, 1, 0, 3, 2)
t.slice_copy(x, end=1)
t.slice_copy(x, 4)
t.slice_copy(x[0, 0, 0])
t.split_copy(x, 2, 1)
t.split_with_sizes_copy(x, [1, 2], 1)
t.squeeze_copy(x[:1])
t.squeeze_copy(x[:1], 0)
t.squeeze_copy(x[:1], (0, 1))
t.t_copy(x[0])
t.transpose_copy(x, 0, 1)
t.unbind_copy(x, 1)
t.unfold_copy(x, 1, 2, 1)
t.unsqueeze_copy(x, 1)
t.view_as_complex_copy(x.reshape(2, 3, 2, 2))
t.view_as_real_copy(t.complex(x, x))
t.view_copy(x, (6, 4))
t.view_copy(x.permute(2, 1, 0), (24,))
t.view_copy(x, t.int32)
t.view_copy(x, 5)
"""
COPIES_OUT = """
o = t.empty(0); t.permute_copy(x, (2, 0, 1), out=o); o
o = t.empty(5); t.select_copy(x, 0, 0, out=o); o
o = t.empty(0, dtype=t.int32); t.permute_copy(x, (2, 0, 1), out=o)
o = t.empty(0, dtype=t.float64); t.permute_copy(x, (2, 0, 1), out=o)
o = [t.empty(0), t.empty(0)]; t.unbind_copy(x, 0, out=o); o
o = [t.empty(0)]; t.unbind_copy(x, 0, out=o)
y = t.alias_copy(x); y.zero_(); x
y = t.select_copy(x, 0, 0); y.zero_(); x
"""
COPIES_GRADIENT = """
t.permute_copy(x, (2, 0, 1))
t.diagonal_copy(x)
t.unbind_copy(x, 1)[1]
t.split_copy(x, 2, 2)[0]
t.as_strided_copy(x, (2, 2), (1, 1), 3)
t.slice_copy(x, 1, 0, 3, 2)
t.view_copy(x, (24,))
t.unfold_copy(x, 2, 2, 1)
"""


@pytest.mark.parametrize(
    "program",
    [p for text in (SIZES, ELLIPSES, ONE_DTYPE, ROUNDING, LEGACY_NEW) for p in programs(text)],
)
def test_calls_end_as_in_pytorch(program: str) -> None:
    agree(program)


@pytest.mark.parametrize("program", programs(RESIZING))
def test_resized_tensors_and_their_views_are_those_of_pytorch(program: str) -> None:
    agree(program)


@pytest.mark.parametrize("layout", ["", ".permute(2, 0, 1).contiguous().permute(1, 2, 0)"])
@pytest.mark.parametrize("program", programs(COPIES + COPIES_OUT))
def test_copies_of_views_are_row_major_and_share_nothing(program: str, layout: str) -> None:
    agree(f"x = t.arange(24.0).reshape(2, 3, 4){layout}; {program}")


@pytest.mark.parametrize("call", programs(COPIES_GRADIENT))
def test_copies_of_views_have_their_gradients(call: str) -> None:
    agree(
        f"x = t.arange(24.0).reshape(2, 3, 4).requires_grad_(); {call}.pow(2).sum().backward(); x.grad.contiguous()"
    )


@pytest.mark.parametrize(
    "program",
    programs("""
x = t.arange(6.0, device=device).reshape(2, 3); y = x[0]; y.resize_(2, 2); y.mul_(2); (x, y)
x = t.arange(6.0, device=device).reshape(2, 3); v = x.t(); x.resize_(2); v[0, 1] = 9; (x, v)
x = t.arange(6.0, device=device).reshape(2, 3); v = x.t(); x.resize_(4, 4); x[0] = 7; (x[0], v)
x = t.arange(6.0, device=device); x.resize_(2); y = x + 1; x.add_(1); (x.clone(), y, x.resize_(6))
x = t.arange(6.0, device=device); v = x[2:5]; x.untyped_storage().resize_(40); v.add_(1); (x, v)
"""),
)
def test_resizing_is_the_same_on_a_backend_without_strides(program: str) -> None:
    found = run(fb, program, "ref")
    same(found, run(torch, program), strided=False)


FACTORIES = [
    *("empty(2)", "zeros(2)", "ones(2)", "full((2,), 1.0)", "rand(2)", "randn(2)", "eye(3)"),
    *("randint(3, (2,))", "randperm(3)", "arange(3)", "linspace(0, 1, 3)", "logspace(0, 1, 3)"),
    *("scalar_tensor(1.0)", "empty_strided((2,), (1,))", "tril_indices(3, 3)"),
    *("triu_indices(3, 3)", "hann_window(3)", "kaiser_window(3)", "empty_permuted((2,), (0,))"),
    *("empty_like(x)", "zeros_like(x)", "ones_like(x)", "full_like(x, 1.0)", "rand_like(x)"),
    *("randn_like(x)", "randint_like(x, 3)", "x.new_empty(2)", "x.new_zeros(2)", "x.new_ones(2)"),
    "x.new_full((2,), 1.0)",
]


@pytest.mark.parametrize("call", FACTORIES)
def test_what_makes_tensors_takes_the_same_settings_of_memory(call):
    given = ("layout=t.strided", "pin_memory=False", "requires_grad=False", "device='cpu'")
    for setting in (*given, ", ".join(given)):
        code = f"{'' if call.startswith('x.') else 't.'}{call[:-1]}, {setting})"
        shapes = [tuple(eval(code, {"t": lib, "x": lib.ones(2, 3)}).shape) for lib in (torch, fb)]
        assert shapes[0] == shapes[1], code
