"""Entries for creation, elementwise and comparison functions."""

# ruff: noqa: E501 - a table of calls

from __future__ import annotations

from op_parity import DTYPES, FLOATING, LAYOUTS, REAL, Entry, Index

CONTIGUOUS = ["contiguous"]

POINTWISE = [
    Entry(
        "abs acos asin atan cos sin sinh cosh tan tanh exp expm1",
        "x",
        values="unit",
        layouts=LAYOUTS,
        out=True,
    ),
    Entry(
        "sqrt rsqrt log log10 log1p log2 reciprocal sigmoid",
        "x",
        values="positive",
        layouts=LAYOUTS,
        out=True,
    ),
    Entry(
        "erf erfc erfinv digamma lgamma",
        "x",
        values="unit",
        layouts=LAYOUTS,
        out=True,
        tolerance=10,
    ),
    Entry("ceil floor round trunc frac sign neg", "x", layouts=LAYOUTS, out=True),
    Entry("mvlgamma", "x, 1; x, p=2", values="above", dtypes=[*FLOATING, "int64"], tolerance=10),
    Entry(
        "polygamma",
        calls="t.polygamma(1, x); t.polygamma(0, x); t.polygamma(2, x);"
        "x.polygamma(1); x.polygamma_(2); t.polygamma(-1, x)",
        values="positive",
        dtypes=[*FLOATING, "int64", "bool"],
        tolerance=10,
    ),
    Entry(
        "add sub",
        "x, y; x, r; x, c; x, s; x, 2; x, 2.5; x, y, alpha=2; x, other=r, alpha=0.5;"
        "x, True; x, 1j; x, e; x, None",
        layouts=LAYOUTS,
        out=True,
    ),
    Entry(
        "mul",
        "x, y; x, r; x, s; x, 2; x, 2.5; x, True; x, 1j; x, e; x, 'a'",
        layouts=LAYOUTS,
        out=True,
    ),
    Entry(
        "div",
        "x, y; x, r; x, s; x, 2; x, 2.5; x, y, rounding_mode='floor';"
        "x, y, rounding_mode='trunc'; x, 2, rounding_mode='floor'; x, y, rounding_mode='up'",
        layouts=LAYOUTS,
        out=True,
    ),
    Entry("remainder fmod", "x, y; x, r; x, 2; x, 2.5; x, -3; x, s", layouts=LAYOUTS, out=True),
    Entry("fmod remainder", calls="t.remainder(3, y); t.fmod(y, 0.0)", dtypes=[*FLOATING, "int64"]),
    Entry(
        "pow", "x, y; x, 2; x, 0.5; x, s; x, 0; x, 3", values="positive", out=True, layouts=LAYOUTS
    ),
    Entry(
        "pow", calls="t.pow(2, y); t.pow(2.5, y); 2 ** y; x ** -1; t.pow(x, -2); t.pow(2, y, out=x)"
    ),
    Entry("atan2", "x, y; x, r; x, s", layouts=LAYOUTS, out=True, dtypes=REAL),
    Entry("lerp", "x, y, 0.25; x, y, z; x, r, 2; x, y, s", out=True, layouts=LAYOUTS),
    Entry(
        "addcmul addcdiv",
        "x, y, z; x, y, z, value=2; x, r, z, value=0.5; x, y, s",
        values="positive",
        out=True,
        layouts=LAYOUTS,
    ),
    Entry(
        "clamp",
        "x, 0, 1; x, min=0; x, max=1; x, -0.5, 0.5; x, min=y; x, y, z; x",
        layouts=LAYOUTS,
        out=True,
    ),
    Entry("clamp_min clamp_max", "x, 0; x, 0.5; x, y", layouts=LAYOUTS),
    Entry("rsub", "x, y; x, 2; x, 2.5, alpha=2"),
    Entry(
        "eq ne lt le gt ge",
        "x, y; x, r; x, 1; x, 0.5; x, s; x, True; x, e",
        layouts=LAYOUTS,
        out=True,
    ),
    Entry("isfinite isinf isnan", "x", layouts=LAYOUTS),
    Entry("isclose", "x, y; x, x; x, y, rtol=0.5, atol=0.1; x, y, equal_nan=True", layouts=LAYOUTS),
    Entry("allclose equal", "x, y; x, x; x, r", layouts=LAYOUTS),
    Entry("allclose", "x, y, rtol=10.0; x, y, atol=100.0; x, x, equal_nan=True", layouts=LAYOUTS),
    Entry("max min", calls="t.NAME(x, y); x.NAME(r)", layouts=LAYOUTS, gradient=False),
    Entry(
        "where",
        calls="t.where(n, x, y); t.where(n, x, r); t.where(n, x, 2); t.where(n, 2.5, y);"
        "x.where(n, y); t.where(n, x, s); t.where(n, 1, 2); t.where(n); t.where(x, x, y)",
        layouts=LAYOUTS,
    ),
    Entry(
        "fill_",
        calls="x.fill_(2); x.fill_(2.5); x.fill_(s); x.fill_(r); x.fill_(True);"
        "t.fill_(x, 3); x.fill_(1j)",
    ),
    Entry("zero_", calls="x.zero_(); t.zero_(x)"),
    Entry("copy_", calls="x.copy_(y); x.copy_(r); x.copy_(s); x.copy_(e); x.copy_(y, True)"),
    Entry("apply_", calls="x.apply_(lambda v: v + 1)", gradient=False, dtypes=REAL),
    Entry("map_", calls="x.map_(y, lambda v, m: v + m)", gradient=False, dtypes=REAL),
    Entry("relu selu celu", "x", layouts=LAYOUTS),
    Entry("selu_", calls="t.selu_(x)", layouts=LAYOUTS),
    Entry("celu", calls="t.celu(x, alpha=0.5); t.celu_(x, 2)", layouts=LAYOUTS),
    Entry("threshold", calls="t.threshold(x, 0.5, 2); t.threshold_(x, 1, 0)", layouts=LAYOUTS),
    Entry("hardshrink", "x; x, 1; x, lambd=0.2", layouts=LAYOUTS),
    Entry(
        "prelu",
        calls="t.prelu(x, r); t.prelu(x, w); x.prelu(w); t.prelu(x, u)",
        dtypes=FLOATING,
        shapes={"r": (3,), "w": (1,)},
    ),
    Entry(
        "to",
        calls="x.to(t.float32); x.to(d); x.to('cpu'); x.to('cpu', t.int64); x.to(y);"
        "x.to(t.float64, copy=True); x.to(dtype=t.bool); x.to(t.device('cpu'), d, True)",
        values="positive",
    ),
    Entry("float double half int long short char byte cpu", calls="x.NAME()", values="positive"),
    Entry(
        "type",
        calls="x.type(t.float32); x.type('torch.LongTensor'); x.type(d); x.type()",
        values="positive",
    ),
    Entry("type_as", "x, y; x, v", values="positive"),
    Entry("contiguous clone", calls="x.NAME(); x.NAME(memory_format=t.contiguous_format)"),
    Entry("clone", "x; x, memory_format=t.preserve_format", inplace=False),
    Entry("detach", "x"),
    Entry(
        "requires_grad_",
        calls="x.detach().requires_grad_(); x.requires_grad_(False)",
        gradient=False,
    ),
    Entry("is_floating_point is_complex is_nonzero is_signed numel", "x"),
    Entry("is_same_size", "x, y; x, r"),
    Entry("is_set_to", calls="x.is_set_to(x); x.is_set_to(y); x.is_set_to(x.view(x.shape))"),
    Entry("is_tensor is_storage", calls="t.NAME(x); t.NAME(2); t.NAME(x.untyped_storage())"),
    Entry(
        "is_contiguous is_pinned ndimension nelement dim element_size storage_offset is_distributed"
        " size stride tolist",
        calls="x.NAME()",
    ),
    Entry("size stride", calls="x.NAME(0); x.NAME(-1); x.NAME(dim=1); x.NAME(2)"),
    Entry("get_device", "x"),
    Entry("data_ptr", calls="x.data_ptr() == x.data_ptr(); x.data_ptr() == y.data_ptr()"),
    Entry("item", calls="s.item(); x.item(); x[:1, :1].item(); x.sum().item()", gradient=False),
    Entry(
        "numpy",
        calls="x.detach().numpy().tolist(); str(x.detach().numpy().dtype); x.numpy().shape",
        dtypes=[d for d in DTYPES if d != "bfloat16"],
    ),
    Entry(
        "storage",
        calls="x.storage().size(); x.storage().tolist(); len(x.storage())",
        gradient=False,
    ),
    Entry("share_memory_", calls="x.clone().share_memory_()", gradient=False),
    Entry("wait", calls="hasattr(t, 'get_device')", dtypes=["float64"], layouts=CONTIGUOUS),
]

