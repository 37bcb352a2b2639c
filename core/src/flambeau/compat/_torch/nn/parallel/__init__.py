"""Names of ``torch.nn.parallel`` that only programs for PyTorch want."""
