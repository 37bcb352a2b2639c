"""Checks of gradients, under the path of their file in PyTorch."""

from flambeau.autograd import gradcheck, gradgradcheck

__all__ = ["gradcheck", "gradgradcheck"]
