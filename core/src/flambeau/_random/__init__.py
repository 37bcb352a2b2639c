"""Random bits: generators, their engine, and streams equal to PyTorch's."""
