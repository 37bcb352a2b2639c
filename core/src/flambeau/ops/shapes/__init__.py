"""Ops that compute nothing: views, joins, pieces, arrangements and copies."""
