"""Settings of the compiler: they can be set and read, and have no effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

cache_size_limit = recompile_limit = 8
suppress_errors = False
verbose = False
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
automatic_dynamic_shapes = True
optimize_ddp: bool | str = True


def patched(names: dict[str, object]) -> Callable[..., AbstractContextManager[None]]:
    """The function `patch` of a module of settings.

    Args:
        names: the module's names.
    """

    @contextmanager
    def patch(
        first: str | Mapping[str, object] = "", value: object = None, **settings: object
    ) -> Iterator[None]:
        """A block with these settings: keywords, a dictionary, or a name and a value."""
        given = {first: value} if first and isinstance(first, str) else dict(first or {})
        told = {name: each for name, each in {**given, **settings}.items() if "." not in name}
        before = {name: names[name] for name in told if name in names}
        names.update(told)
        try:
            yield
        finally:
            for name in told:
                del names[name]
            names.update(before)

    return patch


patch = patched(globals())
