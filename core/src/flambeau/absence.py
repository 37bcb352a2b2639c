"""Names of PyTorch that flambeau has not: whoever asks for one is told what to use instead.

`absence.txt` lists them: a paragraph is what to do, and then the names, module by module.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, NoReturn

__all__ = ["Absent", "instead", "tell"]


@cache
def _table() -> dict[str, dict[str, str]]:
    """What to do, by module and name."""
    from importlib.resources import files  # only errors need it

    found: dict[str, dict[str, str]] = {}
    text = files("flambeau").joinpath("absence.txt").read_text("utf-8")
    for paragraph in text.strip().split("\n\n"):
        advice, _, rest = paragraph.partition("\n")
        module = ""
        for word in rest.split():
            if word.endswith(":"):
                module = word[:-1].replace("torch", "flambeau", 1)
            else:
                found.setdefault(module, {})[word] = advice
    return found


class Absent:
    """An attribute that PyTorch's tensors have and a class has not, which says what to use instead.

    A `__getattr__` of the class would say it of any name, and turn off the interpreter's
    specialised reads of all others.  Values set on an instance come first.

    >>> import flambeau as fb
    >>> fb.ones(2).to_mkldnn()
    Traceback (most recent call last):
    AttributeError: 'Tensor' object has no attribute 'to_mkldnn': PyTorch has it, and it is not in \
flambeau; instead: which library computes is the backend's matter; call the function without its \
name, as in `conv2d`
    """

    __slots__ = ("name",)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        if instance is None:
            start = f"type object {owner.__name__!r} has no attribute {self.name!r}"
        else:
            start = f"{owner.__name__!r} object has no attribute {self.name!r}"
        advice = instead("flambeau.Tensor", self.name)
        text = f"{start}: PyTorch has it, and it is not in flambeau; instead: {advice}"
        raise AttributeError(text, name=self.name, obj=owner if instance is None else instance)


def instead(module: str, name: str) -> str | None:
    """What to use instead of a name that PyTorch has and flambeau has not; None for any other.

    >>> from flambeau.absence import instead
    >>> instead("flambeau", "lobpcg")
    '`flambeau.linalg.eigh`'
    """
    return _table().get(module, {}).get(name)


def tell(module: str) -> None:
    """Let a module that was just written say it of the names that it lacks.

    Args:
        module: its name.

    >>> import flambeau as fb
    >>> fb.lobpcg
    Traceback (most recent call last):
    AttributeError: module 'flambeau' has no attribute 'lobpcg': PyTorch has it, and it is not in \
flambeau; instead: `flambeau.linalg.eigh`
    """
    namespace = vars(sys.modules[module])
    own = namespace.get("__getattr__")

    def missing(name: str) -> Any:
        start = f"module {module!r} has no attribute {name!r}"
        error = AttributeError(start, name=name, obj=sys.modules[module])
        if own is not None:
            try:
                return own(name)
            except AttributeError as raised:
                error = raised
        if (advice := instead(module, name)) is not None:
            text = f"{start}: PyTorch has it, and it is not in flambeau; instead: {advice}"
            raise AttributeError(text) from None
        raise error

    namespace["__getattr__"] = missing
