"""Run the cells of a notebook, or the examples of a page, and tell what they leave.

As IPython does, the value of a cell's last expression is shown.  An error is told by its class and
ends the cell alone.  Below each cell stand the tensors that it has made or changed, and the
gradients of those that have a history: what a program does not print is compared as well.
"""

import ast
import json
import random
import re
import sys
import types
from pathlib import Path

import numpy as np
import torch


def cells(path: Path) -> list[str]:
    """The code in a file, without IPython's own commands."""
    text = path.read_text("utf-8")
    if path.suffix == ".ipynb":
        found = [
            "".join(cell["source"])
            for cell in json.loads(text)["cells"]
            if cell["cell_type"] == "code"
        ]
    else:
        found = re.findall(r"^```python *\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [re.sub(r"^(\s*)[%!].*$", r"\1pass", cell, flags=re.MULTILINE) for cell in found]


def fact(tensor: torch.Tensor) -> str:
    """Shape, and the sum of the numbers and of their distances from their mean."""
    if tensor.is_sparse or tensor.numel() == 0:
        return str(tuple(tensor.shape))
    x = tensor.detach()
    x = torch.view_as_real(x) if x.is_complex() else x
    x = x.double()
    return f"{tuple(tensor.shape)} {x.sum().item():.7g} {(x - x.mean()).abs().sum().item():.7g}"


def tensors(value: object) -> list[torch.Tensor]:
    """The tensors in a value: itself, in a list, or the parameters of a module."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, torch.nn.Module):
        return [*value.parameters(), *value.buffers()]
    if isinstance(value, (list, tuple)) and len(value) < 20:
        return [each for each in value if isinstance(each, torch.Tensor)]
    return []


def gradients(loose: list[torch.Tensor], known: dict[str, object]) -> None:
    """Print the gradients of what has a history, with respect to the parameters of all modules."""
    roots = [t for t in loose if t.grad_fn is not None and t.is_floating_point()]
    leaves = {
        id(p): p for v in known.values() if isinstance(v, torch.nn.Module) for p in v.parameters()
    }
    leaves = [p for p in leaves.values() if p.requires_grad]
    if not roots or not leaves:
        return
    total = torch.stack([t.float().square().mean() for t in roots]).sum()
    try:
        got = torch.autograd.grad(total, leaves, allow_unused=True, retain_graph=True)
    except RuntimeError:  # the program has gone back itself
        return
    norms = [f"{g.double().norm().item():.6g}" for g in got if g is not None and not g.is_sparse]
    print("  gradients", len(norms), *norms[:60])


def run(path: Path, edits: list[tuple[str, str]]) -> None:
    """Run all cells."""
    main = types.ModuleType("__main__")  # where what is pickled finds the classes of the cells
    sys.modules["__main__"] = main
    known = vars(main)
    known["display"] = print
    seen: dict[str, str] = {}
    for number, cell in enumerate(cells(path)):
        for pattern, instead in edits:
            cell = re.sub(pattern, instead, cell)
        random.seed(number)
        np.random.seed(number)
        torch.manual_seed(number)
        print(f"cell {number}", flush=True)
        try:
            body = ast.parse(cell).body
            last = (
                body.pop()
                if body and isinstance(body[-1], ast.Expr) and not cell.rstrip().endswith(";")
                else None
            )
            exec(compile(ast.Module(body, []), f"cell {number}", "exec"), known)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), known)
                if value is not None:
                    print(repr(value))
        except (Exception, SystemExit) as error:
            print(
                "  error",
                type(error).__name__,
                str(error)[:150].split("\n")[0],
                file=sys.stderr,
                flush=True,
            )
            print("  error", type(error).__name__)
        made = []
        for name, value in list(known.items()):
            if name.startswith("__"):
                continue
            held = tensors(value)
            try:
                told = " ".join(map(fact, held[:40]))
            except Exception as error:
                told = type(error).__name__
            if told and seen.get(name) != told:
                seen[name] = told
                made += held if isinstance(value, torch.Tensor) else []
                print(f"  {name}: {told}")
        gradients(made, known)


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    pairs = [each.partition("=>") for each in sys.argv[2:]]
    run(Path(sys.argv[1]), [(before, after) for before, _, after in pairs])
