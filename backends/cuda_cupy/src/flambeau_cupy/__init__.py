"""The CUDA backend of flambeau: CuPy arrays and kernels for device type ``cuda``."""

__version__ = "0.1.0"
