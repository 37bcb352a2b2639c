"""Where PyTorch keeps what `torch.func` offers."""
