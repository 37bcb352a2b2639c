"""Names of ``torch.utils.data`` and below that only programs for PyTorch want."""
