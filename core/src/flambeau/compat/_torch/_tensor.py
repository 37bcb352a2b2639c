"""The class of tensors, under the path of its file in PyTorch."""

from flambeau import Tensor

__all__ = ["Tensor"]
