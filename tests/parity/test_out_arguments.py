"""`out=` of every function that has it: what is refused, resized, warned about and written."""

# ruff: noqa: E501 - a table of calls

from __future__ import annotations

import inspect
import re

import pytest

import flambeau as fb
from op_parity import OUTS, VIEWS, Case, Entry, Index, compare, runs, torch
from op_parity_differences import reason_for

# Operands are letters of `op_parity.SHAPES`; i, j are places.
UNARY = """special.airy_ai abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil
    cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac i0 isneginf isposinf lgamma log log10
    log1p log2 logical_not logit nan_to_num neg negative rad2deg reciprocal round rsqrt sgn sigmoid sign signbit
    sin sinc sinh sqrt square tan tanh trunc conj_physical hardshrink special.bessel_j0
    special.bessel_j1 special.bessel_y0 special.bessel_y1 special.digamma special.entr special.erf special.erfc
    special.erfcx special.erfinv special.exp2 special.expit special.expm1 special.gammaln special.i0 special.i0e
    special.i1 special.i1e special.log1p special.log_ndtr special.logit special.modified_bessel_i0
    special.modified_bessel_i1 special.modified_bessel_k0 special.modified_bessel_k1 special.ndtr special.ndtri
    special.psi special.round special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1
    special.sinc special.spherical_bessel_j0"""
BINARY = """add arctan2 atan2 copysign div divide eq float_power floor_divide fmax fmin fmod ge greater
    greater_equal gt heaviside hypot igamma igammac ldexp le less less_equal logaddexp logaddexp2 logical_and
    logical_or logical_xor lt max maximum min minimum mul multiply ne nextafter not_equal pow remainder sub
    subtract true_divide xlogy special.gammainc special.gammaincc special.xlog1py special.xlogy special.zeta"""
POLYNOMIALS = """chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
    hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w"""
