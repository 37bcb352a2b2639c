"""Arrays of the device: where they lie, and in which order. Their elements are not for the host."""


class DeviceArray:
    """A region of device memory.

    Attributes:
        window: the region as tasks see it; only its shape, dtype and strides are the host's.
        block: the memory, kept as long as arrays lie in it.
        index: the device.
        owner: whether it was allocated, and is no view.
    """

    __slots__ = ("__weakref__", "block", "index", "owner", "window")

    def __init__(self, window, block, index, owner):
        self.window, self.block, self.index, self.owner = window, block, index, owner

    @property
    def shape(self):
        """Its lengths."""
        return self.window.shape

    def view(self, window):
        """Another array over the same memory."""
        return DeviceArray(window, self.block, self.index, False)

    def __array__(self, *args, **kwargs):
        """Refuses what NumPy would make of it."""
        raise TypeError(f"this array lies on simulated:{self.index}; copy it to the host first")
