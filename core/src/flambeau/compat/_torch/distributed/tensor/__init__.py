"""How tensors lie on a mesh of devices can be said; there are no such tensors."""

from flambeau.compat._torch.distributed.tensor.placement_types import Partial as Partial
from flambeau.compat._torch.distributed.tensor.placement_types import Placement as Placement
from flambeau.compat._torch.distributed.tensor.placement_types import Replicate as Replicate
from flambeau.compat._torch.distributed.tensor.placement_types import Shard as Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
