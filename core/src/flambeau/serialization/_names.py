"""Which globals a checkpoint may name, and under which names ours are written."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from flambeau._storages.typed import LEGACY, TypedStorage, legacy_name
from flambeau._storages.untyped import UntypedStorage
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.device import device as Device
from flambeau._types.layout import strided
from flambeau._types.size import Size
from flambeau.serialization import _rebuild as R

if TYPE_CHECKING:
    from collections.abc import Callable


_FUNCTIONS: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor"): R.rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v2"): R.rebuild_tensor_v2,
    ("torch._utils", "_rebuild_tensor_v3"): R.rebuild_tensor_v3,
    ("torch._utils", "_rebuild_parameter"): R.rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): R.rebuild_parameter_with_state,
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): R.rebuild_meta,
    ("torch._utils", "_rebuild_wrapper_subclass"): R.rebuild_wrapper,
    ("torch._utils", "_rebuild_sparse_tensor"): R.rebuild_sparse,
    ("torch._tensor", "_rebuild_from_type_v2"): R.rebuild_from_type,
    ("torch.serialization", "_get_layout"): R.get_layout,
    ("torch", "device"): R.make_device,
    ("torch", "Size"): R.make_size,
    ("collections", "OrderedDict"): R.make_ordered,
    ("collections", "Counter"): R.make_counter,
    ("_codecs", "encode"): R.encode,
    ("builtins", "set"): R.make_set,
    ("__builtin__", "set"): R.make_set,
    ("builtins", "bytearray"): R.make_bytearray,
    ("__builtin__", "bytearray"): R.make_bytearray,
    ("builtins", "bytes"): R.make_bytes,
    ("__builtin__", "bytes"): R.make_bytes,
    ("builtins", "complex"): R.make_complex,
    ("__builtin__", "complex"): R.make_complex,
}
_CALLABLE = frozenset(_FUNCTIONS.values())

_VALUES: dict[tuple[str, str], Any] = {
    ("torch", "Tensor"): Tensor,
    ("torch", "strided"): strided,
    ("torch.storage", "UntypedStorage"): UntypedStorage,
    ("torch.storage", "TypedStorage"): TypedStorage,
}
_VALUES.update({("torch", d.name): d for d in D.EVERY})
_VALUES.update({("torch", legacy_name(d)): cls for d, cls in LEGACY.items()})
_VALUES.update({("torch.cuda", legacy_name(d)): cls for d, cls in LEGACY.items()})
for _name in (*("float8_e8m0fnu", "complex32", "qint8", "quint8", "qint32"),):
    _VALUES.setdefault(("torch", _name), R.UnknownDtype(_name))

# How our objects are called in the files that we write.
WRITTEN: dict[Any, tuple[str, str]] = {f: name for name, f in reversed(_FUNCTIONS.items())}
WRITTEN.update({Device: ("torch", "device"), Size: ("torch", "Size")})
WRITTEN.update({value: name for name, value in reversed(_VALUES.items())})

_safe: dict[tuple[str, str], Any] = {}


def _named(entry: Any) -> tuple[tuple[str, str], Any]:
    if isinstance(entry, tuple):
        found, path = entry
        if not isinstance(path, str):
            raise TypeError(f"add_safe_globals: a pair is (object, name), got {entry!r}")
        module, _, name = path.rpartition(".")
        return (module, name), found
    return (entry.__module__, entry.__qualname__), entry


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Let checkpoints name classes and functions of yours, also with ``weights_only=True``.

    Loading then calls them with arguments from the file and sets the state of their objects, so
    they must be safe for any arguments.

    Args:
        safe_globals: classes or functions, or pairs of one and the full name that files use.

    >>> import flambeau as fb
    >>> class Settings: ...
    >>> fb.serialization.add_safe_globals([Settings])
    >>> fb.serialization.get_safe_globals() == [Settings]
    True
    >>> fb.serialization.clear_safe_globals()
    """
    global _safe
    _safe = {**_safe, **dict(_named(entry) for entry in safe_globals)}


def get_safe_globals() -> list[Any]:
    """What the user has allowed so far."""
    return list(_safe.values())


def clear_safe_globals() -> None:
    """Allow nothing but what the library knows."""
    global _safe
    _safe = {}


@contextlib.contextmanager
def safe_globals(safe_globals: Sequence[Any]) -> Iterator[None]:
    """`add_safe_globals` for the duration of a block."""
    global _safe
    before = _safe
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe = before


def find_safe(module: str, name: str) -> Callable[..., Any]:
    """The object that a file names.

    Raises:
        KeyError: it is not allowed.
    """
    key = module, name
    if key in _safe:
        return _safe[key]
    if module == "torch.nn.parameter" and name in ("Parameter", "Buffer"):
        from flambeau import nn

        return getattr(nn, name)
    return _FUNCTIONS[key] if key in _FUNCTIONS else _VALUES[key]


def is_safe(module: str, name: str) -> bool:
    """Whether a file may name it."""
    try:
        find_safe(module, name)
    except KeyError:
        return False
    return True


def may_call(func: Callable[..., Any]) -> bool:
    """Whether a pickle may call `func`."""
    # What a file has made is not hashed: only functions can be among them.
    known = type(func) is FunctionType and func in _CALLABLE
    return known or any(func is f for f in _safe.values())


def may_build(kind: type) -> bool:
    """Whether a pickle may set the state of an object of `kind`."""
    return any(kind is f for f in _safe.values())


def find_any(module: str, name: str) -> Any:
    """What an unrestricted pickle means by a name of PyTorch's; None if it is not PyTorch's.

    Raises:
        AttributeError: flambeau has no such object.
    """
    if module.partition(".")[0] not in ("torch", "flambeau"):
        return None
    key = module, name
    if module.startswith("torch") and (key in _FUNCTIONS or key in _VALUES):
        return _FUNCTIONS.get(key) or _VALUES[key]
    import importlib

    path = "flambeau" + module[len(module.partition(".")[0]) :]
    try:
        found = importlib.import_module(path)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise AttributeError(f"the file needs {module}.{name}, which flambeau lacks") from error
    return found


def parameter_class() -> Any:
    """`nn.Parameter`, if anything has imported nn; otherwise there can be no parameter."""
    parts = sys.modules.get("flambeau.nn.parameter")
    return parts and parts.Parameter
