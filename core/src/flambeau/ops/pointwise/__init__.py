"""Ops that compute each element from the elements in the same place."""
