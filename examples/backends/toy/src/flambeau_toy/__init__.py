"""Device ``toy`` for flambeau: NumPy arrays behind a foreign name."""
