"""`DistributedDataParallel` by the name that PyTorch 1.0 kept for the older package."""

from flambeau.nn.parallel.distributed import DistributedDataParallel, DistributedDataParallelCPU

__all__ = ["DistributedDataParallel", "DistributedDataParallelCPU"]
