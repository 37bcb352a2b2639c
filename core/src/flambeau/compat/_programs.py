"""What programs ask ``torch._C`` of scripts and traces: graphs, their passes, and switches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import jit
from flambeau.compat._program_checks import (
    _create_function_from_graph,
    _jit_assert_is_instance,
    _jit_check_alias_annotation,
)
from flambeau.jit import Block, Graph, Node, ScriptFunction, ScriptModule, Value, passes
from flambeau.jit import _settings as graphs
from flambeau.jit._schemas import schemas
from flambeau.jit._tracing.state import current
from flambeau.jit.passes._groups import Settings

__all__ = [
    "Block",
    "CompilationUnit",
    "Graph",
    "Node",
    "ScriptFunction",
    "ScriptModule",
    "Value",
    "_create_function_from_graph",
    "_jit_assert_is_instance",
    "_jit_check_alias_annotation",
]

CompilationUnit = jit.CompilationUnit
ExtraFilesMap = dict
JITException = jit.Error
_get_tracing_state = current
_is_tracing = jit.is_tracing


def _pass(rewrite: Callable[[Graph], Any]) -> Callable[[Graph], None]:
    def run(graph: Graph) -> None:
        rewrite(graph)

    return run


_jit_pass_inline = _pass(passes.inline)
_jit_pass_dce = _jit_pass_dce_graph = _pass(passes.eliminate_dead_code)
_jit_pass_cse = _pass(passes.eliminate_common_subexpressions)
_jit_pass_constant_propagation = _pass(passes.propagate_constants)
_jit_pass_constant_pooling = _pass(passes.pool_constants)
_jit_pass_peephole = _pass(passes.peephole)


def _jit_pass_lint(graph: Graph) -> None:
    """Graphs are checked where they are made."""


def _jit_pass_canonicalize(graph: Graph, keep_unique_names: bool = True) -> Graph:
    """A copy: names are given when a graph is printed."""
    return graph.copy()


def _jit_get_schemas_for_operator(name: str) -> list[Any]:
    """The signatures of an op."""
    return list(schemas(name))


def _jit_clear_class_registry() -> None:
    """Forget the classes of scripts: each is known to what uses it, and no name is taken."""


_settings: dict[str, Any] = {}


def _setter(name: str) -> Callable[..., Any]:
    def setter(value: object | None = None, *more: object) -> object:
        before = _settings.get(name, False)
        _settings[name] = value
        return before

    setter.__doc__ = f"Set {name}, which nothing looks at, and return what it was."
    return setter


def _getter(name: str) -> Callable[[], Any]:
    def getter() -> object:
        return _settings.get(name, False)

    getter.__doc__ = f"What {name} was set to; False at first."
    return getter


for _name in (
    "num_profiled_runs bailout_depth fusion_strategy llga_enabled "
    "tracer_state_warn te_must_use_llvm_cpu te_generate_block_code autocast_mode "
    "te_cuda_pointwise_loop_levels te_cuda_pointwise_block_count te_cuda_pointwise_block_size "
    "texpr_reductions_enabled texpr_dynamic_shape_enabled symbolic_shapes_test_mode logging_option "
    "emit_hooks"
).split():
    globals()[f"_jit_set_{_name}"] = _setter(_name)
    globals()[f"_jit_get_{_name}"] = _getter(_name)


def _jit_set_inline_everything_mode(enabled: bool) -> None:
    """Whether what is compiled from now on has, in the place of calls, what they call."""
    graphs.INLINES = bool(enabled)


def _jit_get_inline_everything_mode() -> bool:
    """What `_jit_set_inline_everything_mode` was told."""
    return graphs.INLINES


def _debug_set_autodiff_subgraph_inlining(enabled: bool) -> None:
    """Whether `graph_for` leaves out small groups: with False, one node is a group."""
    Settings.least = 5 if enabled else 1


def _jit_override_can_fuse_on_cpu(value: bool) -> bool:
    """Whether `graph_for` shows what one loop computes; the answer is what it did before."""
    before, Settings.fuses = Settings.fuses, bool(value)
    return before


def _jit_can_fuse_on_cpu() -> bool:
    """What `_jit_override_can_fuse_on_cpu` was told."""
    return Settings.fuses


_jit_texpr_fuser_enabled = _getter("texpr_fuser_enabled")
_jit_texpr_reductions_enabled = _getter("texpr_reductions_enabled")
_jit_texpr_fallback_allowed = _getter("texpr_fallback_allowed")
_jit_texpr_set_fallback_allowed = _setter("texpr_fallback_allowed")
