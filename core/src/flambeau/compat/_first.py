"""Runs a script that a program started: a file, as the script is, and no module found on the path.

So Python looks in no folder that it would not look in for the script itself.
"""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # this file's folder, before anything is imported

import runpy

if __name__ == "__main__":
    runpy.run_module("flambeau", run_name="__main__")
