"""Entries for reductions, scans, spectral functions and linear algebra."""

# ruff: noqa: E501 - a table of calls

from __future__ import annotations

from op_parity import DTYPES, FLOATING, LAPACK, LAYOUTS, REAL, Entry

CONTIGUOUS = ["contiguous"]
MATRICES = ["contiguous", "transposed", "sliced", "expanded", "offset", "empty"]
BATCH = {"x": (2, 3, 3), "y": (2, 3, 2)}

SVD = (
    "t.svd(a)[1]; t.svd(b)[1]; t.svd(k).S; t.svd(a, some=False)[0].shape; t.svd(a, compute_uv=False)[1];"
    "(lambda u: u[0] @ t.diag(u[1]) @ u[2].t())(t.svd(a)); a.svd()[1]; t.svd(v)"
)
REDUCTION = [
    Entry(
        "sum mean",
        "x; x, 0; x, -1, True; x, (0, 1); x, dim=1, keepdim=True; x, dtype=t.float32;"
        "x, 1, dtype=t.float64; x, 5; x, (0, 0); x, dim=None; x, []",
        layouts=LAYOUTS,
    ),
    Entry("sum mean", calls="t.NAME(x, 1, out=v); t.NAME(x, 0, True, out=c)"),
    Entry(
        "prod",
        "x; x, 0; x, -1, True; x, dtype=t.float32; x, 1, dtype=t.float64; x, 5",
        layouts=LAYOUTS,
    ),
    Entry("all any", "x; x, 0; x, dim=-1, keepdim=True; x, 5; x, (0, 1)", layouts=LAYOUTS),
    Entry(
        "argmax argmin",
        "x; x, 0; x, -1, True; x, dim=1, keepdim=True; x, 5; x, dim=None",
        layouts=LAYOUTS,
        gradient=False,
    ),
    Entry(
        "max min",
        "x; x, 0; x, -1, True; x, dim=1, keepdim=True; x, 5",
        layouts=LAYOUTS,
        dtypes=DTYPES,
    ),
    Entry("median", "x; x, 0; x, -1, True; x, 5", layouts=LAYOUTS, dtypes=DTYPES),
    Entry("mode", "x; x, 0; x, -1, True; x, 5", layouts=LAYOUTS, dtypes=REAL),
    Entry(
        "std var",
        "x; x, 0; x, -1, True; x, 1, False; x, dim=0, unbiased=False, keepdim=True; x, (0, 1);"
        "x, dim=1, correction=0; x, unbiased=False; x, 5; x, correction=2",
        layouts=LAYOUTS,
        tolerance=3,
    ),
    Entry(
        "norm",
        "x; x, 1; x, 2, 0; x, 'fro'; x, 'nuc'; x, p=float('inf'), dim=1; x, 0; x, 3, -1, True; x, 2, (0, 1);"
        "x, dim=1; x, -float('inf'); x, 2, dtype=t.float64",
        layouts=LAYOUTS,
        tolerance=3,
    ),
    Entry("dist", "x, y; x, y, 1; x, r, p=0; x, y, float('inf'); x, y, 3", tolerance=3),
    Entry("logsumexp", "x, 0; x, -1, True; x, (0, 1); x, 5", layouts=LAYOUTS, out=True),
    Entry(
        "cumsum cumprod",
        "x, 0; x, -1; x, 1, dtype=t.float32; x, dim=0, dtype=t.int64; x, 5",
        layouts=LAYOUTS,
        out=True,
    ),
    Entry(
        "softmax log_softmax", "x, 0; x, -1; x, dim=1; x, 1, dtype=t.float64; x, 5", layouts=LAYOUTS
    ),
    Entry(
        "renorm",
        "x, 2, 0, 1; x, 1, 1, 2.5; x, 2, -1, 1; x, -1, 0, 1; x, 2, 0, -1; x, 2, 5, 1",
        out=True,
        dtypes=[*LAPACK, "float16", "bfloat16", "int64"],
    ),
    Entry(
        "histc",
        "x; x, 4; x, 4, -1, 1; x, bins=3, min=0, max=2; x, 0; x, 3, 2, 1",
        gradient=False,
        dtypes=REAL,
        layouts=LAYOUTS,
        out=True,
    ),
    Entry(
        "cosine_similarity",
        calls="t.cosine_similarity(x, y); t.cosine_similarity(x, y, 0); t.cosine_similarity(x, r, dim=-1)",
        dtypes=FLOATING,
        tolerance=3,
    ),
    Entry(
        "pairwise_distance",
        calls="t.pairwise_distance(x, y); t.pairwise_distance(x, y, 1); t.pairwise_distance(x, y, keepdim=True)",
        dtypes=FLOATING,
        tolerance=3,
    ),
    Entry(
        "cdist",
        calls="t.cdist(a, q); t.cdist(a, q, p=1); t.cdist(a, q, p=0); t.cdist(a, q, p=float('inf')); t.cdist(a, b);"
        "t.cdist(k, k + 1, 3); t.cdist(a, q, -1)",
        dtypes=["float64", "float32"],
        layouts=MATRICES,
        tolerance=10,
    ),
    Entry(
        "pdist",
        calls="t.pdist(q); t.pdist(x, 1); t.pdist(v); t.pdist(q, 0); t.pdist(q, float('inf'))",
        dtypes=["float64", "float32"],
        layouts=MATRICES,
        tolerance=10,
    ),
    Entry(
        "fft",
        calls="t.fft.NAME(x); t.fft.fft(x, 4); t.fft.fft(x, dim=0); t.fft.fft(x, norm='ortho'); t.fft.rfft(x);"
        "t.fft.irfft(x); t.fft.ifft(x, dim=-2); t.fft.fft2(x); t.fft.fftn(x, (2, 2)); t.fft.rfft(x, 0); t.fft.fft(x, dim=4);"
        "t.fft.fftshift(x); t.fft.irfft(x, 5, norm='forward')",
        dtypes=LAPACK,
    ),
    Entry(
        "stft",
        calls="t.stft(x, 4, return_complex=True); t.stft(x, 4, hop_length=2, window=u, return_complex=True);"
        "t.stft(x, 4, center=False, onesided=False, return_complex=True); t.stft(x, 4, normalized=True, return_complex=True);"
        "t.stft(x[0], 4, 2, return_complex=True); t.stft(x, 0, return_complex=True); t.stft(x, 4);"
        "t.view_as_real(x.stft(4, return_complex=True))",
        shapes={"x": (2, 9), "u": (4,)},
        dtypes=["float64", "float32"],
        layouts=["contiguous", "transposed", "sliced", "expanded", "offset"],
    ),
]

