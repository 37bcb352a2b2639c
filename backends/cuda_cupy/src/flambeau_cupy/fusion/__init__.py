"""Elementwise ops and chains of them in one launch, by kernels that are generated."""
