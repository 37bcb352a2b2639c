"""The switch that asks for exact samples and gradients."""

from __future__ import annotations

from contextlib import ContextDecorator
from contextvars import ContextVar, Token

_ON: ContextVar[bool] = ContextVar("exact_sampling", default=False)


class exact_sampling(ContextDecorator):  # noqa: N801 - as `no_grad`
    """Within it gamma, beta and Dirichlet samples, and those made of them, are exact.

    Their gradients are then the implicit ones to some ten digits, where PyTorch's are good to 8e-4;
    gamma samples are the same numbers.  `Dirichlet` and `Beta` are drawn in log space: with small
    concentrations PyTorch's gamma variables underflow together, so that of Beta(1e-3, 1e-3) a
    quarter of the samples is near 1/2, where that distribution has next to nothing.

    A context manager and a decorator, for the thread (and the asynchronous task) that enters it.

    >>> from flambeau.distributions import Beta, exact_sampling
    >>> import flambeau as fb
    >>> with exact_sampling():
    ...     x = Beta(fb.full((1000,), 1e-3), 1e-3).sample()
    >>> bool(((x > 0.01) & (x < 0.99)).float().mean() < 0.02)
    True
    """

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []

    def _recreate_cm(self) -> exact_sampling:
        return exact_sampling()

    def __enter__(self) -> exact_sampling:
        self._tokens.append(_ON.set(True))
        return self

    def __exit__(self, *error: object) -> None:
        _ON.reset(self._tokens.pop())


def is_exact() -> bool:
    """Whether `exact_sampling` is on here."""
    return _ON.get()
