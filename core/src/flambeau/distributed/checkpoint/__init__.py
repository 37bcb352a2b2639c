"""Checkpoints that several processes write and read together: ``flambeau.distributed.checkpoint``.

A checkpoint is a folder.  Each process writes a part, and a table of contents that is replaced at
once makes them a checkpoint: a job that is killed leaves the old one or the new one, whole.  What
is read is summed.  Any number of processes can load it.

>>> import flambeau as fb, tempfile
>>> import flambeau.distributed.checkpoint as dcp
>>> model = fb.nn.Linear(2, 1)
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = dcp.save({"model": model.state_dict(), "step": 7}, checkpoint_id=folder)
...     state = {"model": fb.nn.Linear(2, 1).state_dict(), "step": 0}
...     dcp.load(state, checkpoint_id=folder)
>>> state["step"], state["model"]["weight"].equal(model.weight)
(7, True)
"""

from __future__ import annotations

from flambeau.absence import tell as _tell
from flambeau.distributed.checkpoint._files import (
    BytesStorageMetadata,
    FileSystemReader,
    FileSystemWriter,
    Metadata,
    TensorStorageMetadata,
)
from flambeau.distributed.checkpoint._together import CheckpointException, load, save

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "FileSystemReader",
    "FileSystemWriter",
    "Metadata",
    "TensorStorageMetadata",
    "load",
    "save",
]


_tell(__name__)
