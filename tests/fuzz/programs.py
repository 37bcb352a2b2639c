"""Programs of a few lines that call public functions, each decided by a seed, a name and a number.

Half of them are examples of docstrings in which parts of calls were replaced; the others call by
signature.  A new function of the library has programs of its own and changes nobody else's.
"""

from __future__ import annotations

import ast
import doctest
import functools
import importlib
import inspect
import pkgutil
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import flambeau as fb
import sources
import writes
from flambeau import distributions
from hostile import TENSORS, hostile, plausible

HEAD = "import numpy as np\nimport flambeau as fb\n"

SPACES = """
 accelerator amp array_api array_api.fft array_api.linalg autograd autograd.forward_ad
 autograd.functional cpu cuda cuda.amp distributed distributions distributions.constraints
 distributions.kl distributions.transforms distributions.utils fft func futures fx fx.graph
 fx.immutable_collections fx.node fx.operator_schemas jit linalg nn nn.attention nn.functional
 nn.grad nn.init nn.parallel nn.parameter nn.utils nn.utils.parametrizations nn.utils.prune
 nn.utils.rnn nn.utils.stateless onnx optim optim.lr_scheduler optim.swa_utils overrides plans
 profiler quasirandom random return_types serialization signal signal.windows sparse special
 testing utils utils.checkpoint utils.data utils.data.distributed utils.dlpack utils.hooks
""".split()
"""Namespaces beside `flambeau` itself and its tensors."""

LEFT_OUT = {
    "save", "load", "to_folder", "from_file", "breakpoint",
    "set_num_threads", "set_num_interop_threads",
    "thread_safe_generator", "register_kl",
    "misfit", "takes_as_annotated", "methods_take_as_annotated", "all_take_as_annotated",
    "Plan", "Step", "Slot", "Number",
    "replayed",
    "set_allocator_enabled", "set_stream", "enter_dual_level", "exit_dual_level",
    "detect_anomaly", "set_detect_anomaly", "main", "save_graph", "get_worker_info", "profile",
    "share_memory_", "start", "stop",
    "TCPStore", "FileStore", "init_process_group", "send", "recv", "isend", "irecv", "export",
    "register_format", "register_package", "add_safe_globals", "clear_safe_globals", "wrap",
    "register_custom_op_symbolic", "unregister_custom_op_symbolic", "tensorboard_trace_handler",
    "has_side_effect", "wait_all", "wait",
}  # fmt: skip
"""What writes files, waits for others, changes the process for the programs after it, or is called
by parts of flambeau alone."""

_SGD = "fb.optim.SGD([fb.nn.Parameter(fb.ones(2, 3))], 0.1)"
INSTANCES = {
    "fb.Generator": "fb.Generator()",
    "fb.Size": "fb.Size([2, 3])",
    "fb.UntypedStorage": "fb.UntypedStorage(8)",
    "fb.TypedStorage": "fb.FloatStorage([1, 2, 3, 4])",
    "fb.dtype": "fb.float32",
    "fb.device": 'fb.device("cpu")',
    "fb.amp.GradScaler": 'fb.amp.GradScaler("cpu")',
    "fb.distributions.Distribution": "fb.distributions.Normal(fb.zeros(3), fb.ones(3))",
    "fb.distributions.Categorical": "fb.distributions.Categorical(fb.ones(3))",
    "fb.distributions.transforms.Transform": "fb.distributions.ExpTransform()",
    "fb.fx.Graph": "fb.fx.symbolic_trace(lambda x: x.sin() + 1).graph",
    "fb.fx.GraphModule": "fb.fx.symbolic_trace(lambda x: x.sin() + 1)",
    "fb.fx.Node": "next(iter(fb.fx.symbolic_trace(lambda x: x.sin() + 1).graph.nodes))",
    "fb.jit.ScriptModule": "fb.jit.script(fb.nn.Linear(3, 2))",
    "fb.nn.Module": "fb.nn.Linear(3, 2)",
    "fb.nn.LSTM": "fb.nn.LSTM(3, 2)",
    "fb.nn.ModuleDict": 'fb.nn.ModuleDict({"a": fb.nn.Linear(3, 2)})',
    "fb.nn.ModuleList": "fb.nn.ModuleList([fb.nn.Linear(3, 2), fb.nn.ReLU()])",
    "fb.nn.Sequential": "fb.nn.Sequential(fb.nn.Linear(3, 2), fb.nn.ReLU())",
    "fb.nn.ParameterDict": 'fb.nn.ParameterDict({"a": fb.ones(3)})',
    "fb.nn.ParameterList": "fb.nn.ParameterList([fb.ones(3), fb.ones(2, 3)])",
    "fb.nn.Transformer": "fb.nn.Transformer(4, 2, 1, 1, 8)",
    "fb.nn.MultiheadAttention": "fb.nn.MultiheadAttention(4, 2)",
    "fb.nn.utils.rnn.PackedSequence": "fb.nn.utils.rnn.pack_sequence([fb.ones(3, 2)])",
    "fb.optim.Optimizer": _SGD,
    "fb.optim.Adam": "fb.optim.Adam([fb.nn.Parameter(fb.ones(2, 3))], 0.1)",
    "fb.optim.lr_scheduler.LRScheduler": f"fb.optim.lr_scheduler.StepLR({_SGD}, 2)",
    "fb.optim.lr_scheduler.ReduceLROnPlateau": f"fb.optim.lr_scheduler.ReduceLROnPlateau({_SGD})",
    "fb.optim.swa_utils.AveragedModel": "fb.optim.swa_utils.AveragedModel(fb.nn.Linear(3, 2))",
    "fb.quasirandom.SobolEngine": "fb.quasirandom.SobolEngine(2)",
    "fb.utils.data.TensorDataset": "fb.utils.data.TensorDataset(fb.ones(2, 3))",
    "fb.utils.data.Subset": "fb.utils.data.Subset(range(5), [0, 2])",
    "fb.utils.data.ConcatDataset": "fb.utils.data.ConcatDataset([range(3), range(2)])",
    "fb.utils.data.DataLoader": "fb.utils.data.DataLoader(range(5), 2)",
    "fb.utils.data.BatchSampler": "fb.utils.data.BatchSampler(range(5), 2, False)",
}
"""Objects of classes whose methods have programs of their own; those of `Tensor` are its."""

