"""Copies of a module on several devices that share its parameters' gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.module import Module
from flambeau.nn.parallel._places import Device, device_type, placed
from flambeau.nn.parameter import is_lazy
from flambeau.overrides import takes_as_annotated

__all__ = ["replicate"]

M = TypeVar("M", bound=Module)


@takes_as_annotated
def replicate(network: M, devices: Sequence[Device], detach: bool = False) -> list[M]:
    """A copy of `network` for each device.

    The copies' parameters are results of copying: what is computed with them sends its gradient to
    the parameters of `network`, unless `detach`.  The first copy shares the buffers of `network`
    when it is on the same device, so that running statistics are kept; everything else that a copy
    changes in itself is lost with it.

    Raises:
        RuntimeError: there are parameters without shape.

    >>> import flambeau as fb
    >>> layer = fb.nn.Linear(2, 1)
    >>> first, second = fb.nn.parallel.replicate(layer, ["cpu", "cpu"])
    >>> (first(fb.ones(2)) + second(fb.ones(2))).backward()
    >>> layer.bias.grad
    tensor([2.])
    """
    tensors = [*network.parameters(), *network.buffers()]
    if any(map(is_lazy, tensors)):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy "
            "forward pass to correctly initialize the modules"
        )
    kind = device_type(tensors)
    return [
        _copy(network, placed(device, kind), detach, bool(i)) for i, device in enumerate(devices)
    ]


def _copy(network: M, place: fb.device, detach: bool, copies_buffers: bool) -> M:
    """The copy for one device; tensors and modules that stand in several places stay one."""
    moved: dict[int, Tensor] = {}

    def move(tensor: Tensor, copies: bool) -> Tensor:
        if id(tensor) not in moved:
            source = tensor.detach() if detach else tensor
            moved[id(tensor)] = source.to(place, copy=copies)
        return moved[id(tensor)]

    replicas: dict[int, Any] = {}
    for module in network.modules():
        replica = object.__new__(type(module))
        replica.__dict__ = dict(module.__dict__)
        replica._is_replica = True
        replica._parameters = {k: None for k, v in module._parameters.items() if v is None}
        replica._buffers = {
            k: None if v is None else move(v, copies_buffers) for k, v in module._buffers.items()
        }
        # Not registered: a copied parameter is the result of an operation.
        for key, parameter in module._parameters.items():
            if parameter is not None:
                replica.__dict__[key] = move(parameter, False)
        replicas[id(module)] = replica
    for replica in replicas.values():
        replica._modules = {
            k: None if child is None else replicas[id(child)]
            for k, child in replica._modules.items()
        }
    return replicas[id(network)]
