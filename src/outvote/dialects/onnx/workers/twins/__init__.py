"""Transformations of graphs, one per file, found by its name. They import nothing of ours: their
text goes into repro.py as it is."""
