"""Names of PyTorch that flambeau has not: whoever asks for one is told what to use instead.

`absence.txt` lists them: a paragraph is what to do, and then the names, module by module.
"""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType
from typing import NoReturn

__all__ = ["Absent", "Imports", "instead", "tell", "unknown"]


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


class _Near:
    """What the interpreter lists to suggest a name: of more than 750 names it suggests none."""

    def __init__(self, module: ModuleType, name: str) -> None:
        self._module, self._name = module, name

    def __dir__(self) -> list[str]:
        from difflib import get_close_matches  # only tracebacks need it

        return get_close_matches(self._name, dir(self._module), n=20, cutoff=0.5)


def unknown(module: ModuleType, name: str, text: str) -> AttributeError:
    """The error of a name that a module has not: tracebacks end with the name that was meant.

    The names are looked through when a traceback is printed, so that `hasattr` costs what it did.

    Args:
        module: where the name was looked for.
        name: that name.
        text: what the error says.

    >>> from flambeau import absence, nn
    >>> error = absence.unknown(nn, "Lineer", "no Lineer")
    >>> error.name, "Linear" in dir(error.obj)
    ('Lineer', True)
    """
    return AttributeError(text, name=name, obj=_Near(module, name))


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
    written = sys.modules[module]
    own = vars(written).get("__getattr__")

    def missing(name: str) -> object:
        text = f"module {module!r} has no attribute {name!r}"
        if own is not None:
            try:
                return own(name)
            except AttributeError as raised:
                if str(raised) != text:
                    raise
        if (advice := instead(module, name)) is not None:
            text += f": PyTorch has it, and it is not in flambeau; instead: {advice}"
        raise unknown(written, name, text) from None

    vars(written)["__getattr__"] = missing


class Imports:
    """A finder of modules that finds none, and says of those that PyTorch has what to use instead.

    It is asked last.  Whoever only asks whether there is such a module gets no for an answer.

    >>> import flambeau.export
    Traceback (most recent call last):
    ModuleNotFoundError: No module named 'flambeau.export': PyTorch has it, and it is not in \
flambeau; instead: programs are not exported that way; `flambeau.onnx.export`, \
`flambeau.jit.save` and `flambeau.save` write files
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Nothing, ever; see `importlib.abc.MetaPathFinder`."""
        home, _, last = name.rpartition(".")
        if not name.startswith("flambeau.") or (advice := instead(home, last)) is None:
            return
        frame, callers = sys._getframe(1), set[str]()
        while frame is not None and "importlib" in frame.f_code.co_filename:
            callers.add(frame.f_code.co_name)
            frame = frame.f_back
        said = f"PyTorch has it, and it is not in flambeau; instead: {advice}"
        if "_handle_fromlist" in callers:
            raise ImportError(f"cannot import name {last!r} from {home!r}: {said}", name=home)
        if "_find_and_load" in callers:
            raise ModuleNotFoundError(f"No module named {name!r}: {said}", name=name)

    @classmethod
    def install(cls) -> None:
        """Be asked, once however often flambeau is imported."""
        known = [f"{f.__module__}.{f.__qualname__}" for f in sys.meta_path if isinstance(f, type)]
        if f"{cls.__module__}.{cls.__qualname__}" not in known:
            sys.meta_path.append(cls)
