"""``torch.xpu`` and the like: device types of PyTorch that a package may bring, or none does."""

from __future__ import annotations

from types import ModuleType

from flambeau.accelerator import namespace

DEVICES = frozenset({"mps", "mtia", "xpu"})


def device_module(device_type: str) -> ModuleType:
    """The module of a device type: `flambeau.accelerator.namespace` of it, and queries.

    Without a package for such devices it says that there is none, and ignores seeds.
    """
    devices = namespace(device_type)
    module = ModuleType(f"torch.{device_type}", f"Devices of type {device_type}.")

    def is_bf16_supported(*args: object, **kwargs: object) -> bool:
        return devices.is_available()

    module.__dict__["is_bf16_supported"] = is_bf16_supported
    module.__dict__["__getattr__"] = lambda name: getattr(devices, name)
    module.__dict__["__dir__"] = lambda: dir(devices)
    return module
