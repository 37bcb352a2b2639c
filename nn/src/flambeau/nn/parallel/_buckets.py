"""Gradients in buckets, which travel while the rest of the backward pass computes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.parallel._places import tensors_in

MEGABYTE = 1 << 20
FIRST = MEGABYTE
"""Bytes of the first bucket, small so that something travels early."""
LARGE = MEGABYTE
"""Bytes from which a gradient travels by itself: copying it into a bucket and back takes longer
than a message."""


class GradBucket:
    """The gradients of some parameters in one vector, as communication hooks get them."""

    def __init__(self, index: int, parameters: Sequence[Tensor]) -> None:
        self._index = index
        self._parameters = list(parameters)
        self._flat = self._zeros()
        self._last = False
        self.views = self._viewed(self._flat)
        self.missing: set[int] = set()
        self.pending: Any = None

    def _zeros(self) -> Tensor:
        first, sizes = self._parameters[0], [p.numel() for p in self._parameters]
        return fb.zeros(sum(sizes), dtype=first.dtype, device=first.device)

    def _viewed(self, flat: Tensor) -> list[Tensor]:
        parts = flat.split([parameter.numel() for parameter in self._parameters])
        return [v.view(p.shape) for v, p in zip(parts, self._parameters, strict=True)]

    def index(self) -> int:
        """Which bucket it is, in the order of their travels."""
        return self._index

    def is_last(self) -> bool:
        """Whether it is the last of a backward pass."""
        return self._last

    def buffer(self) -> Tensor:
        """The vector."""
        return self._flat

    def set_buffer(self, tensor: Tensor) -> None:
        """Put another vector in its place."""
        self._flat.copy_(tensor)

    def gradients(self) -> list[Tensor]:
        """The gradients, as views of the vector."""
        return self.views

    def parameters(self) -> list[Tensor]:
        """The parameters, in the order of their gradients."""
        return self._parameters

    def clear(self, i: int) -> None:
        """Let gradient `i` be zero."""
        self.views[i].zero_()

    def take(self, i: int, gradient: Tensor, divisor: int, as_view: bool) -> None:
        """Let `gradient`, divided, be gradient `i`; with `as_view` the parameter has the view.

        Raises:
            RuntimeError: it is sparse.
        """
        view = self.views[i]
        if gradient is view:
            if divisor != 1:
                view.div_(divisor)
            return
        _need_dense(gradient)
        if divisor == 1:
            view.copy_(gradient)
        else:
            view.copy_(gradient * (1 / divisor))
        if as_view:
            self._parameters[i].grad = view

    def give(self, i: int, as_view: bool) -> None:
        """Make the sum of gradients `i` the gradient of its parameter."""
        parameter, view = self._parameters[i], self.views[i]
        if as_view:
            parameter.grad = view
        elif parameter.grad is None:
            parameter.grad = view.clone()
        else:
            parameter.grad.copy_(view)


def _need_dense(gradient: Tensor) -> None:
    if gradient.is_sparse:
        raise RuntimeError(
            "DistributedDataParallel: a gradient is sparse that should be dense; sparse are "
            "those of the weights of Embedding and EmbeddingBag with sparse=True"
        )


class SparseBucket(GradBucket):
    """The gradient of one parameter, sparse: each process has its own elements in it."""

    def _zeros(self) -> Tensor:
        first = self._parameters[0]
        return fb.sparse_coo_tensor(
            fb.empty((1, 0), dtype=fb.int64, device=first.device),
            fb.empty((0, *first.shape[1:]), dtype=first.dtype, device=first.device),
            first.shape,
        )

    def _viewed(self, flat: Tensor) -> list[Tensor]:
        return [flat]

    def set_buffer(self, tensor: Tensor) -> None:
        """Put another gradient in its place."""
        self._flat = self.views[0] = tensor

    def clear(self, i: int) -> None:
        """Let the gradient be zero."""
        self.set_buffer(self._zeros())

    def take(self, i: int, gradient: Tensor, divisor: int, as_view: bool) -> None:
        """Let a copy of `gradient`, divided, travel.

        Raises:
            RuntimeError: it is dense.
        """
        if not gradient.is_sparse:
            raise RuntimeError(
                "DistributedDataParallel: the weight of an embedding with sparse=True has a dense "
                "gradient; is it used elsewhere too?"
            )
        copy = gradient.detach().clone() if divisor == 1 else gradient.detach() / divisor
        self.set_buffer(copy)

    def give(self, i: int, as_view: bool) -> None:
        """Make the sum of the gradients the gradient of the parameter."""
        self._parameters[0].grad = self._flat
        self.clear(0)


class WholeBucket(GradBucket):
    """The gradient of one parameter, which travels where it is: nothing is copied."""

    _travels: Tensor | None = None
    """The gradient of the parameter whose memory the bucket has."""

    def _zeros(self) -> Tensor:
        first = self._parameters[0]
        return fb.empty(0, dtype=first.dtype, device=first.device)

    def _viewed(self, flat: Tensor) -> list[Tensor]:
        return [flat]  # there is no gradient yet

    def _hold(self, gradient: Tensor) -> None:
        self.views = [gradient]
        self._flat = gradient.view(-1)

    def clear(self, i: int) -> None:
        """Let the gradient be zero."""
        self._travels = None
        self._hold(fb.zeros_like(self._parameters[0].detach(), memory_format=fb.contiguous_format))

    def take(self, i: int, gradient: Tensor, divisor: int, as_view: bool) -> None:
        """Let `gradient` itself be divided and travel; a copy if it has another order in memory.

        Raises:
            RuntimeError: it is sparse.
        """
        _need_dense(gradient)
        detached = gradient.detach()
        flat = detached.contiguous()
        self._travels = gradient if flat is detached else None
        if divisor != 1:
            flat.mul_(1 / divisor)
        self._hold(flat)

    def give(self, i: int, as_view: bool) -> None:
        """Make the sum the gradient of the parameter, unless it is that already."""
        parameter, total = self._parameters[0], self.views[0]
        if parameter.grad is None:
            parameter.grad = total
        elif parameter.grad is not self._travels:
            parameter.grad.copy_(total)
        self._travels = None
        self._flat = self._zeros()  # whoever lets go of the gradient lets go of its memory
        self.views = [self._flat]


def divided(tensors: Sequence[Tensor], limits: Sequence[int], alone: float) -> list[list[int]]:
    """Which tensors are together in buckets, one dtype in each, in the order of their filling.

    The first bucket of a dtype is full when it has ``limits[0]`` bytes, the next one with
    ``limits[1]``, and all others with the last limit.  A tensor of `alone` bytes is one by itself.
    """
    buckets: list[list[int]] = []
    kinds: dict[tuple[Any, Any], tuple[list[int], list[int]]] = {}
    for i, tensor in enumerate(tensors):
        nbytes = tensor.numel() * tensor.element_size()
        if nbytes >= alone:
            buckets.append([i])
            continue
        bucket, left = kinds.setdefault((tensor.dtype, tensor.device), ([], list(limits)))
        bucket.append(i)
        if sum(tensors[j].numel() * tensors[j].element_size() for j in bucket) >= left[0]:
            buckets.append(bucket[:])
            bucket.clear()
            if len(left) > 1:
                del left[0]
    buckets += [bucket for bucket, _ in kinds.values() if bucket]
    return sorted(buckets, key=itemgetter(-1))


def _bucket(index: int, part: Sequence[Tensor], sparse: Collection[int]) -> GradBucket:
    if len(part) > 1:
        return GradBucket(index, part)
    return (SparseBucket if id(part[0]) in sparse else WholeBucket)(index, part)


class Reducer:
    """What happens to the gradients of a module during a backward pass.

    A gradient is copied into its bucket when it is complete, divided, so that half precision can
    hold the sum.  Full buckets begin to travel in one order in all processes; the results are
    waited for when the backward pass ends.
    """

    def __init__(
        self,
        parts: Iterable[Sequence[Tensor]],
        group: Any,
        find_unused: bool = False,
        as_views: bool = False,
        static: bool = False,
        sparse: Collection[int] = (),
        gives_all: bool = False,
    ) -> None:
        """Expect gradients of the parameters `parts`, a bucket of each, in the order of travel.

        `sparse` has the ids of those; with `gives_all` what nobody uses gets gradients of zero.
        """
        self.group = group
        self.gives_all = gives_all
        self.find_unused = find_unused or static
        self.as_views = as_views
        self.static = static
        self.divisor = group.size()
        self.hook: Callable[[GradBucket], Any] | None = None
        self._buckets = [_bucket(i, part, sparse) for i, part in enumerate(parts)]
        self._buckets[-1]._last = True
        self.parameters = [p for bucket in self._buckets for p in bucket.parameters()]
        self._place = {
            id(parameter): (bucket, i)
            for bucket in self._buckets
            for i, parameter in enumerate(bucket.parameters())
        }
        self._known_unused: list[Tensor] | None = None
        self._used: set[int] = set()
        self._syncing = False
        self._travelling = 0
        self._queued = False
        for parameter in self.parameters:
            parameter.register_post_accumulate_grad_hook(self._arrived)

    def prepare(self, output: object, sync: bool) -> None:
        """Expect a backward pass from `output`.

        Raises:
            RuntimeError: the last one left gradients out.
        """
        if self._syncing and self._used and self._travelling < len(self._buckets):
            names = sum(len(bucket.missing) for bucket in self._buckets)
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new "
                f"one: {names} parameters got no gradient. If some take no part in the loss, pass "
                "find_unused_parameters=True to DistributedDataParallel, and make sure that all "
                "outputs of forward take part in the loss"
            )
        self._syncing = sync
        if not sync:
            return
        self._used.clear()
        self._travelling = 0
        self._queued = False
        for bucket in self._buckets:
            bucket.missing = set(range(len(bucket.views)))
        if not self.find_unused:
            return
        unused = self._known_unused if self.static else None
        if unused is None:
            leaves = _leaves(output)
            unused = [p for p in self.parameters if id(p) not in leaves]
            if self.static:
                self._known_unused = unused
        for parameter in unused:
            bucket, i = self._place[id(parameter)]
            bucket.clear(i)
            bucket.missing.discard(i)

    def _arrived(self, parameter: Tensor) -> None:
        if not self._syncing:
            return
        bucket, i = self._place[id(parameter)]
        gradient = parameter.grad
        assert gradient is not None
        with fb.no_grad():
            divisor = self.divisor if self.hook is None else 1  # hooks average themselves
            bucket.take(i, gradient, divisor, self.as_views)
        self._used.add(id(parameter))
        bucket.missing.discard(i)
        if not self._queued:
            self._queued = True
            fb.autograd.Variable._execution_engine.queue_callback(self._finish)
        self._send()

    def _send(self) -> None:
        while self._travelling < len(self._buckets):
            bucket = self._buckets[self._travelling]
            if bucket.missing:
                return
            bucket.pending = self._begun(bucket)
            self._travelling += 1

    def _begun(self, bucket: GradBucket) -> Any:
        if self.hook is not None:
            return self.hook(bucket)
        if self.group.size() == 1:
            return None
        return fb.distributed.all_reduce(bucket.buffer(), group=self.group, async_op=True)

    def _finish(self) -> None:
        """Wait for the buckets and give the gradients to the parameters."""
        if self._travelling < len(self._buckets):
            return  # a gradient is missing: the next forward says so
        used = self._used_anywhere()
        for bucket in self._buckets:
            self._settle(bucket)
            for i, parameter in enumerate(bucket.parameters()):
                if used is not None and id(parameter) not in used:
                    continue
                with fb.no_grad():
                    bucket.give(i, self.as_views)
        self._syncing = False

    def _settle(self, bucket: GradBucket) -> None:
        """Wait for a bucket."""
        pending, bucket.pending = bucket.pending, None
        if self.hook is not None:
            with fb.no_grad():
                result = pending.wait()
                result = result[0] if isinstance(result, (list, tuple)) else result
                if result is not bucket.buffer():
                    bucket.set_buffer(result)
        elif pending is not None:
            pending.wait()

    def _used_anywhere(self) -> set[int] | None:
        """The parameters that have a gradient in some process; None: all, nobody asks."""
        if not self.find_unused or self.gives_all:
            return None
        marks = fb.tensor([id(p) in self._used for p in self.parameters], dtype=fb.int32)
        device = self.parameters[0].device
        marks = marks.to(device)
        if self.group.size() > 1:
            fb.distributed.all_reduce(marks, group=self.group)
        return {id(p) for p, mark in zip(self.parameters, marks.tolist(), strict=True) if mark}

    def shadow(self) -> None:
        """Take part in the reductions of others with no gradient of one's own."""
        for bucket in self._buckets:
            for i in range(len(bucket.views)):
                bucket.clear(i)
            bucket.pending = self._begun(bucket)
        if self.find_unused:
            self._used.clear()
            self._used_anywhere()
        for bucket in self._buckets:
            self._settle(bucket)


def _leaves(output: object) -> set[int]:
    """The parameters that outputs were computed from, by their ids."""
    nodes = [tensor.grad_fn for tensor in tensors_in(output) if tensor.grad_fn is not None]
    seen, found = set(nodes), set()
    while nodes:
        node = nodes.pop()
        if (leaf := getattr(node, "variable", None)) is not None:
            found.add(id(leaf))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)
    return found
