"""Sequences of different lengths in one tensor: padded, packed, and back.

A *packed* batch keeps the elements of all sequences step by step: first the first element of every
sequence, then the second of those that have one, and so on.  With the sequences sorted by
decreasing length, step t is rows ``sum(batch_sizes[:t])`` onwards, ``batch_sizes[t]`` of them.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.overrides import takes_as_annotated

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """A packed batch of sequences; made by `pack_padded_sequence` and `pack_sequence`.

    `data` (sum of lengths, *) holds the elements step by step, `batch_sizes` (longest, int64, on
    the CPU) how many sequences reach each step.  ``data_before[sorted_indices]`` is the order by
    length, ``sorted[unsorted_indices]`` the original one; both are None if the sequences came
    sorted.

    Raises:
        ValueError: `batch_sizes` is not on the CPU.

    >>> import flambeau as fb
    >>> from flambeau.nn.utils.rnn import pack_sequence
    >>> packed = pack_sequence([fb.tensor([1, 2]), fb.tensor([3])])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 3, 2]), tensor([2, 1]))
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        given = {
            "batch_sizes": batch_sizes,
            "sorted_indices": sorted_indices,
            "unsorted_indices": unsorted_indices,
        }
        require_tensors("PackedSequence", **{k: t for k, t in given.items() if t is not None})
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:  # the older form: (data, batch_sizes) as one argument
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise TypeError("PackedSequence: batch_sizes is missing")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like pack_sequence "
                "and pack_padded_sequences in nn.utils.rnn"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: object, **kwargs: object) -> PackedSequence:
        """As `Tensor.to` for `data`; the indices follow to the device, never to the dtype.

        >>> import flambeau as fb
        >>> from flambeau.nn.utils.rnn import pack_sequence
        >>> pack_sequence([fb.ones(2)]).to(fb.float64).data.dtype
        torch.float64
        """
        require_tensors("PackedSequence.to", data=self.data)
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        place = {"non_blocking": kwargs.get("non_blocking", False)}
        indices = (
            None if t is None else t.to(data.device, **place)
            for t in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(data, self.batch_sizes, *indices)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The batch on a device of type ``cuda``: the current one, or the index given."""
        index = args[0] if args else kwargs.pop("device", None)
        device = fb.device("cuda") if index is None else fb.device(index)
        if isinstance(index, int):
            device = fb.device("cuda", index)
        return self.to(device, *args[1:], **kwargs)

    def cpu(self, *args: object, **kwargs: object) -> PackedSequence:
        """The batch on the CPU.

        >>> import flambeau as fb
        >>> from flambeau.nn.utils.rnn import pack_sequence
        >>> pack_sequence([fb.ones(2)]).cpu().is_cuda
        False
        """
        return self.to("cpu", *args, **kwargs)

    def double(self) -> PackedSequence:
        """`data` as float64."""
        return self.to(dtype=fb.float64)

    def float(self) -> PackedSequence:
        """`data` as float32."""
        return self.to(dtype=fb.float32)

    def half(self) -> PackedSequence:
        """`data` as float16."""
        return self.to(dtype=fb.float16)

    def long(self) -> PackedSequence:
        """`data` as int64."""
        return self.to(dtype=fb.int64)

    def int(self) -> PackedSequence:
        """`data` as int32."""
        return self.to(dtype=fb.int32)

    def short(self) -> PackedSequence:
        """`data` as int16."""
        return self.to(dtype=fb.int16)

    def char(self) -> PackedSequence:
        """`data` as int8."""
        return self.to(dtype=fb.int8)

    def byte(self) -> PackedSequence:
        """`data` as uint8."""
        return self.to(dtype=fb.uint8)

    def pin_memory(self) -> PackedSequence:
        """The batch in memory from which copies to a device need not wait."""
        indices = (
            None if t is None else t.pin_memory()
            for t in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(self.data.pin_memory(), self.batch_sizes, *indices)

    @property
    def is_cuda(self) -> bool:
        """Whether `data` is on a device of type ``cuda``."""
        return self.data.device.type == "cuda"

    def is_pinned(self) -> bool:
        """Whether `data` is in pinned memory."""
        return self.data.is_pinned()


@takes_as_annotated
def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes `permutation`; None stays None.

    >>> import flambeau as fb
    >>> from flambeau.nn.utils.rnn import invert_permutation
    >>> invert_permutation(fb.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = fb.arange(permutation.numel(), device=permutation.device)
    return fb.empty_like(permutation).scatter_(0, permutation, places)


@takes_as_annotated
def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack a padded batch: `input` (T, B, *), or (B, T, *) if `batch_first`, without its padding.

    `lengths` holds the length of every sequence (on the CPU if it is a tensor), decreasing if
    `enforce_sorted`; otherwise the sequences are sorted here.

    Raises:
        RuntimeError: the number of lengths is not B, one is not positive or exceeds T, they are
            not decreasing although `enforce_sorted`, or they are not on the CPU.

    >>> import flambeau as fb
    >>> from flambeau.nn.utils.rnn import pack_padded_sequence
    >>> padded = fb.tensor([[1, 2, 0], [3, 0, 0]])
    >>> pack_padded_sequence(padded, [2, 1], batch_first=True).data
    tensor([1, 3, 2])
    """
    if not isinstance(lengths, Tensor):
        lengths = fb.tensor([operator.index(n) for n in lengths], dtype=fb.int64)
    elif lengths.device.type != "cpu":
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.dim()}D {lengths.device} {lengths.dtype} tensor"
        )
    counts: Tensor = lengths
    order = None
    if not enforce_sorted:
        counts, order = fb.sort(counts, descending=True)
        input = input.index_select(0 if batch_first else 1, order.to(input.device))
        order = order.to(input.device)
    data, sizes = fb._pack_padded_sequence(input, counts, batch_first)
    return PackedSequence(data, sizes, order, None)


