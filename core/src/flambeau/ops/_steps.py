"""The canonical ops that change lists of tensors: optimiser steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._modes import recording
from flambeau._tensor import Tensor
from flambeau._views import storage_of
from flambeau.ops import optimizer
from flambeau.ops._table import Op


class StepOp(Op):
    """An update of several lists of tensors in place, by one kernel where the backend has one.

    Where autograd records, or tensors stand among the plain arguments or on several devices, the
    body
    runs instead, tensor by tensor.
    """

    def __init__(self, body: Callable[..., None], *, lists: int, reads: int) -> None:
        super().__init__(body, "composite", differentiable=False)
        self._lists = lists  # how many arguments are lists of tensors
        self._reads = reads  # which of them is only read

    def decomposed(self, be: Any) -> Callable[..., Any]:
        """Not a function of native arrays: without a kernel the body runs on tensors."""

        def refuse(*args: Any) -> Any:
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
        if (
            kernel is None
            or recording()
            or any(t._be is not be for tensors in lists for t in tensors)
            or any(isinstance(x, Tensor) for x in plain)
        ):
            self.body(*args)
            return
        kernel(*[[t._a for t in tensors] for tensors in lists], *plain)
        for i, tensors in enumerate(lists):
            if i != self._reads:
                for t in tensors:
                    storage_of(t).version += 1


sgd_step_ = StepOp(optimizer.sgd_step_, lists=3, reads=1)
adam_step_ = StepOp(optimizer.adam_step_, lists=6, reads=1)