PRODUCTS = [
    Entry("mm matmul", "a, b; a, a; b, v; a, v", layouts=MATRICES, out=True),
    Entry("matmul", "A, B; a, B; v, b; v, v; A, v; v, B; a, 2; s, s; A, A", layouts=MATRICES),
    Entry("matmul", calls="a @ b; v @ v; A @ B", layouts=MATRICES),
    Entry("bmm", "A, B; A, A; a, b", layouts=MATRICES, out=True),
    Entry("mv", "a, v; a, w; v, v", layouts=MATRICES, out=True),
    Entry("dot", "v, v; v, w; a, a", layouts=MATRICES, out=True),
    Entry("ger", "w, v; v, v; a, v", layouts=MATRICES, out=True),
    Entry(
        "addmm",
        "e, a, b; e, a, b, beta=2, alpha=3; u, a, b; e, a, b, beta=0.5; e, a, a; e, a, b, beta=0; s, a, b",
        layouts=MATRICES,
        out=True,
    ),
    Entry(
        "addmv",
        "w, a, v; w, a, v, beta=2, alpha=3; s, a, v; w, a, w; w, a, v, beta=0",
        layouts=MATRICES,
        out=True,
    ),
    Entry(
        "addr",
        "x, w, v; x, w, v, beta=2, alpha=3; s, w, v; x, v, v; x, w, v, beta=0",
        layouts=MATRICES,
        out=True,
    ),
    Entry(
        "addbmm",
        "e, A, B; e, A, B, beta=2, alpha=3; u, A, B; e, A, A; e, A, B, beta=0",
        layouts=MATRICES,
        out=True,
    ),
    Entry(
        "baddbmm",
        "E, A, B; E, A, B, beta=2, alpha=3; u, A, B; E, A, A; E, A, B, beta=0",
        layouts=MATRICES,
        out=True,
    ),
    Entry(
        "bilinear",
        calls="t.bilinear(a, e, k, None); t.bilinear(a, e, k, w)",
        shapes={"k": (2, 3, 4)},
        layouts=MATRICES,
        dtypes=FLOATING,
    ),
    Entry(
        "chain_matmul",
        calls="t.chain_matmul(a, b); t.chain_matmul(q, q, b); t.chain_matmul(a); t.chain_matmul(a, a)",
        layouts=MATRICES,
        dtypes=[*LAPACK, "int64"],
    ),
    Entry(
        "einsum",
        calls="t.einsum('ij,jk->ik', a, b); t.einsum('ij->ji', a); t.einsum('ii', q); t.einsum('i,j', w, v);"
        "t.einsum('bij,bjk', A, B); t.einsum('...ij->...', A); t.einsum('ij,ij', a, a); t.einsum('ij,jk', a, a);"
        "t.einsum('ii->i', q); t.einsum('i->', v); t.einsum('ij,k', a, b); t.einsum('i->ij', v); t.einsum('bij->bi', A);"
        "t.einsum([a, b], 'ij') if 0 else t.einsum('ij,jk->ki', [a, b])",
        layouts=MATRICES,
    ),
    Entry(
        "tensordot",
        calls="t.tensordot(a, b, 1); t.tensordot(A, B, dims=([2, 0], [1, 0])); t.tensordot(a, a, 2); t.tensordot(a, b, 0);"
        "t.tensordot(a, b, -1); t.tensordot(a, b, ([0], [0])); t.tensordot(a, a, 3)",
        layouts=MATRICES,
    ),
    Entry("cross", "x, y; x, y, 1; x, y, dim=-1; x, y, 0; x, r, 1; x, y, 5", out=True),
    Entry("trace", "q; a; v", layouts=MATRICES),
    Entry(
        "matrix_power",
        "q, 3; q, 0; q, 1; q, -1; k, 2; a, 2; q, -3",
        layouts=MATRICES,
        dtypes=[*LAPACK, "float16", "int64"],
        tolerance=100,
    ),
]

