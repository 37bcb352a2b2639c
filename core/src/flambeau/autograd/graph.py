"""The recorded graph: its nodes and edges, and what becomes of the tensors that it saves.

>>> import flambeau as fb
>>> x = fb.ones(3, requires_grad=True)
>>> with fb.autograd.graph.save_on_cpu():
...     y = (x * x).sum()
>>> y.backward(); x.grad
tensor([2., 2., 2.])
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flambeau._autograd.engine import queue_callback
from flambeau._autograd.node import AccumulateGrad, GradientEdge, Node, Out, RemovableHandle
from flambeau._dispatch import dispatch as _dispatch
from flambeau._memory.views import edge, storage_of
from flambeau._tensor.tensor import Tensor
from flambeau.autograd._packing import Hooks, hooks, pack_node

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class saved_tensors_hooks:  # noqa: N801 - PyTorch's name
    """Context in which what ops save for backward goes through a pair of functions.

    ``pack_hook(tensor)`` is called when an op saves a tensor and returns anything, which is kept
    instead; ``unpack_hook(packed)`` is called when backward needs it and returns a tensor of the
    same values.  Of several blocks the innermost counts, and only for its thread.  What is saved
    as a number, shape or position is not packed.  Writes to packed tensors are not noticed.

    Args:
        pack_hook: called without recording; it must not write to its argument.
        unpack_hook: called in backward, once each time the values are needed.

    Raises:
        RuntimeError: on entering, where hooks are disabled; in the block, if `pack_hook` writes
            to its argument.
        TypeError: in backward, if `unpack_hook` returns no tensor.

    >>> import flambeau as fb
    >>> x = fb.tensor([3.0], requires_grad=True)
    >>> with fb.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), fb.tensor):
    ...     y = x * x
    >>> y.backward(); x.grad
    tensor([6.])
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if hooks.refusal is not None:
            raise RuntimeError(hooks.refusal)
        _dispatch.packing = pack_node
        _dispatch.shift_modes(+1)
        hooks.stack = (*hooks.stack, Hooks(self.pack_hook, self.unpack_hook))

    def __exit__(self, *exc: object) -> None:
        hooks.stack = hooks.stack[:-1]
        _dispatch.shift_modes(-1)


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - PyTorch's name
    """Context in which what ops save for backward waits in the memory of the CPU.

    Args:
        pin_memory: in page-locked memory, from where copies to the device need not be waited for.
        device_type: of the device for which memory is page-locked.

    >>> import flambeau as fb
    >>> x = fb.ones(2, requires_grad=True)
    >>> with fb.autograd.graph.save_on_cpu():
    ...     y = x.exp()
    >>> y.sum().backward(); x.grad
    tensor([2.7183, 2.7183])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(t: Tensor) -> tuple[Any, Tensor]:
            host = t.detach().cpu()
            if pin_memory and t.device.type == device_type:
                host = host.pin_memory()
            return t.device, host

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, host = packed
            return host.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A block in which entering `saved_tensors_hooks` raises RuntimeError with this message.

    Raises:
        RuntimeError: the block itself is within one of `saved_tensors_hooks`.

    >>> import flambeau as fb
    >>> with fb.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     with fb.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
    RuntimeError: not here
    """
    if hooks.stack:
        raise RuntimeError(error_message)
    before = hooks.refusal
    hooks.refusal = error_message
    try:
        yield
    finally:
        hooks.refusal = before


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[None]:
    """A block in which tensors may be written to that an op has saved: it saves copies.

    >>> import flambeau as fb
    >>> x = fb.ones(2, requires_grad=True)
    >>> with fb.autograd.graph.allow_mutation_on_saved_tensors():
    ...     a = x * 3
    ...     y = (a * a).sum()
    ...     _ = a.zero_()
    >>> y.backward(); x.grad
    tensor([18., 18.])
    """
    with saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        yield


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of a tensor goes.

    Raises:
        RuntimeError: the tensor does not require a gradient.

    >>> import flambeau as fb
    >>> x = fb.ones(2, requires_grad=True)
    >>> y = x * 3
    >>> place = fb.autograd.graph.get_gradient_edge(y)
    >>> place.node.name(), place.output_nr
    ('MulBackward0', 0)
    >>> fb.autograd.grad((y * y).sum(), place)
    (tensor([6., 6.]),)
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    end = edge(tensor)
    if not isinstance(end, Node):
        return GradientEdge(AccumulateGrad(tensor), 0, tensor)
    # The shape without the values: one number, seen as many.
    be = tensor._be
    shape = tuple(tensor._a.shape)
    empty = tensor._same_history(be.expand(be.full((), 0, tensor.dtype), shape))
    if isinstance(end, Out):
        return GradientEdge(end.node, end.index, empty)
    return GradientEdge(end, 0, empty)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write to the memory of tensors, as an in-place op does.

    For code that writes to memory behind the back of the library.

    >>> import flambeau as fb
    >>> x = fb.ones(2)
    >>> fb.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for t in [tensor] if isinstance(tensor, Tensor) else tensor:
        storage_of(t).version += 1


class _Gathered(threading.local):
    """The gradients that a multi-gradient hook has seen in the present pass of a thread."""

    grads: list[Any] | None = None


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[[Sequence[Tensor | None]], None] | Callable[[Tensor], None],
    *,
    mode: str = "all",
) -> RemovableHandle:
    """Call a function with the gradients of several tensors, in every backward pass.

    Args:
        tensors: each of which requires a gradient.
        fn: for "all" it is called at the end of a pass that reached any of the tensors, with one
            gradient or None for each; for "any", with the first gradient, when it is there.
        mode: "all" or "any".

    Returns:
        A handle whose ``remove()`` takes the hook out.

    Raises:
        ValueError: another mode.
        RuntimeError: a tensor does not require a gradient.

    >>> import flambeau as fb
    >>> a, b = fb.ones(2, requires_grad=True), fb.ones(2, requires_grad=True)
    >>> handle = fb.autograd.graph.register_multi_grad_hook(
    ...     (a, b), lambda grads: print([g is None for g in grads]))
    >>> (a * 2).sum().backward()
    [False, True]
    >>> handle.remove()
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    gathered = _Gathered()
    count = len(tensors)

    def finish() -> None:
        grads, gathered.grads = gathered.grads, None
        if mode == "all" and grads is not None:
            fn(grads)  # type: ignore[arg-type] - as `mode` says

    def seen(index: int, grad: Tensor) -> None:
        if gathered.grads is None:
            gathered.grads = [None] * count
            queue_callback(finish)
            if mode == "any":
                fn(grad)  # type: ignore[arg-type] - as `mode` says
        gathered.grads[index] = grad

    def hook_of(index: int) -> Callable[[Tensor], None]:
        return lambda grad: seen(index, grad)

    return _Handles([t.register_hook(hook_of(i)) for i, t in enumerate(tensors)])


class _Handles(RemovableHandle):
    """Removes several hooks."""

    def __init__(self, handles: list[RemovableHandle]) -> None:
        self.id = next(RemovableHandle._next_id)
        self._handles = handles

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
