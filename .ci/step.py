"""Runs a command that takes a while: says what is done, and every few seconds that it still is.

What the command says is shown if it fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time


def main() -> int:
    """Run what the command line says; its status is the command's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=float, default=3.0, help="seconds between signs of life")
    parser.add_argument("what", help="what is done, and about how long it takes")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    print(f"{arguments.what} ...", flush=True)
    begin = time.monotonic()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(arguments.command, stdout=said, stderr=subprocess.STDOUT)
        try:
            while True:
                try:
                    status = child.wait(arguments.every)
                    break
                except subprocess.TimeoutExpired:
                    print(f"  {time.monotonic() - begin:.0f} s", flush=True)
        except KeyboardInterrupt:
            child.terminate()
            child.wait()
            status = 130
        if status:
            said.seek(0)
            sys.stdout.flush()
            sys.stdout.buffer.write(said.read())
            print(f"{arguments.what}: failed with status {status}", flush=True)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
