"""Distances between outputs, patterns, noise and votes: pure functions of arrays."""
