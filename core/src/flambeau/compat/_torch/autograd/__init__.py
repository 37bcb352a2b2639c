"""Names of ``torch.autograd`` that only programs for PyTorch want."""

__all__: list[str] = []