CALLS = {
    **{name: f"t.{name}(x)" for name in UNARY.split()},
    **{name: f"t.{name}(x, y)" for name in BINARY.split()},
    **{f"special.{name}": f"t.special.{name}(x, 2)" for name in POLYNOMIALS.split()},
    **{name: f"t.{name}(m, p)" for name in "bitwise_and bitwise_or bitwise_xor gcd lcm".split()},
    **{f"bitwise_{side}_shift": f"t.bitwise_{side}_shift(m, p)" for side in ("left", "right")},
    "bitwise_not": "t.bitwise_not(m)",
    "addcmul": "t.addcmul(x, y, z)",
    "addcdiv": "t.addcdiv(x, y, z, value=2)",
    "lerp": "t.lerp(x, y, 0.5)",
    "where": "t.where(n, x, y)",
    "clamp": "t.clamp(x, 0, 1)",
    "clip": "t.clip(x, y, z)",
    "clamp_min": "t.clamp_min(x, 0)",
    "clamp_max": "t.clamp_max(x, y)",
    "polygamma": "t.polygamma(1, x)",
    "special.polygamma": "t.special.polygamma(1, x)",
    "mvlgamma": "t.mvlgamma(x, 1)",
    "special.multigammaln": "t.special.multigammaln(x, 1)",
    "complex": "t.complex(x, y)",
    "polar": "t.polar(x, y)",
    "frexp": "t.frexp(x)",
    **{
        name: f"t.{name}(x, 1)"
        for name in "all amax amin any argmax argmin cumprod cumsum cummax cummin logcumsumexp logsumexp mean median mode nanmean nanmedian prod std sum var softmax log_softmax special.logsumexp special.softmax special.log_softmax sort".split()
    },
    "aminmax": "t.aminmax(x, dim=1)",
    "quantile": "t.quantile(x, 0.5, 1)",
    "nanquantile": "t.nanquantile(x, 0.5, 1)",
    "norm": "t.norm(x, 2, 1)",
    "frobenius_norm": "t.frobenius_norm(x, (0, 1))",
    "nuclear_norm": "t.nuclear_norm(x)",
    "renorm": "t.renorm(x, 2, 0, 1.0)",
    "kthvalue": "t.kthvalue(x, 1)",
    "topk": "t.topk(x, 2)",
    "msort": "t.msort(x)",
    "diff": "t.diff(x)",
    "histc": "t.histc(x, 4)",
    "histogram": "t.histogram(x, 4)",
    "bucketize": "t.bucketize(x, g)",
    "searchsorted": "t.searchsorted(g, x)",
    "cat": "t.cat([x, y])",
    "concat": "t.concat([x, y], 1)",
    "concatenate": "t.concatenate([x, y])",
    "stack": "t.stack([x, y])",
    "hstack": "t.hstack([x, y])",
    "vstack": "t.vstack([x, y])",
    "dstack": "t.dstack([x, y])",
    "row_stack": "t.row_stack([x, y])",
    "column_stack": "t.column_stack([x, y])",
    "gather": "t.gather(x, 1, o)",
    "scatter": "t.scatter(x, 1, o, y)",
    "scatter_add": "t.scatter_add(x, 1, o, y)",
    "scatter_reduce": "t.scatter_reduce(x, 1, o, y, 'amax')",
    "index_select": "t.index_select(x, 1, i)",
    "index_add": "t.index_add(x, 1, i, y)",
    "index_copy": "t.index_copy(x, 1, i, y)",
    "index_reduce": "t.index_reduce(x, 1, i, y, 'amin')",
    "masked_select": "t.masked_select(x, n)",
    "take": "t.take(x, o)",
    "take_along_dim": "t.take_along_dim(x, o, 1)",
    "nonzero": "t.nonzero(x)",
    "nonzero_static": "t.nonzero_static(x, size=3)",
    **{
        f"{name}_copy": f"t.{name}_copy(x)"
        for name in ("alias", "detach", "diagonal", "slice", "squeeze", "t")
    },
    "as_strided_copy": "t.as_strided_copy(x, (2, 2), (1, 2))",
    "expand_copy": "t.expand_copy(x, (2, 2, 3))",
    "permute_copy": "t.permute_copy(x, (1, 0))",
    "select_copy": "t.select_copy(x, 0, 1)",
    "transpose_copy": "t.transpose_copy(x, 0, 1)",
    "unfold_copy": "t.unfold_copy(x, 1, 2, 1)",
    "unsqueeze_copy": "t.unsqueeze_copy(x, 0)",
    "view_copy": "t.view_copy(x, (3, 2))",
    "view_as_real_copy": "t.view_as_real_copy(t.complex(x, x))",
    "view_as_complex_copy": "t.view_as_complex_copy(t.stack([x, x], -1))",
    "tril": "t.tril(x)",
    "triu": "t.triu(x)",
    "diag": "t.diag(x)",
    "cross": "t.cross(x, y)",
    "matmul": "t.matmul(a, b)",
    "mm": "t.mm(a, b)",
    "mv": "t.mv(a, v)",
    "dot": "t.dot(r, v)",
    "vdot": "t.vdot(r, v)",
    "inner": "t.inner(x, y)",
    "bmm": "t.bmm(A, B)",
    "outer": "t.outer(w, v)",
    "ger": "t.ger(w, v)",
    "kron": "t.kron(x, q)",
    "addmm": "t.addmm(e, a, b)",
    "addmv": "t.addmv(w, a, v)",
    "addr": "t.addr(x, w, v)",
    "addbmm": "t.addbmm(e, A, B)",
    "baddbmm": "t.baddbmm(E, A, B)",
    "tensordot": "t.tensordot(a, b, 1)",
    "chain_matmul": "t.chain_matmul(a, b)",
    "matrix_power": "t.matrix_power(q, 3)",
    "cholesky": "t.cholesky(h)",
    "cholesky_inverse": "t.cholesky_inverse(h)",
    "cholesky_solve": "t.cholesky_solve(b, h)",
    "inverse": "t.inverse(h)",
    "qr": "t.qr(q)",
    "svd": "t.svd(q)",
    "geqrf": "t.geqrf(q)",
    "lu_solve": "t.lu_solve(b, *t.linalg.lu_factor(h))",
    "lu_unpack": "t.lu_unpack(*t.linalg.lu_factor(h))",
    "orgqr": "t.orgqr(h, v)",
    "ormqr": "t.ormqr(h, v, q)",
    "triangular_solve": "t.triangular_solve(b, h)",
    "linalg.cholesky": "t.linalg.cholesky(h)",
    "linalg.cholesky_ex": "t.linalg.cholesky_ex(h)",
    "linalg.cond": "t.linalg.cond(h)",
    "linalg.cross": "t.linalg.cross(x, y)",
    "linalg.det": "t.linalg.det(h)",
    "linalg.eig": "t.linalg.eig(h)",
    "linalg.eigh": "t.linalg.eigh(h)",
    "linalg.eigvals": "t.linalg.eigvals(h)",
    "linalg.eigvalsh": "t.linalg.eigvalsh(h)",
    "linalg.householder_product": "t.linalg.householder_product(h, v)",
    "linalg.inv": "t.linalg.inv(h)",
    "linalg.inv_ex": "t.linalg.inv_ex(h)",
    "linalg.ldl_factor": "t.linalg.ldl_factor(h)",
    "linalg.ldl_factor_ex": "t.linalg.ldl_factor_ex(h)",
    "linalg.ldl_solve": "t.linalg.ldl_solve(*t.linalg.ldl_factor(h), b)",
    "linalg.lu": "t.linalg.lu(h)",
    "linalg.lu_factor": "t.linalg.lu_factor(h)",
    "linalg.lu_factor_ex": "t.linalg.lu_factor_ex(h)",
    "linalg.lu_solve": "t.linalg.lu_solve(*t.linalg.lu_factor(h), b)",
    "linalg.matmul": "t.linalg.matmul(a, b)",
    "linalg.matrix_norm": "t.linalg.matrix_norm(x)",
    "linalg.matrix_power": "t.linalg.matrix_power(q, 2)",
    "linalg.matrix_rank": "t.linalg.matrix_rank(q)",
    "linalg.multi_dot": "t.linalg.multi_dot([a, b])",
    "linalg.norm": "t.linalg.norm(x)",
    "linalg.pinv": "t.linalg.pinv(h)",
    "linalg.qr": "t.linalg.qr(q)",
    "linalg.slogdet": "t.linalg.slogdet(h)",
    "linalg.solve": "t.linalg.solve(h, b)",
    "linalg.solve_ex": "t.linalg.solve_ex(h, b)",
    "linalg.solve_triangular": "t.linalg.solve_triangular(h, b, upper=True)",
    "linalg.svd": "t.linalg.svd(q)",
    "linalg.svdvals": "t.linalg.svdvals(q)",
    "linalg.tensorinv": "t.linalg.tensorinv(h, ind=1)",
    "linalg.tensorsolve": "t.linalg.tensorsolve(h, v)",
    "linalg.vecdot": "t.linalg.vecdot(x, y)",
    "linalg.vector_norm": "t.linalg.vector_norm(x, 2, 1)",
    **{
        f"fft.{name}": f"t.fft.{name}(x)"
        for name in "fft fft2 fftn ifft ifft2 ifftn hfft hfft2 hfftn ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftn".split()
    },
    "fft.fftfreq": "t.fft.fftfreq(5)",
    "fft.rfftfreq": "t.fft.rfftfreq(5)",
    "arange": "t.arange(5.0)",
    "range": "t.range(1, 5)",
    "linspace": "t.linspace(0, 1, 5)",
    "logspace": "t.logspace(0, 1, 5)",
    "zeros": "t.zeros(2, 3)",
    "ones": "t.ones(2, 3)",
    "full": "t.full((2, 3), 2.5)",
    "eye": "t.eye(3)",
}

