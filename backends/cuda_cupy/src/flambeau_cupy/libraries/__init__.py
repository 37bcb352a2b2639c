"""NVIDIA's libraries: cuDNN and cuBLASLt, which plan what they compute, and NCCL."""
