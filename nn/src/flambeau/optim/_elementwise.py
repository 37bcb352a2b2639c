"""What the optimisers share that treat every parameter by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._options import number, scalar_dtype
from flambeau.optim.optimizer import Optimizer

State = dict[str, Any]


class ElementwiseOptimizer(Optimizer):
    """An optimiser whose step changes each element by its own gradient and its own history.

    A subclass defines `_start`, which fills the state of a parameter, and `_update`, which gets
    the gradient already negated by `maximize` and with the weight decay in it.  Updates change
    state and parameter in place; they change nothing in place that autograd may have kept, so the
    same text serves a differentiable step.
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

    def _update(self, param: Tensor, grad: Tensor, state: State, group: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _update()")

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

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        Args:
            closure: re-evaluates the model and returns the loss; called once, with gradients on.

        Returns:
            what `closure` returned, or None without one.

        Raises:
            RuntimeError: a gradient is sparse.
            NotImplementedError: a parameter is complex.
        """
        loss = self._evaluate(closure)
        with fb.set_grad_enabled(self.defaults["differentiable"]):
            for group in self.param_groups:
                for param in group["params"]:
                    if (grad := param.grad) is not None:
                        self._step_param(param, grad, group)
        return loss

    def _step_param(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        if grad.is_sparse:
            raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")
        state = self.state[param]
        if not state:
            check_real(self, param)
            self._start(state, group, param)
        elif group["differentiable"]:
            # The graph of the last step holds the old tensors, which must keep their values.
            state.update({name: state[name].clone() for name in state if name != "step"})

        if group["maximize"]:
            grad = -grad
        if weight_decay := group.get("weight_decay"):
            if group.get("decoupled_weight_decay"):
                param.mul_(1 - number(group["lr"]) * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        state["step"].add_(1)
        self._update(param, grad, state, group)


def check_real(optimizer: Optimizer, param: Tensor) -> None:
    """Raise NotImplementedError where `param` is complex."""
    if param.is_complex():
        raise NotImplementedError(
            f"{type(optimizer).__name__}: a parameter of dtype {param.dtype} is not supported; "
            "keep its real and imaginary parts as two parameters"
        )


def scalar_state(value: float, group: dict[str, Any], param: Tensor) -> Tensor:
    """A 0-d tensor of the state; on the host unless `capturable`, where reading it is free."""
    device = param.device if group.get("capturable") or group.get("fused") else "cpu"
    return fb.tensor(value, dtype=scalar_dtype(group.get("fused")), device=device)
