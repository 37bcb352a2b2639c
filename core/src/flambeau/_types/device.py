"""Device names: a device type that a backend serves, and an optional index."""

from __future__ import annotations

import operator
from contextvars import ContextVar

_default: ContextVar[device | None] = ContextVar("flambeau_default_device", default=None)


class device:  # noqa: N801 - PyTorch's name
    """A place where tensors live: a device type and, if it has several, an index.

    Args:
        type: ``"cpu"``, ``"cuda:1"``, another `device`, or an integer (a CUDA device, as
            PyTorch has it).
        index: the index, if `type` does not carry one.

    As a context manager it makes itself the default device of factory functions.

    Raises:
        RuntimeError: the string is no device name.

    >>> import flambeau as fb
    >>> fb.device("cuda:1").index, fb.device("cpu").type
    (1, 'cpu')
    """

    __slots__ = ("_tokens", "index", "type")

    type: str
    index: int | None

    def __init__(self, type: str | int | device, index: int | None = None) -> None:
        if isinstance(type, device):
            self.type, self.index = type.type, type.index if index is None else index
        elif isinstance(type, int) and not isinstance(type, bool):
            # PyTorch's legacy integer devices name CUDA devices.
            self.type, self.index = "cuda", _checked_index(type, f"{type}")
        elif isinstance(type, str):
            name, colon, number = type.partition(":")
            if not name or not name.replace("_", "").isalnum() or (colon and not number.isdigit()):
                of_dtype = name.startswith(("torch.", "flambeau."))
                hint = "; dtypes are passed as they are, not as strings" if of_dtype else ""
                raise RuntimeError(f"Invalid device string: {type!r}{hint}")
            if colon and index is not None:
                raise RuntimeError(
                    "type (string) must not include an index because index was passed "
                    f"explicitly: {type}"
                )
            self.type = name
            self.index = int(number) if colon else index
            if self.index is not None:
                self.index = _checked_index(self.index, type)
        else:
            raise TypeError(
                "device(): argument 'type' must be str, int or device, not "
                f"{type.__class__.__name__}"
            )
        self._tokens: list[object] = []

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type={self.type!r})"
        return f"device(type={self.type!r}, index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        return self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[object, ...]:
        return device, ((self.type,) if self.index is None else (self.type, self.index))

    def __enter__(self) -> device:
        self._tokens.append(_default.get())
        _default.set(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _default.set(self._tokens.pop())  # type: ignore[arg-type]


def _checked_index(index: int, text: str) -> int:
    try:
        index = operator.index(index)
    except TypeError:
        said = f"device(): argument 'index' must be int, not {type(index).__name__}"
        raise TypeError(said) from None
    if index < 0:
        raise RuntimeError(f"Device index must not be negative, got {text}")
    return index


# The default of factory functions, or None when nobody set one (then it is the CPU).
default_device = _default.get


def set_default_device(device_: device | str | int | None) -> None:
    """Make `device_` the device of tensors created without ``device=``; None restores the CPU.

    >>> import flambeau as fb
    >>> fb.set_default_device("meta"); fb.zeros(2).device.type
    'meta'
    >>> fb.set_default_device(None)
    """
    _default.set(None if device_ is None else device(device_))


def get_default_device() -> device:
    """The device on which factory functions create tensors.

    >>> import flambeau as fb
    >>> fb.get_default_device()
    device(type='cpu')
    """
    return _default.get() or device("cpu")
