"""Names of ``torch.distributed.algorithms`` that only programs for PyTorch want."""

__all__: list[str] = []
