"""The handle that hook registrations return."""

from flambeau.autograd.node import RemovableHandle

__all__ = ["RemovableHandle"]
