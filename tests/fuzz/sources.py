"""Programs about programs: sources that are scripted, traced and exported, and jobs of one process.

What they read is text of functions whose syntax was changed: other types, operators, constants,
statements that no language of graphs has, and expressions nested more deeply than anybody writes.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable, Sequence

from hostile import NUMBERS, OBJECTS, SEQUENCES, TENSORS, hostile

FUNCTIONS = """
def f(x, n: int = 2):
    return x * n + 1
---
def f(x: Tensor, y: Optional[Tensor] = None) -> Tensor:
    if y is not None:
        return x + y
    return x.relu()
---
def f(x, n: int = 3):
    total = x.sum()
    for i in range(3):
        if i == n:
            continue
        if i > 5:
            break
        total = total + i * x[0].sum()
    return total
---
def f(xs: List[Tensor], scale: float = 0.5) -> Tuple[Tensor, int]:
    made = [x * scale for x in xs]
    made.append(torch.ones(3))
    return torch.cat([x.reshape(-1) for x in made]), len(made)
---
def f(words: Dict[str, int], key: str = "a") -> int:
    if key in words:
        words[key] += 1
    else:
        words[key] = 0
    return words[key] + len(words.keys())
---
def f(x):
    a, (b, c) = x.shape[0], (x.dim(), x.size(-1))
    assert a > 0, f"empty: {a}"
    return x.view(a, -1)[:, :c], a // b, a % c
---
def f(text: str, n: int) -> List[str]:
    parts = text.split(",")
    return [p.upper() + str(i) for i, p in enumerate(parts) if len(p) > n]
---
def f(x, flag: bool):
    try_it = not flag or x.sum().item() > 0
    y = x if try_it else -x
    y[0] = 1.0
    y += y.t() @ y if y.dim() == 2 else y
    return y.max(dim=0)[0], y.topk(1)
---
def f(x, w):
    h = torch.nn.functional.linear(x, w)
    h = torch.nn.functional.dropout(h, 0.5, False)
    return torch.softmax(h, dim=-1).sum(), h.mean((0, -1), keepdim=True)
---
def f(x: Union[int, Tensor], y: Any) -> float:
    if isinstance(x, int):
        return float(x)
    if torch.jit.isinstance(y, List[int]):
        return float(y[0])
    return 0.0
---
def f(n: int):
    values: List[Tuple[int, float]] = []
    for i, j in zip(range(3), [1.0, 2.0, 3.0]):
        values.append((i * n, j ** 2))
    values.sort()
    return values[::-1], min(n, 3), abs(-n), divmod(n, 2)[0] if n != 0 else 0
---
def f(x):
    with torch.no_grad():
        y = x.exp()
    print("y", y.shape, 1.5)
    del y
    return torch.stack([x, x]).permute(2, 0, 1).contiguous()
---
def f(x, i: int = 0):
    return x[i], x[..., None], x[:, 1:], x[-1:, ::2], x[x > 0], x[torch.tensor([0, 1])]
---
def f(x):
    fut = torch.jit.fork(g, x)
    return torch.jit.wait(fut)
def g(x):
    return x + 1
---
def f(x):
    return (g(x), g(x, 3))
def g(x, n: int = 1):
    if n <= 0:
        return x
    return x.to(torch.float64) * n
---
def f(x, n: int):
    a = torch.zeros([n, 2], dtype=torch.int64, device=x.device)
    b = torch.arange(n)
    c = torch.tensor([[1, 2], [3, n]])
    return a, b, c, torch.rand_like(x), torch.empty(0).numel()
---
def f(a: int, b: float, c: complex, d: bool, e: str):
    return a + b, a * b, a / (a + 1), -a, ~a, a & 3, a | 1, a ^ 2, c * 2, d and not d, e * 2, e[0]
