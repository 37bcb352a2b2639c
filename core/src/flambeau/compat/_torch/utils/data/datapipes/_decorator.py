"""Decorators of classes of data pipes."""

from __future__ import annotations

from typing import Any, TypeVar

from flambeau.compat._torch.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["functional_datapipe", "guaranteed_datapipes_determinism", "non_deterministic"]

_C = TypeVar("_C")


class functional_datapipe:  # noqa: N801 - PyTorch's name
    """Make a class a method of all pipes: ``pipe.name(…)`` is ``Class(pipe, …)``.

    Args:
        name: of the method.
        enable_df_api_tracing: accepted.
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls: _C) -> _C:
        made: Any = cls.cls if isinstance(cls, non_deterministic) else cls
        if isinstance(made, type) and issubclass(made, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(self.name, cls)
        elif isinstance(made, type) and issubclass(made, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(self.name, cls)
        else:
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe")
        return cls


class guaranteed_datapipes_determinism:  # noqa: N801 - PyTorch's name
    """A block in which pipes that are not deterministic are refused."""

    wanted = False

    def __init__(self) -> None:
        self.prev = guaranteed_datapipes_determinism.wanted
        guaranteed_datapipes_determinism.wanted = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        guaranteed_datapipes_determinism.wanted = self.prev


class non_deterministic:  # noqa: N801 - PyTorch's name
    """A class of pipes whose order may differ from run to run; or those that a function names."""

    def __init__(self, arg: Any) -> None:
        of_class = isinstance(arg, type)
        if of_class and not issubclass(arg, IterDataPipe):
            raise TypeError(
                "Only `IterDataPipe` can be decorated with `non_deterministic`, but "
                f"{arg.__name__} is found"
            )
        if not callable(arg):
            raise TypeError(f"{arg} can not be decorated by non_deterministic")
        self.cls: Any = arg if of_class else None
        self.deterministic_fn: Any = (lambda *args, **kwargs: True) if of_class else arg

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if self.cls is None:
            self.cls = args[0]
            return self
        if guaranteed_datapipes_determinism.wanted and self.deterministic_fn(*args, **kwargs):
            raise TypeError(
                f"{self.cls.__name__} is non-deterministic, but you set "
                "'guaranteed_datapipes_determinism'."
            )
        return self.cls(*args, **kwargs)
