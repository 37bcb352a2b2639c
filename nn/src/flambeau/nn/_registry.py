"""What a module holds: parameters, buffers and children, by name."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from flambeau import Tensor
from flambeau.nn import _global_hooks
from flambeau.nn.parameter import Buffer, Parameter

Hooks = OrderedDict[int, Any]

_CALL_HOOKS = "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"
_BOOKKEEPING = "_hooks", "_hooks_with_kwargs", "_hooks_always_called", "_buffers_set"
_PARTS = "_parameters", "_buffers", "_modules"


def _layer(cls: type) -> bool:
    """Whether a class of modules has a `forward` of ours, or is derived from one that has."""
    ours = next(c for c in cls.__mro__ if c.__module__.startswith("flambeau."))
    return ours.__name__ != "Module"


class Registry:
    """The named parts of a module and attribute access to them; the base of `Module`."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Any]
    _backward_pre_hooks: Hooks
    _backward_hooks: Hooks
    _is_full_backward_hook: bool | None
    _forward_hooks: Hooks
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: Hooks
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _state_dict_hooks: Hooks
    _state_dict_pre_hooks: Hooks
    _load_state_dict_pre_hooks: Hooks
    _load_state_dict_post_hooks: Hooks

    if TYPE_CHECKING:  # the tree, which `Module` defines and its other parts walk

        def children(self) -> Iterator[Any]: ...

        def named_modules(
            self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
        ) -> Iterator[tuple[str, Any]]: ...

        def get_submodule(self, target: str) -> Any: ...

    def _get_name(self) -> str:
        return type(self).__name__

    def __plan__(self, reach: Any, name: str) -> None:
        """What has to stay the same for a plan: parts, plain attributes, and no hooks."""
        own = self.__dict__
        for table in _CALL_HOOKS:
            reach.empty(own[table], f"hooks of {name}")
        reach.empty(_global_hooks.CALL_HOOKS, "hooks of all modules")
        for table in _PARTS:
            reach.children(own[table], name)
        # Of a layer all attributes matter but the hooks of state dictionaries and the like; of a
        # model those that its code names.
        if _layer(type(self)):
            shown = [key for key in own if key not in _PARTS and not key.endswith(_BOOKKEEPING)]
        else:
            shown = ["training"]
        reach.entries(own, shown, name, ours=type(self).__module__.startswith("flambeau."))
        reach.attributes(self, name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under `name`; ``None`` reserves the name and is not in ``state_dict``.

        Raises:
            KeyError: the name is empty, has a dot, or is an attribute already.
            TypeError: `param` is neither a parameter nor None.
            ValueError: `param` is the result of an operation.
            AttributeError: ``Module.__init__`` has not run.

        >>> import flambeau as fb
        >>> module = fb.nn.Module()
        >>> module.register_parameter("scale", fb.nn.Parameter(fb.ones(1)))
        >>> module.scale
        Parameter containing:
        tensor([1.], requires_grad=True)
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                    f"be created explicitly. To express '{name}' as a function of another Tensor, "
                    "compute the value in the forward() method."
                )
            param = _global_hooks.registered(
                _global_hooks.PARAMETER_REGISTRATION, self, name, param
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but not trained, such as a running mean.

        A buffer that is not `persistent` is left out of ``state_dict``.
        ``None`` reserves the name.

        Raises:
            KeyError: the name is empty, has a dot, or is an attribute already.
            TypeError: `tensor` is neither a tensor nor None.
            AttributeError: ``Module.__init__`` has not run.

        >>> import flambeau as fb
        >>> module = fb.nn.Module()
        >>> module.register_buffer("running_mean", fb.zeros(2))
        >>> module.running_mean
        tensor([0., 0.])
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if not (tensor is None or is_tensor_like(tensor)):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self._buffers[name] = _global_hooks.registered(
            _global_hooks.BUFFER_REGISTRATION, self, name, tensor
        )
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: object) -> None:
        """Add a child module under `name`; ``None`` reserves the name.

        Raises:
            KeyError: the name is empty, has a dot, or is an attribute already.
            TypeError: `module` is neither a module nor None.

        >>> import flambeau as fb
        >>> model = fb.nn.Module()
        >>> model.add_module("layer", fb.nn.Identity())
        >>> model.layer
        Identity()
        """
        if not (module is None or isinstance(module, Registry)):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = _global_hooks.registered(
            _global_hooks.MODULE_REGISTRATION, self, name, module
        )

    def register_module(self, name: str, module: object) -> None:
        """The same as `add_module`.

        >>> import flambeau as fb
        >>> model = fb.nn.Module()
        >>> model.register_module("layer", fb.nn.Identity())
        >>> dict(model.named_children())
        {'layer': Identity()}
        """
        self.add_module(name, module)

    def _check_name(self, kind: str, name: str, table: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if name not in table and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            where = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{where}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')

    # Runs only where the ordinary look-up finds nothing.
    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_parameters" in own:
            found = own["_parameters"]
            if name in found:
                return found[name]
            found = own["_buffers"]
            if name in found:
                return found[name]
            found = own["_modules"]
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in own:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Registry):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            self._set_child(name, value)
        elif name in own.get("_parameters", ()):
            self._refuse_unless_none(value, name, "parameter", "torch.nn.Parameter or None")
            self.register_parameter(name, value)
        elif name in own.get("_modules", ()):
            self._refuse_unless_none(value, name, "child module", "torch.nn.Module or None")
            self._set_child(name, value)
        elif isinstance(value, Buffer) or name in own.get("_buffers", ()):
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _set_child(self, name: str, value: object) -> None:
        self._modules[name] = _global_hooks.registered(
            _global_hooks.MODULE_REGISTRATION, self, name, value
        )

    def _set_buffer(self, name: str, value: Any) -> None:
        if not (value is None or is_tensor_like(value)):
            kinds = "torch.nn.Buffer, torch.Tensor or None"
            self._refuse_unless_none(value, name, "buffer", kinds)
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        if "persistent" in inspect.signature(self.register_buffer).parameters:
            self.register_buffer(name, value, persistent)
        elif persistent:  # an override written before buffers could be left out of state_dict
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements "
                "register_buffer() without the persistent argument is not allowed."
            )

    def _forget(self, name: str, keep: str) -> None:
        """Drop `name` everywhere but in the table `keep`, whose order must survive."""
        self.__dict__.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table != keep:
                self.__dict__[table].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    @staticmethod
    def _refuse_unless_none(value: object, name: str, kind: str, expected: str) -> None:
        if value is not None:
            raise TypeError(
                f"cannot assign '{typename(value)}' as {kind} '{name}' ({expected} expected)"
            )

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> Iterable[str]:
        names = {*super().__dir__(), *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())


def is_tensor_like(value: object) -> bool:
    """Whether `value` is a tensor or overrides the functions that take one."""
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def typename(value: object) -> str:
    """The name of a value's type as error messages show it; for tensors the legacy type name."""
    if isinstance(value, Tensor):
        return value.type()
    cls = type(value)
    return (
        cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    )