SHAPES = {
    **{"m": Index((2, 3), 9, 1), "p": Index((2, 3), 4), "o": Index((2, 3), 3)},
    **{"i": Index((3,), 3, distinct=True), "g": (4,)},
}
POSITIVE = {"polygamma", "special.polygamma", "mvlgamma", "special.multigammaln", "special.zeta"}
NAMES = [name for name, call in CALLS.items() if call]

# No `out` in PyTorch, or none whose answer can be compared.
WITHOUT_CASE = {
    "argsort": "PyTorch documents `out` and refuses it",
    "special.softmax": "an alias, without `out` in PyTorch",
    "special.log_softmax": "an alias, without `out` in PyTorch",
    "narrow_copy": "PyTorch writes past the end of an `out` that repeats elements",
    **dict.fromkeys("hsmm hspmm saddmm sspaddmm".split(), "sparse; test_sparse.py"),
    **dict.fromkeys(
        "split_copy split_with_sizes_copy unbind_copy".split(), "lists; test_call_forms.py"
    ),
    **dict.fromkeys(
        "bernoulli empty full_like multinomial normal rand randint randn randperm".split(),
        "random or unspecified numbers; test_random.py",
    ),
    **dict.fromkeys(
        "eig lstsq lu matrix_rank solve symeig squeeze unsqueeze".split(), "no `out` today"
    ),
    "isfinite": "no `out` in PyTorch",
}


