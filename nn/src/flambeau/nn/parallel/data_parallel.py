"""A module applied to the parts of a batch on several devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau as fb
from flambeau.nn.module import Module
from flambeau.nn.parallel._places import Device, device_type, placed
from flambeau.nn.parallel.parallel_apply import parallel_apply
from flambeau.nn.parallel.replicate import replicate
from flambeau.nn.parallel.scatter_gather import gather, scatter_kwargs
from flambeau.overrides import takes_as_annotated

__all__ = ["DataParallel", "data_parallel"]


def _all_devices(kind: str | None) -> list[fb.device]:
    """Every device of a type; none without one."""
    if kind is None:
        return []
    return [fb.device(kind, i) for i in range(fb.accelerator.namespace(kind).device_count())]


def _check_place(module: Module, first: fb.device) -> None:
    """The parameters and buffers of the module must be where its first copy is."""
    for tensor in (*module.parameters(), *module.buffers()):
        here = tensor.device
        same = here.type == first.type and (here.index or 0) == (first.index or 0)
        if not same:
            raise RuntimeError(
                "module must have its parameters and buffers on device "
                f"{first} (device_ids[0]) but found one of them on device: {here}"
            )


class DataParallel(Module):
    """`module`, applied to the parts of a batch on several devices at once.

    The tensors among the inputs are cut along `dim`, the module is copied to each of `device_ids`,
    the copies run at the same time, and the results are joined on `output_device`.  Gradients of
    all parts add up in the parameters of `module`.  What the copies change in themselves is lost,
    but for the buffers of the first.  Results without dimensions become a vector.

    An index among `device_ids` is one of the type of device that holds the parameters, or of the
    accelerator.  By default all devices of that type take part, and the results go to the first;
    where there is no such device the module is simply called.

    Raises:
        RuntimeError: at a call, parameters or buffers are not on ``device_ids[0]``.

    >>> import flambeau as fb
    >>> model = fb.nn.DataParallel(fb.nn.Linear(2, 3), ["cpu", "cpu"])
    >>> model(fb.ones(5, 2)).shape
    torch.Size([5, 3])
    >>> list(model.state_dict())
    ['module.weight', 'module.bias']
    """

    module: Module
    device_ids: list[Any]
    output_device: Any
    dim: int

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Device] | None = None,
        output_device: Device | None = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        if not isinstance(module, Module):
            raise TypeError(f"module must be Module, not {type(module).__name__}")
        kind = device_type(list(module.parameters()), list(module.buffers()))
        self.module = module
        self.dim = dim
        if device_ids is None:
            places = _all_devices(kind)
        elif kind is None and all(isinstance(device, int) for device in device_ids):
            places = []  # the indices of an accelerator that this machine does not have
        else:
            places = [placed(device, kind) for device in device_ids]
        self.src_device_obj = places[0] if places else fb.device("cpu")
        self._places = places
        self.device_ids = [_number(place) for place in places]
        if places:
            chosen = places[0] if output_device is None else placed(output_device, kind)
            self._target = chosen
            self.output_device = _number(chosen)
        if len(places) == 1:
            module.to(places[0])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The joined results of the copies of the module."""
        places = self._places
        if not places:
            return self.module(*inputs, **kwargs)
        _check_place(self.module, places[0])
        args, named = self.scatter(inputs, kwargs, places)
        if not args:  # nothing to cut up
            args, named = ((),), ({},)
        if len(places) == 1:
            return self.module(*args[0], **named[0])
        replicas = self.replicate(self.module, places[: len(args)])
        results = self.parallel_apply(replicas, args, named)
        return self.gather(results, self._target)

    def replicate(self, module: Module, device_ids: Sequence[Device]) -> list[Module]:
        """`flambeau.nn.parallel.replicate`, without history where none is recorded."""
        return replicate(module, device_ids, not fb.is_grad_enabled())

    def scatter(
        self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Device]
    ) -> Any:
        """`flambeau.nn.parallel.scatter_kwargs` along `dim`."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(
        self, replicas: Sequence[Module], inputs: Sequence[Any], kwargs: Any
    ) -> list[Any]:
        """`flambeau.nn.parallel.parallel_apply` on the devices of the copies."""
        return parallel_apply(replicas, inputs, kwargs, self._places[: len(replicas)])

    def gather(self, outputs: object, output_device: Device) -> Any:
        """`flambeau.nn.parallel.gather` along `dim`."""
        return gather(outputs, output_device, self.dim)


def _number(place: fb.device) -> Any:
    """The index of a device, as PyTorch shows it; the device itself if it has none."""
    return place if place.index is None else place.index


@takes_as_annotated
def data_parallel(
    module: Module,
    inputs: object,
    device_ids: Sequence[Device] | None = None,
    output_device: Device | None = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """`module` applied to the parts of `inputs` on several devices, as `DataParallel` does.

    `inputs` that is no tuple is the single argument.

    Raises:
        RuntimeError: there is no device to use, or parameters or buffers are not on the first.

    >>> import flambeau as fb
    >>> layer = fb.nn.Linear(2, 3)
    >>> fb.nn.parallel.data_parallel(layer, fb.ones(5, 2), ["cpu", "cpu"]).shape
    torch.Size([5, 3])
    """
    args = inputs if isinstance(inputs, tuple) else (() if inputs is None else (inputs,))
    kind = device_type(list(module.parameters()), list(module.buffers()), args)
    if device_ids is None:
        places = _all_devices(kind)
    else:
        places = [placed(device, kind) for device in device_ids]
    if not places:
        raise RuntimeError(
            "data_parallel: device type could not be determined; no accelerator is available, so "
            "name the devices, as in device_ids=['cpu']"
        )
    target = places[0] if output_device is None else placed(output_device, kind)
    _check_place(module, places[0])
    parts, named = scatter_kwargs(args, module_kwargs, places, dim)
    if not parts:
        parts, named = ((),), ({},)
    if len(places) == 1:
        return module(*parts[0], **named[0])
    used = places[: len(parts)]
    results = parallel_apply(replicate(module, used), parts, named, used)
    return gather(results, target, dim)
