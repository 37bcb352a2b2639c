"""From tensors to kernels and back: bound backends, recording, arguments, switches."""
