"""Which parts of PyTorch a program that says ``import torch`` finds, and how much of each.

The table is what errors say, and a table in the guide for those who come from PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["real", "partial", "refused"]


@dataclass(frozen=True)
class Part:
    """A module of PyTorch, with those below it.

    Attributes:
        name: its path, such as ``torch.jit``; ``torch`` stands for single names in that module.
        state: ``real`` does what PyTorch's documents say, ``partial`` does some of it, and
            ``refused`` can be imported and asked for.
        text: what is there, or what to do instead.
    """

    name: str
    state: State
    text: str


PARTS = (
    Part("torch", "partial", "not written, or a matter of compilers and other devices"),
    Part("torch.__config__", "real", "says what flambeau runs on"),
    Part(
        "torch._C",
        "partial",
        "there is no compiled module; the queries that Python programs make of it answer",
    ),
    Part("torch._custom_ops", "refused", "the older form of `torch.library.custom_op`"),
    Part(
        "torch._dynamo",
        "partial",
        "`optimize` makes plans, `explain` says what came of it, settings have no effect",
    ),
    Part("torch._guards", "partial", "no mode of a compiler is ever on"),
    Part(
        "torch._inductor",
        "partial",
        "no code is generated; settings, and what libraries register, are kept and not used",
    ),
    Part("torch._jit_internal", "partial", "decorators give back their function"),
    Part("torch._six", "real", "names of Python 2 and 3, as programs for PyTorch 1 import them"),
    Part("torch._utils", "partial", "flattening of tensor lists, element sizes"),
    Part(
        "torch.amp",
        "real",
        "`autocast` by PyTorch's lists for CPUs and for other devices, `GradScaler`",
    ),
    Part(
        "torch.ao",
        "refused",
        "there are no quantised dtypes",
    ),
    Part(
        "torch.compiler",
        "partial",
        "`torch.compile` makes plans of kernel calls; whole functions only",
    ),
    Part("torch.cuda.amp", "real", "as `torch.amp`"),
    Part(
        "torch.distributed",
        "partial",
        "groups, collectives, messages, stores, `launch`; no meshes, sharded tensors, RPC; "
        "`is_available()` is False until flambeau-mpi is installed",
    ),
    Part("torch.export", "refused", "programs are not exported; `torch.save` writes weights"),
    Part(
        "torch.fx",
        "real",
        "graphs of Python calls: tracing, interpreters, rewriting, splitting, shapes",
    ),
    Part(
        "torch.fx.experimental",
        "refused",
        "symbolic shapes and their kin belong to PyTorch's compiler",
    ),
    Part(
        "torch.jit",
        "partial",
        "programs are scripted, traced, frozen, saved and loaded; switches of fusion do nothing",
    ),
    Part(
        "torch.library",
        "partial",
        "`custom_op` and `Library` make functions, with a gradient and by type of device, found in "
        "`torch.ops`",
    ),
    Part("torch.masked", "refused", "not written; `torch.where` and `nansum` serve"),
    Part("torch.mps", "real", "an Apple GPU, where a package serves it"),
    Part("torch.mtia", "real", "as `torch.mps`, for that type of devices"),
    Part("torch.nested", "refused", "there are no nested tensors; `nn.utils.rnn` packs sequences"),
    Part(
        "torch.nn.attention",
        "partial",
        "`sdpa_kernel` chooses between one kernel for all of it and the formula",
    ),
    Part(
        "torch.onnx",
        "partial",
        "`flambeau.onnx` with flambeau-nn: `export`, `register_custom_op_symbolic`; without it "
        "programs are not exported",
    ),
    Part("torch.ops", "partial", "what `torch.library` was given, and functions under `aten`"),
    Part(
        "torch.package",
        "refused",
        "`torch.save` writes weights; code travels as Python packages",
    ),
    Part(
        "torch.profiler",
        "partial",
        "`profile` with schedules and traces for TensorBoard; times, calls and shapes are measured",
    ),
    Part("torch.quantization", "refused", "there are no quantised dtypes"),
    Part("torch.storage", "real", "the classes of storages"),
    Part("torch.torch_version", "real", "versions that compare"),
    Part("torch.types", "real", "names for annotations"),
    Part(
        "torch.utils._python_dispatch",
        "partial",
        "`TorchDispatchMode` sees the calls of kernels, forward and backward, by the names of "
        "`torch.ops.aten` where there is one, as do subclasses with `__torch_dispatch__`; what is "
        "one kernel here and several ops there, or the reverse, arrives as it is computed",
    ),
    Part("torch.utils._pytree", "real", "nested containers as a list of leaves and a structure"),
    Part(
        "torch.utils.benchmark", "partial", "`Timer`, `Measurement`, `Compare`; no C++, no counts"
    ),
    Part("torch.utils.collect_env", "real", "prints what `python -m flambeau doctor` finds"),
    Part(
        "torch.utils.cpp_extension",
        "real",
        "sources for PyTorch 1.x are compiled against headers of flambeau",
    ),
    Part(
        "torch.utils.flop_counter",
        "partial",
        "`FlopCounterMode` counts under the names of flambeau's ops",
    ),
    Part("torch.version", "real", "the version that `torch.__version__` says"),
    Part("torch.xpu", "real", "as `torch.mps`, for that type of devices"),
)
"""Sorted by name."""

_BY_NAME = {part.name: part for part in PARTS}


def part_of(path: str) -> Part:
    """The part that a name such as ``torch.fx.Graph`` belongs to."""
    while path not in _BY_NAME:
        path = path.rpartition(".")[0] or "torch"
    return _BY_NAME[path]


def reason(path: str) -> str:
    """Why a name is not there, or what there is instead."""
    return part_of(path).text
