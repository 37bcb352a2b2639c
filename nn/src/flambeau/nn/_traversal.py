"""Walking a tree of modules: iterators over its parts, look-up by dotted name, `apply`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

from flambeau import Tensor
from flambeau.nn._registry import Registry
from flambeau.nn.parameter import Parameter

if TYPE_CHECKING:
    from flambeau.nn.module import Module


class Traversal(Registry):
    """The part of `Module` that reaches parameters, buffers and descendants."""

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """What `get_members_fn` lists for each module, under full names and without None."""
        seen: set[int] = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for module_prefix, module in modules:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{module_prefix}.{name}" if module_prefix else name), member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once; only this module's own unless `recurse`.

        >>> import flambeau as fb
        >>> [tuple(p.shape) for p in fb.nn.Linear(2, 3).parameters()]
        [(3, 2), (3,)]
        """
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Pairs of full name and parameter; a shared one comes once unless told otherwise.

        >>> import flambeau as fb
        >>> [name for name, _ in fb.nn.Sequential(fb.nn.Linear(2, 3)).named_parameters()]
        ['0.weight', '0.bias']
        """
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once; only this module's own unless `recurse`.

        >>> import flambeau as fb
        >>> len(list(fb.nn.BatchNorm1d(2).buffers()))
        3
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Pairs of full name and buffer.

        >>> import flambeau as fb
        >>> [name for name, _ in fb.nn.BatchNorm1d(2).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

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
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)  # pyright: ignore[reportArgumentType]
        yield prefix, self  # pyright: ignore[reportReturnType]
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def get_submodule(self, target: str) -> Module:
        """The descendant with the dotted name `target`; this module for ``""``.

        Raises:
            AttributeError: a part of the path does not exist or is not a module.

        >>> import flambeau as fb
        >>> fb.nn.Sequential(fb.nn.Sequential(fb.nn.ReLU())).get_submodule("0.0")
        ReLU()
        """
        module: Any = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Registry):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module  # pyright: ignore[reportReturnType]

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
        if not isinstance(module, Registry):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent, name = self._parent(target)
        if hasattr(parent, name):
            if not isinstance(getattr(parent, name), Registry):
                raise AttributeError(f"`{name}` is not an nn.Module")
        elif strict:
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with the dotted name `target`.

        Raises:
            AttributeError: the path does not exist or does not end in a parameter.

        >>> import flambeau as fb
        >>> fb.nn.Sequential(fb.nn.Linear(2, 3)).get_parameter("0.bias").numel()
        3
        """
        parent, name = self._parent(target)
        if not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        parameter = getattr(parent, name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with the dotted name `target`.

        Raises:
            AttributeError: the path does not exist or does not end in a buffer.

        >>> import flambeau as fb
        >>> fb.nn.BatchNorm1d(2).get_buffer("running_mean")
        tensor([0., 0.])
        """
        parent, name = self._parent(target)
        if not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if name not in parent._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(parent, name)

    def _parent(self, target: str) -> tuple[Module, str]:
        path, _, name = target.rpartition(".")
        return self.get_submodule(path), name

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
        fn(self)  # pyright: ignore[reportArgumentType]
        return self
