"""Names of ``torch.nn`` that only programs for PyTorch want."""

__all__: list[str] = []
