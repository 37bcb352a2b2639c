"""Losses that are scaled, so that small gradients do not become zero in float16."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.annotated import takes_as_annotated

__all__ = ["GradScaler", "OptState"]

_HINT = (
    "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the "
    "iteration."
)
_NEW_SCALE = (
    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
    "requires_grad=False."
)


class OptState(Enum):
    """How far an optimiser has come in this iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses up and gradients down again, and skips steps whose gradients overflow.

    `scale` multiplies a loss s·L, `step` divides the gradients by s and runs the optimiser unless
    one of them is infinite or NaN, `update` chooses the next s: s·`backoff_factor` after a step
    that was skipped, s·`growth_factor` after `growth_interval` that were not.

    Args:
        device: the type of the devices of the scale.
        init_scale: the first s.
        growth_factor: above 1.
        backoff_factor: below 1.
        growth_interval: how many steps in a row.
        enabled: False makes `step` that of the optimiser and `scale` return what it is given.

    Raises:
        AssertionError: a factor is out of its range.

    Warns:
        UserWarning: `device` is ``"cuda"`` and there is none: it is disabled.

    Source: P. Micikevicius et al., Mixed precision training, ICLR 2018.

    >>> import flambeau as fb
    >>> w = fb.ones(2, requires_grad=True)
    >>> opt, scaler = fb.optim.SGD([w], lr=0.5), fb.amp.GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale(w.sum()).backward(); w.grad
    tensor([8., 8.])
    >>> scaler.step(opt); scaler.update(); w.detach()
    tensor([0.5000, 0.5000])
    """

    @takes_as_annotated
    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not fb.cuda.is_available():
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2 if type(self) is GradScaler else 3,
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None  # on the device of the first loss
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_fresh_state)

    def _begun(self, name: str) -> tuple[Tensor, Tensor]:
        """The scale and the count of steps, which the first loss makes."""
        if self._scale is None:
            raise AssertionError(f"Attempted {name} but _scale is None.  {_HINT}")
        if self._growth_tracker is None:
            raise AssertionError(f"Attempted {name} but _growth_tracker is None.  {_HINT}")
        return self._scale, self._growth_tracker

    def _scale_at(self, device: object) -> Tensor:
        if self._scale is None:
            self._lazy_init_scale_growth_tracker(device)
        assert self._scale is not None
        return self._scale.to(device)

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        assert self._growth_tracker is None, "_growth_tracker initialized before _scale"
        self._scale = fb.full((), self._init_scale, dtype=fb.float32, device=dev)
        self._growth_tracker = fb.full((), self._init_growth_tracker, dtype=fb.int32, device=dev)

    def scale(self, outputs: object) -> Any:
        """A loss, or each of an iterable of them, times the scale.

        Raises:
            ValueError: something is neither.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_at(outputs.device)
        if isinstance(outputs, Iterable):
            found = map(self.scale, outputs)
            return type(outputs)(found) if isinstance(outputs, (list, tuple)) else found  # type: ignore[call-arg]
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: object) -> None:
        """Divide the gradients of an optimiser by the scale, before `step` does it.

        It is for who changes gradients between: ``clip_grad_norm_``, for one.

        Raises:
            RuntimeError: it has been done, or the step has been taken, since the last `update`.
            ValueError: a gradient is float16: the parameters should be float32.
            AssertionError: no loss has been scaled.
        """
        if not self._enabled:
            return
        scale, _ = self._begun("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = scale.double().reciprocal().float()
        state["found_inf_per_device"] = self._unscale_grads_(
            optimizer, inverse, fb.zeros_like(scale), False
        )
        state["stage"] = OptState.UNSCALED

    @fb.no_grad()
    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        """Multiply gradients by `inv_scale`; for each device, 1 if one of its is not finite."""
        found: dict[Any, Tensor] = {}
        inverses: dict[Any, Tensor] = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if not isinstance(parameter, Tensor):
                    raise AssertionError(
                        f"expected param to be torch.Tensor, got {type(parameter).__name__}"
                    )
                grad: Any = parameter.grad
                if grad is None:
                    continue
                if grad.dtype is fb.float16 and not allow_fp16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                if grad.is_sparse:
                    if grad.dtype is fb.float16:
                        # The sums of duplicates are what may overflow.
                        grad = parameter.grad = grad.coalesce()
                    grad = grad._values()
                device = grad.device
                if device not in found:
                    found[device] = found_inf.to(device).clone()
                    inverses[device] = inv_scale.to(device)
                finite = grad.isfinite().all()
                found[device] = found[device].maximum((~finite).to(found_inf.dtype))
                # In float32: the inverse of a large scale is 0 in float16.
                wide = grad if grad.dtype is fb.float64 else grad.float()
                grad.copy_(wide * inverses[device])
        return found

    def _check_inf_per_device(self, optimizer: object) -> dict[Any, Tensor]:
        """What is not finite among the gradients, which are left as they are."""
        scale, _ = self._begun("_check_inf_per_device")
        found = self._unscale_grads_(optimizer, fb.ones_like(scale), fb.zeros_like(scale), True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: object) -> dict[Any, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def _maybe_opt_step(
        self, optimizer: Any, optimizer_state: dict[str, Any], *args: object, **kwargs: object
    ) -> Any:
        if not sum(v.item() for v in optimizer_state["found_inf_per_device"].values()):
            return optimizer.step(*args, **kwargs)
        return None

    def step(self, optimizer: Any, *args: object, **kwargs: object) -> Any:
        """``optimizer.step(...)`` on unscaled gradients, if all of them are finite.

        Returns what the optimiser's method does, None if the step is skipped.  An optimiser whose
        attribute ``_step_supports_amp_scaling`` is true is given ``grad_scale`` and ``found_inf``
        as attributes instead, and does both itself.

        Raises:
            RuntimeError: the step has been taken since the last `update`, or there is a closure.
            AssertionError: no loss has been scaled, or there is no gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._begun("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._leave_to(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _leave_to(self, optimizer: Any, state: dict[str, Any], args: Any, kwargs: Any) -> Any:
        """A step of an optimiser that unscales and skips itself."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed "
                "optimizer. In the near future GradScaler registers `grad_scale: Tensor` and "
                "`found_inf: Tensor` to the passed optimizer and let the optimizer use them "
                "directly.",
                FutureWarning,
                stacklevel=3,
            )
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
            state["stage"] = OptState.STEPPED
            return result
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        scale, _ = self._begun("step")
        found = [t.to(scale.device) for t in state["found_inf_per_device"].values()]
        given = getattr(optimizer, "grad_scale", None)
        if state["stage"] is OptState.UNSCALED:
            optimizer.grad_scale = given
        else:
            optimizer.grad_scale = scale * (1 if given is None else given)
        optimizer.found_inf = sum(found)
        try:
            result = optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return result

    @fb.no_grad()
    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Choose the next scale, `new_scale` if given, when all optimisers have made their step.

        Raises:
            AssertionError: no gradients have been looked at, or `new_scale` is no float or tensor
            of one element on the scaler's device that requires no gradient.
        """
        if not self._enabled:
            return
        scale, tracker = self._begun("update")
        if isinstance(new_scale, (int, float)):
            scale.fill_(new_scale)
        elif new_scale is not None:
            fits = new_scale.device.type == self._device and new_scale.numel() == 1
            if not fits or new_scale.requires_grad:
                raise AssertionError(_NEW_SCALE)
            scale.copy_(new_scale.reshape(()))
        else:
            self._choose(scale, tracker)
        self._per_optimizer_states.clear()

    def __plan__(self, reach: Any, name: str) -> None:
        """What has to stay the same for a plan of steps that end with `update`."""
        own = vars(self)
        for key in own.keys() - {"_per_optimizer_states"}:
            reach.entry(own, key, name)
        if self._enabled:
            reach.empty(self._per_optimizer_states, f"steps of {name} without update()")

    def _choose(self, scale: Tensor, tracker: Tensor) -> None:
        found = [
            t.to(scale.device)
            for state in self._per_optimizer_states.values()
            for t in state["found_inf_per_device"].values()
        ]
        if not found:
            raise AssertionError("No inf checks were recorded prior to update.")
        # Chosen by the device: the host is not told, and a plan can repeat it.
        missed = found[0] if len(found) == 1 else fb.stack(found).amax()
        missed, counted = missed > 0, tracker + 1
        full, grown = counted == self._growth_interval, scale * self._growth_factor
        grown = fb.where(full & grown.isfinite(), grown, scale)
        scale.copy_(fb.where(missed, scale * self._backoff_factor, grown))
        tracker.copy_(fb.where(missed | full, 0, counted))

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The scale; 1 if not enabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after a good while."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Choose what the scale is multiplied by after a good while."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Choose what the scale is multiplied by after an overflow."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many steps without an overflow make a good while."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Choose how many steps without an overflow make a good while."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker.item())

    def is_enabled(self) -> bool:
        """Whether it scales."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale, the factors, the interval and the steps since, for `load_state_dict`."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` of an enabled scaler gave.

        Raises:
            RuntimeError: it is empty.
            KeyError: an entry is missing.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        wanted = ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")
        if missing := [name for name in wanted if name not in state_dict]:
            raise KeyError(f"the state dict of a GradScaler has no {', '.join(missing)}")
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
