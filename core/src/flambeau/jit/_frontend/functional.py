"""`nn.functional` as programs of the language itself.

A scripted program that calls `nn.functional.relu` calls what is written here, so that its graph and
its archive are made of the ops that every reader of archives has.
"""

from __future__ import annotations

import sys
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from flambeau.jit import _settings
from flambeau.jit import _types as T
from flambeau.jit._decorators import plain
from flambeau.jit._frontend import values as V
from flambeau.jit._frontend.match import call_op
from flambeau.jit._frontend.source import pieces
from flambeau.jit._parts import compiler

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau.jit._frontend.function import Declaration, ScriptFunction
    from flambeau.jit._frontend.values import FunctionRef
    from flambeau.jit._types import Type


def _functions() -> dict[str, ScriptFunction]:
    grid = sys.modules.get("flambeau.nn.functional.grid")
    return _made(getattr(grid, "ALIGNS_CORNERS", False))


@cache
def _made(aligns: bool) -> dict[str, ScriptFunction]:
    ScriptFunction = compiler.function.ScriptFunction
    declarations = compiler.function.declarations
    Resolver = compiler.resolve.Resolver

    found: dict[str, ScriptFunction] = {}

    def lookup(name: str) -> FunctionRef | None:
        function = found.get(name)
        return V.FunctionRef(function) if function is not None else None

    names = {"torch": V.AtenNamespace(), "ALIGNS_CORNERS": aligns, **V.language()}
    resolver = Resolver(names, scripted=lookup, known=False)
    text = files("flambeau.jit").joinpath("functional.txt").read_text("utf-8")
    prefix = "__torch__.torch.nn.functional."

    def declared(name: str, part: str) -> Declaration:
        return declarations(part, resolver, "<functional>", prefix)[name]

    for name, part in pieces(text).items():
        found[name] = ScriptFunction(name, prefix + name, partial(declared, name, part))
    return found


@cache
def _by_identity() -> dict[int, str]:
    places = [sys.modules["flambeau.nn.functional"], sys.modules.get("flambeau.nn.modules.utils")]
    return {
        id(plain(getattr(place, name))): name
        for place in places
        for name in _functions()
        if hasattr(place, name)
    }


_CHOICES = {
    "max_pool1d": ("return_indices", 6),
    "max_pool2d": ("return_indices", 6),
    "max_pool3d": ("return_indices", 6),
    "adaptive_max_pool1d": ("return_indices", 2),
    "adaptive_max_pool2d": ("return_indices", 2),
    "adaptive_max_pool3d": ("return_indices", 2),
    "fractional_max_pool2d": ("return_indices", 4),
    "fractional_max_pool3d": ("return_indices", 4),
}


class Choice(V.Sugar):
    """A function that is one of two, as an argument that is a constant says."""

    what = "function"

    def __init__(self, name: str) -> None:
        self.name = name

    def call(self, c: Any, node: Any, args: Any, kwargs: Any) -> Any:
        chooser, place = _CHOICES[self.name]
        given = kwargs.get(chooser)
        if given is None and len(args) > place:
            given = args[place]
        chosen = False
        if given is not None:
            static = given.toIValue()
            if not isinstance(static, bool):
                c.fail(node, f"{chooser} of {self.name} has to be a constant")
            chosen = static
        name = f"{self.name}_with_indices" if chosen else f"_{self.name}"
        return V.FunctionRef(_functions()[name]).call(c, node, args, kwargs)


class Resampling(V.Sugar):
    """`interpolate` as one op."""

    what = "function"

    def call(self, c: Any, node: Any, args: Any, kwargs: Any) -> Any:
        given = dict(zip(_RESAMPLING, args, strict=False)) | kwargs
        factor = given.get("scale_factor")
        if factor is not None and factor.type() is T.INT:
            given["scale_factor"] = call_op(c, "aten::Float", [factor])
        return V.Builtin("aten::__interpolate").call(c, node, (), given)


_RESAMPLING = "input size scale_factor mode align_corners recompute_scale_factor antialias".split()


def scripted(function: Callable[..., Any]) -> V.Sugar | None:
    """What a function of `nn.functional` is in a program, or None."""
    if "flambeau.nn.functional" not in sys.modules:
        return None
    name = getattr(function, "__name__", "")
    functional = sys.modules["flambeau.nn.functional"]
    if name in _CHOICES and plain(getattr(functional, name)) is function:
        return Choice(name)
    found = _by_identity().get(id(function))
    if found in ("interpolate", "upsample") and _settings.RESAMPLES_WHOLE:
        return Resampling()
    return V.FunctionRef(_functions()[found]) if found is not None else None


def types_of_arguments(name: str) -> dict[str, Type]:
    """The types of a function's arguments, by their names; of a choice between two, none."""
    if name in _CHOICES:
        return {}
    return {argument.name: argument.type for argument in _functions()[name].schema.arguments}


def choice(name: str) -> V.Sugar:
    """A function of `nn.functional` by name."""
    return Choice(name) if name in _CHOICES else V.FunctionRef(_functions()[name])
