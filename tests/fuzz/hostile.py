"""Expressions that calls are made of: plausible arguments by name, and what nobody hoped for."""

from __future__ import annotations

import random
from collections.abc import Sequence

TENSORS = """
fb.ones(2, 3)
fb.ones(3)
fb.ones(3, 3)
fb.rand(2, 3, 4)
fb.rand(2, 3, 4, 5)
fb.rand(1, 2, 3, 4, 5)
fb.tensor(2.0)
fb.tensor(-1)
fb.zeros(0)
fb.zeros(2, 0, 3)
fb.zeros(0, dtype=fb.int64)
fb.arange(6).view(2, 3)
fb.arange(3)
fb.tensor([2**63 - 1, -(2**63), -1])
fb.tensor([[1, 0], [0, 1]])
fb.tensor(float("nan"))
fb.full((2, 3), float("nan"))
fb.full((2, 3), float("inf"))
fb.full((3, 3), -float("inf"))
fb.tensor([1e38, -1e38, 1e-45])
fb.ones(2, 3, dtype=fb.bool)
fb.ones(2, 3, dtype=fb.uint8)
fb.full((2, 3), -128, dtype=fb.int8)
fb.ones(2, 3, dtype=fb.int16)
fb.ones(2, 3, dtype=fb.int32)
fb.ones(2, 3, dtype=fb.float16)
fb.ones(2, 3, dtype=fb.bfloat16)
fb.ones(2, 3, dtype=fb.float64)
fb.ones(3, 3, dtype=fb.complex64)
fb.ones(2, 3, dtype=fb.complex128)
fb.ones(1).expand(2**17)
fb.ones(1, 1).expand(2**9, 2**9)
fb.ones(4).as_strided((2**16, 2), (0, 1))
fb.ones(6).as_strided((3, 3), (1, 1))
fb.ones(6).as_strided((2, 3), (0, 0))
fb.zeros(0).as_strided((0, 2**62), (1, 1))
fb.ones(2, 3).t()
fb.ones(4, 6)[::2, ::3]
fb.ones(2, 3, requires_grad=True)
fb.rand(2, 3, 4, requires_grad=True)
fb.ones(2, 3, requires_grad=True) * 2
fb.nn.Parameter(fb.ones(3, 3))
fb.ones(2, 3).to_sparse()
fb.ones(3, 3).to_sparse_csr()
fb.sparse_coo_tensor(fb.zeros(2, 0, dtype=fb.int64), fb.zeros(0), (2, 3))
fb.ones(2, 3, device="meta")
fb.ones((1,) * 65)
fb.ones((1,) * 33)
fb.ones(70000)
""".strip().splitlines()
"""Tensors of every dtype, with strange numbers, sizes, strides, layouts and histories."""

NUMBERS = """
0
1
-1
2
-2
3
7
1.5
-0.0
1e300
1e-320
True
False
2**31 - 1
2**31
-(2**31)
2**53 + 1
2**62
2**63 - 1
2**63
-(2**63)
-(2**63) - 1
2**64
2**70
-(2**70)
10**400
float("nan")
float("inf")
-float("inf")
1j
complex("nan")
np.float32(1.5)
np.float64("nan")
np.int64(3)
np.int8(-1)
np.uint64(2**64 - 1)
np.bool_(True)
""".strip().splitlines()

SEQUENCES = """
()
[]
(1,)
(2, 3)
[2, 3]
(3, 2, 1)
(-1, 3)
(0, 2)
(0, 0)
(-1, -1)
(1, 1)
(2**31 - 1, 1.5)
(2**31, 2**31)
(2**62, 3)
(2**62, 2**62)
(2**63, 0)
(2**70,)
(-(2**63),)
(1.5, 2.5)
(float("nan"), 1)
(float("inf"), 2)
(None, None)
(None,)
[None, 1]
(True, False)
("a", "b")
[[1], [2, 3]]
[[]]
[[1.0, 2.0], [3.0, 4.0]]
((1, 2), (3, 4))
(1,) * 65
range(3)
fb.Size([2, 3])
(fb.ones(2, 3), None)
(None, fb.ones(2, 3))
[fb.ones(2, 3), fb.ones(3)]
[fb.ones(2, 3), fb.ones(2, 3)]
[fb.ones(2, 3), 1]
(fb.zeros(0), fb.zeros(0))
(fb.tensor(1), fb.tensor(2))
[fb.ones(2, 3), "x"]
np.array([1.0, 2.0])
np.array([[1, 2], [3, 4]])
np.zeros((0, 3))
np.array("x")
np.array([None, 1], dtype=object)
np.array([1, 2], dtype=">i4")
[np.float32(1), np.int64(2)]
""".strip().splitlines()

