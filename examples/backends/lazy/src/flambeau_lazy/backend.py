"""Arrays of device ``lazy``: what looks at elements realises them, and nothing else does."""

from flambeau_toy.backend import ToyBackend

from flambeau.plugin import Backend
from flambeau_lazy.graph import Lazy, realise

library = ToyBackend()


class LazyBackend(Backend):
    """Promises of the toy's arrays."""

    device_type = "lazy"
    array = Lazy

    def from_host(self, data, shape, dtype, index):
        """A realised array."""
        return Lazy(tuple(shape), dtype, library.from_host(data, shape, dtype, index))

    def to_host(self, array):
        """The elements as little-endian bytes."""
        return library.to_host(realise(array))

    def dtype_of(self, array):
        """The flambeau dtype of `array`, which is known without its elements."""
        return array.dtype