LINALG = [
    Entry(
        "cholesky",
        "h; h, True; h, upper=True; a; -h; v",
        layouts=MATRICES,
        dtypes=[*LAPACK, "int64", "float16"],
        out=True,
        tolerance=100,
    ),
    Entry(
        "cholesky_solve",
        "b, h; b, h, True; a, h; k, h",
        layouts=MATRICES,
        dtypes=[*LAPACK, "int64"],
        tolerance=1000,
    ),
    Entry(
        "inverse pinverse",
        "h; k; a; v; h - h",
        layouts=MATRICES,
        dtypes=[*LAPACK, "int64"],
        tolerance=1000,
    ),
    Entry(
        "det logdet slogdet",
        "q; h; k; a; h - h; v",
        layouts=MATRICES,
        dtypes=[*LAPACK, "int64", "float16"],
        tolerance=1000,
    ),
    Entry(
        "geqrf",
        "q; a; k; v",
        layouts=CONTIGUOUS,
        dtypes=[*LAPACK, "int64"],
        tolerance=100,
        gradient=False,
    ),
    Entry(
        "qr",
        "q; a; b; q, False; k; q, some=True; v",
        layouts=MATRICES,
        dtypes=[*LAPACK, "int64"],
        tolerance=1000,
    ),
    Entry(
        "svd",
        calls=SVD,
        layouts=[layout for layout in MATRICES if layout != "expanded"],
        dtypes=DTYPES[:2],
        tolerance=1000,
    ),
    # A matrix of equal rows has rank 1: which vectors belong to its other singular values, and with
    # them its gradients, is for the library to choose.
    Entry(
        "svd",
        calls=SVD,
        layouts=["expanded"],
        dtypes=DTYPES[:2],
        gradient=False,
        tolerance=1000,
    ),
    Entry(
        "symeig eig solve matrix_rank gels",
        calls="t.NAME(h); t.NAME(h, h); h.NAME(h) if hasattr(h, 'NAME') else 0",
        layouts=CONTIGUOUS,
        dtypes=DTYPES[:2],
    ),
    Entry(
        "orgqr",
        "a.mT, w; q, v; a, v; q, u",
        layouts=MATRICES,
        dtypes=LAPACK,
        gradient=False,
        tolerance=1000,
    ),
    Entry(
        "ormqr",
        calls="t.ormqr(q, v, b); q.ormqr(v, b); t.ormqr(q, v, a, left=False); t.ormqr(q, v, a);"
        "t.ormqr(q, v, b, True, True)",
        layouts=CONTIGUOUS,
        dtypes=DTYPES[:2],
        gradient=False,
        tolerance=1000,
    ),
    Entry(
        "frobenius_norm nuclear_norm",
        calls="t.norm(a, 'fro'); t.norm(a, 'nuc'); t.norm(k, 'nuc', dim=(1, 2)); t.norm(k, 'fro', dim=(0, 1))",
        layouts=MATRICES,
        dtypes=LAPACK,
        tolerance=1000,
    ),
]
