"""The canonical ops that change lists of tensors: optimiser steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import recording
from flambeau._dispatch.dispatch import kernel_error
from flambeau._memory.views import storage_of
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.table import Op
from flambeau.ops.optimisers import optimizer, optimizer_adaptive
from flambeau.plugin.accelerator import Accelerator

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend


_NUMBERS = ("steps", "etas", "mus", "mu_products")  # lists of a 0-d tensor per parameter


class StepOp(Op):
    """An update of several lists of tensors in place, by one kernel where the backend has one.

    Where autograd records, or tensors stand among the plain arguments or on several devices, the
    body runs instead, tensor by tensor.  The numbers that a parameter has (the count of its steps,
    rates) may be on the host: an accelerator's kernel is then told the numbers of the steps that
    are made, and the others in lists of floats, which it changes.
    """

    def __init__(self, body: Callable[..., None]) -> None:
        super().__init__(body, "composite", differentiable=False)
        # The lists stand first: parameters, gradients, state.
        self._lists = list(body.__annotations__.values()).count("Sequence[Tensor]")
        names = list(body.__annotations__)
        self._counts = names.index("steps") if "steps" in names else None
        self._numbers = tuple(names.index(n) for n in _NUMBERS if n in names)

    def decomposed(self, be: BoundBackend) -> Callable[..., Any]:
        """Not a function of native arrays: without a kernel the body runs on tensors."""

        def refuse(*args: object) -> object:
            raise NotImplementedError(
                f"{self.name} changes tensors and has no kernel on {be.device}"
            )

        return refuse

    def _run(self, *args: Any) -> None:
        lists, plain = args[: self._lists], args[self._lists :]
        if not lists[0]:
            return
        be = lists[0][0]._be
        kernel = be.kernels.get(self.name)
        told = self._numbers if self._counted_on_host(be, lists) else ()
        if (
            kernel is None
            or recording()
            or any(t._be is not be for i, some in enumerate(lists) if i not in told for t in some)
            or any(isinstance(x, Tensor) for x in plain)
        ):
            self._by_body(args)
            return
        if not getattr(kernel, "checks", False):
            self._check(lists)
        natives: list[list[Any]] = [[t._a for t in tensors] for tensors in lists]
        for i in told:
            first = i == self._counts
            natives[i] = [(t.add_(1) if first else t).item() for t in lists[i]]
        try:
            kernel(*natives, *plain)
        except (RuntimeError, *be.error) as error:
            self._check(lists)
            raise kernel_error(self.name, error, args) from error
        for i in told:
            if i != self._counts:
                for t, value in zip(lists[i], natives[i], strict=True):
                    t.fill_(value)
        for i, tensors in enumerate(lists):
            if i != 1 and i not in told:
                for t in tensors:
                    storage_of(t).version += 1

    def _by_body(self, args: tuple[Any, ...]) -> None:
        self.body(*args)

    def _check(self, lists: tuple[Any, ...]) -> None:
        """Refuse gradients and state that have not the shape of their parameter.

        A kernel whose attribute ``checks`` is true refuses them itself, with any exception: this
        then words it, and a step in which all is well does not pay for looking twice.
        """
        for i, tensors in enumerate(lists):
            if i in self._numbers or not tensors:
                continue
            for param, t in zip(lists[0], tensors, strict=True):
                if t._a.shape != param._a.shape:
                    raise RuntimeError(
                        f"{self.name}: a parameter has shape {tuple(param._a.shape)}, and its "
                        f"entry of {self.params[i]} {tuple(t._a.shape)}"
                    )

    def _counted_on_host(self, be: BoundBackend, lists: tuple[Any, ...]) -> bool:
        """Whether the tensors are an accelerator's and the numbers that they have the host's."""
        if self._counts is None or not isinstance(be.backend, Accelerator):
            return False
        numbers = (t for i in self._numbers for t in lists[i])
        return all(t._be is not be and t._be.device.type == "cpu" for t in numbers)


for _body in (
    optimizer.sgd_step_,
    optimizer.asgd_step_,
    optimizer.adam_step_,
    optimizer_adaptive.rmsprop_step_,
    optimizer_adaptive.adagrad_step_,
    optimizer_adaptive.adadelta_step_,
    optimizer_adaptive.adamax_step_,
    optimizer_adaptive.nadam_step_,
    optimizer_adaptive.radam_step_,
    optimizer_adaptive.rprop_step_,
):
    StepOp(_body)
