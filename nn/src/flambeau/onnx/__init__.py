"""Models in the format of ONNX: `export` writes them, `load` makes modules of them.

Needs the package onnx: ``pip install 'onnx>=1.17'``.  What a model asks for and flambeau
lacks is an `UnsupportedError` that names the node; what a program asks for and ONNX lacks is an
`UnsupportedOperatorError` that names the line.
"""

from flambeau.onnx import symbolic_helper, symbolic_registry
from flambeau.onnx._export.errors import (
    CheckerError,
    OnnxExporterError,
    UnsupportedOperatorError,
)
from flambeau.onnx._export.exporting import (
    OperatorExportTypes,
    TrainingMode,
    export,
    export_to_pretty_string,
    register_custom_op_symbolic,
    select_model_mode_for_export,
    unregister_custom_op_symbolic,
)
from flambeau.onnx._export.graph import TensorProtoDataType
from flambeau.onnx._export.opset_functions import modules as _opset_modules
from flambeau.onnx._export.state import is_in_onnx_export
from flambeau.onnx._loading import load
from flambeau.onnx._model import ONNXModule
from flambeau.onnx._operators.table import UnsupportedError
from flambeau.onnx._summary import summary

__all__ = [
    "CheckerError",
    "ONNXModule",
    "OnnxExporterError",
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "UnsupportedError",
    "UnsupportedOperatorError",
    "export",
    "export_to_pretty_string",
    "is_in_onnx_export",
    "load",
    "register_custom_op_symbolic",
    "select_model_mode_for_export",
    "summary",
    "symbolic_helper",
    "symbolic_registry",
    "unregister_custom_op_symbolic",
]

globals().update(_opset_modules(__name__))
