"""Names of ``torch.fx`` that only programs for PyTorch want."""

__all__: list[str] = []
