"""The line search of ``torch.optim.lbfgs``, which second-order optimisers of programs call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import Tensor
from flambeau.optim._line_search import Point, _cubic_minimum, strong_wolfe

__all__ = ["_cubic_interpolate", "_strong_wolfe"]


def _cubic_interpolate(
    x1: Any,
    f1: Any,
    g1: Any,
    x2: Any,
    f2: Any,
    g2: Any,
    bounds: tuple[float, float] | None = None,
) -> float:
    """The minimiser, within bounds, of the cubic through two points with slopes `g1` and `g2`."""
    a, b = (Point(float(x), float(f), g, float(g)) for x, f, g in ((x1, f1, g1), (x2, f2, g2)))
    return _cubic_minimum(a, b, bounds)


def _strong_wolfe(
    obj_func: Callable[[Any, float, Tensor], tuple[float, Tensor]],
    x: Any,
    t: Any,
    d: Tensor,
    f: Any,
    g: Tensor,
    gtd: Any,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[float, Tensor, float, int]:
    """Loss, gradient and step length that satisfy the strong Wolfe conditions, and evaluations.

    Args:
        obj_func: gives loss and gradient for ``(x, step length, d)``.
        x: what `obj_func` starts from.
        t: the first step length.
        d: the direction.
        f, g, gtd: loss, gradient, and slope along `d`, at the start.
        c1, c2: how much of the slope the loss must gain and the new slope may keep.
        tolerance_change: the smallest change along `d`.
        max_ls: how many evaluations after the first.
    """
    start = Point(0.0, float(f), g, float(gtd))

    def objective(step: float) -> tuple[float, Tensor]:
        loss, grad = obj_func(x, step, d)
        return float(loss), grad.clone()

    point, used = strong_wolfe(
        objective,
        d,
        start,
        float(t),
        max_ls,
        decrease=c1,
        curvature=c2,
        tolerance_change=tolerance_change,
    )
    return point.value, point.grad, point.step, used