""".strip().split("\n---\n")
"""Functions of the language of scripts."""

STATEMENTS = r"""
yield x
yield from x
await x
global x
nonlocal x
raise ValueError("no")
raise x
return
return x, x, x
pass
import os
x = lambda y: y
x = (y := x)
x = [*x, *x]
x, *y = x
x.data = x
x[0] = x[1] = x
x: int = "a"
x: Undefined = x
x @= x
x //= 0
x = x if x else y
x = {**x}
x = {1: x, "a": 2}
x = {x, x}
x = f"{x!r:>{x}}"
x = x[...][None][1:2:3][x]
x = x < x <= x != x
x = x is None is not None
x = not not not x
x = undefined
x = torch.undefined(x)
x = torch.ops.aten.add(x, x)
x = torch.ops.nothing.at_all(x)
x = x.__class__.__bases__
x = f
x = f(x)
x = f(x, x, x, x, x, x)
x = f(n=x, n2=x)
x = f(*x, **x)
x = super().f(x)
x = self.x
x = eval("x")
x = open("x")
x = torch.load("x")
x = __import__("os")
x = print
x = range(3)
x = [i for i in x for j in x if i]
x = [i async for i in x]
x = {i: j for i, j in x}
x = ()
x = []
x = {}
x = List[int]
x = torch.jit.annotate(List[int], x)
x = torch.jit.annotate(x, x)
x = int("x")
x = int(x) + float(x) + bool(x)
x = "".join(["a", 1])
x = "{} {}".format(x)
x = "%d" % x
x = "abc"[5]
x = [1, 2][7]
x = (1, "a")[x]
x = (1, "a")[2]
x = 1 // 0
x = 1 % 0
x = 1.0 / 0.0
x = 2 ** 70
x = 9223372036854775807 + 1
x = 99999999999999999999999
x = 1e400
x = -9223372036854775808
x = b"x"
x = ...
x = 1j
x = "\ud800"
x = None
del x
assert x
assert x, x
assert 0, "never"
def g(x): return x
class C: pass
async def g(x): return x
for x in x: pass
for x in 5: x
for x, y in [1, 2]: pass
for i in [1, "a"]: x = i
for i in (1, "a"): x = i
for x.y in x: pass
for i in range(2): break
for i in range(2, 0, 0): pass
if x: y = 1
if x is None: x = 1
while False: x = 1
with x: pass
with x as y, y as x: pass
with torch.undefined(): pass
try: x\nexcept: pass
match x:\n    case [1, *_]: y = 1
x = torch.nn.Linear(2, 2)(x)
x = torch.nn.functional.interpolate(x, scale_factor=2.0)
x = x.shape[100]
x = x.size(7) + x.nothing
x = torch.zeros([2**31, 2**31, 2**31])
x = torch.jit.fork(torch.sin, x)
x = torch.jit.fork(x)
x = torch.jit.wait(x)
x = isinstance(x, (int, List[int]))
x = hasattr(x, x)
x = getattr(x, "y")
x = sorted([x, x])
x = max([])
x = sum(["a"])
x = list(zip([1], "a"))
x = enumerate(x)
x = dict(a=1)
x = chr(-1)
x = ord("ab")
x = hex(x)
""".strip().splitlines()
"""What else may stand in a function."""

TYPES = """
int float bool str complex None Any Tensor torch.Tensor Number number List List[int] List[Tensor]
list[int] Dict[str,Tensor] Dict[Tensor,int] Dict Tuple Tuple[()] Tuple[int,...] Tuple[int,str]
Optional[int] Optional Union[int,str] Union Undefined "int" List["int"] Final[int] Callable type
torch.device torch.dtype torch.nothing Future[int] Set[int] x.y[1] 1 ... List[List[List[int]]]
Generator Optional[Optional[int]] int|None List[int,int]
""".split()
"""Annotations, of which some are types."""

ARGUMENTS = [
    *("fb.ones(2, 3)", "fb.rand(2, 3)", "fb.ones(3)", "fb.tensor(2.0)", "fb.zeros(0)"),
    *("1", "0", "-3", "2.5", "True", '"a,bc"', "[1, 2]", '{"a": 1}', "[fb.ones(2)]", "None", "1j"),
]

FITTING = {
    "Tensor": ["fb.ones(2, 3)", "fb.rand(2, 3)", "fb.ones(3, 3)", "fb.tensor(2.0)"],
    "int": ["1", "0", "-3", "2"],
    "float": ["2.5", "0.0"],
    "bool": ["True", "False"],
    "str": ['"a,bc"', '""'],
    "List[Tensor]": ["[fb.ones(2), fb.ones(3)]", "[]"],
    "Dict[str, int]": ['{"a": 1}', "{}"],
    "Any": ["[1, 2]", "None", "1"],
}
"""Arguments by annotation."""

USES: dict[str, str] = {
    "CompilationUnit": "u = fb.jit.CompilationUnit(SOURCE)\nr = u.f({args})",
    "code": "u = fb.jit.CompilationUnit(SOURCE)\nr = u.f.code, str(u.f.graph), u.f.schema",
    "script": "{source}\nu = fb.jit.script(f)\nr = u({args})",
    "script module": (
        "{source}\nclass M(fb.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = {odd}\n        self.w = fb.nn.Linear(3, 2)\n{method}\n"
        "u = fb.jit.script(M())\nr = u({args})"
    ),
    "define": (
        "class M(fb.jit.ScriptModule):\n    pass\nm = M()\nm.a = {odd}\nm.define(METHOD)\n"
        "r = m.f({args})"
    ),
    "trace": "{source}\nu = fb.jit.trace(f, {args_tuple})\nr = u({args})",
    "trace_module": "r = fb.jit.trace_module(fb.nn.Linear(3, 2), {{{odd}: {odd_2}}})",
    "freeze": (
        "{source}\nclass M(fb.nn.Module):\n    pass\nm = M()\nm.__class__.forward = "
        "lambda self, *a: f(*a)\nu = fb.jit.freeze(fb.jit.trace(m.eval(), {args_tuple}))\n"
        "r = u({args})"
    ),
    "archive": (
        "import io\n{source}\nb = io.BytesIO()\nfb.jit.save(fb.jit.script(f), b)\nb.seek(0)\n"
        "r = fb.jit.load(b)({args})"
    ),
    "symbolic_trace": "{source}\nu = fb.fx.symbolic_trace(f)\nu.graph.lint()\nr = u({args})",
    "concrete arguments": (
        "{source}\nu = fb.fx.symbolic_trace(f, concrete_args={{'x': {odd}}})\nr = u({args})"
    ),
    "fx graph": (
        "{source}\nu = fb.fx.symbolic_trace(f)\nn = list(u.graph.nodes)[{number}]\n"
        "n.{attribute} = {odd}\nu.graph.lint()\nu.recompile()\nr = u({args})"
    ),
    "interpreter": (
        "{source}\nu = fb.fx.symbolic_trace(f)\nr = fb.fx.Interpreter(u).run({args}, {odd})"
    ),
    "replace_pattern": (
        "{source}\nu = fb.fx.symbolic_trace(f)\nr = fb.fx.replace_pattern(u, {odd}, lambda x: x)"
    ),
    "onnx export": (
        "import io\n{source}\nclass M(fb.nn.Module):\n    forward = lambda self, *a: f(*a)\n"
        "b = io.BytesIO()\nfb.onnx.export(M(), {args_tuple}, b, opset_version={opset})\n"
        "b.seek(0)\nr = fb.onnx.load(b)({args})"
    ),
    "onnx export of a script": (
        "import io\n{source}\nr = fb.onnx.export(fb.jit.script(f), {args_tuple}, io.BytesIO())"
    ),
    "onnx options": (
        "import io\nr = fb.onnx.export(fb.nn.Linear(3, 2), (fb.ones(2, 3),), io.BytesIO(), "
        "{option}={odd}, {option_2}={odd_2})"
    ),
    "onnx of layers": (
        "import io\nm = fb.nn.{layer}\nr = fb.onnx.export(m, ({tensor},), io.BytesIO())"
    ),
    "compile": "{source}\nu = fb.compile(f)\nr = u({args})",
    "store": (
        "from datetime import timedelta\ns = fb.distributed.{store}\n"
        "s.set_timeout(timedelta(seconds=0.1))\ns.set('a', '1')\nr = s.{store_call}"
    ),
    "group of one": (
        "s = fb.distributed.HashStore()\nfb.distributed.init_process_group('gloo', store=s, "
        "rank=0, world_size=1)\nr = fb.distributed.{collective}"
    ),
    "init_process_group": (
        "s = fb.distributed.HashStore()\nr = fb.distributed.init_process_group({odd}, store=s, "
        "{group_option}={odd_2}, rank=0, world_size=1)"
    ),
    "cpp_extension": "r = fb.utils.cpp_extension.{extension}",
}  # fmt: skip
"""What is done with a source or a job, by name; the last statement assigns to `r`."""

LAYERS = """
Linear(3, 2)
Conv2d(3, 2, 2, padding="same")
ConvTranspose1d(3, 2, 2, output_padding=0)
LSTM(3, 4, 2, bidirectional=True, batch_first=True)
GRU(4, 3)
BatchNorm2d(3)
LayerNorm((3, 4))
GroupNorm(1, 3)
MultiheadAttention(4, 2)
TransformerEncoderLayer(4, 2, 8)
Embedding(5, 3)
MaxPool2d(2, ceil_mode=True)
AdaptiveAvgPool2d((1, 1))
Upsample(scale_factor=2.0, mode="bilinear")
PixelShuffle(1)
Softmax(dim=7)
CrossEntropyLoss()
Fold((4, 5), (2, 2))
Bilinear(3, 3, 2)
Sequential()
ModuleList([])
Flatten(0, 7)
PReLU(3)
""".strip().splitlines()

COLLECTIVES = """
all_reduce({0}, op={1})
broadcast({0}, src={1})
broadcast({0}, 0, {1})
reduce({0}, {1})
all_gather({0}, {1})
all_gather([{0}], {0})
all_gather_into_tensor({0}, {1})
gather({0}, [{1}])
scatter({0}, [{1}])
scatter({0}, {1})
reduce_scatter({0}, [{1}])
reduce_scatter_tensor({0}, {1})
all_to_all([{0}], [{1}])
all_to_all_single({0}, {1}, {2}, {2})
all_gather_object({0}, {1})
all_gather_object([None], {0})
broadcast_object_list({0}, {1})
gather_object({0}, {1})
scatter_object_list({0}, {1}, {2})
monitored_barrier({0})
barrier({0})
barrier(device_ids={0})
new_group({0})
new_group([0], {0})
new_subgroups({0})
new_subgroups_by_enumeration({0})
get_rank({0})
get_world_size({0})
get_global_rank({0}, {1})
get_group_rank({0}, {1})
get_process_group_ranks({0})
get_backend({0})
batch_isend_irecv({0})
batch_isend_irecv([{0}])
P2POp({0}, {1}, {2})
ReduceOp({0})
send({0}, {1})
recv({0}, {1})
isend({0}, {1}, {2})
all_reduce_coalesced({0})
all_reduce_coalesced([{0}, {1}])
destroy_process_group({0})
""".strip().splitlines()

STORE_CALLS = """
get({0})
set({0}, {1})
add({0}, {1})
add("a", {0})
check({0})
check([{0}])
compare_set({0}, {1}, {2})
compare_set("a", {0}, {1})
delete_key({0})
num_keys()
wait({0})
wait([{0}])
wait(["a"], {0})
set_timeout({0})
append({0}, {1})
multi_get({0})
multi_set({0}, {1})
queue_push({0}, {1})
clone()
timeout
""".strip().splitlines()

STORES = ["HashStore()", "HashStore()", "PrefixStore({0}, fb.distributed.HashStore())"]

EXTENSIONS = """
CppExtension({0}, {1})
CppExtension("a", {0}, {1})
CppExtension("a", ["b.cpp"], extra_compile_args={0})
CUDAExtension("a", {0})
include_paths({0})
library_paths({0})
load({0}, {1})
load("a", {0})
load("a", ["b.cpp"], extra_cflags={0})
load("a", ["b.cpp"], build_directory={0})
load("a", ["b.cpp"], extra_include_paths={0}, extra_ldflags={1})
load_inline({0}, "")
load_inline("a", {0})
load_inline("a", "", functions={0})
load_inline("a", "", cuda_sources={0})
load_inline("a", "", extra_cflags={0})
load_inline("a", "", extra_ldflags={0})
load_inline("a", "", extra_include_paths={0})
load_inline("a", "", is_python_module={0}, with_cuda={1})
check_compiler_abi_compatibility({0})
BuildExtension.with_options(use_ninja={0})
""".strip().splitlines()

OPTIONS = """
input_names output_names dynamic_axes opset_version training do_constant_folding verbose
export_params keep_initializers_as_inputs custom_opsets export_modules_as_functions kwargs
operator_export_type dynamic_shapes
""".split()


def program(chance: random.Random, use: str) -> str:
    """A program of one of the `USES`."""
    source = changed(chance, chance.choice(FUNCTIONS))
    if chance.random() < 0.03:
        source = deep(chance)
    args = ", ".join(_argument(chance, kind) for kind in _kinds(source))
    body = "\n".join("    " + line for line in source.splitlines())
    given = [_hostile(chance) for _ in range(3)]

    def line(pool: Sequence[str]) -> str:
        return chance.choice(pool).format(*given)

    text = USES[use].format(
        args=args,
        args_tuple=f"({args},)" if args else "()",
        source=source,
        method=body.replace("def f(", "def forward(self, "),
        odd=given[0],
        odd_2=given[1],
        number=chance.choice((0, 1, -1)),
        attribute=chance.choice(("args", "kwargs", "target", "op", "name", "meta", "graph")),
        opset=chance.choice((9, 11, 13, 17, 18, 23)),
        option=chance.choice(OPTIONS[:7]),
        option_2=chance.choice(OPTIONS[7:]),
        layer=chance.choice(LAYERS),
        tensor=chance.choice(TENSORS),
        store=line(STORES),
        store_call=line(STORE_CALLS),
        collective=line(COLLECTIVES),
        group_option=chance.choice(("timeout", "init_method", "group_name", "device_id")),
        extension=line(EXTENSIONS),
    )
    method = source.replace("def f(", "def f(self, ")
    return f"SOURCE = {source!r}\nMETHOD = {method!r}\n{_names(use)}{text}\n"


def _names(use: str) -> str:
    if use in ("cpp_extension", "store", "group of one", "init_process_group"):
        return ""
    return "from typing import *\ntorch = fb\nfrom flambeau import Tensor\n".replace(
        "from flambeau import Tensor", "Tensor = fb.Tensor"
    )


def _argument(chance: random.Random, kind: str) -> str:
    if chance.random() < 0.15:
        return _hostile(chance)
    like = FITTING.get(kind)
    return chance.choice(like if like and chance.random() < 0.8 else ARGUMENTS)


def _hostile(chance: random.Random) -> str:
    return f"({hostile(chance)})"


def _kinds(source: str) -> list[str]:
    """The annotations of the first function's arguments; ``Tensor`` where there is none."""
    try:
        first = ast.parse(source).body[0]
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        return ["Tensor"]
    if not isinstance(first, ast.FunctionDef):
        return ["Tensor"]
    return [ast.unparse(a.annotation) if a.annotation else "Tensor" for a in first.args.args]


