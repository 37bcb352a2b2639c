"""Anomaly mode: remember where each op was called, and find the first NaN of a backward pass."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau._autograd import engine

if TYPE_CHECKING:
    from flambeau._autograd.node import Node
    from flambeau.ops.declaration.formulas import Formulas


_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")

enabled = False
_check_nan = True


class set_detect_anomaly:  # noqa: N801 - PyTorch's name
    """Switch anomaly mode on or off, at once or for a block.

    In anomaly mode each recorded op keeps the traceback of its forward call, shown when its
    backward fails, and a backward that produces NaN raises.

    Args:
        mode: on or off.
        check_nan: whether NaN raises.

    >>> import flambeau as fb
    >>> with fb.autograd.set_detect_anomaly(False):
    ...     pass
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = (enabled, _check_nan)
        _set(bool(mode), bool(check_nan))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _set(*self._before)


class detect_anomaly:  # noqa: N801 - PyTorch's name
    """Context manager that switches anomaly mode on; slow, for debugging only.

    Raises:
        RuntimeError: inside, by a backward whose function returns NaN.

    >>> import flambeau as fb, warnings
    >>> x = fb.zeros(1, requires_grad=True)
    >>> with warnings.catch_warnings(action="ignore"), fb.autograd.detect_anomaly():
    ...     try:
    ...         (x.sqrt() * 0).backward()
    ...     except RuntimeError as error:
    ...         print(error)
    Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._before = (enabled, _check_nan)
        _set(True, self._check_nan)

    def __exit__(self, *exc: object) -> None:
        _set(*self._before)


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on.

    >>> import flambeau as fb
    >>> fb.is_anomaly_enabled()
    False
    """
    return enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode raises at NaN.

    >>> import flambeau as fb
    >>> fb.is_anomaly_check_nan_enabled()
    True
    """
    return _check_nan


def _set(mode: bool, check_nan: bool) -> None:
    global enabled, _check_nan
    from flambeau._dispatch import dispatch as _dispatch

    if mode != enabled:
        _dispatch.shift_modes(+1 if mode else -1)
        if mode:
            # First: what a profiler times should not be part of what is checked.
            engine.watchers.insert(0, checked_apply)
        else:
            engine.watchers.remove(checked_apply)
    enabled, _check_nan = mode, check_nan


def remember_call(node: Any) -> None:
    """Keep the user's part of the present stack on a node."""
    import traceback  # here, since it is rarely needed and slow to import

    frames = traceback.extract_stack()
    theirs = [i for i, f in enumerate(frames) if not f.filename.startswith(_PACKAGE)]
    kept = frames[: theirs[-1] + 1] if theirs else frames
    node.metadata["traceback"] = "".join(
        traceback.format_list(traceback.StackSummary.from_list(kept))
    )


def checked_apply(
    node: Node,
    apply: Callable[[Any, Any], Any],
    F: Formulas,
    g: object,
) -> Any:
    """Apply a node; on failure or NaN, say where its forward call was."""
    try:
        parts = apply(F, g)
    except Exception:
        _warn(node)
        raise
    if _check_nan:
        for i, part in enumerate(parts):
            if part is not None and not isinstance(part, dict) and _has_nan(F, part):
                _warn(node)
                raise RuntimeError(
                    f"Function {node.name()!r} returned nan values in its {i}th output."
                )
    return parts


def _has_nan(F: Any, part: Any) -> bool:
    if F.native:
        part = F.fresh(part)
        if not F.dtype_of(part).fp:
            return False
        found = F.fresh(F.ne(part, part))
        dims = tuple(range(len(found.shape)))
        return bool(F.backend.item(F.fresh(F.any(found, dims, False))))
    return bool((part != part).any().item())


def _warn(node: Node) -> None:
    trace = node.metadata.get("traceback")
    if trace is None:
        text = (
            f"Error detected in {node.name()}. No forward pass information available. Enable "
            "detect anomaly during forward pass for more information."
        )
    else:
        text = (
            f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
            f"{trace}"
        )
    warnings.warn(text, stacklevel=3)
