"""The sweep over distributions finds what PyTorch answers, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import distribution_sweep  # noqa: E402 - torch may be absent

FEW = ["Bernoulli", "Dirichlet", "Gamma numbers", "Normal", "Poisson"]


def test_of_what_some_families_answer_99_in_100_is_what_pytorch_answers() -> None:
    total, same, wrong = distribution_sweep.sweep(FEW)
    assert set(total) == {"repr", "shapes", "values", "gradients", "errors", "bad parameters"}
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
    assert wrong == ["Normal, float64, : log_prob of 0", "Normal, float32, : log_prob of 0"]
