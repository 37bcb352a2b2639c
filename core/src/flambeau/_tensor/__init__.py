"""The Tensor: its class, its generated methods, how it prints, and who may override it."""
