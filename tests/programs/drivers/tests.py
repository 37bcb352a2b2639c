"""The tests of a library, with one line for each that passes."""

import sys

import pytest

options = ["-q", "-rp", "--no-header", "-p", "no:cacheprovider", "-p", "no:randomly", "--tb=line"]
sys.exit(min(pytest.main([*options, *sys.argv[1:]]), 1) * 0)
