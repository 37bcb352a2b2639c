"""The parameters and buffers of a tree of modules: iterators, and look-up by dotted name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flambeau import Tensor
from flambeau.nn._registry import Registry
from flambeau.nn.parameter import Parameter
from flambeau.overrides import takes_as_annotated


class Members(Registry):
    """The part of `Module` that reaches parameters and buffers, its own and its descendants'."""

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

    @takes_as_annotated
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

    @takes_as_annotated
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

    def _parent(self, target: str) -> tuple[Any, str]:
        path, _, name = target.rpartition(".")
        return self.get_submodule(path), name
