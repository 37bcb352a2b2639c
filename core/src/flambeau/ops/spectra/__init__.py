"""Fourier transforms, and windows for them."""
