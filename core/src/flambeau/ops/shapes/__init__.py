"""Ops that compute nothing: views, joins, parts, repetitions and copies."""
