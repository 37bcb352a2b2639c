"""Tracing: a program runs once, and what it calls is noted in a graph."""
