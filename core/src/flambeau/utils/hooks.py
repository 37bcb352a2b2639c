"""The handle that hook registrations return."""

from flambeau._autograd.node import RemovableHandle

__all__ = ["RemovableHandle"]
