"""Functions as PyTorch 1.2 had them, for programs that are told that it is here.

Each stands for one of today's while `flambeau.compat._era.era` says so, and is made of it.
"""

from __future__ import annotations

import importlib
import inspect
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce, wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.autograd import Function

if TYPE_CHECKING:
    from flambeau._types.memory_format import memory_format as MemoryFormat


Make = Callable[[Callable[..., Any]], Callable[..., Any]]

_ABSENT: Any = object()
_EARLIER: list[tuple[str, str, Make]] = []
"""A module, the path of a function in it, and what makes the older one of it."""


@contextmanager
def earlier() -> Iterator[None]:
    """A block in which the functions are the older ones."""
    before: list[tuple[Any, str, Any]] = []
    try:
        for module, path, make in _EARLIER:
            try:
                owner = importlib.import_module(module)
            except ModuleNotFoundError:
                continue  # flambeau.nn is a distribution of its own
            *above, name = path.split(".")
            owner = reduce(getattr, above, owner)
            before.append((owner, name, vars(owner).get(name, _ABSENT)))
            today = getattr(owner, name)
            made = make(today)
            if isinstance(made, FunctionType):
                made._function = today  # type: ignore[attr-defined] - what scripts take it for
            setattr(owner, name, made)
        yield
    finally:
        for owner, name, value in reversed(before):
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def _instead_of(*places: str) -> Callable[[Make], Make]:
    """A decorator: what it makes of today's functions stands for them (``module:path``)."""

    def note(make: Make) -> Make:
        _EARLIER.extend((*place.split(":"), make) for place in places)  # type: ignore[misc]
        return make

    return note


