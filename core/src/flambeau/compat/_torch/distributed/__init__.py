"""Names of ``torch.distributed`` that only programs for PyTorch want."""

__all__: list[str] = []
