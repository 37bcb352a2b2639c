"""Names of ``torch.nn.modules`` that only programs for PyTorch want."""

__all__: list[str] = []
