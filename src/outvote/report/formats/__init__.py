"""One module per format: what it is called, and how a result is written in it."""
