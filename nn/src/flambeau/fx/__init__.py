"""Programs as graphs of Python calls, which passes may read, change and run.

`symbolic_trace` runs a module once with `Proxy` objects for its inputs and notes what is done with
them in a `Graph` of `Node`\\ s; a `GraphModule` turns a graph into code of Python again and is a
module like any other.  `Interpreter` runs a graph node by node, `Transformer` writes another one
as it goes, `replace_pattern` exchanges parts of one.

>>> import flambeau as fb
>>> from flambeau import fx, nn
>>> traced = fx.symbolic_trace(nn.Sequential(nn.Linear(3, 4), nn.ReLU()))
>>> print(traced.graph)
graph():
    %input_1 : [num_users=1] = placeholder[target=input]
    %_0 : [num_users=1] = call_module[target=0](args = (%input_1,), kwargs = {})
    %_1 : [num_users=1] = call_module[target=1](args = (%_0,), kwargs = {})
    return _1
"""

from flambeau.fx import passes, subgraph_rewriter
from flambeau.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from flambeau.fx.graph import CodeGen, Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.interpreter import Interpreter, Transformer
from flambeau.fx.node import Node, has_side_effect, map_arg
from flambeau.fx.proxy import Proxy
from flambeau.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "passes",
    "replace_pattern",
    "subgraph_rewriter",
    "symbolic_trace",
    "wrap",
]
