"""How optimisers walk over their groups and parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.optim.optimizer import Optimizer


class GroupOptimizer(Optimizer):
    """An optimiser whose step is one of each group: a subclass defines `_step_group`."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        Args:
            closure: re-evaluates the model and returns the loss; called once, with gradients on.

        Returns:
            what `closure` returned, or None without one.

        Raises:
            RuntimeError: a gradient is sparse, or dense, and the optimiser does not support it.
            NotImplementedError: a parameter is complex on a device without views of memory.
        """
        loss = self._evaluate(closure)
        (_recorded if self.defaults.get("differentiable", False) else _unrecorded)(self)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _step_group()")


def _all_groups(optimizer: GroupOptimizer) -> None:
    for group in optimizer.param_groups:
        optimizer._step_group(group)


# Functions and not blocks: an interrupt could keep the end of a block from beginning.
_recorded, _unrecorded = fb.enable_grad()(_all_groups), fb.no_grad()(_all_groups)


class ParameterOptimizer(GroupOptimizer):
    """An optimiser that takes one parameter after the other: a subclass defines `_step_param`."""

    def _step_group(self, group: dict[str, Any]) -> None:
        for param in group["params"]:
            if (grad := param.grad) is not None:
                self._step_param(param, grad, group)

    def _step_param(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _step_param()")
