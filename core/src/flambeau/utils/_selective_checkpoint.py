"""Checkpoints that keep the results of chosen ops, and compute the others again."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import flambeau as fb
from flambeau.utils._aten import Overload
from flambeau.utils._named_ops import CustomOp
from flambeau.utils._python_dispatch import TorchDispatchMode

__all__ = [
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]


class CheckpointPolicy(enum.Enum):
    """What becomes of an op's result between the two runs of a checkpointed function.

    It is kept (SAVE, CPU_OFFLOAD, the same here) or computed again (RECOMPUTE); MUST and PREFER
    differ for compilers only.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_AGAIN = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


class SelectiveCheckpointContext:
    """What a policy is told besides the op.

    Attributes:
        is_recompute: False; policies are asked in the first run only.
        op_output: what the op gave.
    """

    def __init__(self, *, is_recompute: bool, op_output: object = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class _Entry:
    """A result that is kept, with the versions of its tensors."""

    def __init__(self, result: object) -> None:
        self.result = result
        self.versions = _versions(result)

    def value(self, func: Callable[..., Any], may_have_changed: bool) -> object:
        if not may_have_changed and _versions(self.result) != self.versions:
            raise RuntimeError(
                f"the result of {func}, kept by a selective checkpoint, has been modified in place "
                "since; say allow_cache_entry_mutation=True if that is meant"
            )
        return self.result


def _versions(result: object) -> list[int]:
    several = result if isinstance(result, (list, tuple)) else (result,)
    return [t._version for t in several if isinstance(t, fb.Tensor)]


_Results = dict[Any, list["_Entry | None"]]
"""By op, in the order of its calls: what was kept, None for what is computed again."""


class _Keeping(TorchDispatchMode):
    """The first run."""

    def __init__(self, policy: Callable[..., Any], results: _Results) -> None:
        self._policy, self._results = policy, results

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Any = None,
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        chosen = self._policy(context, func, *args, **kwargs)
        again = not chosen if isinstance(chosen, bool) else chosen in _AGAIN
        self._results[func].append(None if again else _Entry(result))
        return result


class _Repeating(TorchDispatchMode):
    """The second run."""

    def __init__(self, results: _Results, may_have_changed: bool) -> None:
        self._results, self._may_have_changed = results, may_have_changed

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Any = None,
    ) -> Any:
        if not (waiting := self._results.get(func)):
            raise RuntimeError(
                f"{func} encountered during backward but not found in storage: the checkpointed "
                "function must do the same in both runs"
            )
        entry = waiting.pop(0)
        if entry is None:
            return func(*args, **(kwargs or {}))
        return entry.value(func, self._may_have_changed)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., Any] | Sequence[Any], allow_cache_entry_mutation: bool = False
) -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """Two contexts for `checkpoint`, by which the results of chosen ops are kept.

    Args:
        policy_fn_or_list: a function of a `SelectiveCheckpointContext`, an op as
            `TorchDispatchMode` sees it, and its arguments, which gives a `CheckpointPolicy`; or the
            ops whose results are kept, such as ``torch.ops.aten.mm.default``.
        allow_cache_entry_mutation: whether what is kept may be written to before backward.

    Raises:
        ValueError: the list has something else than overloads of ops.
        TypeError: it is neither a function nor a list.

    >>> import functools
    >>> import flambeau as fb
    >>> from flambeau.utils.checkpoint import *
    >>> keep = functools.partial(
    ...     create_selective_checkpoint_contexts,
    ...     lambda context, op, *args, **kwargs: CheckpointPolicy.PREFER_SAVE,
    ... )
    >>> x = fb.tensor([1.0, 2.0], requires_grad=True)
    >>> checkpoint(lambda t: t.exp().sum(), x, use_reentrant=False, context_fn=keep).backward()
    >>> x.grad
    tensor([2.7183, 7.3891])
    """
    if not callable(policy_fn_or_list) and not isinstance(policy_fn_or_list, (list, tuple)):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    policy = policy_fn_or_list if callable(policy_fn_or_list) else _keeping(policy_fn_or_list)
    results: _Results = defaultdict(list)
    return _Keeping(policy, results), _Repeating(results, allow_cache_entry_mutation)


def _keeping(ops: Sequence[Any]) -> Callable[..., CheckpointPolicy]:
    """The policy that keeps the results of the listed ops."""
    for op in ops:
        if not isinstance(op, (Overload, CustomOp)):
            wanted = f"; say {op}.default" if hasattr(op, "overloads") else ""
            raise ValueError(
                f"Expected op in `op_list` to be an OpOverload but got: {op} of type "
                f"{type(op).__name__}{wanted}"
            )
    kept = set(ops)

    def policy(context: Any, op: Any, *args: object, **kwargs: object) -> CheckpointPolicy:
        return CheckpointPolicy.MUST_SAVE if op in kept else CheckpointPolicy.PREFER_RECOMPUTE

    return policy
