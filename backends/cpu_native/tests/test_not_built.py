"""Says why the other tests of this folder did not run."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


@pytest.mark.skipif(find_spec("flambeau_native") is None, reason="flambeau-native not installed")
def test_the_extension_was_built():
    if find_spec("flambeau_native._native") is None:
        pytest.skip("flambeau-native was installed without a C compiler: no compiled kernels")
    from flambeau_native.extension import native

    assert native is not None
