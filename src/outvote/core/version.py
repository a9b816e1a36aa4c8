"""The version of outvote."""

VERSION = "0.1.0"
