"""The language of scripts: each form that the front end has, with a program; and the ops."""

from __future__ import annotations

import ast
import textwrap
from typing import TYPE_CHECKING, Any

import flambeau
from flambeau.jit._frontend import expressions, statements
from flambeau.jit._schemas import names, schemas

if TYPE_CHECKING:
    from reference import Reference

STATEMENTS = {
    "AnnAssign": "def f(x):\n    y: Dict[str, int] = {}\n    y['a'] = 1\n    return y",
    "Assert": "def f(x):\n    assert x.dim() == 1, 'a vector is needed'\n    return x",
    "Assign": "def f(x):\n    a, (b, c) = x, (1, 2)\n    a = a * b + c\n    return a",
    "AugAssign": "def f(x):\n    n = 1\n    n += 2\n    return x * n",
    "Break": "def f(x):\n    for i in range(10):\n        if i == 3:\n            break\n"
    "        x = x + i\n    return x",
    "Continue": "def f(x):\n    for i in range(4):\n        if i == 2:\n            continue\n"
    "        x = x + i\n    return x",
    "Delete": "def f(x):\n    held = {'a': 1, 'b': 2}\n    del held['a']\n    return held",
    "Expr": "def f(x):\n    held = [1]\n    held.append(2)\n    return held",
    "For": "def f(x):\n    for i, (a, b) in enumerate(zip([1, 2], [3, 4])):\n"
    "        x = x + i * a * b\n    return x",
    "If": "def f(x):\n    if bool(x.sum() > 0):\n        y = x\n    elif x.dim() == 2:\n"
    "        y = -x\n    else:\n        y = x * 0\n    return y",
    "Pass": "def f(x):\n    pass\n    return x",
    "Raise": "def f(x):\n    if x.dim() != 1:\n        raise ValueError('a vector is needed')\n"
    "    return x",
    "Return": "def f(x):\n    if x.dim() == 1:\n        return x\n    return x.flatten()",
    "While": "def f(x):\n    n = 0\n    while n < 3:\n        x, n = x * 2, n + 1\n    return x",
    "With": "def f(x):\n    with torch.no_grad():\n        y = x * 2\n    return y",
}
EXPRESSIONS = {
    "Attribute": "def f(x):\n    return list(x.shape), x.dtype == torch.float32",
    "BinOp": "def f(x):\n    return (x + 1) * 2 - x / 4, 7 // 2, 2.0 ** 3, 5 % 3, 6 & 3 | 8",
    "BoolOp": "def f(x):\n    return x.dim() == 1 and x.size(0) > 1 or False",
    "Call": "def f(x):\n    return torch.clamp(x, min=0.0), len([1, 2]), max(1, 2), int(2.5)",
    "Compare": "def f(x):\n    return x.dim() == 1, 1 < 2, 1 in [1, 2], x is not None",
    "Constant": "def f(x):\n    return 1, 2.5, 'text', True, None",
    "Dict": "def f(x):\n    return {'a': x, 'b': x * 2}",
    "DictComp": "def f(x):\n    return {i: i * i for i in range(3)}",
    "GeneratorExp": "def f(x):\n    return any(i > 1 for i in [1, 2])",
    "IfExp": "def f(x):\n    return x if x.dim() == 1 else x.flatten()",
    "JoinedStr": "def f(x):\n    n = 3\n    return f'{n} rows'",
    "List": "def f(x):\n    return [x, x * 2]",
    "ListComp": "def f(x):\n    return [i * 2 for i in [1, 2, 3] if i > 1]",
    "Name": "def f(x):\n    y = x\n    return y",
    "Subscript": "def f(x):\n    return x[0], x[1:], x[None, :], [1, 2, 3][-1], 'text'[0]",
    "Tuple": "def f(x):\n    return x, (1, 'a')",
    "UnaryOp": "def f(x):\n    return -x, not False, ~(x > 1)",
}
_NOT_OF_PYTHON = {"FunctionDef"}  # closures, which only the texts of this library have


def forms() -> tuple[list[str], list[str]]:
    """The names of the statements and expressions that the front end has."""
    known = [each for each in statements._FORMS if each.__module__ in ("ast", "_ast")]
    first = sorted({each.__name__ for each in known} | {"If"})
    return (
        [each for each in first if each not in _NOT_OF_PYTHON],
        sorted(each.__name__ for each in expressions._FORMS),
    )


def language(_: Reference) -> str:
    """A section for each form: a program, and what it gives."""
    parts = []
    for title, wanted, programs in zip(
        ("Statements", "Expressions"), forms(), (STATEMENTS, EXPRESSIONS), strict=True
    ):
        parts.append(f"## {title}")
        for name in wanted:
            source = programs[name]
            parts.append(f"### {name}\n\n{_what(name)}\n\n```python\n{source}\n```")
            parts.append(f"`f(torch.tensor([1.0, 2.0]))` gives `{result(source)}`.")
    return "\n\n".join(parts)


def _what(name: str) -> str:
    """The form as Python's grammar has it."""
    text = (getattr(ast, name).__doc__ or name).split("\n")[0]
    return f"Python's `{text}`."


def result(source: str) -> str:
    """What a program gives for a vector of two elements."""
    unit = flambeau.jit.CompilationUnit(source)
    return textwrap.shorten(repr(unit.f(flambeau.tensor([1.0, 2.0]))), 100)


def python_result(source: str) -> str:
    """What Python itself gives."""
    scope: dict[str, Any] = {"torch": flambeau, "Dict": dict}
    exec(source, scope)
    return textwrap.shorten(repr(scope["f"](flambeau.tensor([1.0, 2.0]))), 100)


def builtins(_: Reference) -> str:
    """The signatures of all ops that scripts may call."""
    rows = ["| op | signatures |", "|---|---|"]
    for name in sorted(names()):
        shown = "<br>".join(f"`{each}`" for each in schemas(name)).replace("|", "\\|")
        rows.append(f"| `{name.removeprefix('aten::')}` | {shown} |")
    return "\n".join(rows)
