"""Facts about tensors, without tensors: dtypes, devices, sizes, layouts, memory formats."""
