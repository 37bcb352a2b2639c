"""Steps of optimisers over lists of tensors."""
