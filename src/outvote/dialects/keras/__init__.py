"""Keras: everything that knows one of its layers by name."""