OBJECTS = """
None
None
"x"
""
"mean"
"cpu"
"ii->i"
"fro"
"\\ud800"
"a" * 5000
b"x"
{}
{"a": 1}
{1, 2}
...
slice(None)
slice(0, 2**70)
slice(1.5, None)
object()
int
float
len
lambda *a, **k: None
lambda x: x
fb.float32
fb.float16
fb.bfloat16
fb.bool
fb.uint8
fb.int64
fb.complex64
fb.Tensor
fb.Generator()
fb.device("cpu")
fb.device("meta")
fb.contiguous_format
fb.channels_last
fb.preserve_format
fb.strided
fb.sparse_coo
fb.nn.Linear(3, 2)
fb.nn.functional
np.float32
iter([1, 2])
type("Odd", (), {"__index__": lambda self: 1 / 0})()
type("Odd", (), {"__len__": lambda self: 2**40})()
type("Odd", (), {"__float__": lambda self: "x"})()
""".strip().splitlines()

HOSTILE = [TENSORS, NUMBERS, SEQUENCES, OBJECTS]

PLAUSIBLE: dict[str, Sequence[str]] = {
    "dim": ["0", "1", "-1", "(0, 1)", "None", "-2"],
    "size": ["(2, 3)", "(4,)", "2", "()"],
    "dtype": ["fb.float32", "fb.float64", "fb.int64", "fb.bool", "fb.complex64", "fb.float16"],
    "bool": ["True", "False"],
    "int": ["0", "1", "2", "3", "-1"],
    "float": ["0.5", "1.0", "2.0", "0.0", "1e-5"],
    "str": ['"mean"', '"sum"', '"none"', '"reflect"', '"linear"'],
    "p": ["2", "1", "0.5", 'float("inf")', '"fro"'],
    "index": ["fb.tensor([0, 1])", "fb.tensor([[0, 1, 0]])", "fb.tensor(0)"],
    "mask": ["fb.tensor([[True, False, True], [False, True, False]])", "fb.ones(3) > 0"],
    "device": ['"cpu"', "None"],
    "generator": ["None", "fb.Generator()"],
    "kernel_size": ["2", "1", "(1, 2)", "(1, 1, 1)"],
    "stride": ["1", "2", "(1, 2)"],
    "padding": ["0", "1", "(1, 1)", '"same"'],
    "reduction": ['"mean"', '"sum"', '"none"'],
    "mode": ['"constant"', '"reflect"', '"bilinear"', '"nearest"', '"sum"', '"max"'],
    "weight": ["fb.ones(4, 3)", "fb.ones(2, 3, 1, 1)", "fb.ones(3)"],
    "target": ["fb.tensor([0, 2])", "fb.ones(2, 3)", "fb.tensor([1, -1])"],
    "tensors": ["[fb.ones(2, 3), fb.ones(2, 3)]", "(fb.ones(3), fb.ones(3))"],
    "hx": ["fb.zeros(1, 2, 3)", "(fb.zeros(1, 2, 3), fb.zeros(1, 2, 3))"],
    "params": ["[fb.nn.Parameter(fb.ones(2, 3))]", "fb.nn.Linear(3, 2).parameters()"],
    "scale": ["1.0", "fb.rand(3)", "fb.tensor(0.0)", "-fb.ones(3)"],
    "probs": ["0.5", "fb.rand(2, 3)", "fb.tensor([0.0, 1.0])", "fb.tensor([0.2, 0.5, 0.3])"],
    "matrix": ["fb.eye(3)", "fb.ones(3, 3)", "-fb.eye(3)", "fb.eye(2).expand(4, 2, 2)"],
    "optimizer": ["fb.optim.SGD([fb.nn.Parameter(fb.ones(3))], 0.1)"],
    "module": ["fb.nn.Linear(3, 2)", "fb.nn.Conv2d(3, 2, 1)"],
    "function": [
        "lambda x: x",
        "lambda x: x.sum()",
        "lambda *a: a[0]",
        "lambda x: x.sin() * x",
        "lambda x: (x @ x.mT).sum()",
        "lambda x: x.sum().item()",
        "fb.nn.Linear(3, 2)",
    ],
    "distribution": [
        "fb.distributions.Normal(fb.zeros(3), fb.ones(3))",
        "fb.distributions.Gamma(2.0, 1.0)",
        "fb.distributions.Categorical(fb.ones(3))",
        "fb.distributions.Uniform(0.0, 1.0)",
        "fb.distributions.Independent(fb.distributions.Normal(fb.zeros(3), 1.0), 1)",
    ],
    "transform": [
        "fb.distributions.ExpTransform()",
        "fb.distributions.StickBreakingTransform()",
        "[fb.distributions.SigmoidTransform(), fb.distributions.AffineTransform(0.0, 2.0)]",
    ],
    "constraint": ["fb.distributions.constraints.simplex", "fb.distributions.constraints.real"],
    "shape": ["(2, 3)", "(3, 2)", "(-1,)", "(6,)"],
    "state": [
        "{}",
        '{"param_groups": [{}], "state": {}}',
        '{"param_groups": [{"params": [0]}], "state": {}}',
        '{"param_groups": [{"params": [0]}], "state": {0: {"step": fb.tensor(1.0)}}}',
        '{"param_groups": [{"params": [0], "lr": 0.1}], "state": 3}',
        '{"weight": fb.ones(2, 3), "bias": fb.ones(2)}',
        '{"last_epoch": 2, "_last_lr": [0.1]}',
        "{1: 2}",
    ],
    "tensor": TENSORS[:6],
}
"""What a parameter may well be, by its name or its type."""