def deep(chance: random.Random) -> str:
    """A function that is nested, long or wide beyond what anybody writes."""
    many = chance.choice((50, 200, 1000, 5000))
    kind = chance.randrange(7)
    if kind == 0:
        return f"def f(x):\n    return {'(' * min(many, 150)}x{')' * min(many, 150)}"
    if kind == 1:
        return f"def f(x):\n    return {' + '.join(['x'] * many)}"
    if kind == 2:
        pads = (" " * i + "if x.sum() > 0:" for i in range(4, min(many, 80)))
        return "def f(x):\n" + "\n".join(pads) + "\n" + " " * 90 + "x = x + 1\n    return x"
    if kind == 3:
        return "def f(x):\n" + "    x = x + 1\n" * many + "    return x"
    if kind == 4:
        return f"def f(x):\n    return {'not ' * many}x"
    if kind == 5:
        return f"def f(x: {'List[' * min(many, 180)}int{']' * min(many, 180)}):\n    return x"
    return f"def f(x):\n    return [{', '.join(['x', '1'] * many)}]"


def changed(chance: random.Random, text: str) -> str:
    """The text of a function with a few parts of its syntax changed."""
    tree = ast.parse(text)
    for _ in range(chance.choice((0, 0, 1, 1, 1, 1, 2, 2, 3, 5))):
        chance.choice(_CHANGES)(chance, tree)
    try:
        found = ast.unparse(ast.fix_missing_locations(tree))
    except (ValueError, RecursionError, AttributeError, TypeError):
        return text
    if chance.random() < 0.03:
        at = chance.randrange(len(found))
        found = (
            found[:at] + chance.choice(("", "\t", "\0", "é", "\n", ")", '"', "#")) + found[at + 1 :]
        )
    return found


