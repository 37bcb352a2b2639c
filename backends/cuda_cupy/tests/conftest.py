"""Lets the tests of this folder import what stands beside them, and marks what needs a GPU."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

pytest.importorskip("flambeau_cupy", reason="needs flambeau-cupy")


@pytest.fixture(scope="module")
def cudnn():
    """The real frontend."""
    from frontend import real

    found, why = real()
    if found is None:
        pytest.skip(why)
    return found


@pytest.fixture(scope="module")
def where(cudnn):
    """The arguments of a graph for a device that is not there."""
    from frontend import H200

    properties = cudnn.create_device_properties(json.dumps(H200))
    return {"device_property": properties, "sm_version": 90}
