"""Device ``lazy`` for flambeau: arrays that are computed once somebody looks."""
