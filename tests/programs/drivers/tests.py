"""The tests of a library, with one line for each that passes."""

import sys

import pytest

OPTIONS = ["-q", "-rp", "--no-header", "-p", "no:cacheprovider", "-p", "no:randomly", "--tb=line"]


def main() -> int:
    """Run what the arguments name; 0 whatever comes of it, since the lines are what counts."""
    # This folder is on the path, where `tests` is to be the library's.
    del sys.path[0]
    return min(pytest.main([*OPTIONS, *sys.argv[1:]]), 1) * 0


if __name__ == "__main__":
    sys.exit(main())
