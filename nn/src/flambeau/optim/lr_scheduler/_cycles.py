"""Schedulers that move the learning rate up and down, and the momentum against it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from flambeau.optim._options import entry
from flambeau.optim.lr_scheduler._base import (
    LRScheduler,
    Rate,
    checked_optimizer,
    one_per_group,
    saved_callables,
    set_group_value,
)
from flambeau.optim.optimizer import Optimizer

__all__ = ["CyclicLR", "OneCycleLR"]


class CyclicLR(LRScheduler):
    """Triangles between two rates (Smith, 2017); one `step` per batch.

    The rate rises from `base_lr` to `max_lr` in `step_size_up` steps and falls again in
    `step_size_down`.  The height of a triangle is multiplied by 1 ("triangular"), by 1/2 more in
    each cycle ("triangular2"), by gamma^step ("exp_range"), or by `scale_fn`.

    Args:
        optimizer: whose groups are scheduled.
        base_lr: the lower rate, or a list of one per group.
        max_lr: the upper rate, or a list of one per group.
        step_size_up: steps of the rise.
        step_size_down: steps of the fall; as many by default.
        mode: the scaling of the heights, see above.
        gamma: base of the powers in mode "exp_range".
        scale_fn: the scaling, instead of a `mode`.
        scale_mode: whether `scale_fn` gets the number of the cycle, from 1, or that of the step.
        cycle_momentum: let the momentum (or β₁) fall while the rate rises.
        base_momentum: the lower momentum, or a list of one per group.
        max_momentum: the upper momentum, or a list of one per group.
        last_epoch: the step to resume from; -1 to begin.
        verbose: deprecated; print every new rate.

    Raises:
        TypeError: `optimizer` is not an optimiser.
        ValueError: an unknown `mode` without `scale_fn`, a list of the wrong length, or
            `cycle_momentum` with an optimiser that has no momentum.

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = fb.optim.lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, step_size_up=2)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
        verbose: bool | None = None,
    ) -> None:
        self.optimizer = checked_optimizer(optimizer)
        base_lrs = one_per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_group_value(group, "lr", rate)
        self.max_lrs = one_per_group("max_lr", optimizer, max_lr)

        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        if not self.total_size > 0:
            raise ValueError(
                "CyclicLR: a cycle must have steps, but got step_size_up="
                f"{step_size_up} and step_size_down={step_size_down}"
            )
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"

        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1(optimizer)
            self.base_momentums = one_per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = one_per_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                _start_momentum(optimizer, self.base_momentums, self.max_momentums, self.use_beta1)
        super().__init__(optimizer, last_epoch, verbose)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The height of a triangle in cycle `x`, or at step `x` with `scale_mode` "iterations"."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        position = 1.0 + self.last_epoch / self.total_size - cycle
        if position <= self.step_ratio:
            height = position / self.step_ratio
        else:
            height = (position - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)

        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):
                _set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        return [
            low + (high - low) * height * scale
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """The attributes but the optimiser; of a `scale_fn` those that it has as an object."""
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None if function is None else saved_callables([function])[0]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        saved = entry(state_dict, "_scale_fn_custom", "the state dict")
        function = self._scale_fn_custom
        super().load_state_dict(state_dict)
        self._scale_fn_custom = function
        if saved is not None:
            vars(function).update(saved)


class OneCycleLR(LRScheduler):
    """A rise to a large rate and a fall to a tiny one (Smith & Topin, 2019); one `step` per batch.

    From max_lr / div_factor to max_lr in the first `pct_start` of all steps, then down to
    max_lr / (div_factor · final_div_factor).  With `three_phase` the fall has the length of the
    rise and ends at its beginning, and the rest of the steps goes on to the smallest rate.

    Args:
        optimizer: whose groups are scheduled.
        max_lr: the largest rate, or a list of one per group.
        total_steps: the number of steps; by default `epochs` times `steps_per_epoch`.
        epochs: how many epochs there are.
        steps_per_epoch: how many steps each has.
        pct_start: fraction of the steps that rise.
        anneal_strategy: "cos" or "linear", the shape of the slopes.
        cycle_momentum: let the momentum (or β₁) fall while the rate rises.
        base_momentum: the lower momentum, or a list of one per group.
        max_momentum: the upper momentum, or a list of one per group.
        div_factor: the largest rate divided by the first.
        final_div_factor: the first rate divided by the last.
        three_phase: see above.
        last_epoch: the step to resume from; -1 to begin.
        verbose: deprecated; print every new rate.

    Raises:
        TypeError: `optimizer` is not an optimiser.
        ValueError: no number of steps, an option out of range, a list of the wrong length,
            `cycle_momentum` with an optimiser that has no momentum, or a step after the last.

    >>> import flambeau as fb
    >>> optimizer = fb.optim.SGD([fb.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = fb.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
    >>> [round(rate, 6) for rate in scheduler.get_last_lr()]
    [0.04]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
        verbose: bool | None = None,
    ) -> None:
        self.optimizer = checked_optimizer(optimizer)
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        # Phases are dicts: state dictionaries hold them.
        self._schedule_phases = [
            phase._asdict() for phase in _phases(self.total_steps, pct_start, three_phase)
        ]
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy

        max_lrs = one_per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for rate, group in zip(max_lrs, optimizer.param_groups, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1(optimizer)
            max_momentums = one_per_group("max_momentum", optimizer, max_momentum)
            base_momentums = one_per_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                _start_momentum(optimizer, base_momentums, max_momentums, self.use_beta1)
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. "
                f"The specified number of total steps is {self.total_steps}"
            )
        start = 0.0
        phase = self._schedule_phases[0]
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        passed = (step - start) / (phase["end_step"] - start)

        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], passed))
            if self.cycle_momentum:
                momentum = self._between(
                    group[phase["start_momentum"]], group[phase["end_momentum"]], passed
                )
                _set_momentum(group, momentum, self.use_beta1)
        return rates

    def _between(self, start: Rate, end: Rate, passed: float) -> Rate:
        """The value after the fraction `passed` of the way from `start` to `end`."""
        if self._anneal_func_type == "linear":
            return (end - start) * passed + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * passed) + 1)


class _Phase(NamedTuple):
    """A slope of `OneCycleLR`: where it ends, and between which options of a group it lies."""

    end_step: float
    start_lr: str
    end_lr: str
    start_momentum: str
    end_momentum: str


def _phases(total: int, pct_start: float, three_phase: bool) -> list[_Phase]:
    top = float(pct_start * total) - 1
    rise = _Phase(top, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if not three_phase:
        return [rise, _Phase(total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    bottom = float(2 * pct_start * total) - 2
    return [
        rise,
        _Phase(bottom, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
        _Phase(total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
    ]


def _total_steps(total: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    def positive(name: str, value: int) -> int:
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
        return value

    if total is not None:
        return positive("total_steps", total)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return positive("epochs", epochs) * positive("steps_per_epoch", steps_per_epoch)


def _uses_beta1(optimizer: Optimizer) -> bool:
    """Whether β₁ is the momentum of `optimizer`; ValueError where it has none."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
    return "betas" in optimizer.defaults


def _set_momentum(group: dict[str, Any], momentum: object, use_beta1: bool) -> None:
    if use_beta1:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


def _start_momentum(
    optimizer: Optimizer, lowest: list[Any], highest: list[Any], use_beta1: bool
) -> None:
    for group, low, high in zip(optimizer.param_groups, lowest, highest, strict=True):
        _set_momentum(group, high, use_beta1)
        group["max_momentum"] = high
        group["base_momentum"] = low
