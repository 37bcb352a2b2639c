"""What loading a checkpoint raises."""

from __future__ import annotations

import pickle


class CheckpointError(RuntimeError):
    """A file that is no checkpoint, is damaged, or asks for something that is not allowed.

    Attributes:
        path: the file, or a description of the stream.
        offset: the byte of the file (for errors inside a pickle: of that pickle) where reading
            stopped, None if no single place is to blame.

    >>> import io, flambeau as fb
    >>> try:
    ...     fb.load(io.BytesIO(b"no checkpoint"))
    ... except fb.serialization.CheckpointError as error:
    ...     error.offset
    0
    """

    def __init__(self, message: str, path: str = "", offset: int | None = None) -> None:
        self.message = message
        self.path = path
        self.offset = offset
        place = f"{path}: " if path else ""
        where = "" if offset is None else f" (at byte {offset})"
        super().__init__(f"{place}{message}{where}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.path, self.offset)


class WeightsOnlyError(CheckpointError, pickle.UnpicklingError):
    """A pickle that contains what ``weights_only=True`` does not let in.

    It is a `pickle.UnpicklingError` too, the class that PyTorch raises here.
    """
