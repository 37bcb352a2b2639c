"""``python -m flambeau_native`` prints which tests of the conformance kit concern this package.

The expression is for pytest's ``-k``; the status is 1 where there are no compiled kernels.
"""

from __future__ import annotations

import sys

from flambeau_native.extension import native


def main() -> int:
    """Print the expression."""
    if native is None:
        return 1
    from flambeau_native.kernels import KERNELS

    print(" or ".join(f"cpu-{name}- or cpu-{name}]" for name in KERNELS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
