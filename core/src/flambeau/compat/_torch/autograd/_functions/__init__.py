"""Helpers of PyTorch 1's functions with gradients."""
