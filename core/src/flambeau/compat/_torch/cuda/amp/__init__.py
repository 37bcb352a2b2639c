"""Names of ``torch.cuda.amp`` that only programs for PyTorch want."""

__all__: list[str] = []
