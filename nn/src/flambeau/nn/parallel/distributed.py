"""A module whose gradients are averaged over the processes of a group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flambeau.nn.module import Module
from flambeau.nn.parallel._places import Device, device_type, placed
from flambeau.nn.parallel.parallel_apply import parallel_apply
from flambeau.nn.parallel.replicate import replicate
from flambeau.nn.parallel.scatter_gather import gather, scatter_kwargs

__all__ = ["DistributedDataParallel", "DistributedDataParallelCPU"]


class DistributedDataParallel(Module):
    """`module`, with its gradients averaged over the processes of a group.

    A group is anything with a method ``size()``.  In a group of one process the average is the
    gradient itself: the module then differs from `module` only in that its inputs are cut up along
    `dim` for `device_ids`, if there are any.  Larger groups need ``flambeau.distributed``.

    `broadcast_buffers`, `bucket_cap_mb`, `find_unused_parameters`, `check_reduction`,
    `gradient_as_bucket_view` and `static_graph` say how processes exchange gradients and buffers,
    and change no result.

    Raises:
        ValueError: there is no process group.
        RuntimeError: no parameter of the module requires a gradient, or the group has several
            processes.

    >>> import flambeau as fb
    >>> class Alone:
    ...     def size(self):
    ...         return 1
    >>> model = fb.nn.parallel.DistributedDataParallel(
    ...     fb.nn.Linear(2, 3), process_group=Alone()
    ... )
    >>> model(fb.ones(5, 2)).shape
    torch.Size([5, 3])
    """

    module: Module
    require_backward_grad_sync: bool

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Device] | None = None,
        output_device: Device | None = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = 25,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ) -> None:
        super().__init__()
        if process_group is None:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call "
                "init_process_group, or give process_group"
            )
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters "
                "that require a gradient."
            )
        if not callable(getattr(process_group, "size", None)):
            raise TypeError(
                "DistributedDataParallel(): argument 'process_group' must be a group of "
                f"processes, not {process_group!r:.80}"
            )
        if (size := process_group.size()) != 1:
            raise RuntimeError(
                f"DistributedDataParallel: the group has {size} processes; gradients can be "
                "exchanged only with a communication backend, and none is installed"
            )
        kind = device_type(list(module.parameters()))
        self.module = module
        self.device_ids = None if not device_ids else [placed(d, kind) for d in device_ids]
        self.output_device = None
        if self.device_ids is not None:
            chosen = self.device_ids[0] if output_device is None else output_device
            self.output_device = placed(chosen, kind)
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.process_group = process_group
        self.bucket_cap_mb = bucket_cap_mb
        self.find_unused_parameters = find_unused_parameters
        self.check_reduction = check_reduction
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The result of the module, on several devices if there are `device_ids`."""
        places = self.device_ids
        if places is None or self.output_device is None:
            return self.module(*inputs, **kwargs)
        args, named = scatter_kwargs(inputs, kwargs, places, self.dim)
        if len(places) == 1 or not args:
            return self.module(*(args[0] if args else ()), **(named[0] if named else {}))
        used = places[: len(args)]
        results = parallel_apply(replicate(self.module, used), args, named, used)
        return gather(results, self.output_device, self.dim)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context in which gradients add up in this process and are not averaged.

        The first backward after it averages what has added up.

        >>> import flambeau as fb
        >>> class Alone:
        ...     def size(self):
        ...         return 1
        >>> layer = fb.nn.Linear(1, 1)
        >>> model = fb.nn.parallel.DistributedDataParallel(layer, process_group=Alone())
        >>> with model.no_sync():
        ...     model(fb.ones(1)).backward()
        >>> model(fb.ones(1)).backward()
        >>> layer.bias.grad
        tensor([2.])
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before


class DistributedDataParallelCPU(DistributedDataParallel):
    """`DistributedDataParallel` for modules on the CPU, by its older name."""
