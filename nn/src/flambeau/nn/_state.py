"""A module's state as a flat dictionary, and loading one back."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import flambeau as fb
from flambeau import Tensor, __future__
from flambeau.nn._handles import WithModule, add_hook
from flambeau.nn._registry import Registry, is_tensor_like
from flambeau.nn.parameter import Parameter, is_lazy
from flambeau.utils.hooks import RemovableHandle

EXTRA_STATE_KEY = "_extra_state"


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_Keys):
    """The keys that `load_state_dict` did not find, and those it had no use for."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _Loading(NamedTuple):
    """What one `load_state_dict` has found wrong so far."""

    missing: list[str]
    unexpected: list[str]
    errors: list[str]


class StateDict(Registry):
    """The part of `Module` that saves and restores parameters and persistent buffers.

    ``_version`` is saved with every module (under ``state_dict()._metadata``), so that a class
    that renames or adds state can recognise older files in ``_load_from_state_dict``.
    """

    _version: int = 1
    dump_patches: bool = False

    def state_dict(
        self,
        *args: Any,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """All parameters and persistent buffers by full name, sharing memory with the module.

        The values are detached unless `keep_vars`.  With `destination` the entries are added to
        that dictionary, under names that start with `prefix`.

        >>> import flambeau as fb
        >>> list(fb.nn.Sequential(fb.nn.Linear(2, 3)).state_dict())
        ['0.weight', '0.bias']
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead: "
                "state_dict(destination=..., prefix=..., keep_vars=...)",
                FutureWarning,
                stacklevel=2,
            )
            given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
            destination = given.get("destination", destination)
            prefix = given.get("prefix", prefix)
            keep_vars = given.get("keep_vars", keep_vars)
        if not isinstance(prefix, str):
            raise TypeError(
                f"state_dict(): argument 'prefix' must be str, not {type(prefix).__name__}"
            )
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # pyright: ignore[reportAttributeAccessIssue]
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata  # pyright: ignore[reportAttributeAccessIssue]

        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook, may_replace in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if may_replace:
                destination = destination if result is None else result
            elif result is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination  # pyright: ignore[reportReturnType]

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if self._has_own("get_extra_state"):
            destination[prefix + EXTRA_STATE_KEY] = self.get_extra_state()

    def get_extra_state(self) -> Any:
        """Further picklable state for ``state_dict``; override it together with `set_extra_state`.

        >>> import flambeau as fb
        >>> class Counter(fb.nn.Module):
        ...     def get_extra_state(self):
        ...         return 3
        >>> Counter().state_dict()["_extra_state"]
        3
        """
        raise RuntimeError(
            f"{self._get_name()}.get_extra_state is not overridden, so it has no extra state; "
            "define get_extra_state and set_extra_state in the class"
        )

    def set_extra_state(self, state: object) -> None:
        """Take back what `get_extra_state` returned; called by `load_state_dict`.

        >>> import flambeau as fb
        >>> class Counter(fb.nn.Module):
        ...     def set_extra_state(self, state):
        ...         self.count = state
        >>> counter = Counter()
        >>> counter.load_state_dict({"_extra_state": 3}); counter.count
        <All keys matched successfully>
        3
        """
        raise RuntimeError(
            f"{self._get_name()}.set_extra_state is not overridden, so it cannot take extra state; "
            "define get_extra_state and set_extra_state in the class"
        )

    def _has_own(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(StateDict, method)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy the entries of `state_dict` into the parameters and buffers of the same names.

        With `assign` the entries take the places of the module's tensors instead.  The result
        names the keys that are missing and unexpected.

        Raises:
            RuntimeError: shapes differ, or under `strict` keys are missing or unexpected.
            TypeError: `state_dict` is not a mapping, or a key of it is no text.

        >>> import flambeau as fb
        >>> layer = fb.nn.Linear(2, 3)
        >>> layer.load_state_dict({"weight": fb.zeros(3, 2)}, strict=False)
        _IncompatibleKeys(missing_keys=['bias'], unexpected_keys=[])
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        if odd := [key for key in state_dict if not isinstance(key, str)]:
            raise TypeError(f"keys of state_dict are names, not {type(odd[0]).__name__}")
        found = _Loading([], [], [])
        metadata = getattr(state_dict, "_metadata", None)
        state = OrderedDict(state_dict)  # hooks of older formats rename entries in it
        if metadata is not None:
            state._metadata = metadata  # pyright: ignore[reportAttributeAccessIssue]
        self._load_tree(state, "", metadata or {}, assign, found)
        errors = found.errors
        if strict:
            for problem, keys in (("Unexpected", found.unexpected), ("Missing", found.missing)):
                if keys:
                    names = ", ".join(f'"{key}"' for key in keys)
                    errors.insert(0, f"{problem} key(s) in state_dict: {names}. ")
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {self._get_name()}:\n\t" + "\n\t".join(errors)
            )
        return _IncompatibleKeys(found.missing, found.unexpected)

    def _load_tree(
        self,
        state: dict[str, Any],
        prefix: str,
        metadata: Mapping[str, Any],
        assign: bool,
        found: _Loading,
    ) -> None:
        local_metadata = metadata.get(prefix[:-1], {})
        if assign:
            local_metadata["assign_to_params_buffers"] = assign
        # `strict` is always true here: the keys are collected, the caller decides about them.
        self._load_from_state_dict(state, prefix, local_metadata, True, *found)
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}{name}."
                part = {key: value for key, value in state.items() if key.startswith(path)}
                module._load_tree(part, path, metadata, assign, found)
        incompatible = _IncompatibleKeys(found.missing, found.unexpected)
        for hook in self._load_state_dict_post_hooks.values():
            if hook(self, incompatible) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                    "expected to return new values, if incompatible_keys need to be modified, "
                    "it should be done inplace."
                )

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own entries; override it to read older versions (`local_metadata`)."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        persistent = {
            name: buffer
            for name, buffer in self._buffers.items()
            if name not in self._non_persistent_buffers_set
        }
        own = {k: v for k, v in (self._parameters | persistent).items() if v is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, target in own.items():
            key = prefix + name
            if key in state_dict:
                error = self._load_tensor(key, name, target, state_dict[key], assign)
                if error is not None:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)

        extra_key = prefix + EXTRA_STATE_KEY
        if self._has_own("set_extra_state"):
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)

        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    name, dot, _ = key[len(prefix) :].partition(".")
                    if name not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _load_tensor(
        self, key: str, name: str, target: Tensor, value: Any, assign: bool
    ) -> str | None:
        """Copy or assign one entry; the text of what is wrong, if anything is."""
        if not is_tensor_like(value):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
                f"object from checkpoint but received {type(value)}"
            )
        if is_lazy(target) and is_lazy(value):
            return None
        if len(target.shape) == 0 and tuple(value.shape) == (1,):
            value = value[0]  # files older than zero-dimensional tensors
        if value.shape != target.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} from "
                f"checkpoint, the shape in current model is {target.shape}."
            )
        if target.device.type == "meta" and value.device.type != "meta" and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True` to assign items in the state dictionary to their corresponding key "
                "in the module instead of copying them in place?)",
                stacklevel=5,
            )
        swaps = __future__.get_swap_module_params_on_conversion()
        try:
            with fb.no_grad():
                if swaps:
                    loaded = target.module_load(value, assign=assign)
                    if loaded is value or loaded is target:
                        raise RuntimeError(
                            "module_load returned one of self or other, please .detach() "
                            "the result if returning one of the inputs in module_load"
                        )
                    fb.utils.swap_tensors(target, _held_as(target, loaded))
                elif assign:
                    setattr(self, name, _held_as(target, value))
                else:
                    target.copy_(value)
        except Exception as error:  # collected with the others and raised by load_state_dict
            return (
                f'While {"swapping" if swaps else "copying"} the parameter named "{key}", whose '
                f"dimensions in the model are {target.shape} and whose dimensions in the "
                f"checkpoint are {value.shape}, an exception occurred : {error.args}."
            )
        return None

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before this module's state is collected.

        >>> import flambeau as fb
        >>> layer = fb.nn.Linear(1, 1)
        >>> handle = layer.register_state_dict_pre_hook(lambda module, *_: print("saving"))
        >>> _ = layer.state_dict()
        saving
        """
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` when the state is collected.

        It may change `state_dict` in place and must return None.

        >>> import flambeau as fb
        >>> layer = fb.nn.Linear(1, 1)
        >>> def drop_bias(module, state, prefix, metadata):
        ...     del state[prefix + "bias"]
        >>> handle = layer.register_state_dict_post_hook(drop_bias)
        >>> list(layer.state_dict())
        ['weight']
        """
        return add_hook(self._state_dict_hooks, (hook, False))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Like `register_state_dict_post_hook`, but a result replaces the state dictionary."""
        return add_hook(self._state_dict_hooks, (hook, True))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a hook before this module's own entries are loaded, to rename or convert them.

        The call is ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)``; the hook changes these in place.

        >>> import flambeau as fb
        >>> layer = fb.nn.Linear(1, 1)
        >>> def rename(module, state, prefix, *_):
        ...     state[prefix + "weight"] = state.pop(prefix + "kernel")
        >>> handle = layer.register_load_state_dict_pre_hook(rename)
        >>> layer.load_state_dict({"kernel": fb.ones(1, 1), "bias": fb.zeros(1)})
        <All keys matched successfully>
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        if with_module:
            hook = WithModule(hook, self)
        return add_hook(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after the module and its children are loaded.

        The hook may change the two lists in place and must return None.

        >>> import flambeau as fb
        >>> layer = fb.nn.Linear(1, 1)
        >>> def forgive(module, keys):
        ...     keys.missing_keys.clear()
        >>> handle = layer.register_load_state_dict_post_hook(forgive)
        >>> layer.load_state_dict({})
        <All keys matched successfully>
        """
        return add_hook(self._load_state_dict_post_hooks, hook)


def _held_as(target: Tensor, value: Tensor) -> Tensor:
    """A tensor as what takes the place of another one in a module: a parameter for one."""
    if not isinstance(target, Parameter):
        return value
    if isinstance(value, Parameter):
        return value.requires_grad_(target.requires_grad)
    return Parameter(value, target.requires_grad)
