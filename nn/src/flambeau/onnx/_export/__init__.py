"""From graphs of TorchScript to models of ONNX."""
