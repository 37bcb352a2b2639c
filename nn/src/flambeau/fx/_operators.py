"""The signs of Python's operators, by the names of their functions in `operator`."""

from __future__ import annotations

OPERATORS = {
    **{
        name: "{} " + sign + " {}"
        for name, sign in {
            "add": "+",
            "sub": "-",
            "mul": "*",
            "floordiv": "//",
            "truediv": "/",
            "mod": "%",
            "pow": "**",
            "lshift": "<<",
            "rshift": ">>",
            "and_": "&",
            "or_": "|",
            "xor": "^",
            "matmul": "@",
            "eq": "==",
            "ne": "!=",
            "lt": "<",
            "gt": ">",
            "le": "<=",
            "ge": ">=",
        }.items()
    },
    "getitem": "{}[{}]",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
}
INPLACE = {
    name: "{} " + sign + " {}"
    for name, sign in {
        "iadd": "+=",
        "iand": "&=",
        "ifloordiv": "//=",
        "ilshift": "<<=",
        "imod": "%=",
        "imul": "*=",
        "imatmul": "@=",
        "ior": "|=",
        "ipow": "**=",
        "irshift": ">>=",
        "isub": "-=",
        "itruediv": "/=",
        "ixor": "^=",
    }.items()
}
