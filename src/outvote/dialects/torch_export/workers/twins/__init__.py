"""Transformations of programs, which import nothing of ours: their text goes into repro.py."""
