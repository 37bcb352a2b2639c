"""Arrays of device ``toy``: how they come from host memory and go back."""

import numpy as np

from flambeau.plugin import Backend, dtypes

TO_NUMPY = {d: np.dtype(d.name) for d in dtypes if d.name != "bfloat16"}
FROM_NUMPY = {n: d for d, n in TO_NUMPY.items()}


class ToyBackend(Backend):
    """NumPy arrays, which nobody writes to."""

    device_type = "toy"
    array = np.ndarray

    def from_host(self, data, shape, dtype, index):
        """A copy of little-endian bytes."""
        kind = TO_NUMPY[dtype]
        return np.frombuffer(data, kind.newbyteorder("<")).reshape(shape).astype(kind)

    def to_host(self, array):
        """The elements as little-endian bytes."""
        return array.astype(array.dtype.newbyteorder("<")).tobytes()

    def dtype_of(self, array):
        """The flambeau dtype of `array`."""
        return FROM_NUMPY[array.dtype]

    def to_array(self, value):
        """NumPy returns scalars where an array has no dimensions."""
        return np.asarray(value)
