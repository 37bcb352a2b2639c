"""Programs that write in place: by index, through overlapping views, into memory of odd strides.

Kernels that write into the memory of a tensor trust shapes, strides, counts and places that others
have checked; compiled functions trust that arguments are what they were.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from hostile import NUMBERS, TENSORS

TARGETS = """
fb.rand(3, 4)
fb.rand(300, 400)
fb.rand(70000)
fb.rand(64, 1200, dtype=fb.float64)
fb.zeros(5)
fb.tensor(2.0)
fb.zeros(0)
fb.zeros(3, 0, 2)
fb.arange(12).view(3, 4)
fb.arange(70000)
fb.ones(3, 4, dtype=fb.bool)
fb.ones(9000, dtype=fb.uint8)
fb.rand(40, 500).half()
fb.rand(40, 500).bfloat16()
fb.ones(3, 4, dtype=fb.complex64)
fb.rand(1, 4).expand(3, 4)
fb.rand(1).expand(70000)
fb.rand(300, 1).expand(300, 400)
fb.arange(1).expand(9)
fb.rand(9).as_strided((3, 4), (1, 2))
fb.rand(70002).as_strided((70000, 3), (1, 1))
fb.rand(20000).as_strided((200, 100), (0, 1))
fb.rand(300, 400).t()
fb.rand(300, 400)[::7, 1::3]
fb.rand(70001)[1:]
fb.rand(5, 3, 4)[:, 1]
fb.rand(2, 3, 40, 50).to(memory_format=fb.channels_last)
fb.rand(3, 4, requires_grad=True)
fb.rand(3, 4, requires_grad=True) * 2
(fb.rand(70000, requires_grad=True) * 2)[1:]
fb.from_numpy(np.ones(70000, np.float32)[1:])
fb.from_numpy(np.frombuffer(bytearray(280001), np.float32, 70000, 1))
fb.frombuffer(bytearray(280001), dtype=fb.float32, offset=1, count=70000)
fb.frombuffer(bytearray(90), dtype=fb.int64, offset=3, count=9)
fb.from_numpy(np.broadcast_to(np.ones(4, np.float32), (3, 4)))
fb.from_numpy(np.frombuffer(bytes(280000), np.float32))
fb.rand(3, 4).to_sparse()
fb.rand(3, 4, device="meta")
fb.rand(3, 4, device="ref")
fb.nn.Parameter(fb.rand(3, 4)).data
fb.rand(12).view(fb.int32)
""".strip().splitlines()

INDICES = """
0
-1
3
2**31
-(2**63)
2**70
True
None
...
fb.tensor(1)
fb.tensor([0, 2])
fb.tensor([0, -3, 2, 2])
fb.tensor([2**63 - 1])
fb.tensor([-(2**63), 0])
fb.tensor([0, 2**32])
fb.tensor([[0, 1], [2, 0]])
fb.zeros(0, dtype=fb.int64)
fb.zeros(3, 0, dtype=fb.int64)
fb.tensor([0, 1], dtype=fb.int32)
fb.tensor([0, 1], dtype=fb.uint8)
fb.tensor([0.0, 1.0])
fb.zeros(1, dtype=fb.int64).expand(70000)
fb.arange(70000) % 3
fb.arange(70000).flip(0)
fb.arange(6).as_strided((3, 4), (0, 1))
fb.randint(0, 3, (300, 400))
fb.ones(3, 4, dtype=fb.bool)
fb.ones(3, dtype=fb.bool)
fb.ones(4, 3, dtype=fb.bool)
fb.zeros(70000, dtype=fb.bool)
fb.tensor(True)
fb.from_numpy(np.frombuffer(bytearray(25), np.int64, 3, 1))
x
x.long()
x.view(-1)[1:]
x > 0
x.shape
[0, 2]
[[0, 1], [True, False]]
slice(1, None)
slice(None, None, 2)
slice(2, 0)
slice(2**62, 2**63)
""".strip().splitlines()
"""Of tensors and of subscripts; `x` is what is written to."""

VALUES = """
1
0.5
float("nan")
2**70
1j
True
fb.tensor(3.0)
fb.tensor(3)
fb.rand(4)
fb.rand(3, 4)
fb.rand(2, 4)
fb.rand(300, 400)
fb.rand(70000)
fb.rand(1).expand(70000)
fb.rand(70000, 1)
fb.rand(400, 300).t()
fb.zeros(0)
fb.rand(3, 4, dtype=fb.float64)
fb.rand(3, 4).half()
fb.ones(3, 4, dtype=fb.complex64)
fb.rand(3, 4, requires_grad=True)
fb.rand(70000, requires_grad=True)
x
x[1:]
x[:-1]
x.t()
x.flip(0)
x.expand(2, *x.shape)
x.view(-1)
x.detach()
x.data
x.view(fb.uint8)
x.numpy()
""".strip().splitlines()

LIKELY: dict[str, Sequence[str]] = {
    "index": (
        "fb.arange(len(x))",
        "fb.zeros(x.shape, dtype=fb.int64)",
        "fb.arange(len(x)).flip(0)",
        "fb.zeros(len(x), dtype=fb.int64)",
        "x > 0.5",
        "fb.zeros_like(x, dtype=fb.int64)",
    ),
    "value": ("fb.ones_like(x)", "fb.rand(x.shape)", "x.clone()", "fb.tensor(2).to(x.dtype)"),
    "target": TARGETS[:3],
    "dim": ("0",),
    "number": ("2", "0.5"),
}
"""What fits, for as many calls as not: kernels are reached by what is accepted."""

DIMS = ("0", "0", "1", "-1", "2", "2**31", "-3", "True", "None")
NUMBER = ("1", "2", "-1", "0.5", "0", 'float("nan")', "2**70", "1j", "True", "fb.tensor(2.0)")
UNARY = """
neg abs exp log tanh sqrt square erf sign rsqrt reciprocal floor ceil trunc round sigmoid relu sin
cos digamma logit frac cumsum cumprod bitwise_not zero random normal uniform exponential t squeeze
unsqueeze transpose swapdims detach requires_grad resize fill_diagonal tril triu clamp erfinv sinh
""".split()
BINARY = """
add sub mul div pow fmod remainder floor_divide atan2 copysign hypot fill copy eq lt logical_and
bitwise_xor clamp_min clamp_max masked_fill xlogy nextafter heaviside gcd addr addmv renorm ldexp
""".split()
TERNARY = "addcmul addcdiv lerp addmm addbmm baddbmm addmv addr".split()
REGIONS = """
x[1:]
x[:-1]
x[::2]
x[1::2]
x.t()
x.view(-1)
x.view(-1)[1:]
x.flip(0)
x[None]
x.expand(2, *x.shape)
x.as_strided((2, 2), (1, 1))
x.as_strided((3,), (0,))
x.diagonal()
x.unfold(0, 2, 1)
x.detach()
x.view(fb.int32)
x
""".strip().splitlines()
FUNCTIONS = """
lambda x, y: x * 2 + y
lambda x, y: x.add_(y)
lambda x, y: (x.neg_(), x.sum())[1]
lambda x, y: x.index_add_(0, i, y)
lambda x, y: x.index_put_((i,), y, accumulate=True)
lambda x, y: x.scatter_add(0, i, y)
lambda x, y: x[i] + y
lambda x, y: fb.where(x > 0, x, y).sum()
lambda x, y: x @ y
lambda x, y: fb.addcmul(x, x, y, value=0.5).relu_()
lambda x, y: x.mul_(y).add_(x, alpha=2).sum()
lambda x, y: fb.lerp(x, y, 0.3).softmax(0)
lambda x, y: fb.nn.functional.linear(x, y).relu()
lambda x, y: (x[1:].add_(x[:-1]), y.sum())
lambda x, y: fb.cat([x, y]).sort()[0]
lambda x, y: x.view(-1)[: y.numel()].copy_(y.view(-1))
""".strip().splitlines()

USES = {
    "subscript": "x[{index}] = {value}",
    "subscripts": "x[{index}, {index}] = {value}",
    "operator on a subscript": "x[{index}] {operator}= {value}",
    "index_put_": "x.index_put_(({index},), {value}, accumulate={flag})",
    "index_put_ of several": "x.index_put_(({index}, {index}), {value}, accumulate={flag})",
    "index_add_": "x.index_add_({dim}, {index}, {value}, alpha={number})",
    "index_copy_": "x.index_copy_({dim}, {index}, {value})",
    "index_fill_": "x.index_fill_({dim}, {index}, {value})",
    "index_reduce_": "x.index_reduce_({dim}, {index}, {value}, {reduce}, include_self={flag})",
    "scatter_": "x.scatter_({dim}, {index}, {value})",
    "scatter_add_": "x.scatter_add_({dim}, {index}, {value})",
    "scatter_reduce_": "x.scatter_reduce_({dim}, {index}, {value}, {reduce}, include_self={flag})",
    "put_": "x.put_({index}, {value}, accumulate={flag})",
    "masks": "x.{masked}({index}, {value})",
    "a function of elements": "x.{unary}_()",
    "one of a region": "y = {region}\ny.{unary}_()",
    "limits": "x.clamp_({number}, {number})",
    "two operands": "x.{binary}_({value})",
    "a sum with a product": "x.{addition}_({value}, alpha={number})",
    "three operands": "x.{ternary}_({value}, {value})",
    "three operands and a number": "x.{ternary}_({value}, {value}, {named}={number})",
    "regions that overlap": "y = {region}\ny.{binary}_({region})",
    "sums of such regions": "y = {region}\ny.{addition}_({region}, alpha={number})",
    "three such regions": "y = {region}\ny.{ternary}_({region}, {region})",
    "results into regions": "fb.{binary}({value}, {value}, out={region})",
    "other memory": "x.{changed}\nx.{unary}_()",
    "compiled": (
        "i = {index}\nf = fb.compile({function})\ny = {value}\nf(x, y)\nf(x, y)\n"
        "r = f({target}, y)\nr = f(x, {value})"
    ),
    "compiled in other memory": (
        "i = {index}\nf = fb.compile({function})\ny = {value}\nf(x, y)\nf(x, y)\nx.{changed}\n"
        "r = f(x, y)"
    ),
    "compiled gradient": (
        "i = {index}\nf = fb.compile({function})\nx = x.detach().requires_grad_()\ny = {value}\n"
        "for z in (y, y, {value}):\n    r = f(x * 1, z)\n    r.sum().backward()"
    ),
}
"""Programs by what they are about; the first line of all of them makes `x`."""

CHANGED = (
    "resize_(2, 2)",
    "resize_(70000)",
    "untyped_storage().resize_(0)",
    "untyped_storage().resize_(2**20)",
    "set_(fb.rand(3))",
    "set_(x.untyped_storage(), 1, (2, 2), (2, 1))",
    "set_(x.untyped_storage(), 0, (70000, 70000), (0, 0))",
    "swapaxes_(0, -1)",
    "unsqueeze_(0)",
    "__setattr__('data', fb.rand(2, 3))",
    "__setattr__('data', fb.rand(70000).double())",
    "as_strided_((2, 3), (0, 1))",
)


def program(chance: random.Random, use: str) -> str:
    """A program of this use."""
    pools: dict[str, Sequence[str]] = {
        "index": INDICES,
        "value": VALUES,
        "target": TARGETS,
        "dim": DIMS,
        "number": NUMBER,
        "unary": UNARY,
        "binary": BINARY,
        "ternary": TERNARY,
        "region": REGIONS,
        "function": FUNCTIONS,
        "changed": CHANGED,
        "flag": ("True", "False"),
        "operator": ("+", "-", "*", "/", "//", "**", "&", "@"),
        "reduce": ('"sum"', '"prod"', '"mean"', '"amax"', '"amin"', '"x"'),
        "masked": ("masked_fill_", "masked_scatter_", "masked_fill", "where"),
        "addition": ("add", "sub"),
        "named": ("value", "weight", "alpha", "beta"),
    }
    odd: dict[str, Sequence[str]] = {
        "index": NUMBERS,
        "value": TENSORS,
    }  # of what all programs are made of
    text = USES[use]
    for name, pool in pools.items():
        while (slot := f"{{{name}}}") in text:
            kind = chance.random()
            source = odd if kind < 0.1 else LIKELY if kind < 0.6 else pools
            text = text.replace(slot, chance.choice(source.get(name, pool)), 1)
    lines = text.split("\n")
    if not any(line.startswith("r = ") for line in lines):
        lines.append("r = x")
    return "\n".join([f"x = {chance.choice(TARGETS)}", *lines]) + "\n"
