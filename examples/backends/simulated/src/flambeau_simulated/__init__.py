"""Device ``simulated`` for flambeau: two accelerators in host memory, with streams and a pool."""
