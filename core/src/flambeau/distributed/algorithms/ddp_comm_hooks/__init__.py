"""Communication hooks of `flambeau.nn.parallel.DistributedDataParallel`."""

from flambeau.distributed.algorithms.ddp_comm_hooks import default_hooks as default_hooks
