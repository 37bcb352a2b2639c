"""Windows of images as columns, and their sum back into images."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.functional._arguments import Size
from flambeau.overrides import takes_as_annotated


@takes_as_annotated
def unfold(
    input: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
) -> Tensor:
    """The windows of an image as columns.

    Shapes: input (N, C, H, W) or (C, H, W); result (N, C · KH · KW, L) or without N, where L is
    the product of ⌊(H + 2p - d·(K - 1) - 1) / s⌋ + 1 over both dimensions.

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.nn.functional.unfold(fb.randn(2, 5, 3, 4), (2, 3)).shape
    torch.Size([2, 30, 4])
    """
    return fb.im2col(input, kernel_size, dilation, padding, stride)


@takes_as_annotated
def fold(
    input: Tensor,
    output_size: Size,
    kernel_size: Size,
    dilation: Size = 1,
    padding: Size = 0,
    stride: Size = 1,
) -> Tensor:
    """The sum of windows, given as columns, where they lie in an image: the adjoint of `unfold`.

    Shapes: input (N, C · KH · KW, L) or (C · KH · KW, L); result (N, C, *output_size) or without N.

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.nn.functional.fold(fb.randn(1, 3 * 2 * 2, 12), (4, 5), (2, 2)).shape
    torch.Size([1, 3, 4, 5])
    """
    return fb.col2im(input, output_size, kernel_size, dilation, padding, stride)
