"""How a tensor lies on a mesh of devices: libraries list it for layers that none shares."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Partial", "Placement", "Replicate", "Shard", "_StridedShard"]


class Placement:
    """What one dimension of a mesh has of a tensor."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each device has a part of it; of dimension `dim`, if that is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each device has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether what the devices have makes it by a reduction; by `reduce_op`, if given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each device has a part along a dimension."""

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class _StridedShard(Shard):
    """Parts along a dimension that another dimension of the mesh has split already."""

    split_factor: int = field(kw_only=True)

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each device has all of it."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Each device has a term; the reduction of all makes the tensor."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"
