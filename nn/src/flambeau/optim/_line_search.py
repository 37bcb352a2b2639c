"""A line search for the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from flambeau import Tensor


@dataclass
class Point:
    """A step length with the objective, its gradient and its slope along the direction there."""

    step: float
    value: float
    grad: Tensor
    slope: float


def strong_wolfe(
    objective: Callable[[float], tuple[float, Tensor]],
    direction: Tensor,
    start: Point,
    step: float,
    evaluations: int,
    *,
    decrease: float = 1e-4,
    curvature: float = 0.9,
    tolerance_change: float = 1e-9,
) -> tuple[Point, int]:
    """A point along `direction` that satisfies the strong Wolfe conditions, and what it cost.

    f(t) ≤ f(0) + decrease·t·f'(0) and |f'(t)| ≤ curvature·|f'(0)|, sought as in Nocedal & Wright,
    Numerical Optimization, section 3.5: steps grow until an interval contains such a point, then
    the interval shrinks around it.  Trial steps minimise cubics through two points.

    Args:
        objective: gives f(t) and the gradient at step t; the gradient may be reused by the caller.
        direction: the direction, one-dimensional.
        start: the point at step 0.
        step: the first trial.
        evaluations: how many further ones the search may use; it ends with the best point then.
    """

    def evaluate(step: float) -> Point:
        value, grad = objective(step)
        return Point(step, value, grad, grad.dot(direction).item())

    def sufficient(point: Point) -> bool:
        return not point.value > start.value + decrease * point.step * start.slope

    def flat(point: Point) -> bool:
        return abs(point.slope) <= -curvature * start.slope

    extent = direction.abs().max().item()
    previous, point = start, evaluate(step)
    used = 0
    while used < evaluations:
        if not sufficient(point) or (used > 1 and point.value >= previous.value):
            break
        if flat(point):
            return point, used + 1
        if point.slope >= 0:
            break
        bounds = point.step + 0.01 * (point.step - previous.step), point.step * 10
        trial = _cubic_minimum(previous, point, bounds)
        previous, point = point, evaluate(trial)
        used += 1
    else:
        previous = start  # nothing brackets the minimum: keep the better of the first and the last

    bracket = [previous, point]
    low = _lower(bracket)
    stalled = False
    while used < evaluations and (
        abs(bracket[1].step - bracket[0].step) * extent >= tolerance_change
    ):
        trial = _cubic_minimum(bracket[0], bracket[1])
        trial, stalled = _away_from_ends(trial, bracket, stalled)
        point = evaluate(trial)
        used += 1
        high = 1 - low
        if not sufficient(point) or point.value >= bracket[low].value:
            bracket[high] = point
            low = _lower(bracket)
            continue
        found = flat(point)
        if not found and point.slope * (bracket[high].step - bracket[low].step) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = point
        if found:
            break
    return bracket[low], used + 1


def _lower(bracket: list[Point]) -> int:
    """Which end of the bracket has the lower value."""
    return 0 if bracket[0].value <= bracket[1].value else 1


def _away_from_ends(trial: float, bracket: list[Point], stalled: bool) -> tuple[float, bool]:
    """The trial step, moved into the bracket where trials stay close to an end, and if they do."""
    lower, upper = sorted(point.step for point in bracket)
    margin = 0.1 * (upper - lower)
    if min(upper - trial, trial - lower) >= margin:
        return trial, False
    if not (stalled or trial >= upper or trial <= lower):
        return trial, True
    return upper - margin if abs(trial - upper) < abs(trial - lower) else lower + margin, False


def _cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """The minimiser of the cubic through two points, within `bounds`; their middle without one.

    Nocedal & Wright, equation 3.59.  The bounds are the points themselves by default.
    """
    lower, upper = bounds or (min(a.step, b.step), max(a.step, b.step))
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (lower + upper) / 2
    d2 = math.sqrt(square)
    near, far = (a, b) if a.step <= b.step else (b, a)
    top, bottom = far.slope + d2 - d1, far.slope - near.slope + 2 * d2
    ratio = top / bottom if bottom else math.copysign(math.inf, top)  # a line has no minimum
    minimum = far.step - (far.step - near.step) * ratio
    return min(max(minimum, lower), upper)
