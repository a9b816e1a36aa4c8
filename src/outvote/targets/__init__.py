"""From names on the command line to targets, installed or built."""
