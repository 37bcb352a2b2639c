"""What the optimisers share that treat every parameter by itself."""

from __future__ import annotations

from typing import Any, ClassVar

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._options import per_device, scalar_dtype
from flambeau.optim._steps import GroupOptimizer
from flambeau.optim.optimizer import Optimizer

State = dict[str, Any]


class ElementwiseOptimizer(GroupOptimizer):
    """An optimiser whose step changes each element by its own gradient and its own history.

    A subclass defines `_start`, which fills the state of a parameter; `_state_names`, what of it a
    step needs, in the order of the canonical op; and `_step_lists`, which calls that op.
    """

    # What state dictionaries of older versions lack, and the numbers that they hold as floats.
    _later_options: ClassVar[dict[str, Any]] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }
    _scalar_state: ClassVar[tuple[str, ...]] = ("step",)

    def _start(self, state: State, group: dict[str, Any], param: Tensor) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _start()")

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        """The state that a step takes; None stands for an empty list."""
        raise NotImplementedError(f"{type(self).__name__} does not define _state_names()")

    def _step_lists(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _step_lists()")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._later_options.items():
                group.setdefault(name, value)
            for param in group["params"]:
                entry = self.state.get(param, {})
                for name in self._scalar_state:
                    if name in entry and not isinstance(entry[name], Tensor):
                        entry[name] = scalar_state(float(entry[name]), group, param)

    def _step_group(self, group: dict[str, Any]) -> None:
        params: list[Tensor] = []
        grads: list[Tensor] = []
        states: list[State] = []
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if grad.is_sparse:
                self._step_sparse(param, grad, group)
                continue
            state = self.state[param]
            if not state:
                self._start(state, group, param)
            params.append(param)
            grads.append(grad)
            states.append(state)
        lists = [params, grads]
        for name in self._state_names(group):
            lists.append([state[name] for state in states] if name else [])
        if any(param.is_complex() for param in params):
            lists = [[as_real(self, t) for t in tensors] for tensors in lists]
        for here in per_device(*lists):
            self._step_lists(group, *here)

    def _step_sparse(self, param: Tensor, grad: object, group: dict[str, Any]) -> None:
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")


def check_real(optimizer: Optimizer, param: Tensor) -> None:
    """Raise NotImplementedError where `param` is complex."""
    if param.is_complex():
        raise NotImplementedError(
            f"{type(optimizer).__name__}: a parameter of dtype {param.dtype} is not supported; "
            "keep its real and imaginary parts as two parameters"
        )


def as_real(optimizer: Optimizer, tensor: Tensor) -> Tensor:
    """A complex tensor as pairs of reals over its memory: both parts take steps of their own."""
    if not tensor.is_complex():
        return tensor
    pairs = fb.view_as_real(tensor)
    if not pairs._is_view():
        check_real(optimizer, tensor)
    return pairs


def scalar_state(value: float, group: dict[str, Any], param: Tensor) -> Tensor:
    """A 0-d tensor of the state; on the host unless `capturable`, where reading it is free."""
    device = param.device if group.get("capturable") or group.get("fused") else "cpu"
    return fb.tensor(value, dtype=scalar_dtype(group.get("fused")), device=device)
