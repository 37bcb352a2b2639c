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
        "`out=` that overlaps an input: the result is complete before it is written, so it is right; PyTorch refuses.",
        r"accepts: RuntimeError \(unsupported operation: some elements of the input tensor and the written",
    ),
    Difference(
        "`out=` of a wider dtype (or another one of the same category): written as a cast, by the rule of the "
        "elementwise functions; some of PyTorch's functions want the exact dtype.",
        r"out (wider|wrong)-dtype\] (accepts: RuntimeError|value:|error: RuntimeError \(result type)",
    ),
    Difference(
        "PyTorch refuses complex `clamp`, `sort`, `kthvalue` with another class where `out=` cannot hold the dtype either.",
        r"out \S+\] error: \w+ .* for NotImplementedError",
    ),
    Difference(
        "Strides of a result whose operands are not row-major: the elements, not their order in memory, are what is documented.",
        r"(transposed|special)\] strides:",
    ),
    Difference(
        "Strides of a result of an expanded operand.",
        r"expanded\] strides:",
    ),
    Difference(
        "Results of LAPACK and of `nonzero`, `kthvalue`, `median`, `fft`, `unique`, ... are row-major; PyTorch leaves the "
        "order of its algorithm.",
        r"strides:",
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
        r"expanded\] (refuses|error): RuntimeError \(unsupported operation: more than one element",
    ),
    Difference(
        "The dtype of the tensor written to is checked first; PyTorch finds that it has no kernel.",
        r"error: RuntimeError \(result type \w+ can't be cast",
    ),
    Difference(
        "A tensor of which a view exists, or that is one, is not resized (docs/design/core.md).",
        r"resize_: cannot resize a view",
    ),
    Difference(
        "New elements of `resize_` and `empty` are zeros; PyTorch's are undefined.",
        r"",
        names="resize_ resize_as_ empty empty_like new_empty",
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
        r"",
        names="argmax argmin",
    ),
    Difference(
        "An index out of range is refused for empty tensors too, as IndexError wherever it is found.",
        r"(empty|scalar)\] (refuses|error|accepts): (IndexError|RuntimeError)",
        names="index_select index_add index_fill index_copy embedding roll select take gather scatter scatter_add index_put",
    ),
    Difference(
        "`index_put` takes None for a whole dimension.",
        r"TypeError \(expected Tensor as element",
        names="index_put",
    ),
    Difference(
        "PyTorch 1.0 documents these; today's PyTorch has removed them.",
        r"",
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
    ),
    Difference(
        "Singular, repeated or zero values: the derivative is not defined; the libraries choose otherwise.",
        r"(expanded|empty)\] (gradient|value)",
        names="qr svd norm frobenius_norm nuclear_norm pinverse logdet det slogdet "
        "cholesky std group_norm matrix_power inverse",
    ),
    Difference(
        "Only the triangle that is read has a gradient; PyTorch gives the other one numbers too.",
        r"gradient",
        names="cholesky_solve",
    ),
    Difference(
        "The gradient of a complex factor is of its Hermitian part.",
        r"complex128.*gradient",
        names="cholesky",
    ),
    Difference(
        "The gradient passes through float32 in another order.",
        r"dtype=t.float32.*gradient",
        names="cumsum cumprod sum mean prod",
    ),
    Difference(
        "Arguments that make no difference (of no elements, `stft` without `return_complex`, "
        "kernels of no elements) are not refused.",
        r"accepts",
        names="bernoulli stft conv1d conv_transpose1d conv_tbc fft",
    ),
    Difference(
        "The class of an error after two mistakes in one call: whichever is found first.",
        r"error: \w+ .* for (IndexError|TypeError|NotImplementedError|RuntimeError|ValueError|_LinAlgError)",
    ),
    Difference(
        "NaN and infinity: order, sign of zero and rounding of half-precision kernels differ.",
        r"special\] value",
    ),
    Difference(
        "`randint_like` fills in row-major order.", r"transposed\] value", names="randint_like"
    ),
    Difference("`torch.zeros(size=...)` by keyword.", r"unexpected keyword argument 'size'"),
    Difference(
        "A bool tensor with `alpha` or `beta` is counted in int64.",
        r"\[bool",
        names="add sub rsub addmm addmv addr addbmm baddbmm",
    ),
    Difference(
        "`value` of a floating kind promotes integers; PyTorch cuts it to a whole number.",
        r"value=0.5\) \[",
        names="addcmul addcdiv",
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
        "The warning about a resized `out=` comes from every function that resizes it.", r"warning:"
    ),
    Difference(
        "The in-place `abs` of a complex tensor keeps the dtype; PyTorch refuses.",
        r"complex128",
        names="abs",
    ),
    Difference(
        "One matrix alone is the product: the tensor itself, or a copy.",
        r"identity",
        names="chain_matmul",
    ),
    Difference(
        "A matrix that is not square is refused also if it has no elements.",
        r"empty\] refuses",
        names="cholesky",
    ),
    Difference(
        "`out=` follows the rule of casts for scans too.",
        r"out \S+\] (refuses|accepts)",
        names="cumsum cumprod",
    ),
    Difference(
        "`out=` of a counting function: it cannot be the input that is counted, and wants no gradient.",
        r"out (input|grad)\]",
        names="histc",
    ),
    Difference(
        "The in-place form casts back to the dtype of its tensor.",
        r"dtype=t.\w+\) \[.* accepts",
        names="cumsum cumprod",
    ),
    Difference(
        "Real results of complex numbers are refused by PyTorch when they are recorded.",
        r"accepts: RuntimeError .*(automatic differentiation|Autograd not support)",
    ),
    Difference(
        "A complex number for a real tensor gives its real part.",
        r"1j\) \[.*(accepts|refuses|value)",
        names="full_like masked_fill fill_ new_full full",
    ),
    Difference(
        "The phase of the logarithm of zero is 0, not NaN.",
        r"complex128.*nanj",
        names="logdet slogdet",
    ),
    Difference(
        "PyTorch reads memory of no element along an expanded dimension.",
        r"expanded\] value",
        names="median",
    ),
    Difference("`dtype=` casts first, from any dtype.", r"dtype=t.float64\) \[", names="norm"),
    Difference(
        "Random whole numbers can be complex.", r"complex128", names="randint randint_like random_"
    ),
    Difference(
        "Results of another dtype than the tensor are refused in place, with elements or without.",
        r"((empty|scalar)\] (refuses|accepts)|out=[vc]\) .*bool)",
        names="addmm cumsum cumprod sum",
    ),
    Difference(
        "`group_norm` without elements: a weight without influence has the gradient 0.",
        r"empty\] gradient",
        names="group_norm nn.functional.group_norm",
    ),
    Difference(
        "The gradient of a leaf whose own memory repeats is shared equally by its places, as PyTorch does for "
        "`as_strided`; PyTorch's `unfold` gives each place its own part (the sums are equal).",
        r"expanded\] gradient",
        names="unfold stft",
    ),
    Difference(
        "The strides of a tensor without elements are those of its layout here, 1 there.",
        r"empty\] plain",
        names="stride",
    ),
    Difference(
        "`out=` is the input: PyTorch overwrites what it still reads.",
        r"out input\] value",
        names="topk",
    ),
    Difference("A 0-d tensor counts as one row.", r"scalar\] accepts", names="unique"),
    Difference(
        "The dtype of a view without elements follows the rule for those with some.",
        r"empty\] refuses",
        names="view",
    ),
]
