"""Functions with a name in ``torch.ops``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from flambeau.compat._torch._library.infer_schema import infer_schema
from flambeau.utils import _named_ops
from flambeau.utils._named_ops import ALL, COMPOSITE, DEFINED, FAKES, KEYS, CustomOp, FakeContext

__all__ = [
    "Library",
    "custom_op",
    "define",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "triton_op",
    "wrap_triton",
]


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str] = (),
    device_types: object = None,
    schema: str | None = None,
) -> Any:
    """A function as an op ``namespace::name``; without one, a decorator.

    Raises:
        ValueError: the name has no namespace.
    """
    space, colons, short = name.partition("::")
    if not colons:
        raise ValueError(f"Expected {name!r} to be of the form 'namespace::name'")

    def define(function: Callable[..., Any]) -> CustomOp:
        op = CustomOp(name, function)
        if schema is not None:
            op.schema = name + schema
        else:
            with suppress(Exception):  # annotations may be missing, or mean nothing here
                op.schema = infer_schema(function, mutates_args=mutates_args, op_name=name)
        DEFINED.setdefault(space, {})[short] = op
        FAKES.pop(name, None)
        return op

    return define if fn is None else define(fn)


def _op(op: Any) -> CustomOp:
    if isinstance(op, CustomOp):
        return op
    space, _, short = op.partition("::")
    found = DEFINED.get(space, {}).get(short.partition(".")[0])
    if found is None:
        raise RuntimeError(f"flambeau has no op {op!r}: `torch.library.custom_op` defines one")
    return found


def register_fake(op: object, func: Callable[..., Any] | None = None, /, **settings: object) -> Any:
    """As `CustomOp.register_fake`, by the op's name.

    The op need not be there: packages say the shapes of ops that a compiled library has, which
    cannot be loaded.
    """
    name = op._name if isinstance(op, CustomOp) else str(op)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        FAKES[name] = function
        return function

    return register if func is None else register(func)


def get_ctx() -> FakeContext:
    """In a fake implementation: what gives sizes that depend on elements.

    Raises:
        RuntimeError: no fake implementation is running.
    """
    return _named_ops.fake_context()


impl_abstract = register_fake


def triton_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str] = (),
    schema: str | None = None,
) -> Any:
    """As `custom_op`: what is inside may call kernels of Triton, where they can run."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: object) -> Any:
    """The kernel itself."""
    return triton_kernel


def register_autograd(
    op: Any, backward: Any, /, *, setup_context: Any = None, **kw: object
) -> None:
    """As `CustomOp.register_autograd`, by the op's name."""
    _op(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(
    op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, **settings: object
) -> Any:
    """As `CustomOp.register_kernel`, by the op's name."""
    return _op(op).register_kernel(device_types, func)


class Library:
    """The ops of a namespace, defined by schemas and given functions.

    Args:
        ns: the namespace.
        kind: ``DEF``, ``FRAGMENT`` or ``IMPL``.
        dispatch_key: for what `impl` gives functions if it is not told, such as ``"CPU"``.

    Raises:
        ValueError: another kind.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError("Unsupported kind: " + kind)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: object = ()) -> str:
        """Make an op from a schema such as ``"twice(Tensor x) -> Tensor"``; returns its name."""
        name = schema.partition("(")[0].strip()
        DEFINED.get(self.ns, {}).pop(name.partition(".")[0], None)
        _named_ops.define(self.ns, schema)
        return name

    def impl(
        self, op_name: object, fn: Callable[..., Any], dispatch_key: str = "", **settings: object
    ) -> None:
        """Give an op its function for a dispatch key: a type of devices, or all of them.

        What is given for ``Meta`` says shapes, as `register_fake` does; what is given for other
        keys (of compilers, gradients, mixed precision) is not used.

        Raises:
            RuntimeError: there is no such op, and the function is for a key that is used.
        """
        key = dispatch_key or self.dispatch_key
        device = _named_ops.device_of(key)
        named = op_name if isinstance(op_name, CustomOp) else f"{self.ns}::{op_name}"
        if key == "Meta":
            register_fake(named, fn)
        elif device is not None:
            _op(named).register_kernel(device, fn)

    def _register_fake(
        self,
        op_name: object,
        fn: Callable[..., Any] | None = None,
        *args: object,
        **settings: object,
    ) -> Any:
        named = op_name if isinstance(op_name, CustomOp) else f"{self.ns}::{op_name}"
        return register_fake(named, fn)


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: object = ()) -> None:
    """Make an op ``namespace::name`` from the schema of its arguments."""
    space, _, short = qualname.partition("::")
    (lib or Library(space, "FRAGMENT")).define(short + schema)


def impl(
    qualname: str,
    types: Any,
    func: Callable[..., Any] | None = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Give an op its function for types of devices or dispatch keys; a decorator without one.

    Raises:
        RuntimeError: there is no such op.
    """
    given = [types] if isinstance(types, str) else list(types)
    keys = [KEYS.get(each.upper(), each) for each in given]
    used = [ALL if key in COMPOSITE else key for key in keys if key in {*COMPOSITE, *_DEVICES}]
    return _op(qualname).register_kernel(used or ["none"], func)


_DEVICES = frozenset(KEYS.values())