def _errors(
    raised: type[Exception],
    *caught: type[Exception],
    word: str = "",
    older: str = "",
) -> Make:
    """One class of errors becomes another where their text has a word, and perhaps the word."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            try:
                return function(*args, **kwargs)
            except caught as error:
                if word not in str(error):
                    raise
                raise raised(str(error).replace(word, older or word)) from None

        return call

    return make


_instead_of("flambeau:cat", "flambeau:rot90", "flambeau:Tensor.rot90")(
    _errors(RuntimeError, ValueError, IndexError)
)
_instead_of("flambeau:norm", "flambeau:Tensor.norm")(_errors(RuntimeError, IndexError))
_instead_of("flambeau:cross", "flambeau:Tensor.cross")(
    _errors(
        RuntimeError,
        RuntimeError,
        word="inputs must have the same number of dimensions",
        older="inconsistent tensors dimensions",
    )
)
_instead_of("flambeau:cross", "flambeau:Tensor.cross")(
    _errors(
        RuntimeError,
        RuntimeError,
        word="The size of tensor a",
        older="inconsistent tensors sizes: the size of tensor a",
    )
)
_instead_of("flambeau:cross", "flambeau:Tensor.cross")(
    _errors(RuntimeError, RuntimeError, word="must have length 3", older="does not have size 3")
)


@_instead_of("flambeau:norm")
def _(norm: Callable[..., Any]) -> Callable[..., object]:
    @wraps(norm)
    def checked(input: object, p: object = "fro", *args: object, **kwargs: object) -> object:
        try:
            return norm(input, p, *args, **kwargs)
        except RuntimeError as error:
            if p != "nuc":
                raise
            raise RuntimeError(f"duplicate or invalid dimensions: {error}") from None

    return checked


@_instead_of("flambeau:empty_like")
def _(empty_like: Callable[..., Any]) -> Callable[..., object]:
    @wraps(empty_like)
    def of_dense(
        input: Any, *, memory_format: MemoryFormat | None = None, **kwargs: object
    ) -> object:
        if memory_format is not None and input.is_sparse:
            raise RuntimeError("memory format option is only supported by strided tensors")
        return empty_like(input, memory_format=memory_format, **kwargs)

    return of_dense


_SPARSE = "flambeau.sparse._coo:SparseTensor"
_instead_of("flambeau:is_nonzero", "flambeau:Tensor.is_nonzero", f"{_SPARSE}.is_nonzero")(
    _errors(RuntimeError, RuntimeError, word="Boolean value", older="bool value")
)


_NO_IDENTITY = ("Expected reduction dim", "operation does not have an identity: expected a dim")
_instead_of(*(f"flambeau:{name}" for name in ("max", "min", "argmax", "argmin")))(
    _errors(RuntimeError, RuntimeError, IndexError, word=_NO_IDENTITY[0], older=_NO_IDENTITY[1])
)
_instead_of("flambeau:tensor")(
    _errors(TypeError, TypeError, word="positional argument:", older="positional arguments:")
)


_F = "flambeau.nn.functional"
_CONVOLUTIONS = [f"{_F}:conv{n}d" for n in (1, 2, 3)]
_instead_of(*_CONVOLUTIONS)(
    _errors(RuntimeError, RuntimeError, word="non-positive", older="negative")
)
_instead_of(f"{_F}:pad")(_errors(AssertionError, RuntimeError, word="Padding length"))
_instead_of(f"{_F}:poisson_nll_loss")(
    _errors(ValueError, ValueError, word="is not a valid", older="is not valid: no")
)
_instead_of(f"{_F}:grid_sample")(
    _errors(RuntimeError, RuntimeError, word="grid of one dtype", older="grid to have same dtype")
)
_instead_of(f"{_F}:embedding_bag")(
    _errors(
        RuntimeError,
        RuntimeError,
        word="to have the dtype",
        older="to have the same type as weight:",
    )
)


@_instead_of(f"{_F}:fold")
def _(fold: Callable[..., Any]) -> Callable[..., object]:
    @wraps(fold)
    def of_batches(input: Any, *args: object, **kwargs: object) -> object:
        if input.dim() != 3:
            raise NotImplementedError(
                f"Input Error: Only 3D input Tensors are supported (got {input.dim()}D)"
            )
        return fold(input, *args, **kwargs)

    return of_batches


@_instead_of("flambeau:Tensor.__deepcopy__")
def _(deepcopy: Callable[..., Any]) -> Callable[..., object]:
    """Gradients are not copied."""

    @wraps(deepcopy)
    def without_gradient(self: object, memo: object) -> object:
        found = deepcopy(self, memo)
        found._grad = None
        return found

    return without_gradient


@_instead_of("flambeau.nn:Module.zero_grad", "flambeau.optim:Optimizer.zero_grad")
def _(zero_grad: Callable[..., Any]) -> Callable[..., object]:
    """Gradients become zeros, and do not go."""

    @wraps(zero_grad)
    def to_zeros(self: object, set_to_none: bool = False) -> None:
        zero_grad(self, set_to_none)

    return to_zeros


@_instead_of("flambeau.optim:Optimizer.state_dict")
def _(state_dict: Callable[..., Any]) -> Callable[..., object]:
    """Counts of steps are whole numbers, which do not go on when the optimiser does."""

    @wraps(state_dict)
    def with_counts(self: object) -> object:
        found = state_dict(self)
        counts = {
            key: {**of, "step": int(of["step"])} if isinstance(of, dict) and "step" in of else of
            for key, of in found["state"].items()
        }
        return {**found, "state": counts}

    return with_counts


@_instead_of("flambeau:permute")
def _(permute: Callable[..., Any]) -> Callable[..., object]:
    """Dimensions are also given one by one."""

    @wraps(permute)
    def of_several(input: object, *dims: object, **kwargs: object) -> Any:
        return permute(input, *((dims,) if len(dims) > 1 else dims), **kwargs)

    return of_several


@_instead_of(f"{_SPARSE}.to_sparse")
def _(to_sparse: Callable[..., Any]) -> Callable[..., object]:
    @wraps(to_sparse)
    def of_dense(self: object, *args: object, **kwargs: object) -> object:
        raise RuntimeError("to_sparse is not implemented for sparse tensors")

    return of_dense


@_instead_of("flambeau.optim.lr_scheduler:CyclicLR.__init__")
def _(init: Callable[..., Any]) -> Callable[..., object]:
    """Only what is called momentum goes up and down."""

    @wraps(init)
    def checked(self: object, optimizer: Any, *args: object, **kwargs: object) -> None:
        cycles = inspect.signature(init).bind(self, optimizer, *args, **kwargs).arguments
        if cycles.get("cycle_momentum", True) and "momentum" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum with `cycle_momentum` option enabled")
        init(self, optimizer, *args, **kwargs)

    return checked


class _Legacy(Function):
    """An object with ``forward`` and ``backward``, which are not static, as one call."""

    @staticmethod
    def forward(ctx: Any, function: Any, *inputs: Any) -> Any:
        ctx.function = function
        function.needs_input_grad = ctx.needs_input_grad[1:]
        for name in _OF_CONTEXTS:
            setattr(function, name, getattr(ctx, name))
        try:
            return function.forward(*inputs)
        finally:
            for name in _OF_CONTEXTS:  # which would keep the context alive
                delattr(function, name)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: object) -> tuple[Any, ...]:
        ctx.function.saved_tensors = ctx.saved_tensors
        grads = ctx.function.backward(*grad_outputs)
        return (None, *(grads if isinstance(grads, tuple) else (grads,)))


_OF_CONTEXTS = ("save_for_backward", "mark_dirty", "mark_non_differentiable")


@_instead_of("flambeau.autograd:Function.__init__")
def _(init: Callable[..., Any]) -> Callable[..., object]:
    """Objects are of use."""

    @wraps(init)
    def quiet(self: object, *args: object, **kwargs: object) -> None:
        pass

    return quiet


@_instead_of("flambeau.autograd:Function.__call__")
def _(refuse: Callable[..., Any]) -> Callable[..., object]:
    """Objects are functions, with a warning."""

    @wraps(refuse)
    def call(self: object, *inputs: object) -> Any:
        if isinstance(inspect.getattr_static(type(self), "forward"), staticmethod):
            return refuse(self, *inputs)
        warnings.warn(
            "Legacy autograd function with non-static forward method is deprecated and will be "
            "removed in 1.3. Please use new-style autograd function with static forward method. "
            "(Example: https://pytorch.org/docs/stable/notes/extending.html#extending-torch-autograd)",
            stacklevel=2,
        )
        return _Legacy.apply(self, *inputs)

    return call


@_instead_of("flambeau:lu", "flambeau:Tensor.lu")
def _(lu: Callable[..., Any]) -> Callable[..., object]:
    @wraps(lu)
    def pivoting(A: Any, pivot: bool = True, *args: object, **kwargs: object) -> object:
        if not pivot and not A.is_cuda:
            raise RuntimeError("lu without pivoting is not implemented on the CPU")
        return lu(A, pivot, *args, **kwargs)

    return pivoting


@_instead_of("flambeau:Tensor.pin_memory")
def _(pin_memory: Callable[..., Any]) -> Callable[..., object]:
    """There is no page-locked memory without CUDA."""

    @wraps(pin_memory)
    def checked(self: object, *args: object, **kwargs: object) -> object:
        if not fb.accelerator.is_available():
            raise RuntimeError("Cannot initialize CUDA without a CUDA device: nothing is pinned")
        return pin_memory(self, *args, **kwargs)

    return checked


@_instead_of("flambeau:Tensor.clone")
def _(clone: Callable[..., Any]) -> Callable[..., object]:
    """Copies are in row-major order."""

    @wraps(clone)
    def row_major(self: Any, *, memory_format: MemoryFormat = fb.contiguous_format) -> object:
        return clone(self, memory_format=None if self.is_sparse else memory_format)

    return row_major


@_instead_of("flambeau:nonzero", "flambeau:Tensor.nonzero")
def _(nonzero: Callable[..., Any]) -> Callable[..., object]:
    @wraps(nonzero)
    def one_way(*args: object, as_tuple: object = False, **kwargs: object) -> object:
        if as_tuple and "out" in kwargs:
            raise TypeError("nonzero() received an invalid combination of arguments: as_tuple, out")
        return nonzero(*args, as_tuple=as_tuple, **kwargs)

    return one_way


@_instead_of("flambeau:mvlgamma", "flambeau:Tensor.mvlgamma")
def _(mvlgamma: Callable[..., Any]) -> Callable[..., object]:
    """The argument is in the domain."""

    @wraps(mvlgamma)
    def checked(input: Any, p: int, **kwargs: object) -> object:
        if not bool((input > 0.5 * (p - 1)).all()):
            raise RuntimeError("Condition for computing multivariate log-gamma not met")
        return mvlgamma(input, p, **kwargs)

    return checked


@_instead_of("flambeau:lu_solve", "flambeau:Tensor.lu_solve")
def _(lu_solve: Callable[..., Any]) -> Callable[..., object]:
    """Vectors are rows of a matrix, with a warning."""

    @wraps(lu_solve)
    def of_vectors(input: Any, LU_data: Any, LU_pivots: object, **kwargs: object) -> object:
        if input.dim() == 2 and LU_data.dim() == 3:
            warnings.warn(
                "Passing RHS tensor with number of dimensions = 2 is deprecated: make it one of 3",
                stacklevel=2,
            )
            return lu_solve(input.unsqueeze(2), LU_data, LU_pivots, **kwargs).squeeze(2)
        return lu_solve(input, LU_data, LU_pivots, **kwargs)

    return of_vectors


@_instead_of("flambeau.utils.data:RandomSampler.__init__")
def _(init: Callable[..., Any]) -> Callable[..., object]:
    """A number of samples is for drawing with replacement."""

    @wraps(init)
    def checked(
        self: object,
        data_source: object,
        replacement: bool = False,
        num_samples: int | None = None,
        *args: object,
        **kwargs: object,
    ) -> None:
        if num_samples is not None and not replacement:
            raise ValueError(
                "With replacement=False, num_samples should not be specified, since a random "
                "permute will be performed."
            )
        init(self, data_source, replacement, num_samples, *args, **kwargs)

    return checked


@_instead_of("flambeau.utils.data:DataLoader.__len__")
def _(length: Callable[..., Any]) -> Callable[..., object]:
    """Streams have none."""

    @wraps(length)
    def checked(self: Any) -> int:
        if isinstance(self.dataset, fb.utils.data.IterableDataset):
            raise TypeError("Cannot determine the DataLoader length of a IterableDataset")
        return length(self)

    return checked


@_instead_of("flambeau.utils.data:DataLoader.__init__")
def _(init: Callable[..., Any]) -> Any:
    """A context that is none is a wrong value, not a wrong type."""
    word = "multiprocessing_context"
    return _errors(ValueError, TypeError, word=word, older=word)(init)


@_instead_of("flambeau.utils.checkpoint:checkpoint_sequential")
def _(checkpoint_sequential: Callable[..., Any]) -> Callable[..., object]:
    """The first function may have several arguments, or none, with a warning."""

    @wraps(checkpoint_sequential)
    def of_several(functions: Any, segments: int, *inputs: object, **kwargs: object) -> Any:
        if len(inputs) == 1:
            return checkpoint_sequential(functions, segments, *inputs, **kwargs)
        warnings.warn(
            "checkpoint_sequential with another number of inputs than one is deprecated",
            DeprecationWarning,
            stacklevel=2,
        )
        parts = list(functions.children() if hasattr(functions, "children") else functions)

        def spread(first: Callable[..., Any]) -> Callable[..., Any]:
            def run(given: object) -> Any:
                return first(*given) if type(given) is tuple else first(given)

            return run

        size, value = len(parts) // segments, inputs
        for start in range(0, size * segments, size):
            stop = len(parts) if start == size * (segments - 1) else start + size
            piece = [spread(part) for part in parts[start:stop]]

            def run(*given: object, piece: Any = piece) -> Any:
                found = given
                for part in piece:
                    found = part(found)
                return found

            last = stop == len(parts)
            value = (
                run(*value)
                if last
                else fb.utils.checkpoint.checkpoint(run, *value, use_reentrant=True)
            )
            if not last and type(value) is not tuple:
                value = (value,)
        return value

    return of_several


@_instead_of("flambeau.serialization:load")
def _(load: Callable[..., Any]) -> Callable[..., object]:
    """Byte strings of Python 2 are ASCII, and files can be read twice."""

    @wraps(load)
    def of_ascii(f: object, *args: object, encoding: str = "ascii", **kwargs: object) -> object:
        if not isinstance(f, (str, bytes, os.PathLike)):
            for name in ("seek", "tell"):
                if not hasattr(f, name):
                    raise AttributeError(
                        f"{type(f).__name__} has no {name!r}. You can only torch.load from a file "
                        "that is seekable. Please pre-load the data into a buffer like io.BytesIO "
                        "and try to load from it instead."
                    )
        try:
            return load(f, *args, encoding=encoding, **kwargs)
        except fb.serialization.CheckpointError as error:
            if isinstance(error.__cause__, UnicodeDecodeError):
                raise error.__cause__ from None
            raise

    return of_ascii


@_instead_of("flambeau.autograd:grad")
def _(grad: Callable[..., Any]) -> Callable[..., object]:
    """Gradients of no inputs are none, and those of the leaves are added to what they have."""

    @wraps(grad)
    def of_leaves(
        outputs: Any, inputs: Any, grad_outputs: Any = None, *rest: object, **named: object
    ) -> Any:
        if not isinstance(inputs, (list, tuple)) or inputs:
            return grad(outputs, inputs, grad_outputs, *rest, **named)
        fb.autograd.backward(outputs, grad_outputs)
        return ()

    return of_leaves