SOURCES, SHARE = "sources: ", 10
WRITES = "writes: "
"""Names of programs about programs and of those that write in place, and the turns of each kind."""

FUNCTIONALS = ("fb.func.", "fb.compile", "fb.plans.compile")
"""What gives functions, which are called with a tensor."""


@functools.cache
def targets() -> dict[str, Any]:
    """The public callables by the expression that gives them."""
    found: dict[str, Any] = {}
    for space in ["", *SPACES]:
        path = f"flambeau.{space}".rstrip(".")
        module = importlib.import_module(path)
        for name in sorted(getattr(module, "__all__", None) or dir(module)):
            value = getattr(module, name, None)
            ours = str(getattr(value, "__module__", "flambeau")).startswith("flambeau")
            if name.startswith("_") or name in LEFT_OUT or not callable(value) or not ours:
                continue
            if inspect.isclass(value) and issubclass(value, BaseException):
                continue
            found["fb." + f"{space}.{name}".lstrip(".")] = value
    special = "getitem setitem add radd sub rsub mul truediv rtruediv floordiv rfloordiv mod rmod "
    special += "pow rpow matmul and or xor invert lshift rshift eq lt contains bool int float "
    special += "complex index len iter reversed neg format array deepcopy iadd imul itruediv ipow"
    own = [f"__{name}__" for name in special.split()]
    for name in [*sorted(n for n in dir(fb.Tensor) if not n.startswith("_")), *own]:
        value = getattr(fb.Tensor, name, None)
        if callable(value) and name not in LEFT_OUT:
            found[f"fb.Tensor.{name}"] = value
    for path in INSTANCES:
        for name, value in _methods(path):
            found[f"{path}.{name}"] = value
    return dict(sorted(found.items()))


SPECIAL = "getitem setitem delitem len iter contains call eq add iadd reduce_ex deepcopy repr"


def _methods(path: str) -> list[tuple[str, Any]]:
    """The methods of a class that programs call, by their names."""
    cls = functools.reduce(getattr, path.split(".")[1:], fb)
    names = [n for n in dir(cls) if not n.startswith("_") and n not in LEFT_OUT]
    names += [f"__{n}__" for n in SPECIAL.split() if f"__{n}__" in vars(cls)]
    found = [(name, inspect.getattr_static(cls, name)) for name in names]
    return [(n, getattr(cls, n)) for n, raw in found if callable(getattr(raw, "__func__", raw))]


