"""Argument names of NumPy, which PyTorch's own functions take as well: ``x.sum(axis=0)``.

Python tells nobody that a call has failed for a name before it has failed, and to ask in each
function would cost those who never use another name. So the code that a program runs is looked
through, module by module: where it has such a name, the functions that it mentions run code that
takes it. All others, and all functions of all other programs, are what they are.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

import flambeau
from flambeau._api import functions, inplace_functions
from flambeau._dispatch.codes import code_that_calls, stand_ins, twin
from flambeau._tensor.methods import TensorMethods
from flambeau._tensor.overrides import Overridable
from flambeau._tensor.tensor import Tensor
from flambeau.amp._switch import moved
from flambeau.plugin.forks import make_lock

SPELLINGS = {
    "axis": "dim",
    "keepdims": "keepdim",
    "x": "input",
    "a": "input",
    "x1": "input",
    "x2": "other",
}
"""NumPy's names and PyTorch's."""

# What documents call the argument that PyTorch takes as `input`: `linalg.eigh(A)`.
_OPERANDS = frozenset({"A", "x"})
_WIDE = frozenset({"axis", "keepdims"})  # names that are hardly used for anything else

# Arguments that today's PyTorch has not got, older ones had, and flambeau takes.
_REFUSED = frozenset({("pow", "other"), ("pow_", "other")})

WRITTEN_IN_PYTHON = frozenset(
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod "
    "cdist chain_matmul einsum from_dlpack lobpcg lu meshgrid norm pca_lowrank split stft "
    "svd_lowrank tensordot unique unique_consecutive unravel_index".split()
)
"""Functions of PyTorch that take their own names alone."""

METHODS_WRITTEN_IN_PYTHON = frozenset(
    "backward dim_order eig index istft lstsq lu norm reinforce resize resize_as solve split "
    "stft symeig to_sparse_coo unflatten unique unique_consecutive".split()
)
"""Methods that do."""

OF_LAYERS = frozenset(
    "adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear celu_ channel_shuffle conv1d "
    "conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity "
    "elu_ gelu hardshrink hardtanh_ leaky_relu_ linear logsigmoid one_hot pairwise_distance pdist "
    "pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ scaled_dot_product_attention selu_ softplus "
    "softshrink threshold_".split()
)
"""Functions of ``torch.nn.functional`` that take NumPy's names, as most of these do not."""

_NAMESPACES = frozenset({"fft", "linalg", "special"})
_HOME = os.path.dirname(flambeau.__file__) + os.sep
_lock = make_lock()
_open = 0  # blocks of `spellings_noticed`
_watching = False


@contextmanager
def spellings_noticed() -> Iterator[None]:
    """A block in which programs that are loaded find functions that take the names they use."""
    global _open, _watching
    with _lock:
        _open += 1
        if not _watching:
            _watching = True
            sys.addaudithook(_executed)  # for good: nothing takes one away
    try:
        yield
    finally:
        with _lock:
            _open -= 1
            if not _open:
                for function in list(_ours):
                    _restore(function)


def _executed(event: str, args: tuple[Any, ...]) -> None:
    if event == "exec" and _open and isinstance(args[0], CodeType):
        if not args[0].co_filename.startswith(_HOME):
            accept(mentioned(args[0]))


def mentioned(code: CodeType) -> set[str]:
    """The names in a module beside which it has one of NumPy's, as far as code tells."""
    found: set[str] = set()
    everything: set[str] = set()
    wide = False
    for each in _codes(code):
        words = {c for c in each.co_consts if isinstance(c, str)}
        keywords = {n for c in each.co_consts if type(c) is tuple for n in c if type(n) is str}
        names = words.union(*(name.split(".") for name in each.co_names))
        everything |= names
        if not SPELLINGS.keys().isdisjoint(keywords):
            found |= names
        wide = wide or not _WIDE.isdisjoint(keywords | words)
    return everything if wide else found | (everything & _NAMESPACES if found else set())


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def accept(names: Iterable[str]) -> None:
    """Let the functions and methods of these names take NumPy's names until the block ends."""
    names = set(names)
    if not names:
        return
    for below in names & _NAMESPACES:
        getattr(flambeau, below)  # which imports it: not while others wait for the lock
    with _lock:
        for name in names:
            for function in _found(name):
                if function not in stand_ins:
                    _replace(function)


def _found(name: str) -> Iterator[FunctionType]:
    if name.startswith("_"):
        return
    found: list[Any] = []
    if name not in WRITTEN_IN_PYTHON:
        found += [vars(place).get(name) for place in (flambeau, functions, inplace_functions)]
    if name not in METHODS_WRITTEN_IN_PYTHON:
        found += [vars(place).get(name) for place in (TensorMethods, Tensor)]
    for below in _NAMESPACES:
        if (place := sys.modules.get(f"flambeau.{below}")) is not None:
            found.append(vars(place).get(name))
    if name in OF_LAYERS and (place := sys.modules.get("flambeau.nn.functional")) is not None:
        found.append(vars(place).get(name))
    for function in found:
        if isinstance(function, Overridable):
            function = function._function
        if isinstance(function, FunctionType):
            yield function


_ours: set[FunctionType] = set()
_signatures: dict[FunctionType, Any] = {}
"""What was stated as the signature of each function that is replaced; None if nothing was."""


def _replace(function: FunctionType) -> None:
    signature = inspect.signature(function)
    names = _names(function, signature)
    if not names:
        return
    plain = twin(function)
    _signatures[function] = vars(function).get("__signature__")
    takes = code_that_calls(
        function.__code__, "*args, **kwargs", "*args, **kwargs", _respelling(plain, names)
    )
    function.__signature__ = signature  # type: ignore[attr-defined]
    stand_ins[function] = plain
    moved(function, plain)
    function.__code__ = takes
    _ours.add(function)


def _restore(function: FunctionType) -> None:
    plain = stand_ins.pop(function)
    moved(plain, function)
    function.__code__ = plain.__code__
    function.__signature__ = _signatures.pop(function)  # type: ignore[attr-defined]
    if vars(function)["__signature__"] is None:  # else one of several documented names
        del function.__signature__  # type: ignore[attr-defined]
    _ours.discard(function)


def _names(function: FunctionType, signature: inspect.Signature) -> dict[str, str]:
    """NumPy's names for arguments of a function, to its own."""
    parameters = signature.parameters
    first = next(iter(parameters), "")
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    names: dict[str, str] = {}
    for spelling, name in SPELLINGS.items():
        if name == "input" and first in _OPERANDS:
            name = first
        known = open_ended or name in parameters
        if spelling not in parameters and known and (function.__name__, name) not in _REFUSED:
            names[spelling] = name
    return names


def _respelling(plain: FunctionType, names: dict[str, str]) -> Callable[..., Any]:
    """A function that also takes these names for those of its arguments."""

    def call(*args: object, **kwargs: object) -> Any:
        if kwargs and not names.keys().isdisjoint(kwargs):
            for spelling in names.keys() & kwargs.keys():
                if names[spelling] not in kwargs:
                    kwargs[names[spelling]] = kwargs.pop(spelling)
        return plain(*args, **kwargs)

    return call
