"""Rows of tables by number, and numbers as rows of zeros and a one."""

from __future__ import annotations

import operator

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.nn.functional._arguments import whole_number
from flambeau.overrides import checked, takes_as_annotated

_ONE_HOT = fb.ops.one_hot
_MOST = (1 << 63) - 1  # that an int64 may be
_FEW = 1 << 12  # elements of a result, up to which comparing every class is quickest


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Row ``input[i]`` of the table `weight` for each i.

    The row `padding_idx` receives no gradient.  With `max_norm` the rows whose `norm_type`-norm is
    above it are first shortened to it, in `weight` itself.  With `scale_grad_by_freq` the gradient
    of a row is divided by the number of its occurrences.  With `sparse` a leaf `weight` receives a
    sparse gradient, which holds only the rows that were looked up.

    Shapes: input (*) of int32 or int64, weight (V, D); result (*, D).

    Raises:
        IndexError: an entry of `input` is no row.
        RuntimeError: `weight` is no matrix, or `input` of another dtype.
        AssertionError: `padding_idx` is no row.
        RuntimeError: in backward, `sparse` and `scale_grad_by_freq` both hold.

    >>> import flambeau as fb
    >>> table = fb.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> fb.nn.functional.embedding(fb.tensor([1, 0]), table)
    tensor([[3., 4.],
            [1., 2.]])
    """
    padding = -1
    if padding_idx is not None:
        require_tensors("embedding", weight=weight)
        padding = checked_padding(padding_idx, weight.shape[0])
    if max_norm is not None:
        fb.embedding_renorm_(weight, input, max_norm, norm_type)
    return fb.embedding(weight, input, padding, scale_grad_by_freq, sparse)


def checked_padding(padding_idx: int, rows: int) -> int:
    """`padding_idx` as a non-negative row number; raises AssertionError if it is none."""
    padding_idx = whole_number(padding_idx, "embedding", "padding_idx")
    if not -rows <= padding_idx < rows:
        raise AssertionError(
            f"Padding_idx must be within num_embeddings: got {padding_idx} for {rows} rows"
        )
    return padding_idx % rows


_MODES = {"sum": 0, "mean": 1, "max": 2}


@takes_as_annotated
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The ``"sum"``, ``"mean"`` or ``"max"`` of the rows of each bag; empty bags give 0.

    A bag is a row of a two-dimensional `input`, or what lies between two `offsets` of a
    one-dimensional one; with `include_last_offset` the last offset only ends the last bag.
    `per_sample_weights` multiply the rows of a sum.  Entries equal to `padding_idx` do not count.
    `sparse` as for `embedding`.

    Shapes: weight (V, D), input (B, L), or (N) with offsets (B); result (B, D).

    Raises:
        ValueError: shapes do not fit, or an unknown or unfit `mode`.
        RuntimeError: an entry of `input` is no row, or offsets or dtypes do not fit.
        NotImplementedError: `per_sample_weights` with another mode than sum.

    >>> import flambeau as fb
    >>> table = fb.tensor([[1.0], [2.0], [4.0]])
    >>> fb.nn.functional.embedding_bag(fb.tensor([0, 1, 2]), table, fb.tensor([0, 2]), mode="sum")
    tensor([[3.],
            [4.]])
    """
    require_tensors("embedding_bag", input=input, weight=weight)
    weights = per_sample_weights
    if weights is not None:
        require_tensors("embedding_bag", per_sample_weights=weights)
    if weights is not None and weights.shape != input.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({weights.shape}) is not None, it must have "
            f"the same shape as the input ({input.shape})"
        )
    if offsets is not None:
        require_tensors("embedding_bag", offsets=offsets)
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "embedding_bag: a 2D input is a batch of bags of one length, so offsets has to be "
                f"None, but found {type(offsets).__name__}"
            )
        bags, length = input.shape
        offsets = fb.arange(bags, dtype=input.dtype, device=input.device) * length
        input = input.reshape(-1)
        weights = None if weights is None else weights.reshape(-1)
        include_last_offset = False
    elif input.dim() != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    elif offsets is None or offsets.dim() != 1:
        raise ValueError(
            "offsets has to be a 1D Tensor"
            + (" but got None" if offsets is None else f", got {offsets.dim()} dimensions")
        )
    if mode not in _MODES:
        raise ValueError(f"mode has to be one of sum, mean or max, got {mode!r}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}')."
        )
    if padding_idx is not None:
        padding_idx = whole_number(padding_idx, "embedding_bag", "padding_idx")
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise RuntimeError(
            f"embedding_bag: padding_idx must be within the {weight.shape[0]} rows, "
            f"but got {padding_idx}"
        )
    if max_norm is not None:
        fb.embedding_renorm_(weight, input, max_norm, norm_type)
    return fb.embedding_bag(
        *(weight, input, offsets, scale_grad_by_freq, _MODES[mode], sparse, weights),
        *(include_last_offset, padding_idx),
    )[0]


@takes_as_annotated
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A 1 at the place of each class along a new last dimension, and zeros elsewhere.

    Without `num_classes` there are as many classes as the largest needs.

    Shapes: tensor (*) of int64; result (*, num_classes) of int64.

    Raises:
        RuntimeError: another dtype, a class outside the range, or nothing to count classes from.

    >>> import flambeau as fb
    >>> fb.nn.functional.one_hot(fb.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if tensor.dtype is not fb.int64:
        raise RuntimeError(
            f"one_hot is only applicable to index tensor of type LongTensor, got {tensor.dtype}"
        )
    if not tensor.numel():
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
    elif num_classes == -1 or tensor.device.type == "cpu":  # else `scatter` looks, without a wait
        if num_classes == -1:
            _need_no_negative(tensor)
            num_classes = int(tensor.max()) + 1
        else:
            text = "Class values must be smaller than num_classes: got {index} of {}."
            try:
                checked(tensor, max(num_classes, 0), RuntimeError, text, (num_classes,))
            except RuntimeError:
                _need_no_negative(tensor)
                raise
        if tensor.device.type == "cpu" or tensor.numel() * num_classes <= _FEW:
            return _ONE_HOT.run(tensor, operator.index(num_classes))
    result = fb.zeros((*tensor.shape, num_classes), dtype=fb.int64, device=tensor.device)
    return result.scatter(-1, tensor.unsqueeze(-1), 1)


def _need_no_negative(classes: Tensor) -> None:
    text = "Class values must be non-negative, got {index}."
    checked(classes, _MOST, RuntimeError, text, (), allowed=_MOST)
