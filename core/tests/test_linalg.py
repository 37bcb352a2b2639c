"""Linear algebra on any device: former names, shapes without data, what decompositions promise."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as fb
from flambeau.ops.matrices import former_decompositions

DEVICES = ("cpu", "ref")
A = ((4.0, 1.0, 0.5), (1.0, 3.0, -0.75), (0.5, -0.75, 2.0))
B = ((1.0, 2.0), (0.5, -1.0), (3.0, 0.25))


def close(found: fb.Tensor, expected: Any) -> bool:
    expected = fb.as_tensor(expected, dtype=found.dtype, device=found.device)
    return found.shape == expected.shape and bool(((found - expected).abs() < 1e-9).all())


@pytest.fixture(params=DEVICES)
def make(request: pytest.FixtureRequest) -> Callable[[Any], fb.Tensor]:
    return lambda values: fb.tensor(values, dtype=fb.float64, device=request.param)


@pytest.fixture(autouse=True)
def _quietly() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def test_former_names_warn_once_and_name_the_replacement() -> None:
    former_decompositions._removed.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            fb.symeig(fb.eye(2))
    assert [w.category for w in caught] == [UserWarning]
    assert "torch.linalg.eigh" in str(caught[0].message)


def test_solve_and_gesv_return_solution_and_lu(make: Any) -> None:
    a, b = make(A), make(B)
    for function in (fb.solve, fb.gesv):
        found = function(b, a)
        assert found._fields == ("solution", "LU")
        assert close(a @ found.solution, b)
        assert close(found.LU, fb.linalg.lu_factor(a).LU)
    assert close(b.gesv(a)[0], found.solution)


def test_cholesky_names_have_an_upper_factor_by_default(make: Any) -> None:
    a, b = make(A), make(B)
    u = fb.potrf(a)
    assert close(u, u.triu())
    assert close(u.t() @ u, a)
    assert close(a @ fb.potrs(b, u), b)
    assert close(fb.potri(u) @ a, fb.eye(3))
    assert close(fb.potri(u.t(), upper=False) @ a, fb.eye(3))


@pytest.mark.parametrize("upper", [True, False])
def test_pstrf_pivots_by_the_largest_diagonal(make: Any, upper: bool) -> None:
    a = make(A).flip(0, 1)
    u, pivot = fb.pstrf(a, upper)
    assert pivot.dtype is fb.int32
    order = pivot.long()
    assert close((u.t() @ u) if upper else (u @ u.t()), a[order][:, order])
    diagonal = u.diagonal().tolist()
    assert diagonal == sorted(diagonal, reverse=True)


def test_gels_has_residuals_below_the_solution(make: Any) -> None:
    a, b = make(B), make(A)
    for function in (fb.gels, fb.lstsq):
        x, packed = function(b, a)
        assert x.shape == (3, 3)
        assert packed.shape == a.shape
        residual = a @ x[:2] - b
        assert close((a.t() @ residual), fb.zeros(2, 3))
        assert close((x[2:] ** 2).sum(0), (residual**2).sum(0))


def test_gels_of_wide_matrices_has_least_norm(make: Any) -> None:
    a, b = make(B).t(), make(A)[:2]
    x = fb.gels(b, a).solution
    assert close(a @ x, b)
    assert close(x, fb.linalg.pinv(a) @ b)


def test_trtrs_solves_and_copies_the_matrix(make: Any) -> None:
    a, b = make(A).triu(), make(B)
    x, copy = fb.trtrs(b, a)
    assert close(a @ x, b)
    assert close(copy, a)
    x, _ = b.trtrs(a, transpose=True)
    assert close(a.t() @ x, b)


def test_btrifact_solves_and_unpacks_batches(make: Any) -> None:
    a = make((A, tuple(reversed(A))))
    b = make(((1.0, 2.0, 3.0), (0.5, 0.25, -1.0)))
    packed, pivots = a.btrifact()
    x = fb.btrisolve(b, packed, pivots)
    assert close((a @ x.unsqueeze(2)).squeeze(2), b)
    p, lower, upper = fb.btriunpack(packed, pivots)
    assert close(p @ lower @ upper, a)
    empty = fb.btriunpack(packed, pivots, unpack_data=False)
    assert empty[1].numel() == empty[2].numel() == 0
    assert fb.btrifact_with_info(a)[2].tolist() == [0, 0]


def test_btrifact_without_pivoting_keeps_rows(make: Any) -> None:
    a = make((A,))
    packed, pivots = fb.btrifact(a, pivot=False)
    assert pivots.tolist() == [[1, 2, 3]]
    _, lower, upper = fb.btriunpack(packed, pivots)
    assert close(lower @ upper, a)


def test_symeig_reads_the_upper_triangle_by_default(make: Any) -> None:
    a = make(A)
    for x, upper in ((a.triu(), True), (a.tril(), False)):
        values, vectors = fb.symeig(x, eigenvectors=True, upper=upper)
        assert close(a @ vectors, vectors * values)
    assert fb.symeig(a).eigenvectors.numel() == 0


def test_eig_has_pairs_of_parts_and_two_columns_for_conjugates(make: Any) -> None:
    a = make(((0.0, -2.0, 0.0), (2.0, 0.0, 1.0), (0.0, 0.0, 3.0)))
    values, vectors = fb.eig(a, eigenvectors=True)
    assert values.shape == (3, 2)
    j = next(i for i, (_, imaginary) in enumerate(values.tolist()) if imaginary > 0)
    real, imaginary = values[j]
    u, v = vectors[:, j], vectors[:, j + 1]
    assert close(a @ u, real * u - imaginary * v)
    assert close(a @ v, imaginary * u + real * v)
    k = next(i for i, (_, imaginary) in enumerate(values.tolist()) if imaginary == 0)
    assert close(a @ vectors[:, k], values[k, 0] * vectors[:, k])


def test_matrix_rank_counts_by_tolerance(make: Any) -> None:
    x = make(((3.0, 0.0), (0.0, 0.5)))
    assert fb.matrix_rank(x).item() == 2
    assert fb.matrix_rank(x, tol=1.0).item() == 1
    assert fb.matrix_rank(x, 1.0, symmetric=True).item() == 1


def test_sums_with_products_take_the_numbers_among_the_tensors(make: Any) -> None:
    m, v, w = make(A), make((1.0, 2.0, 3.0)), make((0.5, 0.0, 1.0))
    expected = 2 * v + 3 * (m @ w)
    assert close(fb.addmv(2, v, 3, m, w), expected)
    assert close(v.addmv(2, 3, m, w), expected)
    assert close(v.clone().addmv_(2, 3, m, w), expected)
    assert close(fb.addmm(2, m, m, m), 2 * m + m @ m)
    with pytest.raises(TypeError, match="invalid combination"):
        fb.addr(1, 2, 3, m, v, w)


def test_beta_zero_ignores_nan(make: Any) -> None:
    nan = make(((math.nan,) * 3,) * 3)
    m = make(A)
    v = make((1.0, 2.0, 3.0))
    assert close(fb.addr(nan, v, v, beta=0), v.unsqueeze(1) * v)
    assert close(fb.addbmm(nan, m.unsqueeze(0), m.unsqueeze(0), beta=0), m @ m)
    assert close(fb.baddbmm(nan, m.unsqueeze(0), m.unsqueeze(0), beta=0)[0], m @ m)
    assert close(fb.addmv(nan[0], m, v, beta=0), m @ v)


def test_the_order_of_a_chain_is_the_cheapest(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [(10, 100), (100, 5), (5, 50)]
    seen: list[tuple[int, ...]] = []
    product = fb.Tensor.__matmul__

    def counted(a: fb.Tensor, b: fb.Tensor) -> fb.Tensor:
        seen.append((*a.shape, b.shape[1]))
        return product(a, b)

    monkeypatch.setattr(fb.Tensor, "__matmul__", counted)
    fb.chain_matmul(*[fb.ones(shape) for shape in shapes])
    assert seen == [(10, 100, 5), (10, 5, 50)]


META = [
    ("cholesky", lambda x: fb.linalg.cholesky(x), [(2, 3, 3)]),
    ("lu", lambda x: tuple(fb.linalg.lu(x)), [(2, 3, 3)] * 3),
    ("qr", lambda x: tuple(fb.linalg.qr(x[..., :2], "complete")), [(2, 3, 3), (2, 3, 2)]),
    ("svd", lambda x: tuple(fb.linalg.svd(x[..., :2])), [(2, 3, 3), (2, 2), (2, 2, 2)]),
    ("eigh", lambda x: tuple(fb.linalg.eigh(x)), [(2, 3), (2, 3, 3)]),
    ("eig", lambda x: tuple(fb.linalg.eig(x)), [(2, 3), (2, 3, 3)]),
    ("solve", lambda x: fb.linalg.solve(x, x[..., :2]), [(2, 3, 2)]),
    ("inv", lambda x: fb.linalg.inv(x), [(2, 3, 3)]),
    ("pinv", lambda x: fb.linalg.pinv(x[..., :2]), [(2, 2, 3)]),
    ("det", lambda x: fb.linalg.det(x), [(2,)]),
    ("slogdet", lambda x: tuple(fb.linalg.slogdet(x)), [(2,), (2,)]),
    ("lstsq", lambda x: fb.linalg.lstsq(x, x).solution, [(2, 3, 3)]),
    ("matrix_exp", lambda x: fb.matrix_exp(x), [(2, 3, 3)]),
    ("matrix_rank", lambda x: fb.linalg.matrix_rank(x), [(2,)]),
]


@pytest.mark.parametrize(("call", "shapes"), [pytest.param(*c[1:], id=c[0]) for c in META])
def test_meta_tensors_have_the_shapes(call: Any, shapes: list[tuple[int, ...]]) -> None:
    found = call(fb.empty(2, 3, 3, device="meta"))
    found = found if isinstance(found, tuple) else (found,)
    assert [tuple(x.shape) for x in found] == shapes


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_jacobi_svd_is_accurate_at_every_scale(scale: float) -> None:
    x = fb.tensor(A, dtype=fb.float64, device="ref") * scale
    expected = fb.linalg.svdvals(fb.tensor(A, dtype=fb.float64))
    assert close(fb.linalg.svdvals(x).cpu() / scale, expected)


def test_jacobi_svd_completes_the_vectors_of_singular_matrices(make: Any) -> None:
    x = make(((1.0, 2.0, 3.0), (2.0, 4.0, 6.0), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    for full in (False, True):
        u, s, vh = fb.linalg.svd(x, full_matrices=full)
        assert close(u.t() @ u, fb.eye(u.shape[1]))
        assert close(vh @ vh.t(), fb.eye(3))
        assert close(u[:, :3] @ s.diag() @ vh, x)
        assert s[2].item() < 1e-12


def test_equal_eigenvalues_have_orthonormal_vectors(make: Any) -> None:
    for x in (make(A) * 0, fb.eye(3).to(make(A)), make(A) * 0 + 1):
        values, vectors = fb.linalg.eigh(x)
        assert close(vectors.t() @ vectors, fb.eye(3))
        assert close(x @ vectors, vectors * values)


def test_defective_matrices_have_their_eigenvalue_twice(make: Any) -> None:
    values = fb.linalg.eigvals(make(((2.0, 1.0), (0.0, 2.0))))
    assert close(values.real, (2.0, 2.0))


def test_results_may_be_written_to_given_tensors() -> None:
    a = fb.tensor(A)
    q, r = fb.empty(0), fb.empty(0)
    found = fb.linalg.qr(a, out=(q, r))
    assert found.Q is q
    assert fb.allclose(q @ r, a, atol=1e-6)
    out = fb.empty(3, 3)
    assert fb.linalg.inv(a, out=out) is out


def test_named_tuples_are_made_of_a_sequence_or_of_their_parts() -> None:
    for kind in {getattr(fb.return_types, name) for name in fb.return_types.__all__}:
        parts = list(range(len(kind._fields)))
        made = kind(parts)
        assert type(made) is kind and made == kind(*parts) == tuple(parts)
        assert made == kind(**dict(zip(kind._fields, parts, strict=True)))
        assert made._replace(**{kind._fields[0]: 0}) == copy.deepcopy(made) == made
        for wrong in ((parts[1:],), ([*parts, 9],), (*parts, 9)):
            with pytest.raises(TypeError, match=f"takes a {len(parts)}-sequence"):
                kind(*wrong)
        with pytest.raises(TypeError):
            kind(*parts, more=1)
    found = fb.tensor([[1.0, 3.0], [2.0, 0.0]]).max(0)
    assert type(found)(x + 1 for x in found).indices.tolist() == [2, 1]


def test_named_tuples_are_those_of_return_types() -> None:
    a = fb.eye(2)
    assert isinstance(fb.svd(a), fb.return_types.svd)
    assert isinstance(fb.linalg.svd(a), fb.return_types.linalg_svd)
    assert fb.linalg.slogdet(a)._fields == ("sign", "logabsdet")
    assert repr(fb.geqrf(a)).startswith("torch.return_types.geqrf(\na=tensor(")
