"""Schedulers that multiply the learning rate by factors."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from flambeau.optim._options import entry
from flambeau.optim.lr_scheduler._base import (
    LRScheduler,
    Rate,
    checked_optimizer,
    need_step,
    saved_callables,
)
from flambeau.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "PolynomialLR",
    "StepLR",
]

Factor = Callable[[int], float]


class _FunctionLR(LRScheduler):
    """A scheduler with one function of the epoch per group.

    Functions are not saved; callable objects are, by their attributes.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Factor | list[Factor] | tuple[Factor, ...],
        last_epoch: int = -1,
        verbose: bool | None = None,
    ) -> None:
        groups = len(checked_optimizer(optimizer).param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            self.lr_lambdas: list[Any] = [lr_lambda] * groups
        elif len(lr_lambda) == groups:
            self.lr_lambdas = list(lr_lambda)
        else:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
        super().__init__(optimizer, last_epoch, verbose)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "lr_lambdas": saved_callables(self.lr_lambdas)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        functions, loaded = self.lr_lambdas, entry(state_dict, "lr_lambdas", "the state dict")
        super().load_state_dict(state_dict)
        self.lr_lambdas = functions
        for function, saved in zip(functions, loaded, strict=True):
            if saved is not None:
                vars(function).update(saved)


class LambdaLR(_FunctionLR):
    """The initial rate times a function of the epoch: η = η₀ · f(epoch).

    Args:
        optimizer: whose groups are scheduled.
        lr_lambda: the function f, or a list of one per group.
        last_epoch: the epoch to resume from; -1 to begin.
        verbose: deprecated; print every new rate.

    Raises:
        ValueError: as many functions as groups are wanted, and others given.

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fb.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        return [
            rate * factor(self.last_epoch)
            for rate, factor in zip(self.base_lrs, self.lr_lambdas, strict=True)
        ]


class MultiplicativeLR(_FunctionLR):
    """The last rate times a function of the epoch: η ← η · f(epoch), from epoch 1 on.

    Args:
        optimizer: whose groups are scheduled.
        lr_lambda: the function f, or a list of one per group.
        last_epoch: the epoch to resume from; -1 to begin.
        verbose: deprecated; print every new rate.

    Raises:
        ValueError: as many functions as groups are wanted, and others given.
        TypeError: `lr_lambda` is no function.

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fb.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Factor | list[Factor] | tuple[Factor, ...],
        last_epoch: int = -1,
        verbose: bool | None = None,
    ) -> None:
        functions = lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]
        for function in functions:
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )
        super().__init__(optimizer, lr_lambda, last_epoch, verbose)

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        if self._is_initial:
            return self._unchanged()
        return [
            group["lr"] * factor(self.last_epoch)
            for group, factor in zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)
        ]


class StepLR(LRScheduler):
    """A factor after every so many epochs: η = η₀ · gamma^⌊epoch / step_size⌋.

    Args:
        optimizer: whose groups are scheduled.
        step_size: epochs between two changes.
        gamma: the factor.
        last_epoch: the epoch to resume from; -1 to begin.
        verbose: deprecated; print every new rate.

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fb.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        step_size: int,
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool | None = None,
    ) -> None:
        need_step(step_size, "StepLR", "step_size")
        self.step_size = step_size
        need_step(gamma, "StepLR", "gamma")
        self.gamma = gamma
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._unchanged()
        return self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [rate * factor for rate in self.base_lrs]


class MultiStepLR(LRScheduler):
    """A factor at given epochs: η = η₀ · gamma^(number of milestones passed).

    Args:
        optimizer: whose groups are scheduled.
        milestones: the epochs, in any order; one given twice counts twice.
        gamma: the factor.
        last_epoch: the epoch to resume from; -1 to begin.
        verbose: deprecated; print every new rate.

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fb.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool | None = None,
    ) -> None:
        self.milestones = Counter(milestones)
        need_step(gamma, "MultiStepLR", "gamma")
        self.gamma = gamma
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        if self.last_epoch not in self.milestones:
            return self._unchanged()
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Rate]:
        milestones = Counter(self.milestones)  # subclasses of programs keep a list of them
        passed = bisect_right(sorted(milestones.elements()), self.last_epoch)
        return [rate * self.gamma**passed for rate in self.base_lrs]


class ConstantLR(LRScheduler):
    """A smaller rate at the beginning: η = η₀ · factor until epoch `total_iters`, then η₀.

    Args:
        optimizer: whose groups are scheduled.
        factor: the factor.
        total_iters: the epoch from which the rate is full.
        last_epoch: the epoch to resume from; -1 to begin.
        verbose: deprecated; print every new rate.

    Raises:
        ValueError: `factor` outside [0, 1].

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fb.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=4)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
        verbose: bool | None = None,
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        if self.last_epoch != self.total_iters:
            return self._unchanged()
        return self._scaled(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Rate]:
        factor = self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)
        return [rate * factor for rate in self.base_lrs]


class LinearLR(LRScheduler):
    """A straight line: from η₀ · start_factor to η₀ · end_factor in `total_iters` epochs.

    Args:
        optimizer: whose groups are scheduled.
        start_factor: the factor in epoch 0.
        end_factor: the factor from epoch `total_iters` on.
        total_iters: the length of the line.
        last_epoch: the epoch to resume from; -1 to begin.
        verbose: deprecated; print every new rate.

    Raises:
        ValueError: `start_factor` outside (0, 1], or `end_factor` outside [0, 1].

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fb.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
        verbose: bool | None = None,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                "to 1."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._unchanged()
        rise = self.end_factor - self.start_factor
        last = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._scaled(1.0 + rise / last)

    def _get_closed_form_lr(self) -> list[Rate]:
        rise = self.end_factor - self.start_factor
        passed = min(self.total_iters, self.last_epoch)
        factor = self.start_factor + rise * passed / self.total_iters
        return [rate * factor for rate in self.base_lrs]


class ExponentialLR(LRScheduler):
    """A factor in every epoch: η = η₀ · gamma^epoch.

    Args:
        optimizer: whose groups are scheduled.
        gamma: the factor.
        last_epoch: the epoch to resume from; -1 to begin.
        verbose: deprecated; print every new rate.

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fb.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        gamma: float,
        last_epoch: int = -1,
        verbose: bool | None = None,
    ) -> None:
        need_step(gamma, "ExponentialLR", "gamma")
        self.gamma = gamma
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        return self._unchanged() if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return [rate * self.gamma**self.last_epoch for rate in self.base_lrs]


class PolynomialLR(LRScheduler):
    """A power of the time left: η = η₀ · (1 - epoch / total_iters)^power, then 0.

    Args:
        optimizer: whose groups are scheduled.
        total_iters: the epoch in which the rate reaches 0.
        power: the power.
        last_epoch: the epoch to resume from; -1 to begin.
        verbose: deprecated; print every new rate.

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fb.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
        verbose: bool | None = None,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._unchanged()
        left = 1.0 - self.last_epoch / self.total_iters
        left_before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scaled((left / left_before) ** self.power)

    def _get_closed_form_lr(self) -> list[Rate]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [rate * left**self.power for rate in self.base_lrs]
