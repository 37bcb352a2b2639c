"""Sequences of different lengths: packed step by step, and padded again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise

from flambeau._dispatch.arguments import need_tensor
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import tensor
from flambeau.ops.creation.ranges import arange
from flambeau.ops.shapes.movement import cat


def _runs(sizes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring steps with the same number of sequences: (how many steps, sequences)."""
    for size, steps in groupby(sizes):
        yield len(list(steps)), size


def pack_padded_sequence(
    input: Tensor, lengths: Tensor, batch_first: bool
) -> tuple[Tensor, Tensor]:
    """Data without padding (sum of lengths, *), and how many sequences reach each step.

    ``flambeau._pack_padded_sequence``; `nn.utils.rnn.pack_padded_sequence` is the one for programs.
    `input` is (T, B, *), or (B, T, *) if `batch_first`; `lengths` are decreasing.

    Raises:
        RuntimeError: the number of lengths is not B, one is not positive or exceeds T, or they are
            not decreasing.

    >>> import flambeau as fb
    >>> padded = fb.tensor([[1, 2, 0], [3, 0, 0]])
    >>> fb._pack_padded_sequence(padded, fb.tensor([2, 1]), True)
    (tensor([1, 3, 2]), tensor([2, 1]))
    """
    x = need_tensor(input, "_pack_padded_sequence", "input")
    if batch_first:
        x = x.transpose(0, 1)
    sizes = _step_sizes(_checked_lengths(lengths, x))
    parts, start = [], 0
    for steps, size in _runs(sizes):
        part = x[start : start + steps, :size]
        parts.append(part.reshape(steps * size, *x.shape[2:]))
        start += steps
    data = parts[0] if len(parts) == 1 else cat(parts)
    return data, tensor(sizes, dtype=D.int64)


def _checked_lengths(lengths: Tensor, input: Tensor) -> list[int]:
    batch = input.shape[1]
    if lengths.numel() != batch:
        raise RuntimeError(
            "Expected `len(lengths)` to be equal to batch_size, but got "
            f"{lengths.numel()} (batch_size={batch})"
        )
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    counts = [int(n) for n in lengths.tolist()]
    if min(counts) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if any(a < b for a, b in pairwise(counts)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if counts[0] > input.shape[0]:
        raise RuntimeError(
            f"pack_padded_sequence: a sequence of length {counts[0]} does not fit the padded "
            f"length {input.shape[0]} of the input"
        )
    return counts


def _step_sizes(lengths: list[int]) -> list[int]:
    """How many of the sequences, given by decreasing length, reach each step."""
    sizes, live = [], len(lengths)
    for step in range(lengths[0]):
        while lengths[live - 1] <= step:
            live -= 1
        sizes.append(live)
    return sizes


def pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: int
) -> tuple[Tensor, Tensor]:
    """The padded batch and the lengths, which undo `pack_padded_sequence`.

    ``flambeau._pad_packed_sequence``; `nn.utils.rnn.pad_packed_sequence` is the one for programs.
    There are `total_length` steps, or as many as the longest sequence has if it is not positive.

    >>> import flambeau as fb
    >>> fb._pad_packed_sequence(fb.tensor([1, 3, 2]), fb.tensor([2, 1]), True, 0.0, 0)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    x = need_tensor(data, "_pad_packed_sequence", "data")
    sizes = [int(n) for n in batch_sizes.tolist()]
    batch, rest = sizes[0], x.shape[1:]
    blocks, start = [], 0
    for steps, size in _runs(sizes):
        block = x[start : start + steps * size].reshape(steps, size, *rest)
        start += steps * size
        if size < batch:
            padding = x.new_full((steps, batch - size, *rest), padding_value)
            block = cat([block, padding], 1)
        blocks.append(block)
    if total_length > len(sizes):
        blocks.append(x.new_full((total_length - len(sizes), batch, *rest), padding_value))
    padded = blocks[0] if len(blocks) == 1 else cat(blocks)
    lengths = (batch_sizes.unsqueeze(1) > arange(batch)).sum(0)
    return padded.transpose(0, 1) if batch_first else padded, lengths


for _function in (pack_padded_sequence, pad_packed_sequence):  # their names for programs
    _function.__name__ = _function.__qualname__ = f"_{_function.__name__}"
