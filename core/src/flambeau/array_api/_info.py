"""What the namespace tells about itself."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.array_api._dtypes import KINDS, isdtype

_NAMES = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64
complex128""".split()


class _Info:
    """Devices, dtypes, and what depends on values."""

    def capabilities(self) -> dict[str, Any]:
        """Which optional behaviour is there."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> fb.device:
        """Where tensors are made."""
        return fb.get_default_device()

    def default_dtypes(self, *, device: object = None) -> dict[str, fb.dtype]:
        """The dtypes of tensors of which none is said."""
        real = fb.get_default_dtype()
        paired = fb.complex128 if real is fb.float64 else fb.complex64
        return {
            "real floating": real,
            "complex floating": paired,
            "integral": fb.int64,
            "indexing": fb.int64,
        }

    def dtypes(self, *, device: object = None, kind: object = None) -> dict[str, fb.dtype]:
        """The dtypes, by name."""
        wanted = kind if kind is not None else tuple(KINDS)
        found = {name: getattr(fb, name) for name in _NAMES}
        return {name: dtype for name, dtype in found.items() if isdtype(dtype, wanted)}

    def devices(self) -> list[fb.device]:
        """The devices on which tensors can be made."""
        accelerator = fb.accelerator.current_accelerator()
        found = [fb.device("cpu")]
        if accelerator is not None:
            count = fb.accelerator.device_count()
            found += [fb.device(accelerator.type, index) for index in range(count)]
        return found


def __array_namespace_info__() -> _Info:  # noqa: N807 - the standard's name
    """Devices, dtypes and capabilities of the namespace.

    >>> import flambeau as fb
    >>> fb.array_api.__array_namespace_info__().default_dtypes()["integral"]
    torch.int64
    """
    return _Info()


all_take_as_annotated(globals())
