"""Data pipes that are streams, by their short names."""

from flambeau.compat._torch.utils.data.datapipes._iter_pipes import (
    BatcherIterDataPipe as Batcher,
)
from flambeau.compat._torch.utils.data.datapipes._iter_pipes import (
    CollatorIterDataPipe as Collator,
)
from flambeau.compat._torch.utils.data.datapipes._iter_pipes import (
    FilterIterDataPipe as Filter,
)
from flambeau.compat._torch.utils.data.datapipes._iter_pipes import (
    GrouperIterDataPipe as Grouper,
)
from flambeau.compat._torch.utils.data.datapipes._iter_pipes import (
    IterableWrapperIterDataPipe as IterableWrapper,
)
from flambeau.compat._torch.utils.data.datapipes._iter_pipes import (
    MapperIterDataPipe as Mapper,
)
from flambeau.compat._torch.utils.data.datapipes._iter_pipes import (
    SamplerIterDataPipe as Sampler,
)
from flambeau.compat._torch.utils.data.datapipes._iter_pipes import (
    ShufflerIterDataPipe as Shuffler,
)
from flambeau.compat._torch.utils.data.datapipes._iter_pipes import (
    UnBatcherIterDataPipe as UnBatcher,
)
from flambeau.compat._torch.utils.data.datapipes._iter_several import (
    ConcaterIterDataPipe as Concater,
)
from flambeau.compat._torch.utils.data.datapipes._iter_several import (
    DemultiplexerIterDataPipe as Demultiplexer,
)
from flambeau.compat._torch.utils.data.datapipes._iter_several import (
    ForkerIterDataPipe as Forker,
)
from flambeau.compat._torch.utils.data.datapipes._iter_several import (
    MultiplexerIterDataPipe as Multiplexer,
)
from flambeau.compat._torch.utils.data.datapipes._iter_several import (
    ZipperIterDataPipe as Zipper,
)
from flambeau.compat._torch.utils.data.datapipes._iter_sources import (
    FileListerIterDataPipe as FileLister,
)
from flambeau.compat._torch.utils.data.datapipes._iter_sources import (
    FileOpenerIterDataPipe as FileOpener,
)
from flambeau.compat._torch.utils.data.datapipes._iter_sources import (
    ShardingFilterIterDataPipe as ShardingFilter,
)
from flambeau.compat._torch.utils.data.datapipes._iter_sources import (
    StreamReaderIterDataPipe as StreamReader,
)

__all__ = [
    "Batcher",
    "Collator",
    "Concater",
    "Demultiplexer",
    "FileLister",
    "FileOpener",
    "Filter",
    "Forker",
    "Grouper",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "Sampler",
    "ShardingFilter",
    "Shuffler",
    "StreamReader",
    "UnBatcher",
    "Zipper",
]
