"""Runs a command that runs pytest, perhaps several times, and names at its end all that failed.

Whatever ends it: each failure is written down when it happens (`conftest.py`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path


def main(command: list[str]) -> int:
    """Run the command; its status is the command's."""
    handle, name = tempfile.mkstemp(prefix="failures-")
    os.close(handle)
    file = Path(name)
    # What a shell starts in the background ignores SIGINT, and so would all that is started here:
    # a signal that has a handler is inherited as one that ends a process.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    child = subprocess.Popen(
        command, env={**os.environ, "FLAMBEAU_TEST_FAILURES": name}, process_group=0
    )
    # A machine that ends a job asks for it by SIGTERM, at which pytest would end without a word.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os.killpg(child.pid, signal.SIGINT))
    try:
        status = child.wait()
        if failed := file.read_text(encoding="utf-8").splitlines():
            print(f"\n{len(failed)} failed:", *failed, sep="\n  ", flush=True)
        elif status:
            print("\nno test failed, but not all of them ran to their end", flush=True)
    finally:
        file.unlink()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
