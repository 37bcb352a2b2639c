"""Windows of signals, images and volumes: convolution, pooling, sampling."""
