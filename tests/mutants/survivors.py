"""Mutants that the kit does not find, and why not."""

from __future__ import annotations

_SYMMETRIC = "the samples' matrices are symmetric, or the result is that of the transposed one"
_VECTORS = "its samples have one dimension: memory lies in their order"
_FORWARD = "says what becomes of gradients, or of losses once they are computed"
_ONE_NUMBER = "the result is one number"
_ALIKE = "both arrays lie alike, and are equal or not wherever they begin"
_COUNTS = "counts are whole numbers, and rounding moves no sample's element to another bin"
_SIGN = "of NaN it is 0 or NaN by dtype, else 1 or -1"
_REAL = "samples of factorisations are real numbers in complex dtypes too"
_REFUSED = "a factorisation may refuse NaN, or leave it where it likes"
_PRODUCT = "factors are compared by their product, which every choice of pivots gives"

EQUIVALENT: dict[tuple[str, str], str] = {
    ("contiguous", "returns its argument, written to"): "it may return its argument",
    ("sort", "argument 3 is always True"): "equal elements keep their order whatever `stable` says",
    ("embedding", "argument 2 is always -1"): _FORWARD,
    ("embedding", "argument 3 is always False"): _FORWARD,
    ("ctc_loss", "argument 5 is always False"): _FORWARD,
    ("median", "last element is the one before"): _ONE_NUMBER,
    ("median", "memory read as it lies"): _VECTORS,
    ("nll_loss_backward", "memory read as it lies"): _VECTORS,
    ("histogram", "memory read as it lies"): _VECTORS,
    ("histogram", "NaN of results lost"): _COUNTS,
    ("equal", "last element is the one before"): _ONE_NUMBER,
    ("equal", "memory read as it lies"): _ALIKE,
    ("max_pool2d_backward", "memory read as it lies"): "places and gradients are permuted alike",
    ("determinant", "memory read as it lies"): _SYMMETRIC,
    ("slogdet", "memory read as it lies"): _SYMMETRIC,
    ("imag", "NaN taken for 0"): "of real numbers it is 0",
    ("imag", "NaN of results lost"): "of real numbers it is 0",
    **{
        ("sgn", what): _SIGN
        for what in (
            *("NaN taken for 0", "NaN of results lost", "in half precision"),
            "doubles in single precision",
        )
    },
    ("sign", "NaN of results lost"): _SIGN,
}
"""Wrong by the mutator's rule and right by the contract."""

OPEN: dict[tuple[str, str], str] = {
    ("cholesky_ex", "memory read as it lies"): _SYMMETRIC,
    ("ldl_factor_ex", "memory read as it lies"): _SYMMETRIC,
    ("equal", "offset ignored"): _ALIKE,
    ("histogram", "in half precision"): _COUNTS,
    ("histogram", "doubles in single precision"): _COUNTS,
    ("ldl_factor_ex", "argument 1 is always False"): _REAL,
    ("lu_factor_ex", "argument 1 is always True"): _PRODUCT,
    ("qr", "argument 1 is always False"): _PRODUCT,
    **{
        (name, "conjugated"): _REAL
        for name in ("cholesky_ex", "eigh", "ldl_factor_ex", "triangular_solve")
    },
    **{
        (name, "NaN of results lost"): _REFUSED
        for name in (
            *("cholesky_ex", "eigh", "eigvalsh", "geqrf", "householder_product"),
            *("ldl_factor_ex", "lu_factor_ex", "qr", "slogdet", "svd", "svdvals"),
        )
    },
}
"""Wrong, and not found."""

REASONS = {**EQUIVALENT, **OPEN}


def reason(name: str, what: str) -> str:
    """Why a mutant may survive; empty if it may not."""
    return REASONS.get((name, what), "")
