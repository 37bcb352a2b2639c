"""Convolutions and matrix products of oneDNN for flambeau's device ``cpu``."""

__version__ = "0.1.0"