def _public():
    for space in ("", "linalg", "special", "fft"):
        ours, theirs = (getattr(t, space) if space else t for t in (fb, torch))
        for name in dir(ours):
            function = getattr(ours, name)
            if name.startswith("_") or not callable(function) or not hasattr(theirs, name):
                continue
            try:
                parameters = inspect.signature(function).parameters
            except (TypeError, ValueError):
                continue
            if "out" in parameters:
                yield f"{space}.{name}" if space else name


def test_every_function_with_out_has_a_call():
    assert sorted(set(_public()) - set(NAMES) - set(WITHOUT_CASE)) == []


def _cases(name):
    values = "positive" if name in POSITIVE else "unit"
    entry = Entry(name, shapes=SHAPES, values=values, out=True)
    for dtype in ("float64",) if name == "kthvalue" else ("float64", "int64"):  # no ties
        plain = Case(entry, name, CALLS[name], dtype, "contiguous")
        if runs(plain):
            for kind in OUTS + VIEWS:
                yield Case(entry, name, CALLS[name], dtype, "contiguous", kind)


@pytest.mark.parametrize("name", NAMES)
def test_out_is_refused_resized_and_written_as_by_pytorch(name):
    found = [(case, compare(case)) for case in _cases(name)]
    assert found
    shown = [f"{case} {what}" for case, what in found if what]
    assert [text for text in shown if reason_for(name, text) is None] == []


def test_a_result_is_not_copied_where_nobody_else_sees_the_memory(monkeypatch):
    x, y, out = fb.rand(3, 4), fb.rand(4, 3), fb.empty(3, 4)
    monkeypatch.setattr(x._be, "assign", None)  # any copy would call it
    for result in (
        fb.mul(x, x, out=out),
        fb.exp(x, out=out),
        fb.addcmul(x, x, x, out=out),
        fb.cat([x[:1], x[1:]], out=out),
        fb.cumsum(x, 1, out=out),
    ):
        assert result is out
    assert fb.matmul(x, y, out=fb.empty(3, 3)).shape == (3, 3)


def test_views_of_out_see_the_result():
    out = fb.zeros(3)
    view = out[1:]
    fb.add(fb.ones(3), 1, out=out)
    assert view.tolist() == [2, 2]
    fb.add(fb.ones(2), 2, out=view)
    assert out.tolist() == [2, 3, 3]


def test_out_is_not_tied_to_an_input_that_is_the_result():
    x, out = fb.tensor([1, 2]), fb.zeros(2, dtype=fb.int64)
    for function in (fb.floor, fb.ceil, fb.trunc, fb.conj_physical):
        function(x, out=out)
        out[0] = 9
        assert x.tolist() == [1, 2]


def test_a_tensor_saved_for_backward_notices_a_write_through_out():
    x = fb.rand(3, requires_grad=True)
    factor = fb.rand(3)
    product = x * factor
    fb.exp(fb.zeros(3), out=factor)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


@pytest.mark.parametrize("name", ["add", "exp", "cat", "sum", "matmul"])
def test_out_on_another_device_is_refused(name):
    x = fb.ones(2, 2)
    arguments = {"add": (x, x), "exp": (x,), "cat": ([x, x],), "sum": (x, 0), "matmul": (x, x)}
    with pytest.raises(RuntimeError, match="Expected out tensor to have device cpu, but got meta"):
        getattr(fb, name)(*arguments[name], out=fb.empty(0, device="meta"))


def test_a_resized_out_has_the_strides_of_the_result():
    for t in (torch, fb):
        out = t.empty(0)
        t.exp(t.ones(4, 3).t(), out=out)
        assert tuple(out.stride()) == (1, 3)
        t.exp(t.ones(4, 3).t(), out=(kept := t.empty(3, 4)))
        assert tuple(kept.stride()) == (4, 1)


def test_the_warning_about_a_resized_out_names_both_shapes():
    with pytest.warns(UserWarning, match=r"shape \[5\].*required output shape \[2\]") as caught:
        fb.add(fb.ones(2), 1, out=fb.zeros(5))
    assert len(caught) == 1
    assert re.search("test_out_arguments", caught[0].filename)


def test_the_warning_names_the_line_of_the_call_where_subclasses_see_calls():
    class Seen(fb.Tensor):  # from the first one on, functions look for it
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    with pytest.warns(UserWarning, match="was resized") as caught:
        fb.add(fb.ones(2), 1, out=fb.zeros(5))
    with pytest.warns(UserWarning, match="range is deprecated") as deprecated:
        fb.range(1, 3)
    assert {warning.filename for warning in [*caught, *deprecated]} == {__file__}
