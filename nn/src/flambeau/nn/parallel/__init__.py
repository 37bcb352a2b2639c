"""One module on several devices: copies of it work on parts of a batch."""

from flambeau.nn.parallel import deprecated as deprecated
from flambeau.nn.parallel.data_parallel import DataParallel, data_parallel
from flambeau.nn.parallel.distributed import (
    DistributedDataParallel,
    DistributedDataParallelCPU,
)
from flambeau.nn.parallel.parallel_apply import parallel_apply
from flambeau.nn.parallel.replicate import replicate
from flambeau.nn.parallel.scatter_gather import gather, scatter, scatter_kwargs

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "DistributedDataParallelCPU",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
    "scatter_kwargs",
]
