"""Run a script whose scalars for TensorBoard are printed, without those about speed."""

import runpy
import sys
from pathlib import Path

import torch.utils.tensorboard as board


class Printed:
    """A writer that prints scalars."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def add_scalar(self, tag: str, value: float, step: int = 0) -> None:
        """Print a number, unless it is a speed."""
        if "SPS" not in tag:
            print(step, tag.replace("/", " "), f"{float(value):.7g}")

    def __getattr__(self, name: str) -> object:
        return lambda *args, **kwargs: None


board.SummaryWriter = Printed
sys.argv = sys.argv[1:]
sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
runpy.run_path(sys.argv[0], run_name="__main__")
