"""``torch.utils.model_zoo.tqdm``: a bar of progress, if a package for it is installed."""

from __future__ import annotations

from typing import Any

try:
    from tqdm import tqdm  # pyright: ignore[reportMissingModuleSource, reportAssignmentType]
except ImportError:

    class tqdm:  # type: ignore[no-redef] # noqa: N801 - the package's name
        """An iterable or counter that shows no progress."""

        def __init__(self, iterable: Any = (), *args: object, **kwargs: object) -> None:
            self._iterable = iterable

        def __iter__(self) -> Any:
            return iter(self._iterable)

        def __enter__(self) -> tqdm:
            return self

        def __exit__(self, *exc: object) -> None:
            pass

        def update(self, n: int = 1) -> None:
            """Count on."""

        def close(self) -> None:
            """End."""


__all__ = ["tqdm"]
