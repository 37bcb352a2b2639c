"""Parameters computed from other tensors: each access runs a chain of modules.

A parametrised module gets a class of its own, a subclass of the old one, in which the name is a
property; the tensors it is computed from are in ``module.parametrizations[name]``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.module import Module
from flambeau.nn.modules.container import ModuleDict, ModuleList
from flambeau.nn.parameter import Parameter
from flambeau.overrides import takes_as_annotated

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]

_depth = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrised tensor once inside this context, at its first access.

    >>> import flambeau as fb
    >>> from flambeau.nn.utils import parametrizations, parametrize
    >>> layer = parametrizations.weight_norm(fb.nn.Linear(2, 2))
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The modules that compute one tensor, and the tensors they start from.

    ``original`` is that tensor, or ``original0``, ``original1``, ... if the first module's
    ``right_inverse`` gives several.

    Raises:
        ValueError: a parametrization changes dtype or shape, unless `unsafe`.
    """

    unsafe: bool
    is_tensor: bool
    ntensors: int

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        start = original
        with fb.no_grad():
            for module in reversed(list(modules)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):  # some options have no inverse
                        start = module.right_inverse(start)
        self.is_tensor = isinstance(start, Tensor)
        if not self.is_tensor and not isinstance(start, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(start).__name__}"
            )
        self.ntensors = 1 if self.is_tensor else len(start)
        values = [start] if self.is_tensor else start
        for name, value in zip(self._names, values, strict=True):
            self._hold(name, value, original, sole=self.is_tensor)
        if not unsafe:
            _check_same("unparametrized", original, "parametrized", self())

    @property
    def _names(self) -> list[str]:
        if self.is_tensor:
            return ["original"]
        return [f"original{i}" for i in range(self.ntensors)]

    def _hold(self, name: str, value: Any, original: Tensor, sole: bool) -> None:
        if not isinstance(original, Parameter):
            self.register_buffer(name, value)
        elif sole:  # optimisers may hold the parameter: it stays the same object
            if value is not original:
                original.data = value.detach()
            self.register_parameter(name, original)
        else:
            wants = original.requires_grad and value.dtype.is_floating_point
            self.register_parameter(name, Parameter(value.detach(), wants))

    @fb.no_grad()
    def right_inverse(self, value: Tensor) -> None:
        """Set the tensors so that the result is `value`.

        Raises:
            RuntimeError: a parametrization has no ``right_inverse``.
        """
        start = value
        for module in reversed(list(self)):
            if not hasattr(module, "right_inverse"):
                raise RuntimeError(
                    f"parametrization {type(module).__name__} does not implement right_inverse."
                )
            start = module.right_inverse(start)
        parts = [start] if self.is_tensor else list(start)
        if len(parts) != self.ntensors:
            raise ValueError(
                "'right_inverse' must return as many tensors as at registration: "
                f"{self.ntensors}, got {len(parts)}"
            )
        for name, part in zip(self._names, parts, strict=True):
            held = getattr(self, name)
            _check_same(f"while assigning {name}: held", held, "new", part)
            held.copy_(part)

    def forward(self) -> Tensor:
        """The tensor that the modules compute."""
        first, *others = self
        result = first(*(getattr(self, name) for name in self._names))
        for module in others:
            result = module(result)
        return result


def _check_same(first: str, a: Tensor, second: str, b: object) -> None:
    if not isinstance(b, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(b).__name__}.")
    if a.dtype is not b.dtype:
        raise ValueError(
            "Registering a parametrization may not change the dtype of the tensor, unless the "
            f"`unsafe` flag is enabled.\n{first} dtype: {a.dtype}\n{second} dtype: {b.dtype}"
        )
    if a.shape != b.shape:
        raise ValueError(
            "Registering a parametrization may not change the shape of the tensor, unless "
            f"`unsafe` flag is enabled.\n{first} shape: {a.shape}\n{second} shape: {b.shape}"
        )


