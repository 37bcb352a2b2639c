"""An accelerator for flambeau: another softmax for device ``cpu``."""

__version__ = "0.1"
