"""Strategies: they are asked what to try and told what came of it; they run nothing."""
