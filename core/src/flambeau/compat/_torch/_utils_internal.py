"""Where PyTorch's own tests find and write their files."""

from __future__ import annotations

import os

import flambeau as fb

TEST_MASTER_ADDR = "127.0.0.1"
TEST_MASTER_PORT = 29500


def get_file_path(*path_components: str) -> str:
    """A path below the folder that the package is installed in."""
    return os.path.join(os.path.dirname(os.path.dirname(str(fb.__file__))), *path_components)


def get_file_path_2(*path_components: str) -> str:
    """The parts of a path, joined."""
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """The path itself."""
    return path


def prepare_multiprocessing_environment(path: str) -> None:
    """Nothing needs to be prepared for processes."""


def resolve_library_path(path: str) -> str:
    """The path of a file, without links."""
    return os.path.realpath(path)
