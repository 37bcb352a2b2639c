"""The base class of optimisers, and what its subclasses share."""

from __future__ import annotations

import functools
import sys
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias

import flambeau as fb
from flambeau import Tensor
from flambeau.optim._options import entry, typename
from flambeau.overrides import methods_take_as_annotated, takes_as_annotated
from flambeau.utils.hooks import RemovableHandle

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[dict[str, Any]]
StateDict: TypeAlias = dict[str, Any]
Hook: TypeAlias = Callable[..., Any]


class _RequiredParameter:
    """The default of an option that every parameter group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()

_global_step_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_step_post_hooks: OrderedDict[int, Hook] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimiser.

    `args` begins with the optimiser.  The hook returns None, or new ``(args, kwargs)``.
    """
    return _register(_global_step_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after every step of every optimiser."""
    return _register(_global_step_post_hooks, hook)


class Optimizer:
    """Base class of optimisers: parameter groups with options, state per parameter, hooks.

    A subclass calls ``super().__init__(params, defaults)`` and defines `step`.

    Args:
        params: an iterable of tensors, of (name, tensor) pairs, or of dicts, each a group with a
            key ``"params"`` and the options in which it differs from `defaults`.  Its order must
            be the same in every run, for state is saved by position.
        defaults: options of the groups that do not give them.

    Attributes:
        param_groups: list of dicts, ``"params"`` and every option.
        state: what the optimiser keeps, a dict per parameter.
        defaults: see above.

    Raises:
        TypeError: `params` is a tensor, or holds something that is not one.
        ValueError: no parameters, a parameter that is not a leaf, or one in two groups.

    >>> import flambeau as fb
    >>> weight, bias = fb.ones(2, requires_grad=True), fb.zeros(1, requires_grad=True)
    >>> groups = [{"params": [weight], "lr": 0.5}, {"params": [bias]}]
    >>> [group["lr"] for group in fb.optim.SGD(groups, lr=0.25).param_groups]
    [0.5, 0.25]
    """

    _hook_names = (
        "_optimizer_step_pre_hooks",
        "_optimizer_step_post_hooks",
        "_optimizer_state_dict_pre_hooks",
        "_optimizer_state_dict_post_hooks",
        "_optimizer_load_state_dict_pre_hooks",
        "_optimizer_load_state_dict_post_hooks",
    )
    _optimizer_step_pre_hooks: OrderedDict[int, Hook]
    _optimizer_step_post_hooks: OrderedDict[int, Hook]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Hook]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Hook]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Hook]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Hook]

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        methods_take_as_annotated(cls)
        if "step" in cls.__dict__:
            cls.step = _with_step_hooks(cls.step)

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be "
                f"an iterable of Tensors or dicts, but got {typename(params)}"
            )
        self.defaults = defaults
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        for name in self._hook_names:
            setattr(self, name, OrderedDict())
        self._patch_step_function()

        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __getattr__(self, name: str) -> Any:
        # A subclass may set up everything by itself and leave out ``super().__init__``.
        if name not in Optimizer._hook_names:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        hooks = self.__dict__[name] = OrderedDict()
        return hooks

    def _patch_step_function(self) -> None:
        """Put the hooks around a step that does not have them, such as one of a mixin.

        Under PyTorch's name: subclasses that leave out ``super().__init__`` call it.
        """
        cls = type(self)
        if cls.step is not Optimizer.step and not hasattr(cls.step, "hooked"):
            cls.step = _with_step_hooks(cls.step)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in self._hook_names:
            self.__dict__.setdefault(name, OrderedDict())
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            text += "".join(
                f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"
            )
        return text + ")"

    def __plan__(self, reach: Any, name: str) -> None:
        """What has to stay the same for a plan: parameters and state, and no hooks."""
        for hooks in (self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks):
            reach.empty(hooks, f"hooks of {name}")
        for hooks in (_global_step_pre_hooks, _global_step_post_hooks):
            reach.empty(hooks, "hooks of all optimisers")
        for attribute in ("param_groups", "state"):
            reach.entry(vars(self), attribute, name, walk=False)
        reach.children(self.state, f"{name}.state")
        reach.same(self.param_groups, f"{name}.param_groups")
        for group in self.param_groups:
            reach.items(group["params"], f"{name}.params")
            reach.group(group["params"], group)
        reach.attributes(self, name, but=("param_groups", "state", "defaults"))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; subclasses define how.

        Args:
            closure: clears the gradients, computes loss and gradients, and returns the loss.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define step()")

    @fb.enable_grad()
    def _evaluate(self, closure: Callable[[], Any] | None) -> Any:
        if closure is None:
            return None
        return closure()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters.

        Args:
            set_to_none: drop each gradient, so that parameters without a new one are skipped by
                `step`; otherwise fill it with zeros in place.
        """
        for group in self.param_groups:
            for param in group["params"]:
                if (grad := param.grad) is None:
                    continue
                if set_to_none:
                    param.grad = None
                elif grad.grad_fn is not None:
                    grad.detach_().zero_()
                else:
                    grad.requires_grad_(False).zero_()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Append a group, completed with the defaults; for layers that start to train later.

        Args:
            param_group: ``"params"`` (a tensor, tensors, or (name, tensor) pairs) and options.

        Raises:
            TypeError: not a dict, unordered parameters, or something that is not a tensor.
            ValueError: a parameter that is not a leaf or is in another group, a required option
                missing, or names given for some parameters only.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        if "params" not in param_group:
            raise KeyError("param_group must have an entry 'params': the parameters of the group")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but "
                "the ordering of tensors in sets will change between runs. "
                "Please use a list instead."
            )
        entries = [params] if isinstance(params, Tensor) else list(params)
        names = [entry[0] for entry in entries if isinstance(entry, tuple)]
        params = [entry[1] if isinstance(entry, tuple) else entry for entry in entries]
        param_group["params"] = params
        if names:
            if len(names) != len(params):
                raise ValueError(
                    "all optimizer params should be with/without names. "
                    "Some param names are missing"
                )
            param_group["param_names"] = names

        if not isinstance(self.defaults, dict):
            raise TypeError(f"defaults must be a dict, not {type(self.defaults).__name__}")
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, "
                    f"but one of the params is {typename(param)}"
                )
            if not (self.defaults.get("differentiable") or param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of "
                    f"required optimization parameter {name}"
                )
            value = param_group.setdefault(name, default)
            if type(value) is int and abs(value) > sys.float_info.max:
                raise ValueError(f"{typename(self)}: {name} is larger than any float")

        if len(params) != len(set(params)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; each is updated "
                "once per occurrence. In future, this will cause an error",
                stacklevel=3,
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                which = "with" if "param_names" in param_group else "without"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {which} names to the optimizer"
                )
            if not set(params).isdisjoint(group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def state_dict(self) -> StateDict:
        """The state and options, with parameters replaced by their positions.

        Returns:
            ``{"state": {position: {...}}, "param_groups": [{"params": [position, ...], ...}]}``;
            its tensors are the optimiser's own, not copies.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        positions: dict[int, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for position, param in enumerate(group["params"], start):
                positions.setdefault(id(param), position)
            packed["params"] = [positions[id(param)] for param in group["params"]]
            start += len(group["params"])
            groups.append(packed)
        state = {
            positions[id(key)] if isinstance(key, Tensor) else key: value
            for key, value in self.state.items()
        }
        packed_dict: StateDict = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            if (result := hook(self, packed_dict)) is not None:
                packed_dict = result
        return packed_dict

    @takes_as_annotated
    def load_state_dict(self, state_dict: StateDict) -> None:
        """Take over the state and options of a `state_dict`, matching parameters by position.

        Tensors of the state, except step counts, take the dtype and device of their parameter.

        Options that a saved group lacks stay as they are.

        Raises:
            ValueError: the groups differ in number or size from those saved.
            KeyError: an entry is missing.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            if (result := hook(self, state_dict)) is not None:
                state_dict = result

        saved_groups = deepcopy(entry(state_dict, "param_groups", "the state dict"))
        if len(saved_groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        params: dict[Any, tuple[Tensor, dict[str, Any]]] = {}
        for group, saved in zip(self.param_groups, saved_groups, strict=True):
            if len(group["params"]) != len(entry(saved, "params", "a saved group")):
                raise ValueError(
                    "loaded state dict contains a parameter group "
                    "that doesn't match the size of optimizer's group"
                )
            for position, param in zip(saved["params"], group["params"], strict=True):
                params[position] = param, saved
        state: defaultdict[Any, Any] = defaultdict(dict)
        saved_state = entry(state_dict, "state", "the state dict")
        if not isinstance(saved_state, dict):
            raise TypeError(f"the saved state must be a dict, not {type(saved_state).__name__}")
        for key, value in saved_state.items():
            if key in params:
                if not isinstance(value, dict):
                    raise TypeError(
                        f"the saved state of a parameter must be a dict, not {type(value).__name__}"
                    )
                param, saved = params[key]
                state[param] = _cast(value, param, saved)
            else:
                state[key] = value

        for group, saved in zip(self.param_groups, saved_groups, strict=True):
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        before = self.param_groups
        before_state = self.state
        try:
            self.__setstate__({"state": state, "param_groups": saved_groups})
        except BaseException:
            self.state, self.param_groups = before_state, before
            raise
        for group, old in zip(self.param_groups, before, strict=True):
            for name in self.defaults.keys() & old.keys():
                group.setdefault(name, old[name])
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new ones."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before `state_dict`; first of all hooks with `prepend`."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after `state_dict`; it may return another dict."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return another dict."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` after `load_state_dict`."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def _register(hooks: OrderedDict[int, Hook], hook: Hook, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _with_step_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step` between the step hooks, where it is the step of the optimiser's own class.

    Reached through ``super().step()`` it is plain: the outer step has run the hooks.
    """

    @functools.wraps(step)
    def hooked(*args: Any, **kwargs: Any) -> object:
        self = args[0]
        if type(self).step is not hooked:
            return step(*args, **kwargs)
        for hook in chain(_global_step_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
            result = hook(self, args, kwargs)
            if result is None:
                continue
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(
                    f"{hook} must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {result}."
                )
            args, kwargs = result
        try:
            out = step(*args, **kwargs)
        except (AttributeError, KeyError) as error:
            if _is_own(error):
                raise type(error)(
                    f"{typename(self)}: options or state of a parameter are not those of this "
                    f"optimizer; were they loaded from another? ({error})"
                ) from error
            raise
        for hook in chain(
            self._optimizer_step_post_hooks.values(), _global_step_post_hooks.values()
        ):
            hook(self, args, kwargs)
        return out

    hooked.hooked = True  # type: ignore[attr-defined]
    return hooked


def _is_own(error: BaseException) -> bool:
    """Whether an error of a step arose in flambeau alone: no closure or hook of a program ran."""
    trace = error.__traceback__
    while trace is not None:
        if not str(trace.tb_frame.f_globals.get("__name__")).startswith("flambeau"):
            return False
        trace = trace.tb_next
    return True


def _cast(value: object, param: Tensor, group: dict[str, Any], key: object = None) -> Any:
    """A copy of the state `value` whose tensors have the dtype and device of `param`."""
    if isinstance(value, Tensor):
        # A copy: the steps that follow write to it, and the caller may load his dict again.
        if key == "step":  # counts stay exact where parameters are float16
            on_device = group.get("capturable") or group.get("fused")
            if not on_device:
                return value.clone()
            return value.to(dtype=fb.float32, device=param.device, copy=True)
        dtype = param.dtype if param.is_floating_point() else value.dtype
        return value.to(dtype=dtype, device=param.device, copy=True)
    if key == "step" and not isinstance(value, int | float):
        raise TypeError(f"a saved count of steps must be a number, not {type(value).__name__}")
    if isinstance(value, dict):
        return {k: _cast(v, param, group, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_cast(v, param, group) for v in value)  # type: ignore[call-arg]
    return value
