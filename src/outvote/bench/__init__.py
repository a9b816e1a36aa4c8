"""Runs something on targets and returns what was seen: noise, steps, seconds."""