CREATION = [
    Entry(
        "zeros ones empty",
        calls="t.NAME(2, 3); t.NAME((2, 3), dtype=d); t.NAME(2, 0);"
        "t.NAME(()); t.NAME([2], dtype=d, requires_grad=False); t.NAME(2, -1); t.NAME(2.5);"
        "t.NAME(2, 3, out=x); t.NAME(t.Size([2])); t.NAME(size=(2, 1), device='cpu')",
        layouts=CONTIGUOUS,
        gradient=False,
    ),
    Entry(
        "zeros_like ones_like empty_like",
        "x; x, dtype=t.float32; x, device='cpu';"
        "x, memory_format=t.contiguous_format; x, requires_grad=False",
        inplace=False,
        gradient=False,
    ),
    Entry(
        "full",
        calls="t.full((2, 3), 2); t.full((2,), 2.5); t.full((), True); t.full((2, 3), 1j);"
        "t.full((2, 3), 1, dtype=d); t.full((2, 3), 2, out=x); t.full((2, -1), 2)",
        layouts=CONTIGUOUS,
        gradient=False,
    ),
    Entry("full_like", "x, 2; x, 2.5; x, 3, dtype=t.float32; x, True; x, 1j", gradient=False),
    Entry(
        "new_zeros new_ones new_empty",
        calls="x.NAME(2, 3); x.NAME((2,)); x.NAME(2, dtype=t.int64);"
        "x.NAME((), device='cpu'); x.NAME(2, -3)",
        gradient=False,
    ),
    Entry(
        "new_full",
        calls="x.new_full((2,), 3); x.new_full((2, 2), 2.5, dtype=t.float32)",
        gradient=False,
    ),
    Entry(
        "new_tensor",
        calls="x.new_tensor([1, 2]); x.new_tensor([[1, 0]], dtype=t.float32);x.new_tensor(3)",
        gradient=False,
    ),
    Entry(
        "tensor",
        calls="t.tensor([1, 2]); t.tensor([[1., 2], [3, 4]]); t.tensor(1.5);"
        "t.tensor([True, False]); t.tensor([1, 2.5, True]); t.tensor([]); t.tensor([[]]);"
        "t.tensor([1, 0], dtype=d); t.tensor(1j); t.tensor([[1, 2], [3]]); t.tensor('a');"
        "t.tensor([0, 1], dtype=d, requires_grad=False); t.tensor((1, 2)); t.tensor(None);"
        "t.tensor([2**40]); t.tensor([x.sum(), x.sum()])",
        layouts=CONTIGUOUS,
        gradient=False,
    ),
    Entry(
        "as_tensor",
        calls="t.as_tensor(x); t.as_tensor([1, 2]); t.as_tensor(x, dtype=t.float32);"
        "t.as_tensor(2.5); t.as_tensor(x, dtype=d)",
        gradient=False,
    ),
    Entry(
        "scalar_tensor",
        calls="t.scalar_tensor(2); t.scalar_tensor(2.5, dtype=d)",
        layouts=CONTIGUOUS,
        gradient=False,
    ),
    Entry(
        "from_numpy",
        calls="t.from_numpy(x.detach().contiguous().numpy())",
        gradient=False,
        dtypes=[d for d in DTYPES if d != "bfloat16"],
    ),
    Entry(
        "arange",
        calls="t.arange(5); t.arange(1, 5); t.arange(1, 6, 2); t.arange(0, 1, 0.25);"
        "t.arange(5.0); t.arange(5, 1, -1); t.arange(3, dtype=d); t.arange(5, 1); t.arange(1, 5, 0);"
        "t.arange(0); t.arange(end=3); t.arange(start=1, end=3); t.arange(4, out=y);"
        "t.arange(1, 2.5, 0.3, dtype=t.float32); t.arange(math.nan); t.arange(0, 5, 1.0, dtype=d)",
        layouts=CONTIGUOUS,
        gradient=False,
    ),
    Entry(
        "range",
        calls="t.range(1, 4); t.range(1, 4, 0.5); t.range(4, 1, -1); t.range(1, 0)",
        layouts=CONTIGUOUS,
        gradient=False,
    ),
    Entry(
        "linspace",
        calls="t.linspace(0, 1, 5); t.linspace(3, 10, steps=4, dtype=d);"
        "t.linspace(0, 1, 1); t.linspace(0, 1, 0); t.linspace(0, 1, -1); t.linspace(5, 1, 3);"
        "t.linspace(0, 1, steps=7, dtype=t.float32); t.linspace(1, 3, 3, out=y)",
        layouts=CONTIGUOUS,
        gradient=False,
    ),
    Entry(
        "logspace",
        calls="t.logspace(0, 1, 5); t.logspace(-1, 1, steps=4, base=2);"
        "t.logspace(0, 2, 3, dtype=d); t.logspace(0, 2, 1); t.logspace(0, 2, -1)",
        layouts=CONTIGUOUS,
        gradient=False,
        dtypes=FLOATING,
    ),
    Entry(
        "eye",
        calls="t.eye(3); t.eye(2, 3); t.eye(3, 2, dtype=d); t.eye(0); t.eye(-1);"
        "t.eye(2, out=y); t.eye(2, m=4)",
        layouts=CONTIGUOUS,
        gradient=False,
    ),
    Entry(
        "empty_strided",
        calls="t.empty_strided((2, 3), (1, 2)).stride();"
        "t.empty_strided((2, 3), (1, 2), dtype=d).dtype; t.empty_strided((2,), (1, 2))",
        layouts=CONTIGUOUS,
        gradient=False,
    ),
    Entry(
        "tril_indices triu_indices",
        calls="t.NAME(3, 3); t.NAME(3, 4, 1); t.NAME(4, 3, offset=-1);"
        "t.NAME(0, 3); t.NAME(-1, 3); t.NAME(3, 3, dtype=t.int32); t.NAME(2, 3, 5); t.NAME(2, 3, -5)",
        layouts=CONTIGUOUS,
        dtypes=["int64"],
    ),
    Entry(
        "bartlett_window blackman_window hamming_window hann_window",
        calls="t.NAME(5); t.NAME(6, periodic=False); t.NAME(4, False, dtype=d); t.NAME(0);"
        "t.NAME(1); t.NAME(-1)",
        layouts=CONTIGUOUS,
        gradient=False,
        dtypes=FLOATING,
    ),
    Entry(
        "hamming_window",
        calls="t.hamming_window(5, True, 0.5); t.hamming_window(5, False, 0.5, 0.4)",
        layouts=CONTIGUOUS,
        gradient=False,
        dtypes=FLOATING,
    ),
    Entry(
        "rand randn",
        calls="(t.manual_seed(3), t.NAME(2, 3, dtype=d))[1];"
        "(t.manual_seed(3), t.NAME(20, dtype=d))[1]; (t.manual_seed(3), t.NAME((2, 2)))[1];"
        "t.NAME(2, -1); t.NAME(0, 3, dtype=d)",
        layouts=CONTIGUOUS,
        gradient=False,
        dtypes=["float64", "float32", "int64"],
    ),
    Entry(
        "rand_like randn_like",
        calls="(t.manual_seed(3), t.NAME(x))[1]",
        layouts=["contiguous", "transposed", "empty", "scalar"],
        gradient=False,
        dtypes=["float64", "float32", "int64"],
    ),
    Entry(
        "randint",
        calls="(t.manual_seed(3), t.randint(5, (2, 3), dtype=d))[1];"
        "(t.manual_seed(3), t.randint(-3, 5, (4,)))[1]; t.randint(5, 5, (2,)); t.randint(5, 2, (2,));"
        "(t.manual_seed(3), t.randint(low=0, high=2, size=(3,)))[1]",
        layouts=CONTIGUOUS,
        gradient=False,
    ),
    Entry(
        "randint_like",
        calls="(t.manual_seed(3), t.randint_like(x, 6))[1];"
        "(t.manual_seed(3), t.randint_like(x, 1, 6))[1]",
        gradient=False,
        layouts=["contiguous", "transposed", "empty", "scalar"],
    ),
    Entry(
        "randperm",
        calls="(t.manual_seed(3), t.randperm(10))[1]; t.randperm(0); t.randperm(-1);"
        "(t.manual_seed(3), t.randperm(5, dtype=d))[1]",
        layouts=CONTIGUOUS,
        gradient=False,
        dtypes=["int64", "int32", "float64"],
    ),
    Entry(
        "bernoulli",
        calls="(t.manual_seed(3), t.bernoulli(x))[1]; (t.manual_seed(3), x.bernoulli())[1];"
        "(t.manual_seed(3), t.bernoulli(x, 0.5))[1]; t.bernoulli(x + 2); x.bernoulli(p=1.5)",
        values="unit",
        gradient=False,
        dtypes=FLOATING,
        layouts=["contiguous", "empty"],
    ),
    Entry(
        "multinomial",
        calls="(t.manual_seed(3), t.multinomial(v, 2))[1];"
        "(t.manual_seed(3), t.multinomial(x, 5, replacement=True))[1]; t.multinomial(v, 9);"
        "(t.manual_seed(3), x.multinomial(2))[1]; t.multinomial(-v, 1); t.multinomial(v, 0)",
        values="positive",
        gradient=False,
        dtypes=["float64", "float32"],
        layouts=["contiguous", "transposed", "sliced"],
    ),
    Entry(
        "normal",
        calls="(t.manual_seed(3), t.normal(x, y))[1]; (t.manual_seed(3), t.normal(x, 2.0))[1];"
        "(t.manual_seed(3), t.normal(0.0, y))[1]; (t.manual_seed(3), t.normal(0., 1., (2, 3)))[1];"
        "t.normal(0.0, -1.0, (2,)); t.normal(x, -y)",
        values="positive",
        gradient=False,
        dtypes=["float64", "float32"],
        layouts=["contiguous", "empty"],
    ),
    Entry("poisson", calls="t.poisson(x * 0)", values="positive", gradient=False, dtypes=FLOATING),
    Entry(
        "bernoulli_ uniform_ normal_ exponential_ cauchy_ log_normal_ random_",
        calls="(t.manual_seed(3), x.NAME())[1]",
        gradient=False,
        dtypes=["float64", "float32"],
        layouts=["contiguous", "transposed", "sliced", "empty", "scalar"],
    ),
    Entry(
        "uniform_ normal_ cauchy_ log_normal_",
        calls="(t.manual_seed(3), x.NAME(1, 2))[1];x.NAME(1, -2)",
        gradient=False,
        dtypes=["float64", "float32", "int64"],
        layouts=CONTIGUOUS,
    ),
    Entry(
        "geometric_",
        calls="(t.manual_seed(3), x.geometric_(0.5))[1]; x.geometric_(0.0);x.geometric_(1.5)",
        gradient=False,
        dtypes=["float64", "float32", "int64"],
        layouts=CONTIGUOUS,
    ),
    Entry(
        "random_",
        calls="(t.manual_seed(3), x.random_(5))[1]; (t.manual_seed(3), x.random_(2, 5))[1];"
        "x.random_(5, 5); (t.manual_seed(3), x.random_())[1]",
        gradient=False,
        layouts=CONTIGUOUS,
    ),
    Entry(
        "manual_seed initial_seed",
        calls="(t.manual_seed(5), t.initial_seed())[1]; t.manual_seed('a')",
        dtypes=["float64"],
        layouts=CONTIGUOUS,
    ),
    Entry(
        "get_rng_state set_rng_state",
        calls="(t.manual_seed(5), s0 := t.get_rng_state(), t.rand(3),"
        "t.set_rng_state(s0), t.rand(3))[4]; t.get_rng_state().dtype; t.set_rng_state(2)",
        dtypes=["float64"],
        layouts=CONTIGUOUS,
    ),
    Entry(
        "get_default_dtype set_default_dtype set_default_tensor_type",
        calls="t.get_default_dtype(); t.set_default_dtype(t.int64); t.set_default_dtype('a');"
        "t.set_default_tensor_type('torch.LongTensor');"
        "(t.set_default_dtype(t.float64), t.tensor(1.), t.ones(2), t.get_default_dtype(),"
        "t.arange(2.), t.set_default_dtype(t.float32))",
        dtypes=["float64"],
        layouts=CONTIGUOUS,
    ),
    Entry(
        "get_num_threads set_num_threads set_flush_denormal set_printoptions",
        calls="t.get_num_threads() > 0; t.set_num_threads(0); t.set_num_threads('a');"
        "t.set_flush_denormal(False) in (True, False); t.set_printoptions(precision=4)",
        dtypes=["float64"],
        layouts=CONTIGUOUS,
    ),
    Entry(
        "sparse_coo_tensor to_sparse to_dense",
        calls="t.sparse_coo_tensor(i, v, (4,)).to_dense(); x.to_sparse().to_dense(); x.to_dense();"
        "x.to_sparse().indices(); x.to_sparse().values(); t.sparse_coo_tensor(i, v).coalesce().values()",
        shapes={"i": Index((1, 3), 4)},
        layouts=["contiguous", "transposed"],
        gradient=False,
    ),
    Entry(
        "coalesce is_coalesced dense_dim sparse_dim indices values",
        calls="t.sparse_coo_tensor(i, v, (4,)).coalesce().to_dense(); x.to_sparse().is_coalesced();"
        "x.to_sparse().dense_dim(); x.to_sparse().sparse_dim(); x.to_sparse().coalesce().indices()",
        shapes={"i": Index((1, 3), 4)},
        layouts=["contiguous"],
        gradient=False,
    ),
    Entry(
        "sparse_mask",
        calls="x.sparse_mask(y.to_sparse()).to_dense()",
        layouts=["contiguous"],
        gradient=False,
        dtypes=["float64", "float32"],
    ),
    Entry(
        "smm sspaddmm hspmm",
        calls="t.smm(a.to_sparse(), b).to_dense();"
        "t.sspaddmm(e.to_sparse(), a.to_sparse(), b).to_dense(); t.hspmm(a.to_sparse(), b).to_dense();"
        "a.to_sparse().smm(b).to_dense()",
        gradient=False,
        dtypes=["float64", "float32"],
        layouts=["contiguous"],
    ),
]