def never_called() -> list[str]:
    """Public functions and methods of flambeau of which no program is made."""
    found: dict[object, str] = {}
    spaces = {found.name for found in pkgutil.iter_modules(fb.__path__) if found.name[0] != "_"}
    for path in ["flambeau", *(f"flambeau.{space}" for space in sorted({*SPACES, *spaces}))]:
        if path.startswith(NOT_FOR_PROGRAMS):
            continue
        module = importlib.import_module(path)
        stated = getattr(module, "__all__", None)
        for name in stated or dir(module):
            value = getattr(module, name, None)
            home = str(getattr(value, "__module__", ""))
            if name.startswith("_") or not callable(value) or not home.startswith("flambeau"):
                continue
            if inspect.isclass(value) and issubclass(value, BaseException):
                continue
            if stated or home == path:
                found.setdefault(_key(value), f"fb.{path[9:]}.{name}".replace("..", "."))
    for value in targets().values():
        found.pop(_key(value), None)
    return sorted(set(found.values()) - set(targets()))


def _key(value: Any) -> object:
    # A function may be another object each time that it is asked for.
    return getattr(value, "__module__", ""), getattr(value, "__qualname__", None) or id(value)


NOT_FOR_PROGRAMS = (
    "flambeau.plugin", "flambeau.testing.", "flambeau.ops", "flambeau.compat",
    "flambeau.onnx.symbolic_", "flambeau.absence", "flambeau.__main__",
)  # fmt: skip
"""What backends, tests, exports and plans are made with."""


def program(seed: int, name: str, number: int) -> str:
    """The program of a number that concerns `name`; its last statement assigns to `r`."""
    chance = random.Random(f"{seed}:{name}:{number}")
    if name.startswith(SOURCES):
        return HEAD + sources.program(chance, name.removeprefix(SOURCES).rpartition(" ")[0])
    if name.startswith(WRITES):
        return HEAD + writes.program(chance, name.removeprefix(WRITES).rpartition(" ")[0])
    made = _from_example(chance, name) if chance.random() < 0.5 else None
    if made is None:
        made = _from_signature(chance, name)
    return HEAD + made


