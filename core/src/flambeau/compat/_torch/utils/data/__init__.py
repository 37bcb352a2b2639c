"""Names of ``torch.utils.data`` that only programs for PyTorch want."""

__all__: list[str] = []
