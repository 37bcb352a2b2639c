"""Models in the format of ONNX: `load` makes modules of them.

Needs the package onnx: ``pip install flambeau-nn[onnx]``.  What a model asks for and flambeau
lacks is an `UnsupportedError` that names the node.
"""

from flambeau.onnx._loading import load
from flambeau.onnx._model import ONNXModule
from flambeau.onnx._operators.table import UnsupportedError

__all__ = ["ONNXModule", "UnsupportedError", "load"]
