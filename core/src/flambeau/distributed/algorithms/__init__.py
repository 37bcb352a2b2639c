"""Ways to exchange gradients that `DistributedDataParallel` can be given."""
