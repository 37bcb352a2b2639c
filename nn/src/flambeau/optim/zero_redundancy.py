"""An optimiser whose state is divided among the processes of a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.optim.optimizer import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """`optimizer_class`, with the state of each parameter in one process only.

    Each process updates its part of the parameters and sends them to the others: memory for state
    is divided by the number of processes, and results are those of the optimiser itself.

    Args:
        params: parameters, the same in all processes, with the same gradients.
        optimizer_class: such as `flambeau.optim.Adam`.
        process_group: that of all processes if not given.
        parameters_as_bucket_view: not used.
        overlap_with_ddp: not supported.
        defaults: arguments of `optimizer_class`.

    Raises:
        ValueError: there is no process group.
        NotImplementedError: `overlap_with_ddp`.

    Source: S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
    Models", 2020, stage 1.

    >>> import flambeau as fb
    >>> dist = fb.distributed
    >>> dist.init_process_group("reference", store=dist.HashStore(), rank=0, world_size=1)
    >>> layer = fb.nn.Linear(2, 1)
    >>> from flambeau.optim.zero_redundancy import ZeroRedundancyOptimizer
    >>> optimizer = ZeroRedundancyOptimizer(layer.parameters(), fb.optim.Adam, lr=0.1)
    >>> layer(fb.ones(2)).backward(); optimizer.step()
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: fb.distributed.ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp is not supported")
        self._size = fb.distributed.get_world_size(process_group)
        self._rank = fb.distributed.get_rank(process_group)
        self._group = process_group
        self._class = optimizer_class
        self._owner: dict[Tensor, int] = {}
        self._loads = [0] * self._size
        self._whole: dict[str, Any] | None = None
        self.optim: Optimizer | None = None
        self._options = defaults
        super().__init__(params, defaults)
        self._divide()

    def _divide(self) -> None:
        """Give each parameter to a process, the largest first, each to the one with least."""
        every = [p for group in self.param_groups for p in group["params"]]
        for parameter in sorted(every, key=lambda p: -p.numel()):
            if parameter not in self._owner:
                least = self._loads.index(min(self._loads))
                self._owner[parameter] = least
                self._loads[least] += parameter.numel()
        self.optim = self._local(self._rank)

    def _local(self, rank: int) -> Optimizer:
        groups = [
            {**group, "params": [p for p in group["params"] if self._owner[p] == rank]}
            for group in self.param_groups
        ]
        return self._class(groups, **self._options)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Also train these parameters."""
        super().add_param_group(param_group)
        if self.optim is not None:
            self._divide()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters in all processes; all of them call it."""
        assert self.optim is not None
        for mine, whole in zip(self.optim.param_groups, self.param_groups, strict=True):
            mine.update({key: value for key, value in whole.items() if key != "params"})
        loss = self.optim.step() if closure is None else self.optim.step(closure)
        works = [
            fb.distributed.broadcast(p.data, group=self._group, group_src=rank, async_op=True)
            for p, rank in self._owner.items()
        ]
        for work in works:
            if work is not None:
                work.wait()
        for mine, whole in zip(self.optim.param_groups, self.param_groups, strict=True):
            whole.update({key: value for key, value in mine.items() if key != "params"})
        return loss

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state of all processes to member `to`, whose `state_dict` has it then."""
        assert self.optim is not None
        numbers = {p: i for i, p in enumerate(self._owner_order())}
        state = {numbers[p]: held for p, held in self.optim.state.items()}
        rows: list[Any] | None = [None] * self._size if self._rank == to else None
        fb.distributed.gather_object(state, rows, group=self._group, group_dst=to)
        if rows is not None:
            merged = {i: held for row in rows if row is not None for i, held in row.items()}
            self._whole = {"state": dict(sorted(merged.items())), "param_groups": self._described()}

    def _owner_order(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def _described(self) -> list[dict[str, Any]]:
        return super().state_dict()["param_groups"]

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters, as that of `optimizer_class`.

        Raises:
            RuntimeError: `consolidate_state_dict` has not brought it here.
        """
        if self._whole is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self._rank})` on all ranks beforehand"
            )
        return self._whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the whole state, of which this process keeps its part."""
        assert self.optim is not None
        every = self._owner_order()
        own = [i for i, p in enumerate(every) if self._owner[p] == self._rank]
        local = self.optim.state_dict()
        order = [p for group in self.optim.param_groups for p in group["params"]]
        places = {id(p): i for i, p in enumerate(order)}
        given = state_dict["state"]
        held = {places[id(every[i])]: given[i] for i in own if i in given}
        self.optim.load_state_dict({"state": held, "param_groups": local["param_groups"]})
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update({key: value for key, value in saved.items() if key != "params"})