def _bodies(tree: ast.AST) -> list[list[ast.stmt]]:
    bodies: list[object] = [getattr(node, "body", None) for node in ast.walk(tree)]
    return [body for body in bodies if isinstance(body, list)][1:]


def _insert(chance: random.Random, tree: ast.AST) -> None:
    body = chance.choice(_bodies(tree) or [[]])
    made = ast.parse(chance.choice(STATEMENTS).replace("\\n", "\n")).body
    body[(at := chance.randrange(len(body) + 1)) : at] = made


def _remove(chance: random.Random, tree: ast.AST) -> None:
    body = chance.choice(_bodies(tree) or [[]])
    if len(body) > 1:
        del body[chance.randrange(len(body))]


def _move(chance: random.Random, tree: ast.AST) -> None:
    bodies = _bodies(tree)
    if not bodies:
        return
    source, target = chance.choice(bodies), chance.choice(bodies)
    if source and not hasattr(one := chance.choice(source), "body"):
        target.insert(chance.randrange(len(target) + 1), one)


def _replace(chance: random.Random, tree: ast.AST) -> None:
    """Put another expression in the place of one, but for what a loop counts."""
    places: list[Callable[[ast.expr], None]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "range":
            continue
        if isinstance(node, ast.FunctionDef | ast.arg | ast.AnnAssign | ast.JoinedStr):
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow | ast.LShift | ast.Mult):
            continue  # Python itself would compute for ever
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and field not in (
                "func",
                "target",
                "test",
                "optional_vars",
            ):
                places.append(lambda new, n=node, f=field: setattr(n, f, new))
            elif isinstance(value, list) and field in ("args", "elts", "values"):
                for i, each in enumerate(value):
                    if isinstance(each, ast.expr):
                        places.append(lambda new, v=value, i=i: v.__setitem__(i, new))
    found = [n for n in ast.walk(tree) if isinstance(n, ast.expr) and hasattr(n, "lineno")]
    other = chance.choice([*found, None]) if found else None
    if other is None or chance.random() < 0.5:
        pool = chance.choice((NUMBERS, SEQUENCES, OBJECTS, TENSORS))
        text = chance.choice(pool).lstrip("*").replace("fb.", "torch.")
        other = ast.parse(f"({text})", mode="eval").body
    if places and not isinstance(other, ast.Starred | ast.Slice):
        chance.choice(places)(copy.deepcopy(other))


