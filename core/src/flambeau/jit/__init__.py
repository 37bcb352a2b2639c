"""TorchScript: programs as typed graphs, which run, are printed, saved and read.

`script` compiles the source of a function or module.  The names are those of PyTorch's `torch.jit`.

>>> import flambeau as fb
>>> @fb.jit.script
... def f(x, n: int):
...     for _ in range(n):
...         x = x * 2
...     return x
>>> f(fb.ones(1), 3)
tensor([8.])
>>> print(f.code)
def f(x: Tensor,
    n: int) -> Tensor:
  x0 = x
  for _0 in range(n):
    x1 = torch.mul(x0, 2)
    x0 = x1
  return x0
<BLANKLINE>
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from flambeau.absence import tell as _tell

if TYPE_CHECKING:
    from flambeau.jit import passes as passes
    from flambeau.jit._archive import load as load
    from flambeau.jit._archive import save as save
    from flambeau.jit._decorators import _overload as _overload
    from flambeau.jit._decorators import _overload_method as _overload_method
    from flambeau.jit._decorators import export as export
    from flambeau.jit._decorators import ignore as ignore
    from flambeau.jit._decorators import script_if_tracing as script_if_tracing
    from flambeau.jit._decorators import unused as unused
    from flambeau.jit._freeze import freeze as freeze
    from flambeau.jit._freeze import optimize_for_inference as optimize_for_inference
    from flambeau.jit._freeze import run_frozen_optimizations as run_frozen_optimizations
    from flambeau.jit._frontend.annotations import Future as Future
    from flambeau.jit._frontend.classes import interface as interface
    from flambeau.jit._frontend.function import ScriptFunction as ScriptFunction
    from flambeau.jit._frontend.isinstance import isinstance as isinstance
    from flambeau.jit._frontend.source import CompilationError as CompilationError
    from flambeau.jit._frontend.source import Error as Error
    from flambeau.jit._graph import Block as Block
    from flambeau.jit._graph import Graph as Graph
    from flambeau.jit._graph import Node as Node
    from flambeau.jit._graph import Value as Value
    from flambeau.jit._modules import RecursiveScriptModule as RecursiveScriptModule
    from flambeau.jit._modules import ScriptModule as ScriptModule
    from flambeau.jit._modules import script_method as script_method
    from flambeau.jit._script import Attribute as Attribute
    from flambeau.jit._script import CompilationUnit as CompilationUnit
    from flambeau.jit._script import _unwrap_optional as _unwrap_optional
    from flambeau.jit._script import annotate as annotate
    from flambeau.jit._script import export_opnames as export_opnames
    from flambeau.jit._script import fork as fork
    from flambeau.jit._script import is_scripting as is_scripting
    from flambeau.jit._script import is_tracing as is_tracing
    from flambeau.jit._script import script as script
    from flambeau.jit._script import wait as wait
    from flambeau.jit._trace import TopLevelTracedModule as TopLevelTracedModule
    from flambeau.jit._trace import TracingCheckError as TracingCheckError
    from flambeau.jit._trace import _get_trace_graph as _get_trace_graph
    from flambeau.jit._trace import trace as trace
    from flambeau.jit._trace import trace_module as trace_module
    from flambeau.jit._tracing.state import TracerWarning as TracerWarning

_HOMES = {
    "_frontend.annotations": "Future",
    "_archive": "load save",
    "_frontend.classes": "interface",
    "_decorators": "_overload _overload_method export ignore script_if_tracing unused",
    "_frontend.function": "ScriptFunction",
    "_freeze": "freeze optimize_for_inference run_frozen_optimizations",
    "_graph": "Block Graph Node Value",
    "_frontend.isinstance": "isinstance",
    "_modules": "RecursiveScriptModule ScriptModule script_method",
    "_script": """Attribute CompilationUnit _unwrap_optional annotate export_opnames fork
        is_scripting is_tracing script wait""",
    "_frontend.source": "CompilationError Error",
    "_trace": "TopLevelTracedModule TracingCheckError _get_trace_graph trace trace_module",
    "_tracing.state": "TracerWarning",
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}
_ALIASES = {"_fork": "fork", "_wait": "wait", "_isinstance": "isinstance", "_drop": "unused"}
_ALIASES["_script_if_tracing"] = "script_if_tracing"

__all__ = ["Final", *sorted(name for name in _NAMES if not name.startswith("_"))]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        own = _ALIASES.get(name, name)
        if own in _NAMES:
            value = getattr(importlib.import_module(f"{__name__}.{_NAMES[own]}"), own)
            globals()[name] = value
            return value
        if name == "passes":
            return importlib.import_module(f"{__name__}.passes")
        if name == "Tensor":
            return importlib.import_module("flambeau").Tensor
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_tell(__name__)
