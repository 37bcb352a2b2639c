"""Names of ``torch.backends`` that only programs for PyTorch want."""

__all__: list[str] = []
