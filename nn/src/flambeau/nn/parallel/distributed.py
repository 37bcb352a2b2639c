"""A module whose gradients are averaged over the processes of a group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.module import Module
from flambeau.nn.modules.sparse import Embedding, EmbeddingBag
from flambeau.nn.parallel._buckets import FIRST, LARGE, MEGABYTE, GradBucket, Reducer, divided
from flambeau.nn.parallel._join import Attendance
from flambeau.nn.parallel._places import Device, device_type, placed
from flambeau.nn.parallel.parallel_apply import parallel_apply
from flambeau.nn.parallel.replicate import replicate
from flambeau.nn.parallel.scatter_gather import gather, scatter_kwargs

if TYPE_CHECKING:
    from flambeau.distributed import ProcessGroup

__all__ = ["DistributedDataParallel", "DistributedDataParallelCPU"]


class DistributedDataParallel(Module):
    """`module`, with its gradients averaged over the processes of a group.

    All processes begin with the parameters and buffers of rank 0.  After a backward pass the
    gradients are ``Σ gradients / processes`` in all of them, so equal optimisers keep the
    parameters equal.  Gradients travel in buckets while the rest of the backward pass computes;
    sparse ones, of embeddings with ``sparse=True``, each for itself.

    Args:
        module: with the same parameters in the same order in all processes.
        device_ids: devices of this process among which its inputs are divided along `dim`.
        output_device: where the outputs of these are gathered.
        dim: see `device_ids`.
        broadcast_buffers: buffers are those of rank 0 at each forward.
        process_group: that of all processes if not given.
        bucket_cap_mb: megabytes of a bucket; the first one is of at most one.
        find_unused_parameters: parameters may take no part in a loss; the graph is searched for
            them at each forward.
        check_reduction: not used.
        gradient_as_bucket_view: gradients are views of the buckets, which saves a copy.
        static_graph: the same parameters are left out in every pass; the graph is searched once.
        init_sync: begin with the parameters and buffers of rank 0.

    Raises:
        ValueError: there is no process group.
        RuntimeError: no parameter of the module requires a gradient, or processes have different
            ones.

    >>> import flambeau as fb
    >>> dist = fb.distributed
    >>> dist.init_process_group("reference", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = fb.nn.parallel.DistributedDataParallel(fb.nn.Linear(2, 3))
    >>> model(fb.ones(5, 2)).shape
    torch.Size([5, 3])
    >>> dist.destroy_process_group()
    """

    module: Module
    process_group: Any
    require_backward_grad_sync: bool

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Device] | None = None,
        output_device: Device | None = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = 25,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        init_sync: bool = True,
    ) -> None:
        super().__init__()
        if process_group is None:
            process_group = fb.distributed.group.WORLD
        if process_group is None:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call "
                "init_process_group, or give process_group"
            )
        parameters = [p for p in module.parameters() if p.requires_grad]
        if not parameters:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters "
                "that require a gradient."
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
        self.bucket_cap_mb = 25 if bucket_cap_mb is None else bucket_cap_mb
        self.find_unused_parameters = find_unused_parameters
        self.check_reduction = check_reduction
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self._attendance: Attendance | None = None
        self._reducer: Reducer | None = None
        if process_group.size() != 1:
            if not isinstance(process_group, fb.distributed.ProcessGroup):
                raise RuntimeError(
                    f"DistributedDataParallel: the group has {process_group.size()} processes and "
                    "is none of flambeau.distributed, which could bring them together"
                )
            self._compare_parameters(parameters)
            if init_sync:
                self._broadcast([*module.parameters(), *module.buffers()])
            self._make_reducer(parameters)

    def __getstate__(self) -> dict[str, Any]:
        """Without the group, which is that of all processes wherever this is read.

        Raises:
            RuntimeError: it is another group.
        """
        self._need_default_group()
        left_out = ("process_group", "_reducer", "_attendance")
        return {key: value for key, value in self.__dict__.items() if key not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take part in the group of all processes."""
        super().__setstate__(state)
        self.process_group = fb.distributed.group.WORLD
        self._need_default_group()
        self._attendance = None
        self._reducer = None
        if self.process_group.size() != 1:
            self._make_reducer([p for p in self.module.parameters() if p.requires_grad])

    def _need_default_group(self) -> None:
        group = fb.distributed.group.WORLD
        if group is None or self.process_group is not group:
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default "
                "process group. That is, when you have called init_process_group and have not "
                "passed process_group argument to DDP constructor"
            )

    def _make_reducer(self, parameters: Sequence[Tensor]) -> Reducer:
        sparse = {
            id(layer.weight)
            for layer in self.module.modules()
            if isinstance(layer, Embedding | EmbeddingBag) and layer.sparse
        }
        size = int(self.bucket_cap_mb * MEGABYTE)
        dense = [p for p in reversed(parameters) if id(p) not in sparse]  # as gradients come
        limits, alone = [min(FIRST, size), size], min(LARGE, size)
        parts = [[dense[i] for i in part] for part in divided(dense, limits, alone)]
        parts += [[p] for p in parameters if id(p) in sparse]  # embeddings are the first layers
        self._reducer = Reducer(
            parts,
            self.process_group,
            self.find_unused_parameters,
            self.gradient_as_bucket_view,
            self.static_graph,
            sparse,
        )
        return self._reducer

    def _compare_parameters(self, parameters: Sequence[Tensor]) -> None:
        mine = [(str(p.dtype), tuple(p.shape)) for p in parameters]
        found: list[Any] = [None] * self.process_group.size()
        fb.distributed.all_gather_object(found, mine, self.process_group)
        for rank, theirs in enumerate(found):
            if theirs != mine:
                raise RuntimeError(
                    "DistributedDataParallel expects same model across all ranks, but rank "
                    f"{self.process_group.rank()} has {len(mine)} parameters, "
                    f"{_first(mine, theirs)} where rank {rank} of {len(theirs)} has "
                    f"{_first(theirs, mine)}"
                )

    def _broadcast(self, tensors: Sequence[Tensor], source: int = 0) -> None:
        """Give all processes what member `source` has, one message for each dtype."""
        kinds: dict[Any, list[Tensor]] = {}
        for tensor in tensors:
            kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor.detach())
        for same in kinds.values():
            flat = fb.cat([tensor.reshape(-1) for tensor in same])
            fb.distributed.broadcast(flat, group=self.process_group, group_src=source)
            if self.process_group.rank() != source:
                parts = flat.split([tensor.numel() for tensor in same])
                for tensor, part in zip(same, parts, strict=True):
                    tensor.copy_(part.view(tensor.shape))

    def _synchronised_buffers(self) -> list[Tensor]:
        return list(self.module.buffers()) if self.broadcast_buffers else []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The result of the module, on several devices if there are `device_ids`."""
        reducer = self._reducer
        if reducer is None:
            return self._result(inputs, kwargs)
        sync = fb.is_grad_enabled() and self.require_backward_grad_sync
        source = 0
        if self._attendance is not None:
            exchanged = sync, self.require_forward_param_sync
            source, reducer.divisor = self._attendance.present(*exchanged)
        if self.require_forward_param_sync and (buffers := self._synchronised_buffers()):
            with fb.no_grad():
                self._broadcast(buffers, source)
        output = self._result(inputs, kwargs)
        if fb.is_grad_enabled():
            reducer.prepare(output, sync)
            self.require_forward_param_sync = sync
        return output

    def _result(self, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        places = self.device_ids
        if places is None or self.output_device is None:
            return self.module(*inputs, **kwargs)
        args, named = scatter_kwargs(inputs, kwargs, places, self.dim)
        if len(places) == 1 or not args:
            return self.module(*(args[0] if args else ()), **(named[0] if named else {}))
        used = places[: len(args)]
        results = parallel_apply(replicate(self.module, used), args, named, used)
        return gather(results, self.output_device, self.dim)

    def register_comm_hook(self, state: object, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Let `hook` reduce the buckets: ``hook(state, bucket)`` returns a future of the result.

        The result is a vector as long as ``bucket.buffer()``, averaged already;
        `flambeau.distributed.algorithms.ddp_comm_hooks.default_hooks` has some.

        Raises:
            TypeError: it cannot be called.
            RuntimeError: there is one already.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        reducer = self._reducer
        if reducer is None:
            reducer = self._make_reducer([p for p in self.parameters() if p.requires_grad])
        if reducer.hook is not None:
            raise RuntimeError("register_comm_hook can only be called once.")
        reducer.hook = lambda bucket: hook(state, bucket)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """The settings by PyTorch's names, which trainers read; nothing is measured."""
        return {
            "module_name": type(self.module).__name__,
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "broadcast_buffers": self.broadcast_buffers,
            "bucket_cap_bytes": self.bucket_cap_mb * MEGABYTE,
            "find_unused_parameters": self.find_unused_parameters,
            "gradient_as_bucket_view": self.gradient_as_bucket_view,
            "static_graph": self.static_graph,
        }

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

    @contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """A context for processes with different numbers of batches.

        A process that leaves it takes part in what the others exchange, with gradients of zero,
        until all have left; then all get the parameters and buffers of the last.

        Args:
            divide_by_initial_world_size: averages are sums divided by the size of the group, not
                by the number of processes that still have batches.
            enable: False: the context does nothing.
            throw_on_early_termination: raise in all processes when the first has no more batches.

        Raises:
            RuntimeError: `throw_on_early_termination`, and one process has no more batches.
        """
        reducer = self._reducer
        if not enable or reducer is None:
            yield
            return
        attendance = Attendance(
            self.process_group,
            next(self.parameters()).device,
            divide_by_initial_world_size,
            throw_on_early_termination,
        )
        self._attendance = attendance
        try:
            yield
            last = attendance.absent(self._shadow)
            self._broadcast([*self.module.parameters(), *self.module.buffers()], last)
        finally:
            self._attendance = None
            reducer.divisor = self.process_group.size()

    def _shadow(self, source: int, divisor: int, sync: bool, buffers: bool) -> None:
        """One step of the others, in a process that has no more batches."""
        reducer = self._reducer
        assert reducer is not None
        reducer.divisor = divisor
        if buffers and (held := self._synchronised_buffers()):
            with fb.no_grad():
                self._broadcast(held, source)
        if sync:
            reducer.shadow()


def _first(mine: Sequence[Any], theirs: Sequence[Any]) -> str:
    """The first entry that differs."""
    for i, entry in enumerate(mine):
        if i >= len(theirs) or entry != theirs[i]:
            return f"number {i} of {entry[0]}{list(entry[1])}"
    return "no more"


class DistributedDataParallelCPU(DistributedDataParallel):
    """`DistributedDataParallel` for modules on the CPU, by its older name."""
