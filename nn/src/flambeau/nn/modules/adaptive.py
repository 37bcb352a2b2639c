"""A softmax over very many classes, most of them rare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.module import Module
from flambeau.nn.modules.container import ModuleList, Sequential
from flambeau.nn.modules.linear import Linear

Device = fb.device | str | int | None


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax in two stages: frequent classes and clusters of rare ones, then inside a cluster.

    Classes are ordered by frequency, the most frequent first.  Those below ``cutoffs[0]`` are in
    the head; cluster i has those from ``cutoffs[i]`` on, below the next cutoff, and works on
    ``in_features // div_value ** (i + 1)`` features (Grave, Joulin, Cissé, Grangier & Jégou, 2017).

    Shapes: input (N, in_features) or (in_features), target (N) or (); the results are the
    log-probability of each target, as target, and the loss, their negative mean, ().

    Raises:
        ValueError: `cutoffs` is empty, or not made of different ascending ints between 1 and
            n_classes - 1.

    >>> import flambeau as fb
    >>> layer = fb.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], div_value=2.0)
    >>> output, loss = layer(fb.randn(4, 8), fb.tensor([0, 3, 9, 1]))
    >>> output.shape, loss.shape
    (torch.Size([4]), torch.Size([]))
    """

    in_features: int
    n_classes: int
    cutoffs: list[int]
    div_value: float
    head_bias: bool
    head: Linear
    tail: ModuleList

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            any(int(c) != c for c in cutoffs)
            or cutoffs != sorted(set(cutoffs))
            or not 0 < cutoffs[0] <= cutoffs[-1] <= n_classes - 1
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                f"order, where each value is between 1 and n_classes-1, got {cutoffs} for "
                f"{n_classes} classes"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            inner = int(in_features // div_value ** (i + 1))
            outer = self.cutoffs[i + 1] - self.cutoffs[i]
            first = Linear(in_features, inner, False, device, dtype)
            self.tail.append(Sequential(first, Linear(inner, outer, False, device, dtype)))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for cluster in self.tail.children():
            for layer in cluster.children():
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """The log-probability of each target, and the loss.

        Raises:
            RuntimeError: the batch sizes differ, shapes do not fit, or a target is no class.
        """
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input_.dim() != target_.dim() + 1:
            raise RuntimeError(
                f"{target_.dim()}D target tensor expects {target_.dim() + 1}D input tensors, but "
                f"found inputs with size {input_.size()}"
            )
        batched = target_.dim() == 1
        if batched and input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        x = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if target.numel():
            low, high = int(target.min()), int(target.max())
            if low < 0 or high >= self.n_classes:
                raise RuntimeError(
                    f"Target values should be in [0, {self.n_classes - 1}], "
                    f"but values in range [{low}, {high}] were found. "
                )
        places = target.clone()  # among the head's outputs: the class itself or its cluster
        output = x.new_zeros(target.shape[0])
        for i, part in enumerate(self.tail):
            start, end = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= start) & (target < end)).nonzero().squeeze(1)
            if not rows.numel():
                continue
            inside = F.log_softmax(part(x.index_select(0, rows)), dim=1)
            chosen = inside.gather(1, target[rows].unsqueeze(1) - start).squeeze(1)
            output = output.index_copy(0, rows, chosen.to(output.dtype))
            places = places.index_fill(0, rows, self.shortlist_size + i)
        head = F.log_softmax(self.head(x), dim=1)
        output = output + head.gather(1, places.unsqueeze(1)).squeeze(1)
        loss = -output.mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes.

        Shapes: input (N, in_features), result (N, n_classes).

        >>> import flambeau as fb
        >>> layer = fb.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], div_value=2.0)
        >>> layer.log_prob(fb.randn(4, 8)).exp().sum(1).detach().round(decimals=3)
        tensor([1., 1., 1., 1.])
        """
        return self._log_probs(input, self.head(input))

    def _log_probs(self, input: Tensor, head: Tensor) -> Tensor:
        first = F.log_softmax(head, dim=1)
        parts = [first[:, : self.shortlist_size]]
        for i, part in enumerate(self.tail):
            place = self.shortlist_size + i
            parts.append(F.log_softmax(part(input), dim=1) + first[:, place : place + 1])
        return fb.cat(parts, dim=1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row; clusters that the head does not prefer wait.

        Shapes: input (N, in_features), result (N).

        >>> import flambeau as fb
        >>> layer = fb.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], div_value=2.0)
        >>> x = fb.randn(4, 8)
        >>> (layer.predict(x) == layer.log_prob(x).argmax(1)).shape
        torch.Size([4])
        """
        head = self.head(input)
        output = head.argmax(1)
        rare = output >= self.shortlist_size
        if not bool(rare.any()):
            return output
        rows = rare.nonzero().squeeze(1)
        best = self._log_probs(input[rows], head[rows]).argmax(1)
        return output.index_copy(0, rows, best)
