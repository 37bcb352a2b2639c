"""Defaults of `load` and `save`."""

__all__: list[str] = []