NAMES = {
    "self": "tensor", "input": "tensor", "other": "tensor", "x": "tensor", "A": "tensor",
    "dims": "dim", "dim0": "int", "dim1": "int", "axis": "dim", "sizes": "size", "repeats": "size",
    "index": "index", "indices": "index", "mask": "mask", "fn": "function", "func": "function",
    "f": "function", "closure": "function", "lambd": "float", "lr_lambda": "function",
    "model": "module", "ord": "p", "norm": "p", "output_size": "size", "shift": "int",
    "shifts": "size", "parameters": "params", "input_size": "int", "hidden_size": "int",
    "num_layers": "int", "p": "p", "lr": "float", "name": "str", "seq": "tensors",
    "hidden": "hx", "normalized_shape": "size", "output_padding": "padding", "dilation": "stride",
    "scale_factor": "float", "lengths": "index", "offsets": "index", "keepdim": "bool",
    "inputs": "tensors", "outputs": "tensors", "reduce": "str", "out": "tensor", "k": "int",
    "loc": "scale", "rate": "scale", "concentration": "scale", "concentration0": "scale",
    "concentration1": "scale", "df": "scale", "low": "scale", "high": "scale", "logits": "scale",
    "total_count": "int", "temperature": "scale", "covariance_matrix": "matrix",
    "precision_matrix": "matrix", "scale_tril": "matrix", "cov_factor": "matrix",
    "cov_diag": "scale", "base_distribution": "distribution", "base_dist": "distribution",
    "base": "distribution", "q": "distribution", "mixture_distribution": "distribution",
    "component_distribution": "distribution", "transforms": "transform", "tseq": "transform",
    "parts": "transform", "base_transform": "transform", "reinterpreted_batch_ndims": "int",
    "in_dims": "dim", "out_dims": "dim", "argnums": "dim", "tangents": "tensors",
    "state_dict": "state", "primals": "tensors", "cotangents": "tensors",
    "n": "int", "m": "int", "steps": "int", "num_classes": "int", "groups": "int", "eps": "float",
}  # fmt: skip
"""Names of parameters, to the entries of `PLAUSIBLE` that serve them."""


def hostile(random: random.Random, like: str = "") -> str:
    """An expression that need not make sense; often of the kind that `like` is."""
    if like and random.random() < 0.5:
        kind = next((pool for pool in HOSTILE if like in pool), None)
        return random.choice(kind or (NUMBERS if like[:1].isdigit() else TENSORS))
    return random.choice(random.choice(HOSTILE))


def plausible(random: random.Random, name: str, annotation: str = "") -> str:
    """An argument that a parameter of this name and type may well take."""
    kind = NAMES.get(name, name)
    if kind not in PLAUSIBLE:
        words = annotation.replace("|", " ").split()
        kind = next((w.lower() for w in words if w.lower() in PLAUSIBLE), "tensor")
        if (
            name.startswith(("num_", "max_", "n_"))
            or name.endswith(("_size", "_features"))
            or name.endswith(("_channels", "_dim"))
        ):
            kind = "int"
    return random.choice(PLAUSIBLE[kind])
