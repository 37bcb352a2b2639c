"""Tensors made from data, constants, ranges and coordinates."""
