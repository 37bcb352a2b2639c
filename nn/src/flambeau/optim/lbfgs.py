"""Limited-memory BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._elementwise import check_real
from flambeau.optim._line_search import Point, strong_wolfe
from flambeau.optim._options import check_learning_rate, number
from flambeau.optim.optimizer import Optimizer, ParamsT
from flambeau.overrides import takes_as_annotated

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """A quasi-Newton method: directions from the last changes of gradients (Liu & Nocedal, 1989).

    One step is up to `max_iter` iterations p ← p + t·d, where d = -H·g and H approximates the
    inverse Hessian from the last `history_size` pairs of a change of p and the change of the
    gradient that it caused (the two-loop recursion of Nocedal & Wright, algorithm 7.4).  It keeps
    2·`history_size` vectors of the size of all parameters together, has one parameter group, and
    wants them on one device.

    Args:
        params: parameters, or named parameters.
        lr: step length t; with a line search its first trial.
        max_iter: iterations per step.
        max_eval: evaluations of the closure per step; 5/4 of `max_iter` by default.
        tolerance_grad: end where no component of the gradient exceeds it.
        tolerance_change: end where no component of p, or the loss, changes by more.
        history_size: how many pairs are kept.
        line_search_fn: None for steps of fixed length, or "strong_wolfe".

    Raises:
        ValueError: a negative `lr`, or several parameter groups.
        NotImplementedError: a parameter is complex.

    >>> import flambeau as fb
    >>> x = fb.tensor([-1.0, 2.0], requires_grad=True)
    >>> optimizer = fb.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> for _ in range(3):
    ...     loss = optimizer.step(closure)
    >>> loss.item() < 1e-6
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_learning_rate(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        for param in self._params:
            check_real(self, param)

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    @takes_as_annotated
    @fb.no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Iterate until a tolerance or a limit is reached.

        Args:
            closure: clears the gradients, computes loss and gradients, and returns the loss.

        Returns:
            the loss before the first iteration, as `closure` returned it.

        Raises:
            RuntimeError: `line_search_fn` is neither None nor "strong_wolfe".
        """
        return self._step(closure)

    def _step(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        tolerance_change, tolerance_grad = group["tolerance_change"], group["tolerance_grad"]
        # The state belongs to all parameters; with the first one it takes part in casts on loading.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = self._evaluate(closure)
        state["func_evals"] += 1
        evaluations = 1
        loss, grad = float(first_loss), self._flat_grad()
        if _largest(grad) <= tolerance_grad:
            return first_loss

        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(state, grad)
            state["prev_flat_grad"] = grad.clone()
            state["prev_loss"] = previous_loss = loss
            length = number(group["lr"])
            if state["n_iter"] == 1:  # nothing is known of the curvature yet: a short step
                length /= max(1.0, grad.abs().sum().item())
            state["t"] = length
            slope = grad.dot(direction).item()
            if slope > -tolerance_change:
                break

            used = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = Point(0.0, loss, grad, slope)
                point, used = strong_wolfe(
                    self._objective(closure, direction),
                    direction,
                    start,
                    length,
                    group["max_eval"] - evaluations,
                )
                loss, grad, length = point.value, point.grad, point.step
                state["t"] = length
                self._move(length, direction)
            else:
                self._move(length, direction)
                # After the last iteration nothing would use a new gradient.
                if iteration != group["max_iter"]:
                    loss, grad = float(self._evaluate(closure)), self._flat_grad()
                    used = 1
            evaluations += used
            state["func_evals"] += used

            if (
                evaluations >= group["max_eval"]
                or _largest(grad) <= tolerance_grad
                or _largest(direction) * length <= tolerance_change
                or abs(loss - previous_loss) < tolerance_change
            ):
                break
        return first_loss

    def _direction(self, state: dict[str, Any], grad: Tensor) -> Tensor:
        """The next direction, -H·g, after the last pair of changes has entered the history."""
        if state["n_iter"] == 1:
            state.update({"d": -grad, "old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1})
            return state["d"]

        grad_changes, moves, ratios = state["old_dirs"], state["old_stps"], state["ro"]
        size = self.param_groups[0]["history_size"]
        grad_change = grad - state["prev_flat_grad"]
        move = state["d"] * number(state["t"])
        product = grad_change.dot(move).item()
        if product > 1e-10:  # otherwise H would not stay positive definite
            if len(grad_changes) == size:
                for kept in (grad_changes, moves, ratios):
                    kept.pop(0)
            grad_changes.append(grad_change)
            moves.append(move)
            ratios.append(1.0 / product)
            state["H_diag"] = product / grad_change.dot(grad_change).item()

        history = range(len(moves))
        weights = state.setdefault("al", [None] * size)
        direction = -grad
        for i in reversed(history):
            weights[i] = moves[i].dot(direction).item() * float(ratios[i])
            direction.add_(grad_changes[i], alpha=-weights[i])
        direction.mul_(float(state["H_diag"]))
        for i in history:
            overlap = grad_changes[i].dot(direction).item() * float(ratios[i])
            direction.add_(moves[i], alpha=weights[i] - overlap)
        state["d"] = direction
        return direction

    def _objective(
        self, closure: Callable[[], Any], direction: Tensor
    ) -> Callable[[float], tuple[float, Tensor]]:
        """Loss and gradient as functions of the step length; parameters stay where they are."""
        start = [param.clone() for param in self._params]

        def objective(length: float) -> tuple[float, Tensor]:
            self._move(length, direction)
            loss, grad = float(self._evaluate(closure)), self._flat_grad()
            for param, value in zip(self._params, start, strict=True):
                param.copy_(value)
            return loss, grad

        return objective

    def _flat_grad(self) -> Tensor:
        """The gradients of all parameters in one row; zeros for one that has none."""
        return fb.cat(
            [
                (fb.zeros_like(param) if (grad := param.grad) is None else grad).reshape(-1)
                for param in self._params
            ]
        )

    def _move(self, length: float, direction: Tensor) -> None:
        start = 0
        for param in self._params:
            end = start + param.numel()
            param.add_(direction[start:end].view_as(param), alpha=length)
            start = end


def _largest(vector: Tensor) -> float:
    return vector.abs().max().item()
