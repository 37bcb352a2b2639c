"""Data pipes that are maps, by their short names."""

from flambeau.compat._torch.utils.data.datapipes._map_pipes import (
    BatcherMapDataPipe as Batcher,
)
from flambeau.compat._torch.utils.data.datapipes._map_pipes import (
    ConcaterMapDataPipe as Concater,
)
from flambeau.compat._torch.utils.data.datapipes._map_pipes import (
    MapperMapDataPipe as Mapper,
)
from flambeau.compat._torch.utils.data.datapipes._map_pipes import (
    SequenceWrapperMapDataPipe as SequenceWrapper,
)
from flambeau.compat._torch.utils.data.datapipes._map_pipes import (
    ShufflerIterDataPipe as Shuffler,
)
from flambeau.compat._torch.utils.data.datapipes._map_pipes import (
    ZipperMapDataPipe as Zipper,
)

__all__ = [
    "Batcher",
    "Concater",
    "Mapper",
    "SequenceWrapper",
    "Shuffler",
    "Zipper",
]
