"""`Module`, the base class of all layers, losses and models."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar, overload

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._call import HookedCall, refused_call
from flambeau.nn._convert import Conversion
from flambeau.nn._global_hooks import CALL_HOOKS
from flambeau.nn._hooks import HookRegistration
from flambeau.nn._registry import Registry
from flambeau.nn._state import StateDict, _IncompatibleKeys
from flambeau.overrides import methods_take_as_annotated, takes_as_annotated

__all__ = ["Module", "_IncompatibleKeys"]


def _forward_unimplemented(self: object, *input: object) -> None:
    """The computation of a call, which every subclass defines.

    >>> import flambeau as fb
    >>> class Double(fb.nn.Module):
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Double()(fb.ones(1))
    tensor([2.])
    """
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result", covariant=True)
Pair = tuple[Tensor, Tensor]
Recurrent = tuple[Tensor, Tensor | Pair]


class _Untold:
    """What no ``forward`` returns: to type checkers, those do of which nothing is told."""


class _Runs(Protocol[Arguments, Result]):
    """To type checkers: a module takes what its ``forward`` takes, and returns what that does.

    Where ``forward`` returns one of several types, the program knows which it is and checkers do
    not: a call then returns any.
    """

    @property
    def forward(self) -> Callable[Arguments, Result]: ...


class Module(HookRegistration, StateDict, Conversion):
    """A computation with parameters; a subclass assigns its parts and defines ``forward``.

    Parameters, buffers and modules assigned to attributes are registered under their names, so
    that ``parameters()``, ``to()``, ``state_dict()`` and the rest reach all of them.  Calling the
    module runs ``forward`` and the registered hooks.  ``training`` is true until ``eval()``.

    >>> import flambeau as fb
    >>> class Model(fb.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = fb.nn.Linear(4, 2)
    ...     def forward(self, x):
    ...         return self.layer(x).relu()
    >>> Model()
    Model(
      (layer): Linear(in_features=4, out_features=2, bias=True)
    )
    >>> Model()(fb.ones(3, 4)).shape
    torch.Size([3, 2])
    """

    call_super_init: bool = False
    forward: Callable[..., Any] = _forward_unimplemented

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        methods_take_as_annotated(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            extra = (
                f"got an unexpected keyword argument '{next(iter(kwargs))}'"
                if kwargs
                else f"takes 1 positional argument but {len(args) + 1} were given"
            )
            raise TypeError(f"{type(self).__name__}.__init__() {extra}")
        # Past __setattr__, which works on these tables.
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _is_full_backward_hook=None,
            **{name: OrderedDict() for name in _HOOK_TABLES},
            _modules={},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    if TYPE_CHECKING:

        @overload
        def __call__(  # pyright: ignore[reportNoOverloadImplementation] - it stands below
            self: _Runs[Arguments, _Untold], *args: Arguments.args, **kwargs: Arguments.kwargs
        ) -> Any: ...

        @overload
        def __call__(self: _Runs[[Tensor], Tensor], input: Tensor | None) -> Tensor: ...

        @overload
        def __call__(
            self: _Runs[Arguments, Tensor], *args: Arguments.args, **kwargs: Arguments.kwargs
        ) -> Tensor: ...

        @overload
        def __call__(
            self: _Runs[Arguments, Pair], *args: Arguments.args, **kwargs: Arguments.kwargs
        ) -> Pair: ...

        @overload
        def __call__(
            self: _Runs[Arguments, Recurrent], *args: Arguments.args, **kwargs: Arguments.kwargs
        ) -> Recurrent: ...

        @overload
        def __call__(
            self: _Runs[Arguments, dict[str, Tensor]],
            *args: Arguments.args,
            **kwargs: Arguments.kwargs,
        ) -> dict[str, Tensor]: ...

        @overload
        def __call__(
            self: _Runs[Arguments, Any], *args: Arguments.args, **kwargs: Arguments.kwargs
        ) -> Any: ...

    else:

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            # Past the ordinary look-up, which is slow in classes that have a __getattr__.
            own = self.__dict__
            try:
                hooked = (
                    own["_forward_hooks"]
                    or own["_forward_pre_hooks"]
                    or own["_backward_hooks"]
                    or own["_backward_pre_hooks"]
                    or CALL_HOOKS
                )
            except (
                KeyError
            ) as missing:  # Module.__init__ was not called: this raises AttributeError
                hooked = getattr(self, missing.args[0])
            if hooked:
                call = HookedCall(self, args, kwargs)
                try:
                    call.begin()
                    return call.end(self.forward(*call.args, **call.kwargs))
                except Exception:
                    call.run_always_called()
                    raise
            try:
                if len(args) == 1 and not kwargs:  # an unpacked call costs more
                    return self.forward(args[0])
                return self.forward(*args, **kwargs)
            except AttributeError as error:
                if (worded := refused_call(self, args, kwargs)) is None:
                    raise
                raise worded from error

        # What libraries wrap and call instead.
        _call_impl = _wrapped_call_impl = __call__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOK_TABLES:  # objects pickled before a table existed
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def compile(self, **options: Any) -> None:
        """Let calls of this module repeat plans, in place: see `flambeau.compile`.

        Args:
            options: those of `flambeau.compile`.

        >>> import flambeau as fb
        >>> layer = fb.nn.Linear(2, 1)
        >>> layer.compile()
        >>> for _ in range(3):
        ...     y = layer(fb.ones(2))
        >>> layer.forward.explain().replays
        1
        """
        self.forward = fb.compile(self.forward, **options)

    def children(self) -> Iterator[Module]:
        """The immediate children, each once.

        >>> import flambeau as fb
        >>> list(fb.nn.Sequential(fb.nn.ReLU(), fb.nn.Tanh()).children())
        [ReLU(), Tanh()]
        """
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Pairs of name and immediate child, each child once.

        >>> import flambeau as fb
        >>> list(fb.nn.Sequential(fb.nn.ReLU()).named_children())
        [('0', ReLU())]
        """
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all its descendants, parents first, each once unless told otherwise.

        >>> import flambeau as fb
        >>> relu = fb.nn.ReLU()
        >>> len(list(fb.nn.Sequential(relu, relu).modules()))
        2
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Pairs of full name and module: this one (named `prefix`) and all its descendants.

        `memo` collects the modules seen so far, which are passed over.

        >>> import flambeau as fb
        >>> [name for name, _ in fb.nn.Sequential(fb.nn.ReLU()).named_modules()]
        ['', '0']
        """
        if memo is None:
            memo = set()
        elif not isinstance(memo, set):
            raise TypeError(f"named_modules(): memo must be a set, not {type(memo).__name__}")
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    @takes_as_annotated
    def get_submodule(self, target: str) -> Module:
        """The descendant with the dotted name `target`; this module for ``""``.

        Raises:
            AttributeError: a part of the path does not exist or is not a module.

        >>> import flambeau as fb
        >>> fb.nn.Sequential(fb.nn.Sequential(fb.nn.ReLU())).get_submodule("0.0")
        ReLU()
        """
        module = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    @takes_as_annotated
    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put `module` at the dotted name `target`; with `strict` it must replace a module.

        Raises:
            ValueError: `target` is empty or `module` is not a module.
            AttributeError: the parent does not exist, or what is there is not a module.

        >>> import flambeau as fb
        >>> model = fb.nn.Sequential(fb.nn.ReLU())
        >>> model.set_submodule("0", fb.nn.Tanh()); model[0]
        Tanh()
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent, name = self._parent(target)
        if hasattr(parent, name):
            if not isinstance(getattr(parent, name), Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        elif strict:
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        setattr(parent, name, module)

    def apply(self, fn: Callable[[Module], object]) -> Self:
        """Call ``fn(module)`` for every descendant, children first, then for this module.

        >>> import flambeau as fb
        >>> model = fb.nn.Sequential(fb.nn.ReLU())
        >>> model = model.apply(lambda module: print(type(module).__name__))
        ReLU
        Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode, or evaluation mode if `mode` is false, here and in all descendants.

        Raises:
            ValueError: `mode` is not a bool.

        >>> import flambeau as fb
        >>> fb.nn.Dropout().train(False).training
        False
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode: the same as ``train(False)``.

        >>> import flambeau as fb
        >>> fb.nn.Dropout().eval()(fb.ones(2))
        tensor([1., 1.])
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether the parameters are trained; frozen ones record no gradient.

        >>> import flambeau as fb
        >>> fb.nn.Linear(1, 1).requires_grad_(False).weight.requires_grad
        False
        """
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros.

        >>> import flambeau as fb
        >>> layer = fb.nn.Linear(1, 1)
        >>> layer(fb.ones(1)).backward()
        >>> layer.zero_grad(); layer.weight.grad is None
        True
        """
        for parameter in self.parameters():
            grad = parameter.grad
            if grad is None:
                continue
            if set_to_none:
                parameter.grad = None
                continue
            if grad.grad_fn is not None:
                grad.detach_()
            else:
                grad.requires_grad_(False)
            grad.zero_()

    def extra_repr(self) -> str:
        """The text between the parentheses of the module's repr; override it.

        >>> import flambeau as fb
        >>> fb.nn.Dropout(0.5).extra_repr()
        'p=0.5, inplace=False'
        """
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = []
        for name, module in self._modules.items():
            first, *rest = repr(module).split("\n")
            children.append("\n".join([f"({name}): {first}", *("  " + line for line in rest)]))
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        if not lines and not children:
            return f"{self._get_name()}()"
        body = "\n  ".join(lines + children)
        return f"{self._get_name()}(\n  {body}\n)"


_HOOK_TABLES = tuple(
    name
    for name in Registry.__annotations__
    if name.endswith(("_hooks", "_with_kwargs", "_always_called"))
)
