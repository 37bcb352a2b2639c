"""Running programs that say ``import torch``, unchanged.

`torch_alias` makes the name ``torch`` mean flambeau in this process; ``python -m flambeau run
script.py`` does so for a script.
"""

from flambeau.compat._alias import torch_alias
from flambeau.compat._parts import PARTS, Part
from flambeau.compat._run import run_command, run_module, run_script, show_from_program
from flambeau.compat._versions import VERSIONS

__all__ = [
    "PARTS",
    "VERSIONS",
    "Part",
    "run_command",
    "run_module",
    "run_script",
    "show_from_program",
    "torch_alias",
]
