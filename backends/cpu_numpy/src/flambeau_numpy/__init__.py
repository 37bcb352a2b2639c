"""The CPU backend of flambeau: NumPy arrays and NumPy kernels for device type ``cpu``."""

__version__ = "0.1.0"
