"""Inputs on which models that should agree do not (DeepXplore), and what can be done with them."""
