"""Names of ``torch.nn.utils`` that only programs for PyTorch want."""

__all__: list[str] = []
