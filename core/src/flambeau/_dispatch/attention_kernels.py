"""Which kernels may compute attention: a setting of the process, by PyTorch's names for them."""

from __future__ import annotations


class AttentionKernels:
    """Attributes:
    flash: one kernel that keeps no matrix of weights, where a package has it.
    efficient: PyTorch's second of this kind; there is none here.
    math: the formula, in ops.
    cudnn: cuDNN's; there is none here.
    """

    __slots__ = ("cudnn", "efficient", "flash", "math")

    def __init__(self) -> None:
        self.flash = self.efficient = self.math = self.cudnn = True


attention_kernels = AttentionKernels()
