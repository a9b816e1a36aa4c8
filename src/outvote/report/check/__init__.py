"""The pages of `check`."""
