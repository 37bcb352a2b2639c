"""A scheduler that watches a measurement."""

from __future__ import annotations

import math
from typing import Any, Literal, SupportsFloat

from flambeau.optim.lr_scheduler._base import (
    LRScheduler,
    checked_optimizer,
    checked_verbose,
    group_values,
    set_group_value,
    warn_of_epoch,
)
from flambeau.optim.optimizer import Optimizer
from flambeau.overrides import takes_as_annotated

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """A smaller rate when a measurement, such as the validation loss, no longer improves.

    Args:
        optimizer: whose groups are scheduled.
        mode: "min" where smaller measurements are better, "max" where larger ones are.
        factor: what the rates are multiplied by.
        patience: how many epochs without improvement are accepted.
        threshold: how much is an improvement.
        threshold_mode: "rel" for a fraction of the best measurement, "abs" for a difference.
        cooldown: epochs after a reduction in which nothing is counted.
        min_lr: the smallest rate, or a list of one per group.
        eps: smaller changes of a rate are not made.
        verbose: deprecated; print every reduction.

    Raises:
        ValueError: `factor` of 1 or more, an unknown mode, or a list of the wrong length.
        TypeError: `optimizer` is not an optimiser.

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fb.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    >>> for loss in (3.0, 2.0, 2.0):
    ...     optimizer.step()
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
        verbose: bool | None = None,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        self.optimizer = checked_optimizer(optimizer)
        groups = len(checked_optimizer(optimizer).param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = group_values(optimizer, "lr")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._verbose = checked_verbose(verbose)
        self._reset()

    def _reset(self) -> None:
        """Forget the measurements and the cooldown."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @takes_as_annotated
    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take the measurement of an epoch, and reduce the rates where its time has come.

        Args:
            metrics: the measurement, a number or a tensor of one element.
            epoch: deprecated; the number of the epoch.

        Raises:
            RuntimeError: a group was added, and the smallest rates were given as a list.
        """
        if epoch is not None:
            warn_of_epoch()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        current = float(metrics)
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = group_values(self.optimizer, "lr")

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from "
                    f"when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due "
                    "to a new param group being added to the optimizer. Please modify the "
                    "`min_lrs` field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for i, (group, lowest) in enumerate(zip(groups, self.min_lrs, strict=True)):
            old = float(group["lr"])
            new = max(old * self.factor, lowest)
            if old - new > self.eps:
                set_group_value(group, "lr", new)
                if self._verbose:
                    print(f"Epoch {epoch:5d}: reducing learning rate of group {i} to {new:.4e}.")

    @property
    def in_cooldown(self) -> bool:
        """Whether measurements are not counted, after a reduction."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return a > bound if self.mode == "max" else a < bound

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the attributes of a `state_dict`."""
        super().load_state_dict(state_dict)
        self.mode_worse = math.inf if self.mode == "min" else -math.inf
