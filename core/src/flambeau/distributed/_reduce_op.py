"""How the elements of several processes are combined."""

from __future__ import annotations

from enum import Enum


class ReduceOp(Enum):
    """How the elements of several processes become one.

    ``AVG`` is the sum divided by the number of processes, for floating and complex dtypes;
    ``BAND``, ``BOR`` and ``BXOR`` are for integers and bool.

    >>> import flambeau as fb
    >>> fb.distributed.ReduceOp.SUM.name
    'SUM'
    """

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


# In PyTorch the members are of a class within the class: programs ask whether a thing is of either.
setattr(ReduceOp, "RedOpType", ReduceOp)  # noqa: B010 - in the body it would be a member


class _Deprecated(type):
    """The older enum, whose members are those of `ReduceOp`."""

    def __getattr__(cls, name: str) -> ReduceOp:
        try:
            return ReduceOp[name]
        except KeyError:
            raise AttributeError(f"reduce_op has no {name!r}") from None


class reduce_op(metaclass=_Deprecated):  # noqa: N801 - PyTorch's name
    """The older name of `ReduceOp`, with SUM, PRODUCT, MIN and MAX.

    >>> import flambeau as fb
    >>> fb.distributed.reduce_op.MAX is fb.distributed.ReduceOp.MAX
    True
    """

    SUM = ReduceOp.SUM
    PRODUCT = ReduceOp.PRODUCT
    MIN = ReduceOp.MIN
    MAX = ReduceOp.MAX
