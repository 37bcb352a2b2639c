"""Calls of the public tensor functions with bad arguments, run by `test_bad_input`.

``python bad_input_calls.py GROUP GROUPS ROUNDS SEED [NAME]`` calls each function of one group once
per round, with arguments drawn by its signature or without it, and prints the calls that

* end in an exception that is not `ALLOWED`,
* give no answer within `SLOW` seconds of processor time, or
* take more than `ROOM` bytes: what was too large has to be refused before it is allocated.

Results are read and differentiated, and that must end in the same exceptions.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import inspect
import math
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import flambeau as fb

SLOW = 10
LIMIT = 1 << 30  # bytes of address space beyond what the imports take
ROOM = 64 << 20
ALLOWED = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, MemoryError)
HOMES = (
    "flambeau.ops",
    "flambeau._api.functions",
    "flambeau._writes.inplace",
    "flambeau._api.predicates",
    "flambeau._api.tensor_functions",
    "flambeau._types.finfo",
)

_OF_FILES = "save load from_file"  # OSError: test_serialization_faults.py
_OF_THE_PROCESS = """
    set_default_dtype set_default_tensor_type set_default_device set_num_threads
    set_num_interop_threads set_printoptions set_grad_enabled set_flush_denormal
    use_deterministic_algorithms set_anomaly_enabled set_warn_always
    set_float32_matmul_precision"""  # they would change what the calls after them mean
_OF_PYTHON = """
    __class__ __init_subclass__ __subclasshook__ __new__ __init__ __getattribute__ __setattr__
    __delattr__ __getattr__ __reduce__ __reduce_ex__ __setstate__ __getstate__ __deepcopy__ __dir__
    __sizeof__ __format__ __torch_function__ __class_getitem__ __enter__ __exit__
    """  # Python calls them, with what it has made itself
NOT_CALLED = {*_OF_FILES.split(), *_OF_THE_PROCESS.split(), *_OF_PYTHON.split()}
_ALSO = {
    "dlpack": BufferError,  # the protocol asks for it
    # As in PyTorch, of the padding index and of the ranks.
    "functional.embedding": AssertionError,
    "functional.multi_head_attention_forward": AssertionError,
    "functional.fractional_max_pool": OverflowError,  # of an infinite ratio
}
# As many steps or results as a number says, as in PyTorch.
_OF_MANY_STEPS = ("matrix_power", "split", "chunk")
_OF_MANY_STEPS_IN_TENSORS = "polynomial"  # and this number may stand in a tensor: not called


class Subject(NamedTuple):
    """A function that is called."""

    name: str
    function: Callable[..., Any]
    kind: str  # "function", "library", "method", "index", "type", "storage" or "generator"
    parameters: tuple[inspect.Parameter, ...] | None


def _signature(function: Any) -> tuple[inspect.Parameter, ...] | None:
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _called(owner: Any) -> Iterator[tuple[str, Any]]:
    for name in sorted(dir(owner)):
        value = getattr(owner, name, None)
        if name in NOT_CALLED or _OF_MANY_STEPS_IN_TENSORS in name:
            continue
        if not callable(value) or isinstance(value, type):
            continue
        if not name.startswith("_") or name.startswith("__"):
            yield name, value


def _libraries() -> Iterator[tuple[str, Any]]:
    yield from (("linalg", fb.linalg), ("fft", fb.fft), ("special", fb.special))
    yield from (("sparse", fb.sparse), ("windows", fb.signal.windows))
    if importlib.util.find_spec("flambeau.nn") is not None:
        import flambeau.nn.functional as functional

        yield "functional", functional


def subjects() -> list[Subject]:
    """Everything that is called."""
    found: dict[str, Subject] = {}

    def add(name: str, function: Any, kind: str) -> None:
        found[name] = Subject(name, function, kind, _signature(function))

    for name, value in _called(fb):
        if not name.startswith("_") and getattr(value, "__module__", "").startswith(HOMES):
            add(name, value, "function")
    for folder, module in _libraries():
        listed = getattr(module, "__all__", None)
        for name, value in _called(module):
            own = name in listed if listed else value.__module__.startswith("flambeau")
            if own and not name.startswith("_") and getattr(fb, name, None) is not value:
                add(f"{folder}.{name}", value, "library" if folder == "functional" else "function")
    for name, value in _called(fb.Tensor):
        add(f"Tensor.{name}", value, "index" if name.endswith("item__") else "method")
    for name in "device Size Generator finfo iinfo FloatTensor LongTensor Tensor".split():
        add(name, getattr(fb, name), "type")
    for name in "UntypedStorage FloatStorage".split():
        add(name, getattr(fb, name), "type")
    for name in "UntypedStorage TypedStorage".split():
        for method, value in _called(getattr(fb, name)):
            add(f"{name}.{method}", value, "storage")
    for name in "manual_seed set_state get_state".split():
        add(f"Generator.{name}", getattr(fb.Generator, name), "generator")
    return list(found.values())


_LARGE = [2**31, -(2**31), 2**40, 2**62, -(2**62), 2**63 - 1, 2**63, 2**70]
_WHOLE = [0, 1, -1, 2, 3, -2, 7, -7, *_LARGE] + [0, 1, -1, 2, 3] * 2
_NUMBERS = [*_WHOLE, 1.5, -0.5, 1e300, math.nan, math.inf, -math.inf]
_SHAPES = [
    *((), (0,), (1,), (3,), (2, 3), (3, 3), (3, 3), (2, 0), (2, 1)),
    *((2, 2, 3), (2, 3, 3), (1, 1, 1, 2), (1, 2, 4, 4), (1, 1, 3, 3, 3)),
]
_DTYPES = [
    *(fb.float32, fb.float32, fb.float64, fb.bfloat16, fb.float16, fb.int64, fb.int64, fb.int32),
    *(fb.uint8, fb.bool, fb.complex64),
]
_KINDS = """ones ones ones zeros random special places expanded transposed meta reference grad grad
    sparse""".split()
_ODD = [
    *(None, "a", "mean", "\ud800", b"x", True, False, (), [], {}, object(), slice(1), Ellipsis),
    *(1j, math.nan, range(3), [[1, 2], [3]], [None], ["a"], int, max, lambda *a: a[0]),
    *(fb, fb.int64, "cpu", "meta", "ref", "cuda:9", fb.device("cpu"), fb.Size([2])),
    *(fb.strided, fb.sparse_coo, fb.channels_last),
]
_WORDS = {
    "reduction": ["mean", "sum", "none", "batchmean", "x"],
    "reduce": ["sum", "prod", "mean", "amax", "amin", "multiply", "x"],
    "mode": "constant reflect replicate circular nearest bilinear area reduced max x".split(),
    "padding_mode": ["zeros", "border", "reflection", "x"],
    "norm": ["ortho", "forward", "backward", "x"],
    "ord": ["fro", "nuc", "x"],
    "equation": ["ij,jk", "ii->i", "...", "", "->"],
    "rounding_mode": ["floor", "trunc", "x"],
    "device": ["cpu", "meta", "ref", "cpu:3", "cuda", -1, 2**70],
    "layout": [fb.strided, fb.sparse_coo],
    "memory_format": [fb.contiguous_format, fb.channels_last, fb.preserve_format],
    "UPLO": ["U", "L", "x"],
}
_SEQUENCES = "Size Sequence Dims tuple Iterable".split()


class Arguments:
    """Arguments drawn for one call."""

    def __init__(self, random: Random) -> None:
        self.random = random
        # Mostly of one shape and dtype, or the first check would refuse nearly all of them.
        self.shape = random.choice(_SHAPES) if random.random() < 0.8 else None
        self.dtype = random.choice(_DTYPES) if random.random() < 0.9 else None

    def tensor(self) -> Any:
        """A small tensor: empty, 0-d, expanded, sparse, with NaN or huge numbers, elsewhere."""
        choice, chance = self.random.choice, self.random.random
        shape = choice(_SHAPES) if self.shape is None or chance() < 0.2 else self.shape
        dtype = choice(_DTYPES) if self.dtype is None or chance() < 0.15 else self.dtype
        kind = choice(_KINDS)
        if kind in ("meta", "reference"):
            return fb.zeros(shape, dtype=dtype, device="ref" if kind == "reference" else "meta")
        made = fb.ones(shape, dtype=dtype)
        real, whole = dtype.is_floating_point, not (dtype.is_floating_point or dtype.is_complex)
        if kind == "zeros":
            made.zero_()
        elif kind == "random" and real:
            made.uniform_(-1, 1)
        elif kind == "special" and whole and dtype is not fb.bool:
            limits = fb.iinfo(dtype)
            made.fill_(choice([limits.min, limits.max, limits.max // 2]))
        elif kind == "special" and not whole:
            made.fill_(choice([math.nan, math.inf, -math.inf, 1e4]))
        elif kind == "places" and whole and dtype not in (fb.bool, fb.uint8):
            made.fill_(choice([-1, -4, 3, 100]))
        elif kind == "expanded" and shape and shape[0]:
            made = made[:1].expand(shape)
        elif kind == "transposed" and len(shape) > 1:
            made = made.transpose(0, -1)
        elif kind == "grad" and real:
            made.requires_grad_()
        elif kind == "sparse" and dtype is not fb.bool:
            made = made.to_sparse()
        return made

    def tensors(self) -> Any:
        """A list or tuple of tensors."""
        return self.random.choice([list, tuple])(
            [self.tensor() for _ in range(self.random.randrange(4))]
        )

    def numbers(self) -> Any:
        """A list or tuple of numbers: sizes, dimensions."""
        choice = self.random.choice
        pool = choice([_WHOLE, _WHOLE, _NUMBERS, [0, 1, 2, 3], [1, 2], [-1, 0, 1]])
        return choice([list, tuple])([choice(pool) for _ in range(choice([0, 1, 1, 2, 2, 3, 4]))])

    def anything(self) -> Any:
        """An argument of any kind."""
        chance = self.random.random()
        if chance < 0.45:
            return self.tensor()
        if chance < 0.6:
            return self.random.choice(_NUMBERS)
        if chance < 0.75:
            return self.random.choice(_ODD)
        return self.numbers() if chance < 0.88 else self.tensors()

    def index(self, depth: int = 0) -> Any:
        """What may stand in brackets, and what may not."""
        choice, chance = self.random.choice, self.random.random()
        count = self.random.randrange(4)
        if chance < 0.2 or depth > 2:
            return choice(_WHOLE)
        if chance < 0.4:
            return slice(*(choice([None, None, 1.5, "a", *_WHOLE]) for _ in range(3)))
        if chance < 0.5:
            return choice([None, Ellipsis, True, False])
        if chance < 0.7:
            return self.tensor()
        if chance < 0.78:
            return choice(_ODD) if chance < 0.74 else self.numbers()
        return choice([list, tuple, tuple])([self.index(depth + 1) for _ in range(count)])

    def of(self, parameter: inspect.Parameter) -> Any:
        """An argument that suits a parameter, or (one in ten) any other."""
        choice, name, default = self.random.choice, parameter.name, parameter.default
        kind = str(parameter.annotation)
        if self.random.random() < 0.1:
            return self.anything()
        if name == "generator":
            return choice([None, fb.Generator()])
        if name in _WORDS:
            return choice(_WORDS[name])
        if "dtype" in kind.lower() or name == "dtype":
            return choice(_DTYPES)
        if kind.startswith("bool") or isinstance(default, bool):
            return choice([True, False])
        if name in ("tensors", "matrices", "operands", "arrays", "inputs"):
            return self.tensors()
        if "Tensor" in kind:
            return self.tensor()
        if any(word in kind for word in _SEQUENCES):
            return choice([self.numbers(), self.numbers(), choice(_WHOLE)])
        if kind.startswith("int") or isinstance(default, int):
            return choice(_WHOLE)
        if kind.startswith("float") or isinstance(default, float):
            return choice(_NUMBERS)
        return choice([self.tensor(), self.tensor(), choice(_NUMBERS), self.numbers()])

    def by_signature(self, parameters: tuple[inspect.Parameter, ...]) -> tuple[list, dict]:
        """Arguments for all parameters without a default and for some of the others."""
        args: list[Any] = []
        named: dict[str, Any] = {}
        positional = True
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL:
                if positional:
                    choices = [[self.numbers()], self.numbers(), self.tensors(), [self.anything()]]
                    args.extend(self.random.choice(choices))
            elif p.kind is not p.VAR_KEYWORD:
                if self.random.random() < (0.04 if p.default is p.empty else 0.6):
                    positional = False
                elif positional and p.kind is not p.KEYWORD_ONLY:
                    args.append(self.of(p))
                elif p.kind is not p.POSITIONAL_ONLY:
                    named[p.name] = self.of(p)
        return args, named

    def for_call(self, subject: Subject) -> tuple[list[Any], dict[str, Any]]:
        """Arguments for a subject."""
        any_number = [self.anything() for _ in range(self.random.randrange(4))]
        if subject.kind == "index":
            value = [self.anything()] if "set" in subject.name else []
            return [self.tensor(), self.index(), *value], {}
        if subject.kind == "storage":
            typed = subject.name.startswith("Typed")
            x = fb.ones(self.random.randrange(4), dtype=self.dtype or fb.float32)
            odd = [self.anything(), self.index(), self.random.choice(_NUMBERS)]
            rest = odd[: self.random.randrange(4)]
            self.random.shuffle(rest)
            return [x.storage() if typed else x.untyped_storage(), *rest], {}
        if subject.kind == "generator":
            return [fb.Generator(), *any_number[:2]], {}
        if subject.kind == "type":
            return any_number, {}
        parameters = subject.parameters
        if parameters is None or (self.random.random() < 0.2 and subject.kind != "library"):
            first = [self.tensor()] if subject.kind == "method" or len(any_number) % 2 else []
            return [*first, *any_number], {}
        if subject.kind == "method":
            args, named = self.by_signature(parameters[1:])
            return [self.tensor(), *args], named
        args, named = self.by_signature(parameters)
        if subject.kind == "library":  # Python functions in PyTorch too: AttributeError there
            for i, p in enumerate(parameters):
                if "Tensor" in (kind := str(p.annotation)):
                    fits = (fb.Tensor, type(None)) if "None" in kind else fb.Tensor
                    if i < len(args) and not isinstance(args[i], fits):
                        args[i] = self.tensor()
                    if p.name in named and not isinstance(named[p.name], fits):
                        named[p.name] = self.tensor()
        return args, named


def shown(value: Any) -> str:
    """An argument in a word or two."""
    if isinstance(value, fb.Tensor):
        layout = "" if value.layout == fb.strided else "sparse "
        seen = not layout and value.device.type != "meta" and value.numel() < 4
        few = value.tolist() if seen else "..."
        history = " grad" if value.requires_grad else ""
        return f"<{layout}{value.device} {list(value.shape)} {value.dtype}{history} {few}>"[:120]
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    return ascii(value)[:80].replace("\n", " ")


def use(result: Any) -> None:
    """Read a result, and send a gradient back through it."""
    if isinstance(result, (list, tuple)):
        for x in result[:3]:
            use(x)
    elif isinstance(result, fb.Tensor):
        if result.layout == fb.strided and result.device.type != "meta":
            repr(result.detach())
        if result.requires_grad:
            (result.abs() if result.is_complex() else result).sum().backward()


def too_slow(*_: Any) -> None:
    """What the alarm does."""
    raise TimeoutError(f"no answer in {SLOW} s")


def outcome(subject: Subject, random: Random) -> str | None:
    """What is wrong with one call, if something is."""
    args, named = Arguments(random).for_call(subject)
    if any(word in subject.name for word in _OF_MANY_STEPS):
        args = [7 if type(a) is int and a > 7 else a for a in args]
        named = {k: 7 if type(a) is int and a > 7 else a for k, a in named.items()}
    words = [*map(shown, args), *(f"{k}={shown(v)}" for k, v in named.items())]
    call = f"{subject.name}({', '.join(words)})"
    print(call, file=sys.stderr)
    allowed = (*ALLOWED, *(error for name, error in _ALSO.items() if name in subject.name))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.setitimer(signal.ITIMER_PROF, SLOW)
    try:
        try:
            use(subject.function(*args, **named))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except allowed:
        pass
    except Exception as error:
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        line = f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}" if at else ""
        return f"{call}: {type(error).__name__}: {error} ({line})"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return f"{call}: takes {grown >> 10} MiB" if grown << 10 > ROOM else None


def main(group: int, groups: int, rounds: int, number: int, only: str = "") -> None:
    """Draw the calls of a group under a limit of memory."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    fb.eye(3).inverse()  # what the first call imports does not count
    chosen = [s for s in subjects()[group::groups] if only in s.name]
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + LIMIT, used + LIMIT))
    signal.signal(signal.SIGPROF, too_slow)
    bad: dict[str, str] = {}

    @seed(number)
    @settings(
        max_examples=rounds,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=True))
    def call_each(random: Random) -> None:
        number = random.random()
        for subject in chosen:
            # Of its own: a function that comes or goes does not change the calls of the others.
            own = Random(f"{subject.name} {number}")
            if subject.name not in bad and (found := outcome(subject, own)):
                bad[subject.name] = found

    call_each()
    print(*bad.values(), sep="\n", end="")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]), *sys.argv[5:])
