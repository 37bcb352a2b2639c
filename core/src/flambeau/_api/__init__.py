"""The public names of `flambeau` that are no submodules."""