def batch(seed: int, first: int, count: int) -> Iterator[str]:
    """`count` programs; every name has its turn before one has its second."""
    # Not shuffled: a new name would change which others are the first.
    kinds = [SOURCES + use for use in sources.USES] + [WRITES + use for use in writes.USES]
    names = [*targets(), *(f"{kind} {i}" for kind in kinds for i in range(SHARE))]
    names.sort(key=lambda name: random.Random(f"{seed}:{name}").random())
    for i in range(first, first + count):
        yield program(seed, names[i % len(names)], i // len(names))


@functools.cache
def _example(name: str) -> ast.Module | None:
    """The example in a docstring, ending in an expression."""
    value = targets()[name]
    text = value.__doc__ or ""
    if ">>>" not in text and name.startswith("fb.Tensor."):
        text = getattr(targets().get("fb." + name[10:]), "__doc__", None) or ""
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return None
    lines = [e.source for e in examples if not e.exc_msg]
    tree = ast.parse("".join(lines))
    short = name.rpartition(".")[2]
    while tree.body and not (
        isinstance(tree.body[-1], ast.Expr | ast.Assign) and short in ast.unparse(tree.body[-1])
    ):
        tree.body.pop()  # what follows the last call shows its result
    if not tree.body or "open(" in "".join(lines):
        return None
    return tree


def _finished_example(name: str) -> ast.Module | None:
    """A copy of the example whose last statement assigns."""
    tree = _example(name)
    if tree is None:
        return None
    tree = ast.parse(ast.unparse(tree))
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body[-1] = ast.Assign([ast.Name("r", ast.Store())], last.value, lineno=0)
    return tree


def _from_example(chance: random.Random, name: str) -> str | None:
    tree = _finished_example(name)
    if tree is None:
        return None
    for _ in range(chance.choice([1, 1, 1, 2, 2, 3])):
        _change(chance, tree)
    return _text(tree)


def _text(tree: ast.Module) -> str:
    lines = [n for n in tree.body if ast.unparse(n) != "import flambeau as fb"]
    return "\n".join(ast.unparse(n) for n in lines) + "\n"


def each(expressions: Sequence[str]) -> Iterator[str]:
    """Every example once for each of its places and each of some expressions.

    Places are those of the last statement, and the parameters that it leaves to their defaults.
    What has no example is called with what it needs.
    """
    for name, value in targets().items():
        tree = _finished_example(name) or _plain_call(name, value)
        if tree is None:
            continue
        text = ast.unparse(tree)
        for expression in expressions:
            for at in range(len(_places(tree.body[-1]))):
                fresh = ast.parse(text)
                _places(fresh.body[-1])[at][0](_expression(expression))
                yield HEAD + _text(fresh)
            for parameter in _left_to_defaults(name, value, tree):
                fresh = ast.parse(text)
                call = _call_of(name, fresh)
                assert call is not None
                call.keywords.append(ast.keyword(parameter, _expression(expression)))
                yield HEAD + _text(fresh)


def _plain_call(name: str, value: Any) -> ast.Module | None:
    """A call with plausible arguments for what must be given."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return None
    chance, (owner, _, short) = random.Random(name), name.rpartition(".")
    owner = "fb.ones(2, 3)" if owner == "fb.Tensor" else INSTANCES.get(owner, owner)
    method = owner != name.rpartition(".")[0]
    needed = [p for p in parameters[method:] if p.default is p.empty]
    given = [
        f"{p.name}=" * (p.kind is p.KEYWORD_ONLY) + plausible(chance, p.name, str(p.annotation))
        for p in needed
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    return ast.parse(f"r = {owner}.{short}({', '.join(given)})")


def _call_of(name: str, tree: ast.Module) -> ast.Call | None:
    """The call of a function in the last statement of its example."""
    short = name.rpartition(".")[2]
    calls = [n for n in ast.walk(tree.body[-1]) if isinstance(n, ast.Call)]
    return next((n for n in calls if ast.unparse(n.func).rpartition(".")[2] == short), None)


def _left_to_defaults(name: str, value: Any, tree: ast.Module) -> list[str]:
    """The parameters that the call in an example does not give."""
    call = _call_of(name, tree)
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return []
    if call is None or any(isinstance(a, ast.Starred) for a in call.args):
        return []
    positional = [p for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    method = bool(positional) and positional[0].name == "self"
    given = {p.name for p in positional[: len(call.args) + method]}
    given |= {k.arg for k in call.keywords if k.arg is not None}
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in parameters.values() if p.kind in named and p.name not in given]


def _change(chance: random.Random, tree: ast.Module) -> None:
    """Replace, add or leave out an argument of a call, most often of the last statement."""
    where = tree.body[-1] if chance.random() < 0.8 else chance.choice(tree.body)
    calls = [n for n in ast.walk(where) if isinstance(n, ast.Call)]
    places = _places(where)
    kind = chance.random()
    if kind < 0.1 and calls:
        call = chance.choice(calls)
        if call.args and chance.random() < 0.5:
            call.args.pop(chance.randrange(len(call.args)))
        else:
            call.args.append(_expression(hostile(chance)))
    elif kind < 0.17 and calls:
        outs = [ast.unparse(n.args[0]) for n in calls if n.args] or TENSORS
        chance.choice(calls).keywords.append(ast.keyword("out", _expression(chance.choice(outs))))
    elif places:
        put, old = chance.choice(places)
        like = "0" if isinstance(old, ast.Constant) and isinstance(old.value, int | float) else "t"
        put(_expression(hostile(chance, like)))


def _places(where: ast.stmt) -> list[tuple[Callable[[ast.expr], None], ast.expr]]:
    """What can be replaced in a statement: how to put something there, and what is there."""
    places: list[tuple[Callable[[ast.expr], None], ast.expr]] = []
    for node in ast.walk(where):
        if isinstance(getattr(node, "ctx", None), ast.Store):
            continue  # `np.float32 = ...` would concern all programs that follow
        for field, value in ast.iter_fields(node):
            if isinstance(node, ast.Call) and field == "func":
                if isinstance(value, ast.Attribute) and not _is_name_of_module(value.value):
                    places.append((functools.partial(setattr, value, "value"), value.value))
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
                continue  # Python itself would compute for ever
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "range":
                continue  # of the example's own loops
            elif isinstance(value, ast.expr) and isinstance(
                node, ast.keyword | ast.BinOp | ast.Subscript | ast.UnaryOp | ast.Starred
            ):
                places.append((functools.partial(setattr, node, field), value))
            elif isinstance(value, list) and field in ("args", "elts"):
                if isinstance(node, ast.arguments):
                    continue  # the names that a lambda takes
                for i, item in enumerate(value):
                    places.append((functools.partial(value.__setitem__, i), item))
    return places


def _is_name_of_module(node: ast.expr) -> bool:
    return ast.unparse(node).split(".")[0] in ("fb", "np", "F", "nn", "optim", "linalg", "math")


def _expression(text: str) -> ast.expr:
    return ast.parse(f"({text.lstrip('*')})", mode="eval").body


def _from_signature(chance: random.Random, name: str) -> str:
    value = targets()[name]
    lines: list[str] = []
    call = _call(chance, value, name, lines)
    lines.append(f"r = {call}")
    if inspect.isclass(value) and issubclass(value, fb.nn.Module):
        given = [chance.choice(TENSORS)]
        try:
            forward = getattr(value, "forward", None)
            needed = list(inspect.signature(forward).parameters.values())[2:] if forward else []
        except (TypeError, ValueError):
            needed = []
        for parameter in needed:
            if parameter.default is inspect.Parameter.empty or chance.random() < 0.3:
                if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                    given.append(_argument(chance, parameter))
        lines.append(f"r = r({', '.join(given)})")
    elif inspect.isclass(value) and issubclass(value, fb.optim.Optimizer):
        lines = ["w = fb.nn.Parameter(fb.ones(2, 3))", *lines]
        if lines[1].startswith("a = ") and chance.random() < 0.8:
            lines[1] = "a = [w]"
        lines += ["(w * 2).sum().backward()", "r = r.step()"]
    elif (asked := _of_distribution(chance, value)) is not None:
        lines.append(f"r = {asked}")
    elif name.startswith(FUNCTIONALS) and chance.random() < 0.8:
        lines.append(f"r = r({chance.choice(TENSORS)})")
    return "\n".join(lines) + "\n"


def _of_distribution(chance: random.Random, value: Any) -> str | None:
    """What is asked of a distribution or a transform that was made."""
    if not inspect.isclass(value):
        return None
    if issubclass(value, distributions.Distribution):
        tensors = [f"r.{m}({chance.choice(TENSORS)})" for m in ("log_prob", "cdf", "icdf")]
        sizes = [f"r.{m}({plausible(chance, 'size')})" for m in ("sample", "rsample", "expand")]
        facts = ["r.mean", "r.variance", "r.mode", "r.entropy()", "r.enumerate_support()"]
        return chance.choice([*tensors, *sizes, *facts])
    if issubclass(value, distributions.transforms.Transform):
        return chance.choice(["r({})", "r.inv({})", "r.log_abs_det_jacobian({0}, {0})"]).format(
            chance.choice(TENSORS)
        )
    return None


def _call(chance: random.Random, value: Any, name: str, lines: list[str]) -> str:
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return f"{name}({', '.join(hostile(chance) for _ in range(chance.randrange(4)))})"
    method = name.startswith("fb.Tensor.") and bool(parameters) and parameters[0].name == "self"
    owner, _, short = name.rpartition(".")
    if owner in INSTANCES:
        lines.append(f"a = {INSTANCES[owner]}")
        if parameters and parameters[0].name == "self":
            parameters.pop(0)
    given = []
    for i, parameter in enumerate(parameters):
        if i == 0 and owner not in INSTANCES:
            lines.append(f"a = {_argument(chance, parameter, 0.15 if not method else 0.0)}")
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                given.append("a" if parameter.kind is not parameter.KEYWORD_ONLY else "")
                if parameter.kind is parameter.KEYWORD_ONLY:
                    given[-1] = f"{parameter.name}=a"
                continue
            lines.pop()
        if parameter.kind is parameter.VAR_POSITIONAL:
            given += [_argument(chance, parameter, 0.3) for _ in range(chance.randrange(3))]
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        needed = parameter.default is parameter.empty
        if not needed and chance.random() < 0.6:
            continue
        argument = _argument(chance, parameter, 0.35)
        if parameter.name == "out":
            argument = chance.choice(["a", "a", "a[0]", chance.choice(TENSORS), argument])
        if not needed or parameter.kind is parameter.KEYWORD_ONLY:
            argument = f"{parameter.name}={argument}"
        given.append(argument)
    named = [g for g in given if _is_named(g)]
    given = [g for g in given if not _is_named(g)] + named
    if owner in INSTANCES:
        return f"a.{short}({', '.join(given)})"
    if method:
        return f"a.{name[10:]}({', '.join(given[1:])})"
    return f"{name}({', '.join(given)})"


def _is_named(argument: str) -> bool:
    head, equals, rest = argument.partition("=")
    return bool(equals) and head.isidentifier() and not rest.startswith("=")


def _argument(chance: random.Random, parameter: inspect.Parameter, wild: float = 0.3) -> str:
    if chance.random() < wild:
        return hostile(chance)
    if parameter.name == "self":
        return chance.choice(TENSORS)
    return plausible(chance, parameter.name, str(parameter.annotation))
