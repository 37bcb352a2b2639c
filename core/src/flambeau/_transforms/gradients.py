"""The level of reverse mode: tensors with a history of their own, over those below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from flambeau._autograd import engine
from flambeau._autograd.modes import recording, set_recording
from flambeau._dispatch.dispatch import wrap
from flambeau._memory.views import edge
from flambeau._transforms.levels import Level, level_of, now

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor


class GradLevel(Level):
    """One call of `grad`, `vjp` and the like.

    What happens in it is recorded on its own tensors; the levels below record as they did when it
    began, so that neither a ``no_grad`` inside nor the backward pass of this level keeps them from
    it.
    """

    name = "GradTrackingTensor"

    def __enter__(self) -> Self:
        self.records = recording()
        set_recording(True)
        return super().__enter__()

    def __exit__(self, *exc: object) -> None:
        assert self.records is not None
        set_recording(self.records)
        super().__exit__(*exc)

    def input(self, t: Tensor) -> Tensor:
        """A tensor below as one of this level for which there are gradients."""
        own = self.lift(t)
        self._arguments.append((own, t))
        own.requires_grad_()
        return own

    def gradients(
        self,
        outputs: Sequence[Tensor],
        inputs: Sequence[Tensor],
        weights: Sequence[Tensor],
        *,
        create_graph: bool = False,
    ) -> list[Tensor | None]:
        """vᵀJ of outputs of this level with respect to inputs, for weights of the levels below.

        The result is of the levels below, but of this one under `create_graph`.
        """
        pairs = [
            (out, w)
            for out, w in zip(outputs, weights, strict=True)
            if level_of(out) is self and edge(out) is not None
        ]
        if not pairs:
            return [None] * len(inputs)
        before = recording()
        self.records, kept = before if self not in now.stack else self.records, self.records
        try:
            found = engine.run(
                [out for out, _ in pairs],
                [w if level_of(w) is self else self._like(w, out) for out, w in pairs],
                retain_graph=True,
                create_graph=create_graph,
                inputs=inputs,
                accumulate=False,
            )
        finally:
            self.records = kept
        if create_graph:
            return found
        return [None if g is None else self.lower(g) for g in found]

    def _like(self, w: Tensor, out: Tensor) -> Tensor:
        return wrap(out._be, self.array(w), w.dtype)
