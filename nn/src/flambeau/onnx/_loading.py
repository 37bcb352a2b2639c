"""Models from files."""

from __future__ import annotations

import os
from typing import IO, Any

from flambeau.onnx._model import ONNXModule
from flambeau.onnx._order import check_place, check_texts
from flambeau.overrides import all_take_as_annotated

__all__ = ["load"]


def load(f: str | os.PathLike[str] | IO[bytes] | Any) -> ONNXModule:
    """A model in ONNX's format as a module that can be called, trained and saved.

    Weights beside the file (external data) are read with it, if a path is given.  Needs the
    package onnx: ``pip install 'onnx>=1.17'``.

    Args:
        f: a path, an open file, or a ``ModelProto``.

    Raises:
        UnsupportedError: the model has an operator, a dtype or a form that flambeau lacks.
        ValueError: this is no model of ONNX, or one that cannot run.
        ModuleNotFoundError: the package onnx is not installed.

    >>> import flambeau as fb, onnx.parser
    >>> model = onnx.parser.parse_model('''
    ...   <ir_version: 8, opset_import: ["": 18]>
    ...   double (float[N] x) => (float[N] y) { y = Add(x, x) }
    ... ''')
    >>> fb.onnx.load(model)(fb.ones(2))
    tensor([2., 2.])
    """
    from google.protobuf.message import DecodeError

    import onnx

    if isinstance(f, onnx.ModelProto):
        return ONNXModule(f)
    check_place(f)
    try:
        model = onnx.load(f, load_external_data=False)
        check_texts(model)  # places of weights are among them
        if isinstance(f, str | os.PathLike):
            onnx.load_external_data_for_model(model, os.path.dirname(f))
    except DecodeError as error:
        raise ValueError(f"{getattr(f, 'name', f)!s} is no model of ONNX: {error}") from error
    except onnx.checker.ValidationError as error:
        raise ValueError(f"what lies beside {getattr(f, 'name', f)!s}: {error}") from error
    return ONNXModule(model)


all_take_as_annotated(globals())
