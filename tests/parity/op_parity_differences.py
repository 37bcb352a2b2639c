"""Recorded differences: where a case of `op_parity` may differ from PyTorch, and why it stays so."""

# ruff: noqa: E501 - a table of calls

from __future__ import annotations

import functools
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """Cases whose text and difference match, and the reason for leaving them.

    `text` is searched in ``"call [dtype, layout] kind: what"``.
    """

    reason: str
    text: str
    names: str = ""

    def covers(self, name: str, shown: str) -> bool:
        return (not self.names or name in self.names.split()) and bool(_pattern(self.text)(shown))


@functools.cache
def _pattern(text: str):
    return re.compile(text, re.DOTALL).search


def reason_for(name: str, shown: str) -> str | None:
    """Why a difference is on record; None if it is not."""
    return next((d.reason for d in DIFFERENCES if d.covers(name, shown)), None)


DIFFERENCES: list[Difference] = [
    Difference(
        "PyTorch has no kernel for the dtype (NotImplementedError); the call is refused here too, for its dtype or for its `out=`.",
        r"out \S+\] error: RuntimeError \(.* for NotImplementedError \(",
    ),
    Difference(
        "`out=` whose elements share memory is refused everywhere; PyTorch's reductions, products and fills write to it, "
        "the last value stays.",
        r"out expanded\] refuses: RuntimeError \(unsupported operation: more than one element",
    ),
    Difference(
        "`out=` that requires a gradient is refused by functions without a derivative too; PyTorch forgets these.",
        r"out grad\] refuses: RuntimeError \(out=... arguments don't support automatic",
    ),
    Difference(
        "`out=` is an input of another shape than the result: PyTorch resizes it before it reads it, then misses the "
        "dimension or reads what is left.",
        r"out input\] (accepts: (IndexError \(Dimension out of range|RuntimeError \(torch.histc: range)|value:)",
        names="amax amin aminmax argmax argmin frobenius_norm histc histogram kthvalue linalg.vector_norm mean median mode nanmean "
        "nanmedian nanquantile norm prod quantile std sum topk var",
    ),
    Difference(
        "`out=` overlaps the input: these do not look for that in PyTorch, and overwrite what they still read.",
        r"out overlapping\] value:",
        names="softmax log_softmax searchsorted",
    ),
    Difference(
        "An empty `out=` takes the order of the result's dimensions in memory; these functions of PyTorch resize it to "
        "row-major memory (`ormqr`: one with elements).",
        r"out ((empty|wrong-shape)\] strides:|(as-many|others)-elsewhere\] value:)",
        names="cholesky_solve ormqr linalg.tensorinv fft.ihfft2 fft.ihfftn",
    ),
    Difference(
        "PyTorch's `fftfreq` writes the negative frequencies of an `out=` with gaps elsewhere.",
        r"out (strided|every-second|selected|as-many-elsewhere)\] value:",
        names="fft.fftfreq",
    ),
    Difference(
        "Integer and complex arguments of floating-point functions are refused whatever their number and before "
        "their shapes are looked at (docs/design/agreement.md).",
        r"(softmax\(\)|Low precision dtypes|Expected a floating point or complex tensor|not implemented for torch"
        r"|Subtraction, the `-` operator|does not support complex)",
    ),
    Difference(
        "An in-place call on expanded memory is refused before anything else; some of PyTorch's kernels "
        "write to it.",
        r", expanded\] (refuses|error): RuntimeError \(unsupported operation: more than one element",
    ),
    Difference(
        "The dtype of the tensor written to is checked first; PyTorch finds that it has no kernel.",
        r"error: RuntimeError \(result type \w+ can't be cast",
    ),
    Difference(
        "New elements of `resize_` are zeros; PyTorch's are undefined.",
        r"\] value:",
        names="resize_ resize_as_",
    ),
    Difference(
        "There is no complex32: float16 with a complex number gives complex64.",
        r"for torch.complex32",
    ),
    Difference(
        "Byte tensors are masks, as PyTorch 1.0 documents.",
        r"(boolean masks|BoolTensor for mask)|\[uint8.*(accepts|error)",
        names="masked_fill masked_scatter masked_select where",
    ),
    Difference(
        "`argmax` and `argmin` of bool tensors have a meaning (docs/design/agreement.md).",
        r"does not support bool input",
        names="argmax argmin",
    ),
    Difference(
        "An index out of range is refused for empty tensors too, as IndexError wherever it is found.",
        r"(empty|scalar)\] (refuses|error|accepts): (IndexError|RuntimeError)",
        names="index_select index_add index_fill index_copy embedding roll select scatter_add index_put",
    ),
    Difference(
        "PyTorch 1.0 documents these; today's PyTorch has removed them.",
        r"This function was deprecated|AttributeError|hasattr\(h, 'NAME'\)|hasattr\(h, '(gels|matrix_rank)'\)",
        names="symeig eig solve matrix_rank gels",
    ),
    Difference(
        "`reduction` is 'mean' by default, as documented; PyTorch's bare function returns the single losses.",
        r"shape: \(\)",
        names="binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss "
        "margin_ranking_loss triplet_margin_loss kl_div ctc_loss",
    ),
    Difference(
        "The loss checks the target's size itself, as `nn.functional` does.",
        r"Target size",
        names="binary_cross_entropy_with_logits",
    ),
    Difference(
        "Weights and running statistics are constants or have gradients; PyTorch refuses them when recording.",
        r"is not differentiable with respect to",
    ),
    Difference(
        "A constant result (p = 0, the power 0, a quotient rounded to a whole number) has no history; PyTorch's has one whose gradient is zero.",
        r"requires_grad: False for True",
        names="div",
    ),
    Difference(
        "The matrix has equal rows, so that it is singular but for rounding: its factors, its inverse beyond it and their "
        "derivatives are not defined; the libraries choose otherwise.",
        r"expanded\] (gradient|value): \[",
        names="qr norm frobenius_norm nuclear_norm pinverse",
    ),
    Difference(
        "Only the triangle that is read has a gradient; PyTorch gives the other one numbers too.",
        r"gradient",
        names="cholesky_solve",
    ),
    Difference(
        "The gradient is Hermitian. PyTorch's has this one as its Hermitian part, and an anti-Hermitian part, from "
        "imaginary parts that the diagonal of the factor cannot have, which no change of a Hermitian matrix sees.",
        r"complex128, (contiguous|transposed|sliced|offset)\] gradient",
        names="cholesky",
    ),
    Difference(
        "The gradient of the running sum is taken in float32, the dtype that was asked for, and cast to float64; "
        "PyTorch casts first.",
        r"dtype=t.float32\) \[(float64|complex128), \w+\] gradient",
        names="cumsum cumprod",
    ),
    Difference(
        "Convolution, pooling, recurrent cells and unreduced losses of an operand in another order are row-major; PyTorch's "
        "one-dimensional layers are two-dimensional ones that keep channels last, and its cells elementwise.",
        r"transposed\] strides:",
        names="conv1d conv_transpose1d convolution avg_pool1d adaptive_avg_pool1d adaptive_max_pool1d "
        "hinge_embedding_loss gru_cell",
    ),
    Difference(
        "A number to the power of a tensor keeps the tensor's order in memory; PyTorch's result is row-major.",
        r"(pow\(2(\.5)?, y\)|2 \*\* y) \[\w+, transposed\] strides:",
        names="pow",
    ),
    Difference(
        "PyTorch says that the batch statistics have no first element; here that they are missing.",
        r"empty\] error: RuntimeError \(running_mean must be defined.* for IndexError",
        names="batch_norm",
    ),
    Difference(
        "Two mistakes in one call: a matrix is wanted before a dtype is looked at, a size is checked before a dimension.",
        r"RuntimeError \((trace: expected a matrix|output with shape).* for NotImplementedError"
        r"|RuntimeError \(Invalid number of data points \(0\)",
        names="trace fft addbmm",
    ),
    Difference(
        "Without elements there is nothing to transform or convolve; PyTorch's libraries refuse such sizes.",
        r"empty\] accepts: RuntimeError \((MKL FFT error|could not create a primitive descriptor|kernel size should be)",
        names="fft conv1d conv_transpose1d",
    ),
    Difference(
        "`stft` without `return_complex` gives pairs, as PyTorch 1.0 documents.",
        r"stft requires the return_complex parameter",
        names="stft",
    ),
    Difference(
        "`conv_tbc` takes operands in any order in memory; PyTorch's wants to view them.",
        r"(transposed|expanded)\] accepts: RuntimeError \(view size is not compatible",
        names="conv_tbc",
    ),
    Difference(
        "The most frequent element of a row with a NaN in which all occur once: the smallest number; PyTorch's sort "
        "leaves the NaN where it is.",
        r"special\] value: .* for .*nan",
        names="mode",
    ),
    Difference(
        "NaN and infinity: order, sign of zero and rounding of half-precision kernels differ.",
        r"special\] value",
        names="pow lerp",
    ),
    Difference(
        "PyTorch refuses products of bool matrices, those without elements with RuntimeError (result type Long).",
        r"\[bool, empty\] accepts: RuntimeError \(result type Long can't be cast",
        names="addmm addmv addbmm baddbmm",
    ),
    Difference(
        "The result has the broadcast shape of all operands, also where it has no elements.",
        r"empty\] shape",
        names="addmv",
    ),
    Difference(
        "The in-place form takes operands of a broadcast shape only.",
        r"u.addbmm_\(",
        names="addbmm",
    ),
    Difference(
        "One matrix alone is the product: the tensor itself, or a copy.",
        r"identity",
        names="chain_matmul",
    ),
    Difference(
        "A matrix that is not square, or of a dtype that no decomposition has, is refused also if it has no elements.",
        r"empty\] refuses: (RuntimeError \(cholesky: (A must be batches of square|The input tensor A must have)|NotImplementedError \(\"\w+_cpu\")",
        names="cholesky det cholesky_solve geqrf median",
    ),
    Difference(
        "Whole numbers made from recorded floating ones have no gradient; PyTorch refuses to record them, and the values of "
        "complex numbers that it sorts.",
        r"accepts: RuntimeError \((Autograd not support dtype|\w+ does not support automatic differentiation for outputs)",
    ),
    Difference(
        "The sum of the logarithms of direction and size is -inf; PyTorch's sum of complex numbers multiplies the second "
        "by alpha, 1+0j, which makes the imaginary part of an infinity NaN.",
        r"complex128, \w+\] value: .*nanj",
        names="logdet",
    ),
    Difference(
        "PyTorch reads memory of no element along an expanded dimension.",
        r"median\((x, )?0\) \[\w+, expanded\] value",
        names="median",
    ),
    Difference(
        "Results of another dtype than the tensor are refused in place, with elements or without.",
        r"(empty|scalar)\] (refuses|accepts): RuntimeError \(result type",
        names="addmm cumsum cumprod",
    ),
    Difference(
        "`group_norm` without elements: a weight without influence has the gradient 0.",
        r"empty\] gradient",
        names="group_norm nn.functional.group_norm",
    ),
    Difference(
        "`out=` is the input: PyTorch overwrites what it still reads.",
        r"contiguous, out input\] value",
        names="topk",
    ),
    Difference(
        "PyTorch's `kthvalue` writes to an `out=` that has the dimension with one element as it is, and drops the "
        "dimension afterwards; here it is resized.",
        r"out as-many-elsewhere\] value:",
        names="kthvalue",
    ),
]
