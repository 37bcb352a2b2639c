"""Names of ``torch.overrides`` that only programs for PyTorch want."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["TorchFunctionMode"]


class TorchFunctionMode:
    """A block in which all functions are seen: it can be made and is refused when it begins.

    Raises:
        NotImplementedError: it begins.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))

    def __enter__(self) -> NoReturn:
        raise NotImplementedError(
            f"{type(self).__name__}: functions are seen by classes of tensors with "
            "__torch_function__, not by modes"
        )

    def __exit__(self, *exc: object) -> None:
        pass
