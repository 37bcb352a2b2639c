"""Random tensors, and the streams that their numbers come from."""
