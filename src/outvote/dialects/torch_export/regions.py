"""Fused calls: which of them Inductor computes in one loop."""

from outvote.run.regions import region_of

__all__ = ["region_of"]
