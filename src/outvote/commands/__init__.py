"""One file per command: its options, its help, and the call that does the work."""
