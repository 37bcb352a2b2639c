"""Run a script on PyTorch, with a torchvision whose compiled part may be for another PyTorch."""

import re
import runpy
import sys
from pathlib import Path

import torch

_library = torch.library.Library("torchvision", "FRAGMENT")


def _import_torchvision() -> None:
    """Import it; operators that its library would have defined are defined, for no use."""
    while True:
        try:
            import torchvision  # noqa: F401
        except ImportError:
            return
        except RuntimeError as error:
            said = re.search(r"torchvision::(\w+) does not exist", str(error))
            if said is None:
                raise
            _library.define(f"{said[1]}(Tensor x) -> Tensor")
            for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
                del sys.modules[name]
        else:
            return


_import_torchvision()
sys.argv = sys.argv[1:]
sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
runpy.run_path(sys.argv[0], run_name="__main__")