def _own_class(module: Module) -> None:
    """Give the module a class of its own, in which properties can stand."""
    base = type(module)

    def forbid(self: object, *args: object) -> object:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). "
            "Save state_dict() and load it into a module parametrized in the same way."
        )

    def duplicate(self: object, memo: dict[int, Any]) -> object:
        other = self.__new__(type(self))
        memo[id(self)] = other
        other.__dict__ = copy.deepcopy(self.__dict__, memo)
        other.__class__ = type(
            self.__class__.__name__, self.__class__.__bases__, dict(vars(type(self)))
        )
        return other

    space = {"__getstate__": forbid, "__deepcopy__": duplicate, "__module__": __name__}
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), space)


def _install(module: Module, name: str) -> None:
    def read(self: Any) -> Tensor:
        if not _depth:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(read, write))


@takes_as_annotated
def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let `parametrization` compute the parameter or buffer `tensor_name` at each access.

    The first takes the original tensor (or what its ``right_inverse`` made of it), further ones the
    result of the one before.  Assigning to the name goes through the inverses.

    Raises:
        ValueError: there is no such tensor, or dtype or shape change and not `unsafe`.

    >>> import flambeau as fb
    >>> from flambeau.nn.utils import parametrize
    >>> class Symmetric(fb.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = fb.nn.Linear(3, 3)
    >>> _ = parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        chain = module.parametrizations[tensor_name]
        if not unsafe:
            now = getattr(module, tensor_name)
            _check_same("unparametrized", now, "parametrized", parametrization(now))
            if hasattr(parametrization, "right_inverse"):
                back = parametrization.right_inverse(now)
                _check_same("unparametrized", now, "inverted", back)
        chain.append(parametrization)
        chain.unsafe = chain.unsafe or unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    chain = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    module._parameters.pop(tensor_name, None)
    module._buffers.pop(tensor_name, None)
    if not is_parametrized(module):
        _own_class(module)
        module.parametrizations = ModuleDict()
    _install(module, tensor_name)
    module.parametrizations[tensor_name] = chain  # pyright: ignore[reportIndexIssue]
    return module


@takes_as_annotated
def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module has a parametrised tensor, or one of this name.

    >>> import flambeau as fb
    >>> from flambeau.nn.utils import parametrize
    >>> parametrize.is_parametrized(fb.nn.Linear(1, 1))
    False
    """
    chains = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(chains, ModuleDict):
        return False
    return len(chains) > 0 if tensor_name is None else tensor_name in chains


@takes_as_annotated
def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make `tensor_name` an ordinary parameter or buffer again.

    It has the computed value if `leave_parametrized`, otherwise that of the original.

    Raises:
        ValueError: it is not parametrised, or, without `leave_parametrized`, there is no single
            original.

    >>> import flambeau as fb
    >>> from flambeau.nn.utils import parametrizations, parametrize
    >>> layer = parametrizations.weight_norm(fb.nn.Linear(2, 2))
    >>> parametrize.remove_parametrizations(layer, "weight")
    Linear(in_features=2, out_features=2, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    if not leave_parametrized and not chain.is_tensor:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    trained = bool(chain._parameters)
    kept = chain.original if chain.is_tensor else None
    if leave_parametrized:
        value = getattr(module, tensor_name).detach()
        if kept is None:
            wants = any(p.requires_grad for p in chain.parameters())
            kept = Parameter(value, wants) if trained else value
        elif trained:
            kept.data = value
        else:
            kept = value
    delattr(type(module), tensor_name)
    chains = module.parametrizations
    del chains[tensor_name]
    if trained:
        module.register_parameter(tensor_name, kept)
    else:
        module.register_buffer(tensor_name, kept)
    if not is_parametrized(module):
        del module._modules["parametrizations"]
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of the module before it was parametrised.

    >>> import flambeau as fb
    >>> from flambeau.nn.utils import parametrizations, parametrize
    >>> layer = parametrizations.weight_norm(fb.nn.Linear(2, 2))
    >>> parametrize.type_before_parametrizations(layer).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)
