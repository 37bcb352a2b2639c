"""Ops that combine the elements along dimensions: sums, extrema, statistics, counts, scans."""
