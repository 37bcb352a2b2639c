"""Running programs that say ``import torch``, unchanged.

`torch_alias` makes the name ``torch`` mean flambeau in this process; ``python -m flambeau run
script.py`` does so for a script.
"""

from flambeau.compat._alias import torch_alias
from flambeau.compat._run import run_script

__all__ = ["run_script", "torch_alias"]