def _operator(chance: random.Random, tree: ast.AST) -> None:
    binary = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult, ast.BitAnd)
    compared = (ast.Eq, ast.NotEq, ast.Lt, ast.In, ast.NotIn, ast.Is, ast.IsNot, ast.GtE)
    for node in ast.walk(tree):
        if chance.random() < 0.5:
            continue
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Pow):
            node.op = chance.choice(binary)()
        elif isinstance(node, ast.Compare):
            node.ops = [chance.choice(compared)() for _ in node.ops]
        elif isinstance(node, ast.UnaryOp):
            node.op = chance.choice((ast.USub, ast.Not, ast.Invert, ast.UAdd))()


def _annotate(chance: random.Random, tree: ast.AST) -> None:
    kind = ast.parse(chance.choice(TYPES), mode="eval").body
    places = [n for n in ast.walk(tree) if isinstance(n, ast.arg | ast.AnnAssign | ast.FunctionDef)]
    if not places:
        return
    node = chance.choice(places)
    setattr(node, "returns" if isinstance(node, ast.FunctionDef) else "annotation", kind)


def _rename(chance: random.Random, tree: ast.AST) -> None:
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Name | ast.Attribute)]
    if nodes:
        node = chance.choice(nodes)
        names = ("x", "f", "torch", "self", "None_", "int", "ones", "__class__", "item", "_v", "é")
        setattr(node, "id" if isinstance(node, ast.Name) else "attr", chance.choice(names))


def _default(chance: random.Random, tree: ast.AST) -> None:
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    if not functions:
        return
    given = chance.choice(functions).args
    kind = chance.randrange(4)
    if kind == 0 and given.args:
        text = hostile(chance).lstrip("*").replace("fb.", "torch.")
        given.defaults = [ast.parse(f"({text})", mode="eval").body]
    elif kind == 1:
        given.vararg = ast.arg("rest")
    elif kind == 2:
        given.kwarg = ast.arg("more")
    else:
        given.kwonlyargs, given.kw_defaults = [ast.arg("last")], [None]


_CHANGES = (
    *(_insert, _insert, _insert, _remove, _move, _replace, _replace, _replace),
    *(_operator, _annotate, _rename, _default),
)
