"""Sources of CUDA for AMD's compiler, which is not supported."""
