"""``python -m flambeau_onednn`` prints which tests of the conformance kit concern this package.

The expression is for pytest's ``-k``; the status is 1 where oneDNN cannot be loaded.
"""

from __future__ import annotations

import sys

from flambeau_onednn.library import description, onednn


def main() -> int:
    """Print the expression."""
    if onednn() is None:
        print(f"oneDNN {description()}", file=sys.stderr)
        return 1
    from flambeau_onednn.kernels import KERNELS

    print(" or ".join(f"cpu-{name}- or cpu-{name}]" for name in KERNELS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
