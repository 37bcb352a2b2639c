"""The tests of a library, with one line for each that passes."""

import random
import sys

import numpy as np
import pytest

OPTIONS = ["-q", "-rp", "--no-header", "-p", "no:cacheprovider", "-p", "no:randomly", "--tb=line"]


def main() -> int:
    """Run what the arguments name; 0 whatever comes of it, since the lines are what counts."""
    # This folder is on the path, where `tests` is to be the library's.
    del sys.path[0]
    import torch  # of the process that runs the programs

    # What the tests draw without a seed is the same in every run, and on both libraries.
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    return min(pytest.main([*OPTIONS, *sys.argv[1:]]), 1) * 0


if __name__ == "__main__":
    sys.exit(main())
