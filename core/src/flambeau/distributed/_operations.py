"""What a group can do, as its methods: each begins an operation and returns its `Work` at once.

The functions of `flambeau.distributed` do the same and are the way for programs.  Methods are for
communication hooks, which hold a group, and for programs that use PyTorch's own classes: roots are
numbers in the group, and arguments can come in one object.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.distributed._exchange.local import combined, spread
from flambeau.distributed._options import (
    AllgatherOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    _Options,
)
from flambeau.distributed._reduce_op import ReduceOp

if TYPE_CHECKING:
    from flambeau.distributed._group import ProcessGroup
    from flambeau.distributed._work import Work

Tensors = Tensor | Sequence[Tensor]
Lists = Sequence[Tensor] | Sequence[Sequence[Tensor]]


class Operations:
    """The methods of `ProcessGroup` that begin operations.

    >>> import flambeau as fb
    >>> dist = fb.distributed
    >>> dist.init_process_group("reference", store=dist.HashStore(), rank=0, world_size=1)
    >>> tensor = fb.ones(2)
    >>> dist.group.WORLD.allreduce([tensor]).wait()
    True
    >>> tensor
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """

    @property
    def _group(self) -> ProcessGroup:
        return cast("ProcessGroup", self)

    def _root(self, name: str, root: int) -> int:
        if not 0 <= root < self._group.size():
            raise ValueError(f"{name}: invalid root rank: {root} of {self._group.size()}")
        return root

    def allreduce(
        self,
        tensors: Tensors,
        opts: AllreduceOptions | ReduceOp | None = None,
        op: ReduceOp = ReduceOp.SUM,
        timeout: timedelta | None = None,
    ) -> Work:
        """The combination of the tensors of all processes, in all of them.

        Args:
            tensors: one of each process, or several of one shape and dtype.
            opts: `op` and `timeout` in one object.
            op: how.
            timeout: how long `Work.wait` waits; as the group if not given.

        Raises:
            ValueError: there is no tensor, or they differ.
        """
        each = _list("allreduce", tensors)
        how = _how(opts, op)
        if len(each) == 1:
            work = fb.distributed.all_reduce(each[0], how, self._group, async_op=True)
            return _begun(work, opts, timeout, each)
        if each[0].is_sparse:
            total = each[0].detach()
            for tensor in each[1:]:
                total = total + tensor.detach()
        else:
            total = combined(each, how)
        work = _real(fb.distributed.all_reduce(total, how, self._group, async_op=True))

        def finish() -> None:
            spread(total / len(each) if how is ReduceOp.AVG else total, each)

        work.after(finish, each)
        return _begun(work, opts, timeout)

    def allreduce_coalesced(
        self, tensors: Sequence[Tensor], opts: AllreduceOptions | None = None
    ) -> Work:
        """`allreduce` of tensors of several shapes and one dtype, as one operation."""
        work = fb.distributed.all_reduce_coalesced(
            tensors, _how(opts, ReduceOp.SUM), self._group, async_op=True
        )
        return _begun(work, opts, None, tensors)

    def broadcast(
        self,
        tensors: Tensors,
        opts: BroadcastOptions | int | None = None,
        root: int = 0,
        timeout: timedelta | None = None,
    ) -> Work:
        """A tensor of process `root` in the tensors of all.

        Args:
            tensors: one of each process, or several of one shape and dtype.
            opts: `root`, the number of its tensor, and `timeout` in one object; or `root`.
            root: a number in the group.
            timeout: how long `Work.wait` waits; as the group if not given.

        Raises:
            ValueError: there is no such process or tensor, or the tensors differ.
        """
        place = 0
        if isinstance(opts, int):
            root, opts = opts, None
        elif opts is not None:
            root, place = opts.rootRank, opts.rootTensor
        self._root("broadcast", root)
        count = 1 if isinstance(tensors, Tensor) else len(tensors)
        if not 0 <= place < count:
            raise ValueError(f"broadcast: invalid root tensor: {place} of {count}")
        each = _list("broadcast", tensors)
        source = each[place if self._group.rank() == root else 0]
        work = _real(
            fb.distributed.broadcast(source, group=self._group, async_op=True, group_src=root)
        )
        work.after(lambda: spread(source, [t for t in each if t is not source]), each)
        return _begun(work, opts, timeout)

    def reduce(
        self,
        tensors: Tensors,
        opts: ReduceOptions | int | None = None,
        root: int = 0,
        op: ReduceOp = ReduceOp.SUM,
        timeout: timedelta | None = None,
    ) -> Work:
        """The combination of the tensors of all processes, in that of process `root`.

        Args:
            tensors: one of each process.
            opts: `root`, `op` and `timeout` in one object; or `root`.
            root: a number in the group.
            op: how.
            timeout: how long `Work.wait` waits; as the group if not given.

        Raises:
            ValueError: there is no such process, or not one tensor.
        """
        if isinstance(opts, int):
            root, opts = opts, None
        elif opts is not None:
            root, op = opts.rootRank, opts.reduceOp
            if opts.rootTensor != 0:
                raise ValueError(f"reduce: invalid root tensor: {opts.rootTensor} of 1")
        self._root("reduce", root)
        tensor = _single("reduce", "tensor list", tensors)
        work = fb.distributed.reduce(
            tensor, op=op, group=self._group, async_op=True, group_dst=root
        )
        return _begun(work, opts, timeout, [tensor])

    def allgather(
        self,
        output_tensors: Lists,
        input_tensors: Tensors,
        opts: AllgatherOptions | None = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """The tensors of all processes, in the order of the ranks.

        Args:
            output_tensors: a list for each of `input_tensors`, each with as many tensors as there
                are in all processes together; or one list for one tensor.
            input_tensors: those of this process.
            opts: `timeout` in an object.
            timeout: how long `Work.wait` waits; as the group if not given.

        Raises:
            ValueError: lists have other lengths, or tensors differ.
        """
        name = "allgather"
        if isinstance(input_tensors, Tensor):
            output_tensors, input_tensors = (
                [cast(Sequence[Tensor], output_tensors)],
                [input_tensors],
            )
        outputs = [list(row) for row in cast(Sequence[Sequence[Tensor]], output_tensors)]
        inputs = list(input_tensors)
        if not inputs:
            raise ValueError(f"{name}: requires non-empty input tensor list")
        if len(outputs) != len(inputs):
            raise ValueError(f"{name}: requires input/output tensor lists to have the same length")
        count = len(inputs) * self._group.size()
        for i, row in enumerate(outputs):
            if len(row) != count:
                raise ValueError(
                    f"{name}: invalid output tensor list at index {i}: {len(row)} tensors where "
                    f"{count} are needed"
                )
        _need_alike(name, [*inputs, *(tensor for row in outputs for tensor in row)])
        if len(inputs) == 1:
            work = fb.distributed.all_gather(outputs[0], inputs[0], self._group, async_op=True)
            return _begun(work, opts, timeout, outputs[0])
        mine = fb.stack([tensor.detach() for tensor in inputs])
        everything = mine.new_empty(self._group.size(), *mine.shape)
        work = _real(
            fb.distributed.all_gather_into_tensor(everything, mine, self._group, async_op=True)
        )

        def finish() -> None:
            for row in outputs:
                for output, found in zip(row, everything.flatten(0, 1), strict=True):
                    spread(found, [output])

        work.after(finish, [tensor for row in outputs for tensor in row])
        return _begun(work, opts, timeout)

    def gather(
        self,
        output_tensors: Lists,
        input_tensors: Tensors,
        opts: GatherOptions | int | None = None,
        root: int = 0,
        timeout: timedelta | None = None,
    ) -> Work:
        """The tensors of all processes in process `root`, which alone gives a list for them.

        Args:
            output_tensors: one list of as many tensors as there are processes, in a list; empty
                elsewhere.
            input_tensors: that of this process.
            opts: `root` and `timeout` in one object; or `root`.
            root: a number in the group.
            timeout: how long `Work.wait` waits; as the group if not given.

        Raises:
            ValueError: there is no such process, or lists have other lengths, or tensors differ.
        """
        root, asked = _rooted(opts, root)
        self._root("gather", root)
        mine = _single("gather", "input tensor list", input_tensors)
        row = self._row("gather", "output", output_tensors, root, mine)
        work = fb.distributed.gather(mine, row, group=self._group, async_op=True, group_dst=root)
        return _begun(work, asked, timeout, row or [])

    def scatter(
        self,
        output_tensors: Tensors,
        input_tensors: Lists,
        opts: ScatterOptions | int | None = None,
        root: int = 0,
        timeout: timedelta | None = None,
    ) -> Work:
        """To each process its tensor of a list of process `root`, which alone gives one.

        Args:
            output_tensors: that of this process.
            input_tensors: one list of as many tensors as there are processes, in a list; empty
                elsewhere.
            opts: `root` and `timeout` in one object; or `root`.
            root: a number in the group.
            timeout: how long `Work.wait` waits; as the group if not given.

        Raises:
            ValueError: there is no such process, or lists have other lengths, or tensors differ.
        """
        root, asked = _rooted(opts, root)
        self._root("scatter", root)
        mine = _single("scatter", "output tensor list", output_tensors)
        row = self._row("scatter", "input", input_tensors, root, mine)
        work = fb.distributed.scatter(mine, row, group=self._group, async_op=True, group_src=root)
        return _begun(work, asked, timeout, [mine])

    def _row(
        self, name: str, what: str, lists: Lists, root: int, like: Tensor
    ) -> list[Tensor] | None:
        """The list that process `root` alone gives."""
        if self._group.rank() != root:
            if len(lists):
                raise ValueError(f"{name}: requires empty {what} on non-root processes")
            return None
        nested = cast(Sequence[Sequence[Tensor]], lists if _nested(lists) else [lists])
        rows = [list(row) for row in nested] if lists else []
        if len(rows) != 1 or len(rows[0]) != self._group.size():
            raise ValueError(
                f"{name}: requires a single-element {what} list, holding a list of "
                f"{self._group.size()} tensors"
            )
        _need_alike(name, [like, *rows[0]])
        return rows[0]

    def reduce_scatter(
        self,
        output_tensors: Tensors,
        input_tensors: Lists,
        opts: ReduceScatterOptions | ReduceOp | None = None,
        op: ReduceOp = ReduceOp.SUM,
        timeout: timedelta | None = None,
    ) -> Work:
        """To process i the combination of the tensors number i of the lists of all processes.

        Args:
            output_tensors: that of this process.
            input_tensors: a list of as many tensors as there are processes, or a list of one.
            opts: `op` and `timeout` in one object.
            op: how.
            timeout: how long `Work.wait` waits; as the group if not given.

        Raises:
            ValueError: lists have other lengths.
        """
        mine = _single("reduce_scatter", "output tensor list", output_tensors)
        row = cast(Sequence[Tensor], input_tensors[0] if _nested(input_tensors) else input_tensors)
        work = fb.distributed.reduce_scatter(mine, row, _how(opts, op), self._group, async_op=True)
        return _begun(work, opts, timeout, [mine])

    def alltoall(
        self,
        output_tensors: Sequence[Tensor],
        input_tensors: Sequence[Tensor],
        opts: AllToAllOptions | None = None,
    ) -> Work:
        """``output_tensors[i] = input_tensors[own rank] of process i``."""
        work = fb.distributed.all_to_all(output_tensors, input_tensors, self._group, async_op=True)
        return _begun(work, opts, None, output_tensors)

    def alltoall_base(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: AllToAllOptions | None = None,
    ) -> Work:
        """`alltoall` of the parts of `input` along its first dimension."""
        work = fb.distributed.all_to_all_single(
            output, input, output_split_sizes, input_split_sizes, self._group, async_op=True
        )
        return _begun(work, opts, None, [output])

    def send(self, tensors: Tensors, dstRank: int, tag: int = 0) -> Work:
        """A message to process `dstRank`."""
        tensor = _single("send", "tensor list", tensors)
        work = fb.distributed.isend(tensor, group=self._group, tag=tag, group_dst=dstRank)
        return _begun(work, None, None)

    def recv(self, tensors: Tensors, srcRank: int, tag: int = 0) -> Work:
        """A message from process `srcRank`."""
        tensor = _single("recv", "tensor list", tensors)
        work = fb.distributed.irecv(tensor, group=self._group, tag=tag, group_src=srcRank)
        return _begun(work, None, None, [tensor])

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Work:
        """A message from any process; `Work.source_rank` says from which."""
        tensor = _single("recv_anysource", "tensor list", tensors)
        return _begun(
            fb.distributed.irecv(tensor, group=self._group, tag=tag), None, None, [tensor]
        )

    def barrier(self, opts: BarrierOptions | None = None, timeout: timedelta | None = None) -> Work:
        """Done once all processes have come here, with all that they had begun before."""
        return _begun(fb.distributed.barrier(self._group, async_op=True), opts, timeout)


def _begun(
    work: Work | None,
    opts: object,
    timeout: timedelta | None,
    results: Sequence[Tensor] = (),
) -> Work:
    work = _real(work)
    work.results[:] = results or work.results
    if isinstance(opts, _Options) and opts.timeout >= timedelta(0):
        timeout = opts.timeout
    work.timeout = timeout
    return work


def _real(work: Work | None) -> Work:
    assert work is not None  # functions return None outside of a group
    return work


def _how(opts: AllreduceOptions | ReduceOp | None, op: ReduceOp) -> ReduceOp:
    if opts is None:
        return op
    return opts if isinstance(opts, ReduceOp) else opts.reduceOp


def _rooted(
    opts: GatherOptions | ScatterOptions | int | None, root: int
) -> tuple[int, _Options | None]:
    if opts is None:
        return root, None
    return (opts, None) if isinstance(opts, int) else (opts.rootRank, opts)


def _nested(lists: Lists) -> bool:
    return bool(len(lists)) and not isinstance(lists[0], Tensor)


def _list(name: str, tensors: Tensors) -> list[Tensor]:
    each = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not each:
        raise ValueError(f"{name}: requires non-empty tensor list")
    _need_alike(name, each)
    return each


def _single(name: str, what: str, tensors: Tensors) -> Tensor:
    each = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if len(each) != 1:
        raise ValueError(f"{name}: requires a single-element {what}, got {len(each)}")
    return each[0]


def _need_alike(name: str, tensors: Sequence[Tensor]) -> None:
    first = tensors[0]
    for tensor in tensors[1:]:
        for what, mine, other in (
            ("layout", first.layout, tensor.layout),
            ("type", first.dtype, tensor.dtype),
            ("size", first.shape, tensor.shape),
        ):
            if mine != other:
                raise ValueError(
                    f"{name}: invalid tensor {what}: {other}, where others have {mine}"
                )


all_take_as_annotated(globals())