@takes_as_annotated
def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Undo `pack_padded_sequence`: the padded batch in its original order, and the lengths.

    The result is (T, B, *), or (B, T, *) if `batch_first`, with T the longest length or
    `total_length`; the lengths are int64 on the CPU.

    Raises:
        ValueError: `total_length` is less than the longest length.

    >>> import flambeau as fb
    >>> from flambeau.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> packed = pack_sequence([fb.tensor([1, 2]), fb.tensor([3])])
    >>> pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    data, batch_sizes, _, unsorted = sequence
    if total_length is not None and total_length < batch_sizes.shape[0]:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, "
            f"but got total_length={total_length} and max sequence length being "
            f"{batch_sizes.shape[0]}"
        )
    padded, lengths = fb._pad_packed_sequence(
        data, batch_sizes, batch_first, padding_value, total_length or 0
    )
    if unsorted is not None:
        padded = padded.index_select(0 if batch_first else 1, unsorted)
        lengths = lengths[unsorted.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Tensor | list[Tensor] | tuple[Tensor, ...],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences (L_i, *) into (T, B, *), or (B, T, *) if `batch_first`, T the longest.

    `padding_side` is the end of the shorter sequences that is filled, ``"right"`` or ``"left"``.

    Raises:
        RuntimeError: `sequences` is empty or no list, tuple or tensor, the sequences differ beyond
            their length, or `padding_side` is unknown.

    >>> import flambeau as fb
    >>> from flambeau.nn.utils.rnn import pad_sequence
    >>> pad_sequence([fb.tensor([1, 2]), fb.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            "Expected padding_side to be one of left or right, but got " + padding_side
        )
    listed = list(sequences)
    if not listed:
        raise RuntimeError("received an empty list of sequences")
    for t in listed:
        require_tensors("pad_sequence", sequences=t)
    rest = tuple(listed[0].shape[1:])
    for place, t in enumerate(listed):
        if tuple(t.shape[1:]) != rest:
            raise RuntimeError(
                f"pad_sequence: sequences must agree beyond their length, but number 0 has {rest} "
                f"and number {place} has {tuple(t.shape[1:])}"
            )
    longest = max(t.shape[0] for t in listed)
    rows = []
    for t in listed:
        if missing := longest - t.shape[0]:
            padding = listed[0].new_full((missing, *listed[0].shape[1:]), padding_value)
            t = fb.cat([t, padding] if padding_side == "right" else [padding, t])
        rows.append(t)
    return fb.stack(rows, 0 if batch_first else 1)


@takes_as_annotated
def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Undo `pad_sequence`: the sequences of a padded batch, each cut to its length.

    >>> import flambeau as fb
    >>> from flambeau.nn.utils.rnn import unpad_sequence
    >>> unpad_sequence(fb.tensor([[1, 2], [3, 0]]), fb.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(rows.unbind(0), lengths.tolist(), strict=False)]


@takes_as_annotated
def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (L_i, *), of decreasing length if `enforce_sorted`.

    Raises:
        RuntimeError: as `pad_sequence` and `pack_padded_sequence`.

    >>> import flambeau as fb
    >>> from flambeau.nn.utils.rnn import pack_sequence
    >>> pack_sequence([fb.tensor([1]), fb.tensor([2, 3])], enforce_sorted=False).data
    tensor([2, 1, 3])
    """
    for t in sequences:
        require_tensors("pack_sequence", sequences=t)
    lengths = [t.shape[0] for t in sequences]
    return pack_padded_sequence(
        pad_sequence(list(sequences)), lengths, enforce_sorted=enforce_sorted
    )


@takes_as_annotated
def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Undo `pack_sequence`: the list of sequences in their original order.

    >>> import flambeau as fb
    >>> from flambeau.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> unpack_sequence(pack_sequence([fb.tensor([1, 2]), fb.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
