"""The sweep over distributions finds what PyTorch answers, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import distribution_sweep  # noqa: E402 - torch may be absent
import flambeau as fb  # noqa: E402

FEW = ["Bernoulli", "Dirichlet", "Gamma numbers", "Normal", "Poisson"]


def test_of_what_some_families_answer_99_in_100_is_what_pytorch_answers() -> None:
    total, same, wrong = distribution_sweep.sweep(FEW)
    kinds = {"repr", "shapes", "values", "gradients", "errors", "bad parameters"}
    assert kinds <= set(total) <= {*kinds, "NaN in PyTorch"}
    assert same.total() >= 0.99 * total.total(), wrong


def test_an_answer_that_is_another_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = distribution_sweep.answers

    def off(library: Any, name: str, values: Any) -> Any:
        for kind, what, x in plain(library, name, values):
            ours = library.module is not torch
            yield (
                kind,
                what,
                x * 1.001 if ours and (kind, what) == ("values", "log_prob of 0") else x,
            )

    monkeypatch.setattr(distribution_sweep, "answers", off)
    wrong = distribution_sweep.sweep(["Normal"])[2]
    assert wrong == [
        f"Normal, {dtype}, {how}: log_prob of 0"
        for how in ("", "unchecked")
        for dtype in ("float64", "float32")
    ]


def test_numbers_where_pytorch_has_none_are_told_from_others() -> None:
    mine, reference = fb.tensor([1.0, 2.0]), torch.tensor([float("nan"), 2.0])
    found = distribution_sweep.without_holes([mine], [reference])
    assert found[0].tolist() == [1.0, 2.0]
    assert distribution_sweep.without_holes(mine[:1], reference) is reference
