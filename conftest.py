"""What every test here shares: its random numbers, whichever tests ran before it in its process."""

import os
import random
import sys

import pytest

import flambeau as fb

SEED = int(os.environ.get("FLAMBEAU_TEST_SEED", "0"))
"""Another one shows which tests hold by the luck of their numbers."""


@pytest.fixture(autouse=True)
def seeded():
    """Each test draws its own numbers, so that a failure comes again when the test runs alone."""
    random.seed(SEED)
    fb.manual_seed(SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(SEED % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(SEED)
