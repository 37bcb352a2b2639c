"""Ops by NVIDIA's libraries, which plan what they compute: cuDNN and cuBLASLt."""
