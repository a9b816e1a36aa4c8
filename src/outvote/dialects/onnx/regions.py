"""Fused nodes: which of them a runtime computes at once."""

from outvote.run.regions import region_of

__all__ = ["region_of"]
