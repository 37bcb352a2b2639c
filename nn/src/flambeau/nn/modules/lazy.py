"""Modules that learn the sizes of their parameters from the first input."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from flambeau.nn._registry import Registry
from flambeau.nn.parameter import is_lazy

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau.nn.module import Module


__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(Registry):
    """A base, before `Module`, of modules whose parameters have no shape until the first call.

    The parameters and buffers concerned start as `UninitializedParameter` and
    `UninitializedBuffer`.  The first call runs ``initialize_parameters`` with the arguments of
    ``forward``, which must give each of them a shape; then the module becomes one of the class
    `cls_to_become`, if that is not None.  Loading a ``state_dict`` gives the shapes as well.

    >>> import flambeau as fb
    >>> from flambeau.nn.modules.lazy import LazyModuleMixin
    >>> from flambeau.nn.parameter import UninitializedParameter
    >>> class Scale(LazyModuleMixin, fb.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = UninitializedParameter()
    ...     def initialize_parameters(self, x):
    ...         self.factor.materialize(x.shape[-1:])
    ...         fb.nn.init.ones_(self.factor)
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(fb.tensor([2.0, 3.0])).detach()
    tensor([2., 3.])
    """

    cls_to_become: type | None = None

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        module: Any = self
        module._register_load_state_dict_pre_hook(self._lazy_load_hook)
        module.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give every uninitialised parameter and buffer its shape and first values.

        The arguments are those of ``forward``.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of this module, not of its children, has no shape yet.

        >>> import flambeau as fb
        >>> fb.nn.LazyLinear(3).has_uninitialized_params()
        True
        """
        return any(map(is_lazy, (*self._parameters.values(), *self._buffers.values())))

    def _infer_parameters(
        self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        """The hook before the first forward; it takes itself out."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
        # By what they call: a copied module has hooks of its own under the same numbers.
        _remove(module._forward_pre_hooks, LazyModuleMixin._infer_parameters)
        _remove(module._load_state_dict_pre_hooks, LazyModuleMixin._lazy_load_hook)
        for key in module._forward_pre_hooks_with_kwargs.keys() - module._forward_pre_hooks.keys():
            del module._forward_pre_hooks_with_kwargs[key]
        if self.cls_to_become is not None:
            module.__class__ = self.cls_to_become

    def _lazy_load_hook(self, state_dict: dict[str, Any], prefix: str, *rest: object) -> None:
        """The hook before loading: uninitialised tensors take the shapes of their entries."""
        held: dict[str, Any] = {**self._parameters, **self._buffers}
        for name, tensor in held.items():
            value = state_dict.get(prefix + name)
            if is_lazy(tensor) and value is not None and not is_lazy(value):
                tensor.materialize(value.shape)

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        # Uninitialised tensors cannot be detached and are saved as they are.
        for name, tensor in (*self._parameters.items(), *self._buffers.items()):
            if tensor is not None and name not in self._non_persistent_buffers_set:
                as_it_is = keep_vars or is_lazy(tensor)
                destination[prefix + name] = tensor if as_it_is else tensor.detach()


def _remove(hooks: OrderedDict[int, Any], function: Callable[..., Any]) -> None:
    for key in [k for k, hook in hooks.items() if getattr(hook, "__func__", None) is function]:
        del hooks[key]
