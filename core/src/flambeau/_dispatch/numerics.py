"""How exact and how repeatable backends shall be: PyTorch's functions over `plugin.numerics`."""

from __future__ import annotations

from flambeau._dispatch.warning import warn
from flambeau.plugin.accelerator import numerics

_PRECISIONS = ("highest", "high", "medium")


class _Asked:
    """What was asked for, where `numerics` holds less."""

    deterministic = False
    warn_only = False
    medium = False


_asked = _Asked()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Let backends use only algorithms that give the same bits each time.

    On the CPU all do, for one number of threads. Backends of accelerators take slower algorithms
    where the fast ones add in any order; none has to refuse an op, so `warn_only` is only kept.
    It sets and clears `flambeau.backends.cudnn.deterministic`.

    Args:
        mode: whether to.
        warn_only: whether an op without such an algorithm warns instead of raising.

    Raises:
        TypeError: an argument is no bool.

    >>> import flambeau as fb
    >>> fb.use_deterministic_algorithms(True)
    >>> fb.are_deterministic_algorithms_enabled(), fb.backends.cudnn.deterministic
    (True, True)
    >>> fb.use_deterministic_algorithms(False)
    """
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"use_deterministic_algorithms(): {name} must be bool, not {type(value).__name__}"
            )
    if mode or _asked.deterministic:
        numerics.deterministic = mode
    _asked.deterministic, _asked.warn_only = mode, warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` is on.

    >>> import flambeau as fb
    >>> fb.are_deterministic_algorithms_enabled()
    False
    """
    return _asked.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether `use_deterministic_algorithms` was last called with ``warn_only=True``.

    >>> import flambeau as fb
    >>> fb.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _asked.warn_only


def set_float32_matmul_precision(precision: str) -> None:
    """How exact products of float32 matrices must be.

    With ``'high'`` and ``'medium'`` a backend may round factors to 10 bits (TensorFloat-32), as
    with `flambeau.backends.cuda.matmul.allow_tf32`; the kernels of the CPU never do.

    Args:
        precision: ``'highest'`` (the default), ``'high'`` or ``'medium'``.

    Warns:
        UserWarning: `precision` is another word; nothing changes.

    Raises:
        RuntimeError: `precision` is no str.

    >>> import flambeau as fb
    >>> fb.set_float32_matmul_precision("high")
    >>> fb.get_float32_matmul_precision(), fb.backends.cuda.matmul.allow_tf32
    ('high', True)
    >>> fb.set_float32_matmul_precision("highest")
    """
    if not isinstance(precision, str):
        raise RuntimeError(
            f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}"
        )
    if precision not in _PRECISIONS:
        warn(
            f"set_float32_matmul_precision(): {precision!r} is none of {', '.join(_PRECISIONS)};"
            " nothing changes"
        )
        return
    numerics.matmul_tf32, _asked.medium = precision != "highest", precision == "medium"


def get_float32_matmul_precision() -> str:
    """How exact products of float32 matrices must be: ``'highest'``, ``'high'`` or ``'medium'``.

    >>> import flambeau as fb
    >>> fb.get_float32_matmul_precision()
    'highest'
    """
    if not numerics.matmul_tf32:
        return "highest"
    return "medium" if _asked.medium else "high"


def set_flush_denormal(mode: bool) -> bool:
    """Ask that numbers below the smallest normal one become zero; whether the request was met.

    It never is: the processor's flag belongs to each thread of the libraries that compute.

    >>> import flambeau as fb
    >>> fb.set_flush_denormal(True)
    False
    """
    return False
