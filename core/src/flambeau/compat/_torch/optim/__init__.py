"""Names of ``torch.optim`` that only programs for PyTorch want."""

__all__: list[str] = []
